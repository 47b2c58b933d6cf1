"""The board in a real JupyterLab: panes side by side, one that fails, stopped one by one, compared, saved."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.support.lab_page import Lab

pytestmark = pytest.mark.browser

CONNECT = "import famnb\nclient = famnb.connect()"
LONG = "Count to 50000, please."
"""It streams for minutes: however slow the machine, there is something to stop."""
ENDLESS = 100_000
MIXED = f"""board = famnb.Board(client, {{
    "mini": {{"model": "fam-mini", "max_tokens": 16_000}},
    "thinker": {{"endpoint": "messages", "thinking": 64, "max_tokens": {ENDLESS}}},
    "web": {{"endpoint": "web", "max_tokens": {ENDLESS}}},
    "lost": {{"endpoint": "responses", "previous_response_id": "resp_of_nobody", "max_output_tokens": {ENDLESS}}},
}})
board"""
PAIR = """board = famnb.Board(client, {"small": {"model": "fam-2-5-mini"}, "large": {"model": "fam-2-5-pro"}})
board"""
COLUMNS = """columns => {
  const panes = [...document.querySelectorAll(".famnb-pane")];
  return new Set(panes.map(pane => Math.round(pane.getBoundingClientRect().x))).size === columns;
}"""
FOCUSED = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.labels?.[0]?.textContent"
HOSTILE = """<script>alert('script')</script><img src=x onerror="alert('img')"> ![p](http://127.0.0.1:9/pixel.png)
[click me](javascript:alert('link')) <svg onload="alert('svg')"></svg> </td></table> \x1b[31m \u202e"""


def board(lab: Lab, source: str, *more: str) -> Locator:
    """A notebook with a board on show."""
    lab.notebook(CONNECT, source, *more).run(0)
    lab.run(1)
    return lab.output(1)


def pane(shown: Locator, label: str) -> Locator:
    """The pane of that label."""
    return shown.locator(".famnb-pane").filter(has=shown.page.locator(".famnb-head strong", has_text=label))


def send(shown: Locator, prompt: str) -> None:
    """Ask every pane."""
    shown.get_by_label("Prompt").fill(prompt)
    shown.get_by_role("button", name="Send to all").click()


def test_one_pane_fails_one_is_stopped_and_then_all(lab: Lab):
    """The error stands in its place; a stopped pane keeps what it had while others go on; all of it is saved."""
    shown = board(lab, MIXED, "list(board.frame()['status']), board.frame()['variant'].tolist()")
    send(shown, LONG)
    expect(pane(shown, "lost").locator(".famnb-failure")).to_contain_text("previous_response")
    for label in ("mini", "thinker", "web"):
        expect(pane(shown, label).locator(".famnb-text")).to_contain_text("1, 2, 3")
    expect(pane(shown, "thinker").locator("summary")).to_contain_text("thought")
    expect(pane(shown, "mini").locator(".famnb-meters")).to_contain_text(re.compile(r"tokens/s≈ \d+"))
    expect(pane(shown, "mini").locator(".famnb-meters")).to_contain_text(re.compile(r"cost(≈|at most) \$0\.\d+"))
    expect(pane(shown, "web").locator(".famnb-meters")).to_contain_text("costno price")
    pane(shown, "web").get_by_role("button", name="Stop").click()
    expect(pane(shown, "web").locator(".famnb-head")).to_contain_text("stopped")
    expect(pane(shown, "mini").locator(".famnb-state")).to_contain_text("answering")
    shown.get_by_role("button", name="Stop all").click()
    table = shown.locator("table").filter(has_text="thinker")
    expect(shown.locator(".famnb-pane")).to_have_count(0)
    expect(table.locator("th[scope=row]")).to_have_count(4)
    expect(table.locator("tr").filter(has_text="lost")).to_contain_text("previous_response")
    lab.run(2)
    expect(lab.output(2)).to_contain_text("['cancelled', 'cancelled', 'cancelled', 'failed']")
    expect(lab.output(2)).to_contain_text("['mini', 'thinker', 'web', 'lost']")
    saved = lab.save().cells[1].outputs[-1]["data"]
    assert set(saved) == {"text/html", "text/markdown", "text/plain"}
    for form in saved.values():
        assert all(
            words in form for words in ("Count to 50000", "mini", "thinker", "web", "lost", "stopped", "no price")
        )


def test_the_keyboard_is_enough_and_differences_and_the_winner_are_marked(lab: Lab):
    """Written, sent, compared and pinned by keys; the mark is in the saved table and in Python."""
    shown = board(lab, PAIR, "board.winner")
    shown.get_by_label("Prompt").focus()
    lab.page.keyboard.type("Say hello.")
    lab.page.keyboard.press("Control+Enter")
    expect(shown.locator("th[scope=row]")).to_have_count(2)
    expect(shown.locator(".famnb-winners")).to_be_visible()
    reached = []
    while "large: pin as winner" not in reached and len(reached) < 9:
        lab.page.keyboard.press("Tab")
        reached.append(lab.page.evaluate(FOCUSED))
        if reached[-1] == "Differences":
            lab.page.keyboard.press("Enter")
    assert reached == ["Send to all", "Differences", "small: pin as winner", "large: pin as winner"]
    expect(shown.locator("ins")).to_contain_text(["fam-2-5-pro"])
    lab.page.keyboard.press("Space")
    expect(shown.get_by_role("button", name="large: pin as winner")).to_have_attribute("aria-pressed", "true")
    expect(shown.locator("tr").filter(has_text="★ winner")).to_contain_text("large")
    expect(shown.locator("ins")).to_contain_text(["fam-2-5-mini"])
    lab.run(2)
    expect(lab.output(2)).to_contain_text("'large'")
    assert "★ winner" in lab.save().cells[1].outputs[-1]["data"]["text/plain"]


def test_a_reload_in_the_middle_shows_every_pane_whole(lab: Lab):
    """The new page has both texts from their beginning; Escape stops them; a winner can be pinned in its pane."""
    counting = ', "max_tokens": 90_000}'
    shown = board(
        lab, PAIR.replace("}", counting, 2), "board.winner, [len(reply.text) for reply in board.replies.values()]"
    )
    send(shown, LONG)
    for label in ("small", "large"):
        expect(pane(shown, label)).to_contain_text("1, 2, 3")
    lab.save()  # else the browser asks whether to leave
    lab.reload()
    for label in ("small", "large"):
        expect(pane(shown, label).locator(".famnb-text")).to_contain_text("1, 2, 3")
        expect(pane(shown, label).locator(".famnb-state")).to_contain_text("answering")
    pane(shown, "large").get_by_role("button", name="large: pin as winner").click()
    expect(pane(shown, "large")).to_have_class(re.compile("famnb-won"))
    lab.page.keyboard.press("Escape")
    for label in ("small", "large"):
        expect(pane(shown, label).locator(".famnb-head")).to_contain_text("stopped")
    expect(pane(shown, "large")).to_have_class(re.compile("famnb-won"))
    expect(shown).to_contain_text("page was reloaded")
    numbers = re.findall(r"\d+", pane(shown, "large").locator(".famnb-text").inner_text())
    assert [int(number) for number in numbers[:-1]] == list(range(1, len(numbers)))
    lab.run(2)
    expect(lab.output(2)).to_contain_text("('large', [")


def test_a_kernel_that_restarts_in_the_middle_loses_nothing(lab: Lab):
    """The panes keep what had come and say what became of it; the rows read interrupted; the cell can be run again."""
    lab.notebook(
        "import famnb\nclient = famnb.connect(ledger='restart.sqlite')",
        PAIR.replace("}", ', "max_tokens": 90_000}', 2),
        "famnb.calls(client)[['status', 'text_chars']].query('text_chars > 0')['status'].tolist()",
    ).run(0)
    lab.run(1)
    shown = lab.output(1)
    send(shown, LONG)
    for label in ("small", "large"):
        expect(pane(shown, label)).to_contain_text("1, 2, 3")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    for label in ("small", "large"):
        expect(pane(shown, label).locator(".famnb-state")).to_contain_text("The kernel has ended")
        expect(pane(shown, label)).to_contain_text("1, 2, 3")
    expect(shown.get_by_role("button", name="Stop all")).to_be_disabled()
    expect(shown).to_contain_text("run this cell again")
    assert "has what came of them" in lab.save().cells[1].outputs[-1]["data"]["text/plain"]
    for number in (0, 2, 1):
        lab.run(number)
    expect(lab.output(2)).to_contain_text("['interrupted', 'interrupted']")
    expect(shown).to_contain_text("2 panes: small | large")


def test_hostile_text_is_inert_in_panes_table_and_differences(lab: Lab):
    """Whatever the models say, no script runs, nothing is loaded, and the table stays whole."""
    shown = board(lab, PAIR)
    requested: list[str] = []
    lab.on("request", lambda request: requested.append(request.url))
    send(shown, HOSTILE)
    expect(shown.locator("th[scope=row]")).to_have_count(2)
    shown.get_by_role("button", name="Differences").click()
    expect(shown.locator("ins").first).to_be_visible()
    bad = "script, img, iframe, svg, [onerror], [onload], a[href^=javascript]"
    assert shown.locator(".jp-OutputArea-output").locator(bad).count() == 0
    expect(shown.locator("th[scope=row]")).to_have_count(2)
    data = lab.save().cells[1].outputs[-1]["data"]
    for form in ("text/html", "text/markdown"):
        assert not any(each in data[form] for each in ("<script", "<img", "<svg", "\x1b", "\u202e"))
    assert lab.dialogs == []
    assert [url for url in requested if "pixel" in url] == []


def test_eight_panes_stand_in_equal_columns(lab: Lab):
    """At most four beside each other, one where there is no room for more; none wider than the page."""
    eight = (
        "board = famnb.Board(client, {str(n): {'model': 'fam-mini', 'max_tokens': 16_000} for n in range(8)})\nboard"
    )
    shown = board(lab, eight)
    lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    send(shown, LONG)
    expect(shown.locator(".famnb-text")).to_have_count(8)
    for width, columns in ((1100, 4), (500, 1)):
        lab.page.set_viewport_size({"width": width, "height": 900})
        lab.page.wait_for_function(COLUMNS, arg=columns)
        boxes = [each.bounding_box() for each in shown.locator(".famnb-pane").all()]
        assert len({round(box["width"]) for box in boxes}) == 1
        assert all(box["x"] + box["width"] <= width for box in boxes)
    shown.get_by_role("button", name="Stop all").click()
    expect(shown.locator("th[scope=row]")).to_have_count(8)
