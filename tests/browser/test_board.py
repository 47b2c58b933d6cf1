"""The board in a real JupyterLab: from an empty cell to a compared pair, edited, saved, its kernel restarted."""

from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, ask, wait_for_answers

CONNECT = "import famnb\nclient = famnb.connect()"
LONG = "Count to 50000, please."
"""It streams for minutes: however slow the machine, there is something to stop."""
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


def test_rows_are_asked_and_graded_from_where_one_writes_without_a_scroll(lab: Lab):
    """The matrix comes into view below the board, its first answer takes the focus, and keys do the rest."""
    lab.page.set_viewport_size({"width": 1300, "height": 900})
    lab.notebook(f"{CONNECT}\nboard = famnb.Board(client)\nboard")
    lab.run(0)
    board, matrix = lab.output(0).locator(".famnb-board"), lab.output(0).locator(".famnb-matrix")
    keyboard = lab.page.keyboard
    board.get_by_label("Prompt", exact=True).fill("Explain {thing}.")
    board.get_by_label("thing, row 1").fill("tides")
    keyboard.press("Enter")
    keyboard.type("bees")
    board.get_by_role("button", name="Run all rows").click()
    expect(matrix.get_by_label("Answer of fam-2-5-pro, tides")).to_be_focused()
    expect(matrix.get_by_label("Answer of fam-2-5-pro, tides")).to_be_in_viewport()
    expect(matrix.locator("td .famnb-answer")).to_have_count(4)
    keyboard.type("1011")
    expect(matrix.locator(".famnb-top")).to_contain_text("4 of 4 answers, 4 graded")
    matrix.get_by_role("button", name="Make an experiment").last.click()
    lab.run(1)
    expect(lab.output(1)).to_contain_text("4 were made before")


def test_from_an_empty_cell_to_a_compared_pair_with_a_follow_up_in_twelve_actions(lab: Lab):
    """Each line is an action of a person: a click, a text, a key. Then an experiment is made."""
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
    for label in ("fam-2-5-pro", "fam-2-5-mini"):
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

    shown.get_by_role("button", name="Make an experiment").click()
    shown.get_by_role("button", name="Insert cell below").click()
    expect(lab.page.locator(".jp-CodeCell").nth(1)).to_contain_text("famnb.Experiment(")
    lab.run(1)
    expect(lab.output(1)).to_contain_text("20 calls")


def boxes(shown: Locator) -> list[dict[str, float]]:
    """Where elements are on the page."""
    return [element.bounding_box() for element in shown.all()]


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
        expect(pane(shown, label).locator(".famnb-state")).to_contain_text("the kernel has ended")
        expect(pane(shown, label)).to_contain_text("1, 2, 3")
    expect(shown.get_by_role("button", name="Stop all")).to_be_disabled()
    expect(shown.get_by_role("alert").filter(has_text="run the notebook again")).to_be_visible()
    assert "was streaming here" in lab.save().cells[1].outputs[-1]["data"]["text/plain"]
    lab.ready()
    for number in (0, 2, 1):
        lab.run(number)
    expect(lab.output(2)).to_contain_text("['interrupted', 'interrupted']")
    expect(shown.get_by_role("button", name="Add a pane")).to_be_enabled()
