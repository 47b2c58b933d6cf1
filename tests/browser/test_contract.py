"""The ES module on a bare page, given only what the widget contract promises, as VS Code, Colab and marimo give it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import famnb
from famnb.widget.board.board import Board
from famnb.widget.html import sanitize
from famnb.widget.live.base import FRONT, join_front
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

UNUSED_CLIENT = famnb.Client(base_url="http://127.0.0.1:9", api_key="unused")
"""What the widgets take their endpoints from; they send nothing here."""

POLICY = "default-src 'none'; script-src 'self' 'nonce-test'; style-src 'self' 'unsafe-inline'; img-src data:"
"""No eval, no inline script, no address but the page's own; Markdown made in Python carries its own styles, and the
thumbnails of a user's images are data."""
BARE = "<!doctype html><title>bare</title><link rel=stylesheet href=/style.css><div id=one></div><div id=two></div>"
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
    send: message => {
      if (window.isShutDown) throw new Error("Cannot send");
      window.said.push(message);
    },
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
  const front = (await import("/front.js")).default();
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
      window.hear("msg:custom", { kind: "changes", seq: 1 + sent, panes: { 0: [["text", 0, `word ${sent}\\n`]] } });
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
def page(blank_page: Page, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of a strict policy with two views on one model, of the module and with the traits that a test names."""
    module, traits = getattr(request, "param", ("live.js", {}))
    files = {
        "/front.js": ("text/javascript", join_front(module)),
        "/style.css": ("text/css", (FRONT / "style.css").read_text()),
        "/": ("text/html", BARE),
    }
    page = blank_page

    def serve(route: Any) -> None:
        kind, body = files[route.request.url.removeprefix("http://bare.test")]
        route.fulfill(body=body, content_type=kind, headers={"Content-Security-Policy": POLICY})

    page.route("**/*", serve)
    page.goto("http://bare.test/")
    page.evaluate(START, {"blocking": False, **traits})
    yield page
    assert page.evaluate("window.faults") == []


BOARD = ("board.js", {})
on_board = pytest.mark.parametrize("page", [BOARD], indirect=True, ids=["board"])


def everything(page: Page, *blocks: dict[str, Any]) -> None:
    """The kernel's first message: a running pane of these blocks."""
    pane = {"id": "p", "running": True, "stop": True, "waiting": "first token", "elapsed": 0, "head": "", "badges": []}
    whole = {**pane, "asked": [], "blocks": list(blocks), "failure": "", "notes": [], "figures": ""}
    page.evaluate(HEAR, {"kind": "snapshot", "seq": 1, "panes": [whole]})


HEAR = "message => window.hear('msg:custom', message)"


def said_texts(page: Page, kind: str) -> list[Any]:
    """The messages of a kind that the page has sent."""
    messages: list[Any] = page.evaluate("kind => window.said.filter(each => each.kind === kind)", kind)
    return messages


def block(kind: str = "text", *, html: str = "", tail: str = "") -> dict[str, Any]:
    """A block as a snapshot tells it."""
    return {"kind": kind, "label": kind, "open": True, "html": html, "tail": tail}


def test_two_views_of_one_model_show_the_same(page: Page):
    """Both ask once for everything, follow the same changes, and a gap is asked about, with get, set, on and send."""
    assert [message["kind"] for message in page.evaluate("window.said")] == ["ready"]
    everything(page, block(tail="one"))
    page.evaluate(HEAR, {"kind": "changes", "seq": 2, "panes": {"0": [["text", 0, " two"]]}})
    expect(page.locator(".famnb-text")).to_have_text(["one two", "one two"])
    page.evaluate(HEAR, {"kind": "changes", "seq": 9, "panes": {"0": [["text", 0, " nine"]]}})
    assert page.evaluate("window.said.at(-1).kind") == "ready"
    expect(page.locator(".famnb-text")).to_have_text(["one two", "one two"])


@on_board
def test_a_view_that_is_taken_away_stops_listening(page: Page):
    """Its clean-up leaves the other view at work, and the last one leaves nothing that listens to a trait."""
    make_board(page, running=True)
    page.evaluate("window.ends[0](); document.getElementById('one').replaceChildren()")
    page.evaluate(HEAR, {"kind": "changes", "seq": 2, "panes": {"0": [["text", 0, " two"]]}})
    expect(page.locator("#two .famnb-text").first).to_have_text("<b>p1</b> two")
    page.evaluate("window.ends[1]()")
    assert page.evaluate("window.listening()") == 0


def make_board(page: Page, *, running: bool, seq: int = 1, failure: str = "", **state: Any) -> None:
    """The kernel's first message to a board: two panes and their answers to one prompt, the first one its second."""
    everything = Board(UNUSED_CLIENT, {"a": {}, "b": {}}).describe()
    ids = [column["id"] for column in everything["columns"]]
    cells = [{"pane": f"t.0.{id}.0", "column": id} for id in ids]
    everything["state"] |= {"busy": running, "rounds": [{"id": "t.0", "prompt": "Hi", "cells": cells}], **state}
    pane = {"running": running, "stop": True, "waiting": "", "elapsed": 0, "head": "web", "badges": [], "asked": []}
    pane |= {
        "failure": failure,
        "notes": [],
        "figures": "",
        "meters": [["tokens", "1"], ["cost", ""]],
        "pinned": False,
        "version": [0, 1],
    }
    panes = [
        {**pane, "id": cell["pane"], "label": label, "blocks": [block(tail=f"<b>{cell['column']}</b>")], **place}
        for cell, label, place in zip(cells, "ab", ({"version": [1, 2]}, {"version": [0, 1]}), strict=True)
    ]
    page.evaluate(HEAR, {"kind": "snapshot", "seq": seq, "panes": panes, **everything})


@on_board
def test_a_board_needs_no_more_than_the_contract(page: Page):
    """Meters, Pin, Differences, a pane's settings and Stop of one pane or of all: each a message with its subject."""
    make_board(page, running=True)
    page.evaluate(HEAR, {"kind": "changes", "seq": 2, "panes": {"1": [["meters", 0, ["2", "$1"]]]}})
    view = page.locator("#one")
    expect(view.locator(".famnb-meters > div")).to_have_text(["tokens1", "cost", "tokens2", "cost$1"])
    expect(view.locator(".famnb-text")).to_have_text(["<b>p1</b>", "<b>p2</b>"])

    def pressed(name: str) -> Any:
        view.get_by_role("button", name=name, exact=True).last.click()
        return page.evaluate("window.said.at(-1)")

    assert pressed("b: pin as winner") == {"kind": "pin", "pane": "t.0.p2.0"}
    assert pressed("Differences") == {"kind": "differences"}
    assert pressed("Stop") == {"kind": "stop", "pane": "t.0.p2.0"}
    pressed("Stop all")
    assert page.evaluate("window.said.slice(-2)") == [{"kind": "stop", "pane": f"t.0.p{n}.0"} for n in (1, 2)]
    view.locator(".famnb-column").last.get_by_label("Endpoint").select_option("web")
    assert page.evaluate("window.said.at(-1)") == {"kind": "endpoint", "name": "web", "column": "p2"}
    expect(view.get_by_role("button", name="Add a pane")).to_be_disabled()
    page.evaluate("window.ends.forEach(end => end())")
    assert page.evaluate("window.listening()") == 0


@on_board
def test_panes_are_named_moved_set_at_once_and_scrolled_together(page: Page):
    """By keys and by dragging; another answer is a button away; what is a pane's own is marked, and can be given up."""
    make_board(page, running=False)
    view = page.locator("#one")
    view.get_by_label("Name of the pane").first.fill("pro")
    page.keyboard.press("Enter")
    assert said_texts(page, "rename") == [{"kind": "rename", "text": "pro", "column": "p1"}]
    page.evaluate(HEAR, {"kind": "taken", "ok": False})
    expect(view.get_by_label("Name of the pane").first).to_have_value("a")

    handles = view.get_by_role("button", name="Move pane", exact=True)
    handles.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")  # it is the first one already
    handles.last.hover()
    page.mouse.down()
    view.get_by_label("Name of the pane").first.hover()
    page.mouse.up()
    expect(view.get_by_role("button", name="Move left")).to_have_count(0)
    handles.last.click()
    view.get_by_role("button", name="Move left").click()
    moves = [(message["column"], message["to"]) for message in said_texts(page, "move")]
    assert moves == [("p1", 1), ("p2", 0), ("p2", 0)]

    view.get_by_role("button", name="Previous answer").first.click()
    assert said_texts(page, "version") == [{"kind": "version", "column": "p1", "to": 0}]
    expect(view.get_by_role("button", name="Next answer").first).to_be_disabled()

    view.get_by_text("For all panes").click()
    common = view.locator(".famnb-shared")
    common.get_by_label("temperature", exact=True).fill("0.2")
    wait_until(lambda: said_texts(page, "share"))
    assert said_texts(page, "share") == [{"kind": "share", "field": "temperature", "text": "0.2"}]
    board = Board(UNUSED_CLIENT, {"a": {}, "b": {"temperature": 0.7}})
    board.set_for_all(temperature=0.2)
    told = board.describe()
    page.evaluate(
        HEAR, {"kind": "changes", "seq": 2, "panes": {}, "columns": told["columns"], "shared": told["shared"]}
    )
    expect(view.locator(".famnb-column").last).to_contain_text("temperature 0.7 here, 0.2 in the others")
    view.get_by_role("button", name="Use 0.2").click()
    assert said_texts(page, "share")[-1] == {"kind": "share", "field": "temperature", "column": "p2"}

    long = [["text", 0, "\n\n".join(f"line {number}" for number in range(100))]]
    page.evaluate(HEAR, {"kind": "changes", "seq": 3, "panes": {"0": long, "1": [*long, *long]}})
    shares = """() => [...document.querySelectorAll("#one .famnb-flow")].map((flow) => {
      return Math.round((100 * flow.scrollTop) / (flow.scrollHeight - flow.clientHeight));
    })"""
    view.get_by_role("button", name="Scroll together").click()
    flow = view.locator(".famnb-flow").first
    flow.hover()
    page.mouse.wheel(0, -600)
    wait_until(lambda: (found := page.evaluate(shares))[0] < 90 and abs(found[0] - found[1]) <= 1)


@on_board
def test_a_board_begins_with_its_panes_and_what_one_could_ask(page: Page):
    """At 1,400 px its head leaves the page to the answers, and an example is written by a click."""
    page.set_viewport_size({"width": 1400, "height": 1000})
    everything = Board(UNUSED_CLIENT, {"a": {}, "b": {}}).describe()
    page.evaluate(HEAR, {"kind": "snapshot", "seq": 1, "panes": [], **everything})
    view = page.locator("#one")
    top, empty = view.bounding_box(), view.locator(".famnb-empty").bounding_box()
    assert top is not None
    assert empty is not None
    assert empty["y"] - top["y"] <= 120
    example = view.locator(".famnb-example").first
    text = example.inner_text()
    example.click()
    expect(view.get_by_label("Prompt", exact=True)).to_have_value(text)
    make_board(page, running=False, seq=2)
    expect(view.locator(".famnb-empty")).to_be_hidden()


@on_board
def test_figures_of_a_pane_take_one_line_each(page: Page):
    """A cost leaves its ends to its title, and a pane that failed has no names without a figure."""
    make_board(page, running=True)
    page.evaluate(
        HEAR, {"kind": "changes", "seq": 2, "panes": {"0": [["meters", 0, ["", "≈ $0.0012 ($0.001–$0.0021)"]]]}}
    )
    cost = page.locator("#one .famnb-meters dd").nth(1)
    expect(cost).to_have_text("≈ $0.0012")
    expect(cost).to_have_attribute("title", "≈ $0.0012 ($0.001–$0.0021)")
    names = page.locator("#one .famnb-meters").first.locator("dt")
    expect(names.nth(0)).to_be_visible()
    make_board(page, running=False, seq=3, failure="no answer")
    shown = page.locator("#one .famnb-meters").first.locator("dt:visible")
    expect(shown).to_have_text(["tokens"])


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
