"""The board in a real JupyterLab: from an empty cell to a compared pair, panes edited in place, stopped, saved."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, ask, wait_for_answers
from tests.support.waiting import wait_until

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


def board(lab: Lab, source: str, *more: str) -> Locator:
    """A notebook with a board on show."""
    lab.notebook(CONNECT, source, *more).run(0)
    lab.run(1)
    shown = lab.output(1).locator(".famnb.famnb-board")
    expect(shown.get_by_label("Prompt", exact=True)).to_be_visible()
    return shown


def pane(shown: Locator, label: str) -> Locator:
    """The pane of that label."""
    return shown.locator(".famnb-pane").filter(has=shown.page.locator(".famnb-head strong", has_text=label))


def test_from_an_empty_cell_to_a_compared_pair_with_a_follow_up_in_twelve_actions(lab: Lab):
    """Each line is an action of a person: a click, a text, a key. Then panes are changed, added, and an experiment."""
    lab.page.set_viewport_size({"width": 1400, "height": 1000})
    lab.notebook("").page.wait_for_timeout(0)
    keyboard = lab.page.keyboard
    shown = lab.output(0).locator(".famnb.famnb-board")
    actions = [
        lambda: lab.page.locator(".jp-CodeCell .cm-content").first.click(),
        lambda: keyboard.type("import famnb; famnb.Board()"),
        lambda: keyboard.press("Shift+Enter"),
        lambda: shown.get_by_label("Prompt", exact=True).click(),
        lambda: keyboard.type("Compare bubble sort and quicksort in a table."),
        lambda: keyboard.press("Enter"),
        lambda: shown.get_by_role("button", name="Differences").click(),
        lambda: shown.get_by_label("Prompt", exact=True).click(),
        lambda: keyboard.type("And heap sort?"),
        lambda: (wait_for_answers(shown, 2), keyboard.press("Enter")),
    ]
    for act in actions:
        act()
    assert len(actions) <= 12
    rounds = shown.locator(".famnb-round")
    expect(rounds.nth(1).locator(".famnb-pane")).to_have_count(2)
    expect(rounds.nth(1).locator("ins").first).to_be_visible()
    for label in ("messages · fam-2-5-pro", "messages · fam-2-5-mini"):
        expect(pane(rounds.nth(1), label)).to_contain_text("Earlier you said")
        expect(pane(rounds.nth(1), label).locator(".famnb-meters")).to_contain_text("in all")
    tops = [box["y"] for box in boxes(rounds.nth(1).locator(".famnb-meters"))]
    assert tops[0] == tops[1]

    # Nothing that is drawn is saved twice on the page, and the file has a table of each round.
    expect(lab.output(0).locator(".famnb-saved")).to_be_hidden()
    *_, widget, _matrix, _matrix_table, table = lab.save().cells[0].outputs
    assert "run this cell to use it" in widget["data"]["text/html"]
    assert widget["data"]["text/plain"] == "A famnb.Board: run this cell to use it."
    assert table["data"]["text/html"].count('<th scope="col"') == 4
    assert "And heap sort?" in table["data"]["text/plain"]

    # Added, changed in place, asked what the others were asked, and removed.
    shown.get_by_role("button", name="Add a pane").click()
    third = shown.locator(".famnb-column").nth(2)
    third.get_by_label("Endpoint").select_option("responses")
    expect(third).to_have_attribute("aria-label", "responses · fam-2-5-pro")
    third.get_by_role("button", name="Settings").click()
    third.get_by_label("temperature", exact=True).fill("3")
    expect(third.get_by_role("alert").filter(has_text="less than or equal to 2")).to_be_visible()
    shown.get_by_label("Prompt", exact=True).fill("And merge sort?")
    expect(shown.get_by_role("button", name="Send to all")).to_be_disabled()
    third.get_by_label("temperature", exact=True).fill("0.7")
    expect(third).to_have_attribute("aria-label", re.compile("temperature=0.7"))
    shown.get_by_role("button", name="Ask here").click()
    expect(rounds.first.locator(".famnb-pane").nth(2)).to_contain_text("0.7")
    wait_for_answers(shown)
    shown.locator(".famnb-column").nth(1).get_by_role("button", name="Remove pane").click()
    expect(shown.locator(".famnb-column")).to_have_count(2)
    expect(rounds.first.locator(".famnb-pane")).to_have_count(3)
    expect(shown.get_by_label("Prompt", exact=True)).to_have_value("And merge sort?")

    shown.get_by_role("button", name="Make an experiment").click()
    shown.get_by_role("button", name="Insert cell below").click()
    expect(lab.page.locator(".jp-CodeCell").nth(1)).to_contain_text("famnb.Experiment(")
    lab.run(1)
    expect(lab.output(1)).to_contain_text("20 calls")


def boxes(shown: Locator) -> list[dict[str, float]]:
    """Where elements are on the page."""
    return [element.bounding_box() for element in shown.all()]


def test_one_pane_fails_one_is_stopped_and_then_all(lab: Lab):
    shown = board(lab, MIXED, "list(board.frame()['status']), board.frame()['variant'].tolist()")
    ask(shown, LONG)
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
    # Once the text, which still comes, scrolls in the pane, that is as high as it gets.
    flow = pane(shown, "mini").locator(".famnb-flow")
    wait_until(lambda: flow.evaluate("flow => flow.scrollHeight > flow.clientHeight + 10"))
    height = pane(shown, "mini").bounding_box()["height"]
    shown.get_by_role("button", name="Stop all").click()
    wait_for_answers(shown, 4)
    assert abs(pane(shown, "mini").bounding_box()["height"] - height) < 40
    lab.run(2)
    expect(lab.output(2)).to_contain_text("['cancelled', 'cancelled', 'cancelled', 'failed']")
    expect(lab.output(2)).to_contain_text("['mini', 'thinker', 'web', 'lost']")
    saved = lab.save().cells[1].outputs[-1]["data"]
    assert set(saved) == {"text/html", "text/markdown", "text/plain"}
    for form in saved.values():
        assert all(
            words in form for words in ("Count to 50000", "mini", "thinker", "web", "lost", "stopped", "no price")
        )


@pytest.mark.always
def test_the_keyboard_is_enough_and_differences_and_the_winner_are_marked(lab: Lab):
    shown = board(lab, PAIR, "board.winner")
    shown.get_by_label("Prompt", exact=True).focus()
    lab.page.keyboard.type("Say hello.")
    lab.page.keyboard.press("Enter")
    wait_for_answers(shown, 2)
    lab.tab_to("large: pin as winner", back=True)
    lab.page.keyboard.press("Space")
    expect(shown.get_by_role("button", name="large: pin as winner")).to_have_attribute("aria-pressed", "true")
    expect(shown.locator(".famnb-won")).to_contain_text("large")
    assert lab.focused() == "large: pin as winner"
    lab.tab_to("Differences", back=True)
    lab.page.keyboard.press("Enter")
    expect(pane(shown, "small").locator("ins")).to_contain_text(["fam-2-5-mini"])
    lab.run(2)
    expect(lab.output(2)).to_contain_text("'large'")
    assert "★ winner" in lab.save().cells[1].outputs[-1]["data"]["text/plain"]


def test_a_reload_in_the_middle_shows_every_pane_whole(lab: Lab):
    counting = ', "max_tokens": 90_000}'
    shown = board(
        lab, PAIR.replace("}", counting, 2), "board.winner, [len(reply.text) for reply in board.replies.values()]"
    )
    ask(shown, LONG)
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
    expect(shown).to_contain_text("page was reloaded")
    numbers = re.findall(r"\d+", pane(shown, "large").locator(".famnb-text").inner_text())
    assert [int(number) for number in numbers[:-1]] == list(range(1, len(numbers)))
    lab.run(2)
    expect(lab.output(2)).to_contain_text("('large', [")


def test_a_kernel_that_restarts_in_the_middle_loses_nothing(lab: Lab):
    lab.notebook(
        "import famnb\nclient = famnb.connect(ledger='restart.sqlite')",
        PAIR.replace("}", ', "max_tokens": 90_000}', 2),
        "famnb.calls(client)[['status', 'text_chars']].query('text_chars > 0')['status'].tolist()",
    ).run(0)
    lab.run(1)
    shown = lab.output(1).locator(".famnb.famnb-board")
    ask(shown, LONG)
    for label in ("small", "large"):
        expect(pane(shown, label)).to_contain_text("1, 2, 3")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    for label in ("small", "large"):
        expect(pane(shown, label).locator(".famnb-state")).to_contain_text("The kernel has ended")
        expect(pane(shown, label)).to_contain_text("1, 2, 3")
    expect(shown.get_by_role("button", name="Stop all")).to_be_disabled()
    expect(shown.get_by_role("alert").filter(has_text="run this cell again")).to_be_visible()
    assert "has what came of them" in lab.save().cells[1].outputs[-1]["data"]["text/plain"]
    lab.ready()
    for number in (0, 2, 1):
        lab.run(number)
    expect(lab.output(2)).to_contain_text("['interrupted', 'interrupted']")
    expect(shown.get_by_role("button", name="Add a pane")).to_be_enabled()
