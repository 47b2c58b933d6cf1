"""The dashboard in a real JupyterLab: it moves while calls run, filters, and opens a call by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.lab_page import Lab

pytestmark = pytest.mark.browser

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


def test_the_dashboard_follows_calls_and_opens_one_by_keyboard(lab: Lab):
    """Empty at first; three calls later it says so, filters by model, and lays a call open, all its text inert."""
    lab.notebook(SETUP, CALLS).run(0)
    shown = lab.output(0)
    expect(shown).to_contain_text("No calls yet")
    lab.run(1)
    expect(shown.get_by_role("status").first).to_contain_text("all completed")
    table = shown.get_by_label("Latest calls")
    expect(table.locator("option")).to_have_count(3)
    expect(shown).to_contain_text("Some of these calls were simulated")

    shown.get_by_label("Model").select_option("fam-2-5-pro")
    expect(table.locator("option")).to_have_count(2)
    table.focus()
    lab.page.keyboard.press("ArrowDown")
    expect(shown.get_by_role("tab", name="Transcript")).to_be_visible()
    expect(shown).to_contain_text("hostile")
    shown.get_by_role("tab", name="Response").click()
    expect(shown).to_contain_text("Status 200")
    shown.get_by_role("tab", name="Events").click()
    shown.get_by_label("Filter").fill("message_start")
    expect(shown).to_contain_text("hold the text")
    expect(shown.locator("img")).to_be_visible()
    shown.get_by_role("button", name="Copy events").focus()
    lab.page.keyboard.press("Enter")
    expect(shown.locator(".famnb-bare")).to_contain_text("opied")
    shown.get_by_role("tab", name="Request").click()
    expect(shown.get_by_label("raw request", exact=True)).to_contain_text("Bearer ••••••")
    assert lab.dialogs == []
