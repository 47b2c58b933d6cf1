"""The front end by itself, on a blank page with a model that keeps what it says: what it does when some is lost."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from famnb.events import Closed, Delta
from famnb.widget.html import sanitize
from famnb.widget.live.base import join_front
from famnb.widget.live.pane import Pane
from tests.support.scripted_stream import ScriptedStream

pytestmark = pytest.mark.browser

START = """async source => {
  const listeners = {};
  const traits = { blocking: true, kernel_id: "k" };
  window.said = [];
  const model = {
    get: name => traits[name],
    set: () => {},
    save_changes: () => {},
    on: (name, listener) => { listeners[name] = listener; },
    off: () => {},
    send: message => window.said.push(message.kind),
  };
  window.hear = (name, message) => listeners[name](message);
  const front = (await import(source)).default();
  front.initialize({ model });
  front.render({ model, el: document.body });
}"""


@pytest.fixture
def page(blank_page: Page) -> Page:
    """A blank page with the front end of a live view on it, which can wait for a clock of its own."""
    return draw(blank_page, "live.js")


def draw(page: Page, front: str) -> Page:
    """Have a blank page draw that front end."""
    page.clock.install()
    page.route("**/*", lambda route: route.fulfill(status=204 if "api" in route.request.url else 200, body=""))
    page.goto("http://lab.test/")
    source = base64.b64encode(join_front(front).encode()).decode()
    page.evaluate(START, f"data:text/javascript;base64,{source}")
    return page


def hears(page: Page, kind: str, seq: int, panes: Any) -> None:
    """The kernel's message number `seq` arrives."""
    page.evaluate("message => window.hear('msg:custom', message)", {"kind": kind, "seq": seq, "panes": panes})


def snapshot(page: Page, seq: int, text: str) -> None:
    """Everything, with one text block."""
    block = {"kind": "text", "label": "", "open": True, "html": "", "tail": text}
    pane = {"id": "p", "running": True, "stop": True, "waiting": "first token", "elapsed": 0, "head": "", "badges": []}
    hears(page, "snapshot", seq, [{**pane, "asked": [], "blocks": [block], "failure": "", "notes": [], "figures": ""}])


def grows(page: Page, seq: int, text: str) -> None:
    """The text grows."""
    hears(page, "changes", seq, {"0": [["text", 0, text]]})


def test_a_gap_is_closed_by_everything(page: Page):
    """What follows a message that was lost is not shown until all of it is there."""
    snapshot(page, 1, "one")
    grows(page, 2, " two")
    grows(page, 4, " four")
    expect(page.locator(".famnb-text")).to_have_text("one two")
    assert page.evaluate("window.said") == ["ready", "ready"]
    snapshot(page, 5, "one two three four")
    grows(page, 6, " five")
    expect(page.locator(".famnb-text")).to_have_text("one two three four five")
    assert page.evaluate("window.said") == ["ready", "ready"]


def test_a_question_that_was_lost_is_asked_again(page: Page):
    """Everything was asked for and did not come: with the next news it is asked for again, at most once a second."""
    for seq in range(5, 15):
        grows(page, seq, "x")
    assert page.evaluate("window.said") == ["ready"]
    page.clock.fast_forward(1100)
    grows(page, 15, "x")
    grows(page, 16, "x")
    assert page.evaluate("window.said") == ["ready", "ready"]


def test_a_reply_whose_kernel_is_gone_does_not_seem_to_go_on(page: Page):
    """The clock stands, and where it said what the model does it says what became of it."""
    snapshot(page, 1, "one")
    expect(page.locator(".famnb-state")).to_have_text("answering …")
    page.evaluate("window.hear('comm_live_update')")
    expect(page.locator(".famnb-state")).to_contain_text("kernel has ended")
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    shown = page.locator(".famnb-clock").inner_text()
    page.clock.fast_forward(60_000)
    assert page.locator(".famnb-clock").inner_text() == shown
    expect(page.locator(".famnb-text")).to_have_text("one")


def test_a_stop_that_the_kernel_does_not_hear_interrupts_it(page: Page):
    """A cell that blocks the kernel is stopped by the server; one that answers in time is not."""
    snapshot(page, 1, "one")
    stop = page.get_by_role("button", name="Stop")
    stop.click()
    page.evaluate("window.hear('msg:custom', { kind: 'stopping' })")
    page.clock.fast_forward(400)
    snapshot(page, 2, "one")
    with page.expect_request("**/api/kernels/k/interrupt") as asked:
        stop.click()
        page.clock.fast_forward(400)
    assert asked.value.method == "POST"
    assert page.evaluate("window.said") == ["ready", "stop", "stop"]


@pytest.mark.parametrize("device", ["mouse", "mouse, from another button", "keyboard"])
def test_a_button_that_is_pressed_while_news_come_is_clicked(page: Page, device: str):
    """What would draw it anew between press and release waits for the click, and is shown then, in order."""
    snapshot(page, 1, "one")
    stop = page.get_by_role("button", name="Stop")
    if device == "keyboard":
        stop.focus()
        page.keyboard.down(" ")
    else:
        if "another" in device:
            page.evaluate("document.body.appendChild(document.createElement('button')).focus()")
        stop.hover()
        page.mouse.down()
    page.clock.run_for(1)
    snapshot(page, 2, "one two")
    grows(page, 3, " three")
    assert page.locator(".famnb-text").inner_text() == "one"
    if device == "keyboard":
        page.keyboard.up(" ")
    else:
        page.mouse.up()
    page.clock.run_for(1)
    assert page.evaluate("window.said") == ["ready", "stop"]
    expect(page.locator(".famnb-text")).to_have_text("one two three")


def test_a_space_that_is_typed_holds_nothing_up(page: Page):
    """The prompt's box, too, has a label around it."""
    snapshot(page, 1, "one")
    page.evaluate("document.body.appendChild(document.createElement('label')).innerHTML = '<textarea>'")
    page.locator("textarea").focus()
    page.keyboard.down(" ")
    grows(page, 2, " two")
    assert page.locator(".famnb-text").inner_text() == "one two"
    page.keyboard.up(" ")


def test_a_release_that_never_comes_holds_nothing_up_for_long(page: Page):
    """Such as one outside the window."""
    snapshot(page, 1, "one")
    page.get_by_role("button", name="Stop").hover()
    page.mouse.down()
    grows(page, 2, " two")
    page.clock.run_for(1900)
    assert page.locator(".famnb-text").inner_text() == "one"
    page.clock.run_for(200)
    expect(page.locator(".famnb-text")).to_have_text("one two")


def test_a_pane_that_ends_among_others_is_drawn_anew_alone(page: Page):
    """Its text is not sent again and stays; the others are left alone, and so is the focus."""
    pane = {"id": "p", "running": True, "stop": True, "waiting": "", "elapsed": 0}
    pane |= {"head": "", "badges": [], "asked": [], "failure": "", "notes": [], "figures": "", "blocks": []}
    hears(page, "snapshot", 2, [pane, {**pane, "id": "q"}])
    block = [["open", 0, "text", ""], ["text", 0, "said"]]
    hears(page, "changes", 3, {"0": block, "1": block})
    page.get_by_role("button", name="Stop").nth(1).focus()
    ended = {**pane, "running": False, "blocks": None, "notes": ["it has ended"]}
    page.evaluate(
        "message => window.hear('msg:custom', message)", {"kind": "changes", "seq": 4, "panes": {}, "anew": [ended]}
    )
    expect(page.locator(".famnb-text")).to_have_text(["said", "said"])
    expect(page.locator(".famnb-pane").first).to_contain_text("it has ended")
    expect(page.get_by_role("button", name="Stop")).to_be_focused()
    grows(page, 5, ", still")
    hears(page, "changes", 6, {"1": [["text", 0, " more"]]})
    expect(page.locator(".famnb-text")).to_have_text(["said, still", "said more"])


def test_the_page_adds_what_changes_leave_out(page: Page):
    """Paragraphs and drafts that it has are sent by their length: what it shows is the Markdown all the same."""
    text = "Tall 🌊 “waves”\n\n\nof *two* kinds\n\n- one\n- **two** <b>\n\nare seen & told,\na fact\n\nin the end"
    stream = ScriptedStream()
    pane = Pane(stream, id="p", clock=lambda: 0.0)
    hears(page, "snapshot", 1, [pane.snapshot()])
    changes = []
    for index, character in enumerate(text):
        stream.add(Delta((0, 1), "text", character))
        told = pane.changes()
        hears(page, "changes", 2 + index, {"0": told})
        changes += told
    stream.add(Closed((0, 1)))
    for seq in (len(text) + 2, len(text) + 3):
        hears(page, "changes", seq, {"0": pane.changes()})
    assert {"paragraphs", "draft", "settle"} <= {name for name, *_ in changes}
    settled = page.locator(".famnb-text .famnb-settled")
    parsed = page.evaluate(
        "html => new DOMParser().parseFromString(html, 'text/html').body.innerHTML", str(sanitize.render_markdown(text))
    )
    assert settled.inner_html() == parsed
    expect(page.locator(".famnb-text .famnb-tail")).to_be_empty()
