"""`%fam` and `%%fam` in a real JupyterLab: completed by Tab, run by keyboard, stopped by the notebook's own button."""

from playwright.sync_api import expect

from famnb.endpoints import ENDPOINTS
from tests.browser.lab_page import Lab
from tests.support.waiting import wait_until


def complete(lab: Lab, offered: list[str], chosen: str) -> None:
    """Press Tab, see what the kernel offers first, and take one of it by keyboard."""
    lab.page.keyboard.press("Tab")
    names = lab.page.locator(".jp-Completer-item .jp-Completer-match")
    # What the kernel offers may come after what the notebook's own words offer.
    wait_until(lambda: names.all_inner_texts()[: len(offered)] == offered)
    for _ in range(offered.index(chosen)):
        lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("Enter")
    expect(names.first).to_be_hidden()


def test_a_cell_is_written_by_completion_asks_and_is_stopped_by_the_notebooks_button(lab: Lab):
    endless = "%%fam --endpoint messages --max-tokens 100000 --into part\nCount to 50000, please."
    states = "answer.status, answer.endpoint, answer.request.model, part.status, part.text[:7]"
    lab.notebook("%load_ext famnb\ncity = 'Oslo'", "", endless, states).run(0)
    lab.page.locator(".jp-CodeCell").nth(1).locator(".cm-content").click()
    lab.page.keyboard.type("%%fam --endpoint ")
    complete(lab, sorted(ENDPOINTS), "web")
    lab.page.keyboard.type(" --model ")
    complete(lab, ["fam-2-5-mini", "fam-2-5-pro"], "fam-2-5-mini")
    lab.page.keyboard.type(" --into answer")
    lab.page.keyboard.press("Enter")
    lab.page.keyboard.type("Why does it rain in {city}?")
    lab.page.keyboard.press("Control+Enter")
    lab.settled(1)
    expect(lab.output(1)).to_contain_text("Why does it rain in Oslo?")

    lab.start(2)
    expect(lab.output(2).locator(".famnb-pane")).to_contain_text("1, 2, 3")
    lab.command("notebook:interrupt-kernel")
    lab.settled(2)
    expect(lab.output(2)).to_contain_text("stopped")
    expect(lab.output(2)).not_to_contain_text("Traceback")
    lab.run(3)
    expect(lab.output(3)).to_contain_text("('completed', 'web', 'fam-2-5-mini', 'cancelled', '1, 2, 3')")
