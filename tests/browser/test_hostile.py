"""What a model could say to harm its reader stays words: while it streams, in the notebook, and exported from it."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import nbconvert
import pytest
from playwright.sync_api import Browser, Page, expect

from famnb.events import Closed, Delta, Opened
from famnb.widget.live.reply_pane import ReplyPane
from famnb.widget.live.reply_view import RepliesView, ReplyView
from tests.browser.lab_page import Lab
from tests.support.front_page import START, Bridge, IdleFlusher
from tests.support.hostile_text import FAR, HOSTILE
from tests.support.scripted_stream import ScriptedStream

pytestmark = pytest.mark.full

OWN_HOSTS = {"127.0.0.1", "front.test", "", None}
TEMPLATE_HOSTS = {"cdnjs.cloudflare.com"}
"""Where nbconvert's own page fetches MathJax and its like from."""
SHOW = """
import json
from pathlib import Path
from IPython.display import display
from famnb.endpoints import compose
from famnb.reply import Block, Reply
from famnb.widget.html import transcript

def make_reply(text):
    kinds = ("thinking", "text", "refusal", "tool_call")
    blocks = tuple(Block(at=(0, at), kind=kind, text=text, name=text[:80]) for at, kind in enumerate(kinds))
    return Reply(endpoint="messages", request=compose("messages", text, system=text), blocks=blocks, status="completed")

texts = json.loads(Path("hostile.json").read_text())
groups = [texts[start : start + 4] for start in range(0, len(texts), 4)]
sections = [[part for text in group for part in transcript.sections(make_reply(text))] for group in groups]
bundles = [transcript.render(parts) for parts in sections]
"""
HTML = "for bundle in bundles: display(bundle, raw=True)"
MARKDOWN = 'for bundle in bundles: display({"text/markdown": bundle["text/markdown"]}, raw=True)'
BAD = """where => {
  const bad = [];
  const forbidden = "script, img, image, iframe, object, embed, svg, math, form, input, link, meta, base, style, video";
  const ours = element => !element.closest("mjx-container, .jp-Mermaid, .famnb-copier");
  for (const root of document.querySelectorAll(where)) {
    bad.push(...[...root.querySelectorAll(forbidden)].filter(ours).map(element => element.outerHTML.slice(0, 200)));
    for (const element of root.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        const far = name === "href" && !/^(https?:|\\/\\/|mailto:|#)/i.test(value);
        if (name.startsWith("on") || name === "srcdoc" || far) bad.push(`${element.tagName} ${name}=${value}`);
      }
    }
  }
  return bad;
}"""
"""Every element in these places that acts or loads, every handler, and every link that leads to a script."""


def say(stream: ScriptedStream, text: str) -> None:
    """Say a text in two pieces as thinking, as an answer and as a tool call."""
    half = len(text) // 2
    for number, kind in enumerate(KINDS):
        pieces = (Delta((0, number), kind, piece) for piece in (text[:half], text[half:]))
        stream.add(Opened((0, number), kind, name=text[:80]), *pieces)


KINDS = ("thinking", "text", "tool_call")


def watch(page: Page) -> tuple[list[str], list[str]]:
    """The addresses that a page asks for, and the dialogs that it opens, from now on; nothing leaves the machine."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    return note_requests(page, page), dialogs


def note_requests(page: Page, listens: Page | Lab) -> list[str]:
    """The addresses that a page asks for from now on; nothing leaves the machine."""
    urls: list[str] = []
    listens.on("request", lambda request: urls.append(request.url))
    page.route(lambda url: urlsplit(url).hostname not in OWN_HOSTS, lambda route: route.abort())
    return urls


def find_far(urls: list[str]) -> list[str]:
    """Those addresses that no page of ours or of nbconvert's has a reason to ask for."""
    hosts = {*OWN_HOSTS, *TEMPLATE_HOSTS}
    return [url for url in urls if urlsplit(url).hostname not in hosts or FAR in url or "pixel" in url]


def test_hostile_text_is_inert_while_it_streams(page: Page):
    urls, dialogs = watch(page)
    streams = [ScriptedStream(text) for text in HOSTILE]
    panes = [ReplyPane(stream, key=str(number)) for number, stream in enumerate(streams)]

    class Panes(ReplyView):
        def view(self) -> RepliesView:
            return RepliesView(panes=tuple(pane.view() for pane in panes))

    live = Bridge(page, Panes(ScriptedStream(), flusher=IdleFlusher()))
    page.evaluate(START, ["/tools/live.js", True])
    live.deliver()
    live.tool.follow(panes)
    steps = (
        say,
        lambda stream, _: stream.add(*(Closed((0, number)) for number in range(len(KINDS)))),
        lambda *_: None,
        lambda stream, _: stream.end(status="completed"),
    )
    for step in steps:
        for stream, text in zip(streams, HOSTILE, strict=True):
            step(stream, text)
        live.flush()
        expect(page.locator(".famnb-text").first).to_contain_text("<script>window.__pwned=1</script>")
        assert page.evaluate(BAD, "main") == []
    assert page.evaluate("window.__pwned") is None
    assert (find_far(urls), dialogs) == ([], [])


def test_hostile_text_is_inert_in_the_notebook_and_exported(lab: Lab, browser: Browser, tmp_path: Path):
    urls = note_requests(lab.page, lab)
    (lab.jupyter.root / "hostile.json").write_text(json.dumps(HOSTILE))
    lab.notebook(SHOW, HTML, MARKDOWN)
    for number in (0, 1, 2):
        lab.run(number)
    expect(lab.output(1)).to_contain_text("<script>window.__pwned=1</script>")
    expect(lab.output(2)).to_contain_text("<script>window.__pwned=1</script>")
    assert lab.page.evaluate(BAD, ".jp-OutputArea-output") == []
    assert lab.page.evaluate("window.__pwned") is None
    assert (find_far(urls), lab.dialogs) == ([], [])

    lab.save()
    exported = tmp_path / "hostile.html"
    exported.write_text(nbconvert.HTMLExporter().from_filename(str(lab.path))[0])
    page = browser.new_context().new_page()
    urls, dialogs = watch(page)
    page.goto(exported.as_uri())
    expect(page.locator(".jp-OutputArea-output").first).to_contain_text("<script>window.__pwned=1</script>")
    assert page.evaluate(BAD, ".jp-OutputArea-output") == []
    assert page.evaluate("window.__pwned") is None
    assert (find_far(urls), dialogs) == ([], [])
    page.context.close()
