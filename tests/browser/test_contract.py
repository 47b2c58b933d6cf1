"""The ES module on a bare page, given only what the widget contract promises, as VS Code, Colab and marimo give it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from famnb.widget.html import sanitize
from famnb.widget.live.live_view import FRONT, FRONT_MODULE

pytestmark = pytest.mark.browser

POLICY = "default-src 'none'; script-src 'self' 'nonce-test'; style-src 'self' 'unsafe-inline'"
"""No eval, no inline script, no address but the page's own; Markdown made in Python carries its own styles."""
BARE = "<!doctype html><title>bare</title><link rel=stylesheet href=/famnb.css><div id=one></div><div id=two></div>"
START = """async traits => {
  const listeners = new Map();
  window.said = [];
  window.faults = [];
  window.addEventListener("error", event => window.faults.push(event.message));
  window.addEventListener("unhandledrejection", event => window.faults.push(String(event.reason)));
  document.addEventListener("securitypolicyviolation", event => window.faults.push(event.violatedDirective));
  const kept = {
    get: name => traits[name],
    set: (name, value) => { traits[name] = value; },
    save_changes: () => window.said.push({ saved: { ...traits } }),
    on: (name, listener) => listeners.set(name, [...(listeners.get(name) ?? []), listener]),
    off: (name, listener) => listeners.set(name, listeners.get(name).filter(each => each !== listener)),
    send: message => window.said.push(message),
  };
  const model = new Proxy(kept, {
    get: (target, name) => {
      if (!(name in target)) throw new Error(`the contract has no ${String(name)}`);
      return target[name];
    },
    set: (_, name) => { throw new Error(`${String(name)} is not the front end's to set`); },
  });
  window.hear = (name, message) => (listeners.get(name) ?? []).forEach(listener => listener(message));
  window.listening = () => [...listeners].filter(([name, all]) => name.startsWith("change:") && all.length).length;
  window.change = (name, value) => { traits[name] = value; window.hear(`change:${name}`); };
  const front = (await import("/famnb.js")).default();
  front.initialize({ model });
  window.draw = id => front.render({ model, el: document.getElementById(id) });
  window.ends = ["one", "two"].map(window.draw);
}"""
HAS_CLIPBOARD = """() => Object.defineProperty(navigator, "clipboard", {
  value: { writeText: async text => { window.got = text; } },
})"""
HAS_NONE = """() => {
  document.addEventListener("copy", () => { window.got = document.activeElement.value; });
}"""
FOLLOWS = """([seconds, rate]) => new Promise(done => {
  const box = document.querySelector("#one .famnb-thinking");
  const end = () => box.scrollHeight - box.scrollTop - box.clientHeight;
  const seen = { off: 0, moved: 0 };
  let sent = 0, kept = null;
  const timer = setInterval(() => {
    for (let burst = 0; burst < rate / 100; burst++) {
      sent += 1;
      window.hear("msg:custom", { kind: "changes", seq: 1 + sent, panes: { p: [["text", 0, `word ${sent}\\n`]] } });
    }
    if (kept === null && end() > 40) seen.off += 1;
    if (kept !== null && box.scrollTop !== kept) seen.moved += 1;
    if (kept === null && sent > seconds * rate / 2) {
      box.dispatchEvent(new WheelEvent("wheel", { deltaY: -300 }));
      box.scrollTop = kept = Math.round(box.scrollTop / 2);
    }
    if (sent >= seconds * rate) { clearInterval(timer); done(seen); }
  }, 10);
})"""
"""Text comes at a rate for so many seconds; half-way the reader scrolls up. How often was the box elsewhere?"""


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of a strict policy with two views on one model of a composer's prompt, and perhaps of its conversation."""
    files = {
        "/famnb.js": ("text/javascript", FRONT_MODULE),
        "/famnb.css": ("text/css", (FRONT / "famnb.css").read_text()),
        "/": ("text/html", BARE),
    }
    context = browser.new_context()
    page = context.new_page()

    def serve(route: Any) -> None:
        kind, body = files[route.request.url.removeprefix("http://bare.test")]
        route.fulfill(body=body, content_type=kind, headers={"Content-Security-Policy": POLICY})

    page.route("**/*", serve)
    page.goto("http://bare.test/")
    traits = {"prompt": "", "busy": False, "fault": "", "replaced": False, "blocking": False}
    page.evaluate(START, {**traits, **getattr(request, "param", {})})
    yield page
    assert page.evaluate("window.faults") == []
    context.close()


def everything(page: Page, *blocks: dict[str, Any]) -> None:
    """The kernel's first message: a running pane of these blocks."""
    pane = {"id": "p", "running": True, "stop": True, "waiting": "first token", "elapsed": 0, "head": "", "badges": []}
    whole = {**pane, "asked": [], "blocks": list(blocks), "failure": "", "notes": [], "figures": ""}
    page.evaluate(HEAR, {"kind": "snapshot", "seq": 1, "panes": [whole]})


HEAR = "message => window.hear('msg:custom', message)"


def block(kind: str = "text", *, html: str = "", tail: str = "") -> dict[str, Any]:
    """A block as a snapshot tells it."""
    return {"kind": kind, "label": kind, "open": True, "html": html, "tail": tail}


def test_two_views_of_one_model_show_the_same(page: Page):
    """Both ask once for everything, follow the same changes, and a gap is asked about, with get, set, on and send."""
    assert [message["kind"] for message in page.evaluate("window.said")] == ["ready"]
    everything(page, block(tail="one"))
    page.evaluate(HEAR, {"kind": "changes", "seq": 2, "panes": {"p": [["text", 0, " two"]]}})
    expect(page.locator(".famnb-text")).to_have_text(["one two", "one two"])
    page.evaluate(HEAR, {"kind": "changes", "seq": 9, "panes": {"p": [["text", 0, " nine"]]}})
    assert page.evaluate("window.said.at(-1).kind") == "ready"
    expect(page.locator(".famnb-text")).to_have_text(["one two", "one two"])


def test_a_prompt_is_written_sent_and_stopped_by_keyboard(page: Page):
    """The text is saved in the model as it is written, and comes along with the wish to send it."""
    prompt = page.locator("#one").get_by_label("Prompt")
    prompt.focus()
    page.keyboard.type("Hi")
    assert page.evaluate("window.said.at(-1).saved.prompt") == "Hi"
    page.keyboard.press("Control+Enter")
    assert page.evaluate("window.said.at(-1)") == {"kind": "send", "prompt": "Hi"}
    everything(page, block())
    page.evaluate("window.change('busy', true)")
    page.keyboard.press("Escape")
    assert page.evaluate("window.said.at(-1)") == {"kind": "stop", "pane": "p"}


def test_a_view_that_is_taken_away_stops_listening(page: Page):
    """Its clean-up leaves the other view at work, and the last one leaves nothing that listens to a trait."""
    everything(page, block(tail="one"))
    before = page.evaluate("window.listening()")
    page.evaluate("window.ends[0](); document.getElementById('one').replaceChildren()")
    page.evaluate(HEAR, {"kind": "changes", "seq": 2, "panes": {"p": [["text", 0, " two"]]}})
    expect(page.locator("#two .famnb-text")).to_have_text("one two")
    page.evaluate("window.ends[1]()")
    assert before > 0
    assert page.evaluate("window.listening()") == 0


@pytest.mark.parametrize("page", [{"turns": 1, "talking": True}], indirect=True)
def test_a_conversation_needs_no_more_than_the_contract(page: Page):
    """Reply, edit, another version, a tool's approval and Stop while it waits: each a message with what it is about."""
    asked = {**block("verdict"), "label": "Run <img src=x>?", "call": 0, "last": True}
    ended = {"id": "p", "running": False, "stop": False, "waiting": "", "elapsed": 0, "head": "web", "badges": []}
    said = {"asked": [["user", "<b>Hi</b>"]], "failure": "", "notes": [], "figures": "", "doing": "f waits"}
    whole = {**ended, **said, "blocks": [block(tail="one"), asked], "turn": [0, 1, 2, "<b>Hi</b>"]}
    page.evaluate(HEAR, {"kind": "snapshot", "seq": 1, "panes": [whole]})
    view = page.locator("#one")
    expect(view.get_by_role("group", name="Run <img src=x>?")).to_be_visible()

    def pressed(name: str) -> Any:
        view.get_by_role("button", name=name, exact=True).click()
        return page.evaluate("window.said.at(-1)")

    view.get_by_label("Next turn").fill("And?")
    assert pressed("Reply") == {"kind": "reply", "prompt": "And?"}
    assert pressed("Previous version") == {"kind": "version", "turn": 0, "version": 0}
    expect(view.get_by_role("button", name="Next version")).to_be_disabled()
    view.get_by_role("button", name="Regenerate").dblclick()
    assert page.evaluate("window.said.filter(each => each.kind === 'again')") == [{"kind": "again", "turn": 0}]
    pressed("Edit")
    expect(view.get_by_label("Say instead")).to_have_value("<b>Hi</b>")
    assert pressed("Ask this instead") == {"kind": "edit", "turn": 0, "prompt": "<b>Hi</b>"}
    page.evaluate("window.change('busy', true)")
    expect(view.get_by_role("button", name="Regenerate")).to_be_hidden()
    assert pressed("Decline") == {"kind": "decide", "pane": "p", "call": 0, "approved": False, "rest": False}
    expect(view.get_by_role("button", name="Approve", exact=True)).to_be_disabled()
    assert pressed("Stop") == {"kind": "stop", "pane": ""}
    page.evaluate("window.ends.forEach(end => end())")
    assert page.evaluate("window.listening()") == 0


@pytest.mark.parametrize(
    "page", [{"labels": ["a", "b"], "pinned": "", "differences": False, "ended": False}], indirect=True
)
def test_a_board_needs_no_more_than_the_contract(page: Page):
    """Meters, Pin, Differences and Stop of one pane or of all: each a message with what it is about."""
    pane = {"running": True, "stop": True, "waiting": "", "elapsed": 0, "head": "web", "badges": [], "asked": []}
    pane |= {"failure": "", "notes": [], "figures": "", "meters": [["tokens", "1"], ["cost", ""]]}
    panes = [{**pane, "id": each, "label": each, "blocks": [block(tail=f"<b>{each}</b>")]} for each in "ab"]
    page.evaluate("window.change('busy', true)")
    page.evaluate(HEAR, {"kind": "snapshot", "seq": 1, "panes": panes})
    page.evaluate(HEAR, {"kind": "changes", "seq": 2, "panes": {"b": [["meters", 0, ["2", "$1"]]]}})
    view = page.locator("#one")
    expect(view.locator(".famnb-meters > div:visible")).to_have_text(["tokens1", "tokens2", "cost$1"])
    expect(view.locator(".famnb-text")).to_have_text(["<b>a</b>", "<b>b</b>"])

    def pressed(name: str) -> Any:
        view.get_by_role("button", name=name, exact=True).last.click()
        return page.evaluate("window.said.at(-1)")

    assert pressed("b: pin as winner") == {"kind": "pin", "label": "b"}
    page.evaluate("window.change('pinned', 'b')")
    expect(view.get_by_role("button", name="b: pin as winner").last).to_have_attribute("aria-pressed", "true")
    assert pressed("Differences") == {"kind": "differences"}
    assert pressed("Stop") == {"kind": "stop", "pane": "b"}
    pressed("Stop all")
    assert page.evaluate("window.said.slice(-2)") == [{"kind": "stop", "pane": each} for each in "ab"]
    page.evaluate("window.ends.forEach(end => end())")
    assert page.evaluate("window.listening()") == 0


def test_a_double_click_is_one_wish(page: Page):
    """So is a click, or the keys, while the kernel has not answered yet."""
    prompt = page.locator("#one").get_by_label("Prompt")
    prompt.fill("Hi")
    page.locator("#one").get_by_role("button", name="Send").dblclick()
    prompt.press("Control+Enter")
    page.locator("#one").get_by_role("button", name="Send").click(force=True)
    assert page.evaluate("window.said.filter(({ kind }) => kind === 'send').length") == 1


@pytest.mark.parametrize("clipboard", ["missing", "there"])
def test_code_and_answers_are_copied_by_keyboard(page: Page, clipboard: str):
    """A button above each block of code and one below the answer; each says that it did, on any kind of page."""
    page.evaluate(HAS_CLIPBOARD if clipboard == "there" else HAS_NONE)
    everything(page, block(html=sanitize.render_markdown("**So:**\n\n```python\nx = 1  # one\n```"), tail="and so on"))
    view = page.locator("#one")
    for name, text in (("Copy code", "x = 1  # one\n"), ("Copy answer", "So:\n\nx = 1  # one\n\nand so on")):
        view.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        expect(view.locator(".famnb-copier", has=page.get_by_role("button", name=name))).to_contain_text("copied")
        assert [line for line in page.evaluate("window.got").split("\n") if line] == [*filter(None, text.split("\n"))]
        expect(view.get_by_role("button", name=name)).to_be_focused()


def test_long_words_tables_and_code_do_not_widen_the_page(page: Page):
    """A long word breaks; a wide table and a long line of code scroll in their own box."""
    wide = "|" + "|".join(f"column_{n}" for n in range(60)) + "|\n" + "|-" * 60 + "|\n" + "|1" * 60 + "|"
    long = f"{'W' * 3000}\n\n{wide}\n\n```\n{'x' * 3000}\n```"
    everything(page, block(html=sanitize.render_markdown(long)), block("code", tail="y" * 3000), block(tail="z" * 3000))
    width = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width[0] == width[1]
    for part in ("div:has(> table)", "pre"):
        box = page.locator(f"#one .famnb-settled {part}").first
        assert box.evaluate("each => each.scrollWidth > each.clientWidth")


def test_a_reader_at_the_end_stays_there_and_one_who_scrolled_up_is_left_alone(page: Page):
    """At 500 pieces a second for two seconds: the box is at its end until the reader leaves it, then it never moves."""
    everything(page, block("thinking", tail="begin\n"))
    assert page.evaluate(FOLLOWS, [2, 500]) == {"off": 0, "moved": 0}
