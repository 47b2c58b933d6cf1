"""What a model could say to harm its reader stays words: while it streams, in the notebook, and exported from it."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import nbconvert
import pytest
from playwright.sync_api import Browser, Page, expect

from famnb.endpoints import ENDPOINTS, compose
from famnb.events import Closed, Delta, Opened
from famnb.profiles import DEFAULT
from famnb.reply import Reply
from famnb.widget.live.base import join_front
from famnb.widget.live.pane import Pane
from tests.browser.lab_page import Lab
from tests.support.hostile_text import FAR, HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.full]

TEMPLATE_HOSTS = {"cdnjs.cloudflare.com"}
"""Where nbconvert's own page fetches MathJax and its like from."""
SHOW = """
import json
from pathlib import Path
from IPython.display import display
from famnb.endpoints import compose
from famnb.reply import Block, Reply
from famnb.widget.html import transcript

def said(text):
    kinds = ("thinking", "text", "refusal", "tool_call")
    blocks = tuple(Block(at=(0, at), kind=kind, text=text, name=text[:80]) for at, kind in enumerate(kinds))
    return Reply(endpoint="messages", request=compose("messages", text, system=text), blocks=blocks, status="completed")

texts = json.loads(Path("hostile.json").read_text())
groups = [texts[start : start + 4] for start in range(0, len(texts), 4)]
bundles = [transcript.render([part for text in group for part in transcript.sections(said(text))]) for group in groups]
"""
HTML = "for bundle in bundles: display(bundle, raw=True)"
MARKDOWN = 'for bundle in bundles: display({"text/markdown": bundle["text/markdown"]}, raw=True)'
BAD = """where => {
  const bad = [];
  const forbidden = "script, img, image, iframe, object, embed, svg, math, form, input, link, meta, base, style, video";
  const ours = each => !each.closest("mjx-container, .jp-Mermaid, .famnb-copier");
  for (const root of document.querySelectorAll(where)) {
    bad.push(...[...root.querySelectorAll(forbidden)].filter(ours).map(each => each.outerHTML.slice(0, 200)));
    for (const each of root.querySelectorAll("*")) {
      for (const { name, value } of each.attributes) {
        const far = name === "href" && !/^(https?:|\\/\\/|mailto:|#)/i.test(value);
        if (name.startsWith("on") || name === "srcdoc" || far) bad.push(`${each.tagName} ${name}=${value}`);
      }
    }
  }
  return bad;
}"""
"""Every element in these places that acts or loads, every handler, and every link that leads to a script."""


@dataclasses.dataclass
class Saying:
    """A stream that has said one text as thinking and as an answer, and has not ended."""

    text: str
    running = True

    def __post_init__(self) -> None:
        request = compose("messages", self.text, system=self.text)
        endpoint = next(each for each in ENDPOINTS.values() if each.name == "messages")
        self.exchange = SimpleNamespace(request=request, endpoint=endpoint, service=None, profile=DEFAULT)
        self.reply = Reply(request=request, endpoint="messages")
        self.events: list[object] = []

    def says(self, *, closed: bool) -> None:
        """Say it in two pieces, or close what was said."""
        half = len(self.text) // 2
        for at, kind in enumerate(("thinking", "text", "tool_call")):
            place = (0, at)
            if closed:
                self.events.append(Closed(place))
            else:
                self.events += [Opened(place, kind, name=self.text[:80])]
                self.events += [Delta(place, kind, piece) for piece in (self.text[:half], self.text[half:])]


def watched(page: Page) -> tuple[list[str], list[str]]:
    """The addresses that a page asks for, and the dialogs that it opens, from now on; nothing leaves the machine."""
    opened: list[str] = []
    page.on("dialog", lambda dialog: (opened.append(dialog.message), dialog.dismiss()))
    return requested(page, page), opened


def requested(page: Page, listens: Page | Lab) -> list[str]:
    """The addresses that a page asks for from now on; nothing leaves the machine."""
    asked: list[str] = []
    listens.on("request", lambda request: asked.append(request.url))
    page.route(lambda url: urlsplit(url).hostname not in ("127.0.0.1", None), lambda route: route.abort())
    return asked


def far(asked: list[str]) -> list[str]:
    """Those addresses that no page of ours or of nbconvert's has a reason to ask for."""
    hosts = {"127.0.0.1", "", None, *TEMPLATE_HOSTS}
    return [url for url in asked if urlsplit(url).hostname not in hosts or FAR in url or "pixel" in url]


def test_hostile_text_is_inert_while_it_streams(browser: Browser):
    """Open, closed and in a snapshot: every text is on the page as text, and the page does nothing."""
    page = browser.new_context().new_page()
    asked, opened = watched(page)
    source = base64.b64encode(join_front("live.js").encode()).decode()
    page.evaluate(START, f"data:text/javascript;base64,{source}")
    streams = [Saying(text) for text in HOSTILE]
    panes = [Pane(stream, id=f"pane{number}") for number, stream in enumerate(streams)]
    hear = "message => window.hear(message)"
    page.evaluate(hear, {"kind": "snapshot", "seq": 1, "panes": [pane.snapshot() for pane in panes]})
    for seq, closed in ((2, False), (3, True), (4, True)):
        for stream in streams:
            stream.says(closed=closed)
        told = {str(place): pane.changes() for place, pane in enumerate(panes)}
        page.evaluate(hear, {"kind": "changes", "seq": seq, "panes": told})
        assert page.evaluate(BAD, "body") == []
    page.evaluate(hear, {"kind": "snapshot", "seq": 5, "panes": [pane.snapshot() for pane in panes]})
    expect(page.locator(".famnb-text").first).to_contain_text("<script>window.__pwned=1</script>")
    assert page.evaluate(BAD, "body") == []
    assert page.evaluate("window.__pwned") is None
    assert (far(asked), opened) == ([], [])
    page.context.close()


START = """async source => {
  const model = {
    get: () => undefined, set: () => {}, save_changes: () => {}, off: () => {}, send: () => {},
    on: (name, listener) => { if (name === "msg:custom") window.hear = listener; },
  };
  const front = (await import(source)).default();
  front.initialize({ model });
  front.render({ model, el: document.body });
}"""


def test_hostile_text_is_inert_in_the_notebook_and_exported(lab: Lab, browser: Browser, tmp_path: Path):
    """Shown in a trusted notebook as HTML and as Markdown, then exported to HTML and opened with scripts on."""
    asked = requested(lab.page, lab)
    (lab.jupyter.root / "hostile.json").write_text(json.dumps(HOSTILE))
    lab.notebook(SHOW, HTML, MARKDOWN)
    for number in (0, 1, 2):
        lab.run(number)
    expect(lab.output(1)).to_contain_text("<script>window.__pwned=1</script>")
    expect(lab.output(2)).to_contain_text("<script>window.__pwned=1</script>")
    assert lab.page.evaluate(BAD, ".jp-OutputArea-output") == []
    assert lab.page.evaluate("window.__pwned") is None
    assert (far(asked), lab.dialogs) == ([], [])

    lab.save()
    exported = tmp_path / "hostile.html"
    exported.write_text(nbconvert.HTMLExporter().from_filename(str(lab.path))[0])
    page = browser.new_context().new_page()
    asked, opened = watched(page)
    page.goto(exported.as_uri())
    expect(page.locator(".jp-OutputArea-output").first).to_contain_text("<script>window.__pwned=1</script>")
    assert page.evaluate(BAD, ".jp-OutputArea-output") == []
    assert page.evaluate("window.__pwned") is None
    assert (far(asked), opened) == ([], [])
    page.context.close()
