"""Voting in a real JupyterLab: by keyboard, saved readable, and taken up after a reload."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import Lab

SETUP = """
import famnb
client = famnb.connect(ledger="ballot.sqlite")
exp = famnb.Experiment(
    ["What is a tide?", "<img src=x onerror=alert(1)> hostile", "Name a dish", "Count to three", "Why is it blue?"],
    famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages"), name="ballot", client=client,
)
exp.run(progress=False)
exp.vote()
"""
VOTES = "exp.votes()[['winner']].value_counts().to_dict(), exp.vote().progress"


@pytest.mark.always
def test_votes_are_cast_by_keyboard_and_the_result_is_saved(lab: Lab):
    lab.notebook(SETUP, VOTES).run(0)
    shown = lab.output(0)
    ballot = shown.get_by_role("group", name="Vote by keyboard")
    status = ballot.get_by_role("status")
    expect(status).to_have_text("0 of 5 voted on")
    ballot.focus()
    for number, key in enumerate(["1", "ArrowRight", "t", "s"], 1):
        lab.page.keyboard.press(key)
        expect(status).to_have_text(f"{number} of 5 voted on")
    lab.page.keyboard.press("u")
    expect(status).to_have_text("3 of 5 voted on")
    assert lab.page.locator(".jp-CodeCell").count() == 2
    ballot.get_by_role("button", name="right is better").click()
    expect(status).to_have_text("4 of 5 voted on")
    lab.page.keyboard.press("ArrowLeft")
    expect(status).to_have_text("All 5 voted on")

    expect(shown).to_contain_text("5 votes count")
    expect(ballot.get_by_role("button", name="left is better")).to_have_attribute("aria-disabled", "true")
    lab.run(1)
    expect(lab.output(1)).to_contain_text("('left',): 2")
    saved = [each["data"] for each in lab.save().cells[0].outputs if "data" in each]
    assert any("5 votes count" in data.get("text/html", "") and "<table" in data["text/html"] for data in saved)

    lab.reload()
    expect(status).to_have_text("All 5 voted on")
    ballot.focus()
    lab.page.keyboard.press("u")
    expect(status).to_have_text("4 of 5 voted on")
    lab.page.keyboard.press("2")
    expect(status).to_have_text("All 5 voted on")
    expect(ballot).to_contain_text("5 votes count")
    assert lab.dialogs == []
