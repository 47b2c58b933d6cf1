"""What axe-core finds in the widgets, in JupyterLab's light theme and in its dark one."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.lab_page import Lab, ask, wait_for_answers

CONNECT = "import famnb\nclient = famnb.connect()"
COMPOSER = "composer = famnb.Composer(client)\ncomposer"
BOARD = """variants = {"small": {"model": "fam-2-5-mini"}, "large": {"thinking": 64}}
famnb.Board(client, {label: {"max_tokens": 90_000, **fields} for label, fields in variants.items()})"""
CARDS = """import ipywidgets
models = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")
asked = famnb.Experiment(["Why?", "What is a tide?"], models, name="asked", client=client, max_tokens=200)
asked.run(progress=False)
ballot = asked.vote()
ballot.vote("tie")
ballot.results()
slow = famnb.Experiment([f"Count to {100 + n}." for n in range(90)], models, name="slow", client=client, max_tokens=900)
run = slow.run(wait=False, concurrency=1)
ipywidgets.VBox([famnb.Dashboard(client), famnb.Inspector(client.last), ballot, run.view])"""
EXPLORER = """for model in ("fam-2-5-pro", "fam-2-5-mini"):
    client.ask("Why?", model=model, max_tokens=16, stream=False)
famnb.plot.explore(famnb.calls(client))"""
TOOL = """@famnb.tool
def weather(city: str) -> str:
    \"\"\"The weather of a city right now.\"\"\"
    return "rain"
famnb.Composer(client, tools=[weather], prompt="What is the weather in Oslo?")"""
PROMPT = "```python\nreturn 'a' + str(1)  # so\n```\n\n|a|b|\n|-|-|\n|1|2|"
WHOLE = {"resultTypes": ["violations", "incomplete", "passes"], "selectors": False}
"""Every node that a rule judged, not the first alone; a selector for each would take as long as the judging."""
SERIOUS = ("serious", "critical")
LOOKS = 60
"""How often, a second apart, axe looks at a page whose colours it cannot judge yet."""


def show_code(lab: Lab) -> None:
    """Have a whole answer in the chat, and the code of the next request."""
    lab.page.set_viewport_size({"width": 1400, "height": 1000})
    composer = lab.output(1).locator(".famnb.famnb-composer")
    ask(composer, PROMPT)
    wait_for_answers(composer)
    composer.get_by_role("button", name="Code", exact=True).click()
    expect(composer.locator(".famnb-shown")).not_to_be_empty()


def show_history(lab: Lab) -> None:
    """Have the latest calls, one of them laid open."""
    composer = lab.output(1).locator(".famnb.famnb-composer")
    composer.get_by_role("button", name="History", exact=True).click()
    composer.get_by_role("list", name="Latest calls").get_by_role("button").first.click()
    expect(composer.locator(".famnb-shown")).not_to_be_empty()


def make_a_mistake(lab: Lab) -> None:
    """Have the settings with a wrong field, and a table of values."""
    composer = lab.output(1).locator(".famnb.famnb-composer")
    composer.get_by_role("button", name="Settings", exact=True).click()
    composer.get_by_label("temperature", exact=True).fill("3")
    composer.get_by_label("Prompt", exact=True).fill("Hello {city}")
    composer.locator("summary", has_text="Reasoning").click()
    expect(composer.get_by_role("alert").filter(has_text="less than or equal to 2")).to_be_visible()


def ask_all(lab: Lab, prompt: str, seen: str) -> None:
    """Have every pane of a board answer, with one pinned and words compared, and wait for what is to be looked at."""
    shown = lab.output(1).locator(".famnb-board")
    ask(shown, prompt)
    if seen == "ins":
        wait_for_answers(shown, 2)
    # One after the other: each draws the answers anew, and a click at a button that is just being replaced is lost.
    shown.get_by_role("button", name="large: pin as winner").click()
    expect(shown.locator(".famnb-won").first).to_be_visible()
    shown.get_by_role("button", name="Differences").click()
    expect(shown.locator(seen).first).to_be_visible()


def edit_board(lab: Lab) -> None:
    """Have a pane that was added, its settings open with a wrong field, and the code of an experiment."""
    ask_all(lab, "Hello.", "ins")
    shown = lab.output(1).locator(".famnb-board")
    shown.get_by_role("button", name="Add a pane").click()
    shown.locator(".famnb-column").nth(2).get_by_role("button", name="Settings").click()
    shown.locator(".famnb-column").nth(2).get_by_label("temperature", exact=True).fill("3")
    shown.get_by_role("button", name="Make an experiment").click()
    expect(shown.locator(".famnb-missing")).to_be_visible()
    expect(shown.get_by_role("alert").filter(has_text="less than or equal to 2")).to_be_visible()


def talk(lab: Lab) -> None:
    """Have a turn in two versions, and a tool call of the second one that waits for approval."""
    shown = lab.output(1)
    shown.get_by_label("Prompt", exact=True).press("Enter")
    shown.get_by_role("button", name="Decline").click()
    shown.get_by_role("button", name="Retry").click()
    expect(shown.get_by_role("button", name="Approve")).to_be_visible()


def inspect(lab: Lab) -> None:
    """Have figures, charts, a sorted list, a call laid open at its events, a pair to vote on, a run under way."""
    shown = lab.output(1)
    shown.get_by_role("grid", name="Calls").get_by_role("button", name="took", exact=True).click()
    expect(shown.get_by_role("columnheader", name="took")).to_have_attribute("aria-sort", "descending")
    shown.get_by_role("grid", name="Calls").locator("tr").last.click()
    dashboard, inspector = (shown.get_by_role("group", name=name) for name in ("Dashboard", "Inspector"))
    dashboard.get_by_role("tab", name="Events").click()
    expect(dashboard.locator("img")).to_be_visible()
    expect(inspector.get_by_role("tab", name="Transcript")).to_be_visible()
    expect(shown.get_by_role("group", name="Ballot")).to_contain_text("1 of 2 voted on")
    expect(shown.get_by_role("progressbar")).to_be_visible()


def explore(lab: Lab) -> None:
    """Have a point that is pointed at and chosen, and its call laid open."""
    shown = lab.output(1)
    shown.get_by_role("application").focus()
    for key in ("End", " ", " ", "Enter"):
        lab.page.keyboard.press(key)
    expect(shown).to_contain_text("rows chosen")
    expect(shown.get_by_role("tab", name="Transcript")).to_be_visible()


WIDGETS = {
    "composer": (COMPOSER, [show_code, show_history, make_a_mistake]),
    "composer, talking": (TOOL, [talk]),
    "board, streaming": (BOARD, [lambda lab: ask_all(lab, "Count to 50000.", ".famnb-won .famnb-text")]),
    "board, edited": (BOARD, [edit_board]),
    "dashboard, inspector, ballot and run": (CARDS, [inspect]),
    "explorer": (EXPLORER, [explore]),
}
"""For each a cell and what is done in it, after each step of which axe looks."""


def run_axe(lab: Lab, *rules: str) -> dict[str, Any]:
    """What axe finds, once it can judge colours: it cannot while something lies over the page, such as a splash."""
    options = {**WHOLE, "runOnly": list(rules)} if rules else WHOLE
    undecided: list[str] = []
    for _ in range(LOOKS):
        found: dict[str, Any] = Axe().run(lab.page, context="#looked-at", options=options).response
        judged = [*found["passes"], *found["violations"]]
        if sum(len(rule["nodes"]) for rule in judged if rule["id"] == "color-contrast") > 5:
            return found
        undecided = [node["html"][:80] for rule in found["incomplete"] for node in rule["nodes"][:3]]
        lab.page.wait_for_timeout(1000)
    raise AssertionError(f"axe judges no colours: {undecided}")


@pytest.mark.parametrize("widget", WIDGETS)
def test_axe_finds_no_serious_fault(lab: Lab, widget: str):
    source, steps = WIDGETS[widget]
    lab.notebook(CONNECT, source).run(0)
    lab.run(1)
    lab.output(1).evaluate("output => { output.id = 'looked-at'; }")
    for step in steps:
        step(lab)
        check_themes(lab)


def check_themes(lab: Lab) -> None:
    """Have axe look at an output in the light theme, and at its colours in the dark one."""
    size = lab.page.viewport_size
    lab.page.mouse.move(0, 0)
    # JupyterLab's body is no line high and hides what is beyond it; axe takes that at its word and judges no colour.
    # Of what is scrolled out of sight within a Board it cannot tell what is beneath (an error that ends the rule).
    unscrolled = ".famnb-stage, .famnb-stage * { height: auto; max-height: none !important; overflow: visible }"
    style = lab.page.add_style_tag(content=f"body {{ height: 100vh }} {unscrolled}")
    lab.page.set_viewport_size({"width": size["width"], "height": 2400})
    lab.page.wait_for_function("() => document.querySelector('.jp-NotebookPanel').clientHeight > 2000")
    # All but colours are the same in both.
    for theme, rules in (("JupyterLab Light", ()), ("JupyterLab Dark", ("color-contrast",))):
        lab.change_theme(theme)
        found = run_axe(lab, *rules)
        faults = [
            (fault["id"], node["html"][:200], node["failureSummary"])
            for fault in found["violations"]
            if fault["impact"] in SERIOUS
            for node in fault["nodes"]
        ]
        assert faults == []
        assert rules or len(found["passes"]) > 5
    lab.change_theme("JupyterLab Light")
    style.evaluate("style => style.remove()")
    lab.page.set_viewport_size(size)
