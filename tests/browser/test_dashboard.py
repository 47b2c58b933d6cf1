"""The dashboard in a real JupyterLab: it follows calls, filters, opens one by mouse and by keyboard, and is saved."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import Lab

SETUP = """
import famnb
client = famnb.connect(ledger="dashboard.sqlite")
famnb.Dashboard(client)
"""
CALLS = """
for prompt in ("What is a tide?", "<img src=x onerror=alert(1)> hostile"):
    client.ask(prompt, model="fam-2-5-pro", endpoint="messages", thinking=64, max_tokens=1000)
client.ask("A small one", model="fam-mini", endpoint="chat", max_tokens=1000);
"""


@pytest.mark.always
def test_the_dashboard_follows_calls_and_opens_one_from_charts_and_by_keyboard(lab: Lab):
    lab.notebook(SETUP, CALLS).run(0)
    shown = lab.output(0)
    expect(shown).to_contain_text("No calls yet")
    lab.run(1)
    expect(shown).to_contain_text("all completed")
    rows = shown.get_by_role("grid", name="Calls").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(shown).to_contain_text("These calls were simulated")
    expect(shown.locator(".famnb-chart")).to_have_count(4)

    # From a chart: arrow keys read it, Enter lists the calls of a span.
    chart = shown.get_by_role("img", name="calls over time")
    chart.focus()
    lab.page.keyboard.press("End")
    expect(shown.locator(".famnb-words", has_text="call")).to_contain_text(re.compile(r"to \d.*: \d calls?"))
    lab.page.keyboard.press("Enter")
    expect(shown).to_contain_text(re.compile("Calls of .* to "))
    shown.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(3)

    shown.get_by_role("button", name="fam-2-5-pro").click()
    expect(rows).to_have_count(2)
    expect(shown.get_by_label("Model", exact=True)).to_have_value("fam-2-5-pro")
    rows.first.focus()
    lab.page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    expect(shown.get_by_role("tab", name="Transcript")).to_be_visible()
    rows.first.click()
    expect(shown).to_contain_text("hostile")
    shown.get_by_role("tab", name="Transcript").focus()
    for name in ("Request", "Response"):
        lab.page.keyboard.press("ArrowRight")
        expect(shown.get_by_role("tab", name=name)).to_be_focused()
    expect(shown).to_contain_text("Status 200")
    shown.get_by_role("tab", name="Events").click()
    shown.get_by_label("Filter").fill("message_start")
    expect(shown).to_contain_text("hold the text")
    expect(shown.locator("img")).to_be_visible()
    shown.get_by_role("button", name="Copy events").focus()
    lab.page.keyboard.press("Enter")
    expect(shown.locator(".famnb-copier")).to_contain_text("opied")
    shown.get_by_role("tab", name="Request").click()
    expect(shown.get_by_label("raw request", exact=True)).to_contain_text("Bearer ••••••")
    shown.get_by_role("button", name="Close").click()
    expect(shown.get_by_role("tab", name="Request")).to_be_hidden()
    assert lab.dialogs == []


BESIDE = """import ipywidgets
reply = client.ask("Why?", max_tokens=64)
panel, sheet = famnb.Dashboard(client), famnb.Inspector(reply)
ipywidgets.HBox([panel, sheet])"""


def test_what_is_saved_reads_without_a_kernel_and_a_restart_greys_it(lab: Lab):
    lab.notebook(SETUP.replace("dashboard.sqlite", "saved.sqlite"), BESIDE, "sheet").run(0)
    lab.page.set_viewport_size({"width": 1000, "height": 900})
    for number in (1, 2):
        lab.run(number)
    expect(lab.output(1).get_by_role("group", name="Dashboard")).to_contain_text("time to first token")
    expect(lab.output(1).get_by_role("group", name="Inspector")).to_contain_text("Why?")
    for card in lab.output(1).locator(".famnb-card").all():
        assert card.evaluate("card => card.scrollWidth <= card.clientWidth")
    expect(lab.output(0)).to_contain_text("time to first token")
    expect(lab.output(0).locator(".famnb-saved")).to_be_hidden()
    # The saved output follows within a few seconds.
    expect(lab.output(0).locator(".famnb-saved")).to_contain_text("time to first token")
    cells = lab.save().cells
    for number, word in ((0, "time to first token"), (2, "Why?")):
        pages = [output["data"] for output in cells[number].outputs if "data" in output]
        assert any(word in page.get("text/html", "") for page in pages)
        assert all("VBox(" not in page["text/plain"] for page in pages)

    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    for number, count in ((0, 1), (1, 2), (2, 1)):
        expect(lab.output(number).get_by_role("alert").filter(has_text="run this cell again")).to_have_count(count)
    expect(lab.output(0).get_by_label("Endpoint")).to_be_disabled()
    expect(lab.output(2).get_by_role("button", name="Copy request")).to_be_hidden()
