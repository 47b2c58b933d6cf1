"""Composers and a board of vendors' profiles in a real JupyterLab."""

from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, ask, wait_for_answers

SETUP = """
import os, famnb
service = famnb.serve(compat=True, time_scale=0.2)
ledger = famnb.Ledger(f"{os.getpid()}.sqlite")
clients = {
    name: famnb.Client(profile=name, base_url=service.url, api_key=service.key, ledger=ledger)
    for name in ("anthropic", "openai", "openrouter")
}
"""


def run_tool(lab: Lab, number: int, tool: str = "composer") -> Locator:
    """The tool that a cell shows."""
    lab.run(number)
    element = lab.output(number).locator(f".famnb.famnb-{tool}")
    expect(element.get_by_label("Endpoint").first).to_be_visible()
    return element


def unfold(composer: Locator, heading: str) -> None:
    """Open a group of the settings."""
    composer.locator("summary", has_text=heading).click()


def test_models_of_vendors_answer_leave_their_code_and_are_asked_at_once(lab: Lab):
    lab.page.set_viewport_size({"width": 1400, "height": 1000})
    lab.notebook(
        SETUP,
        "famnb.Composer(clients['anthropic'])",
        "famnb.Board(variants=famnb.grid(client=clients, max_tokens=100))",
    ).run(0)
    composer = run_tool(lab, 1)
    expect(composer.get_by_label("max_tokens", exact=True)).to_have_value("4096")
    unfold(composer, "Reasoning")
    composer.get_by_label("thinking.budget_tokens").fill("1024")
    expect(composer.get_by_label("thinking.type")).to_have_value("enabled")
    unfold(composer, "More")
    composer.get_by_label("extra_body").fill('{"new_field": 1}')
    expect(composer.locator(".famnb-remark")).to_contain_text("new_field is sent as it is")
    ask(composer, "Why is the sky blue?")
    wait_for_answers(composer)
    expect(composer.locator(".famnb-pane")).to_contain_text("thought for")
    expect(composer.locator(".famnb-figures")).to_contain_text("tokens in")
    composer.get_by_role("button", name="Code", exact=True).click()
    expect(composer.locator(".famnb-shown")).to_contain_text("famnb.Client(profile='anthropic'")
    composer.get_by_label("As", exact=True).select_option("curl")
    expect(composer.locator(".famnb-shown")).to_contain_text("x-api-key: $ANTHROPIC_API_KEY")

    board = run_tool(lab, 2, "board")
    expect(board.locator(".famnb-column")).to_have_count(3)
    for name, endpoints in (("anthropic", ["messages"]), ("openai", ["responses", "chat"]), ("openrouter", ["chat"])):
        column = board.get_by_role("group", name=name, exact=True)
        expect(column.get_by_label("Endpoint").locator("option")).to_have_text(endpoints)
    ask(board, "Why?")
    wait_for_answers(board, 3)
    board.get_by_role("button", name="Make an experiment").click()
    expect(board.locator(".famnb-shown")).to_contain_text("'anthropic': famnb.Client(")
