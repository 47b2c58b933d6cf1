"""The ballot on a bare page beside its Python: votes by keys and by buttons, taken back, and their result."""

from playwright.sync_api import Page, expect

import famnb
from famnb.service import Server
from tests.support.front_page import START, Bridge


def test_votes_are_cast_by_keys_and_buttons_and_taken_back(page: Page, server: Server):
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        models = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")
        prompts = [
            "What is a tide?",
            "<img src=x onerror=alert(1)> hostile",
            "Name a dish",
            "Count to three",
            "Why is it blue?",
        ]
        exp = famnb.Experiment(prompts, models, name="ballot", client=client)
        exp.run(progress=False)
    bridge = Bridge(page, exp.vote())
    page.evaluate(START, ["/tools/ballot.js", False])
    bridge.deliver()
    ballot = page.get_by_role("group", name="Vote by keyboard")
    status = ballot.get_by_role("status")
    expect(status).to_have_text("0 of 5 voted on")
    ballot.focus()
    keys = {"1": "1 of 5", "ArrowRight": "2 of 5", "t": "3 of 5", "s": "4 of 5", "u": "3 of 5"}
    for key, progress in keys.items():
        page.keyboard.press(key)
        bridge.deliver()
        expect(status).to_have_text(f"{progress} voted on")
    ballot.get_by_role("button", name="right is better").click()
    bridge.deliver()
    expect(status).to_have_text("4 of 5 voted on")
    page.keyboard.press("ArrowLeft")
    bridge.deliver()
    expect(status).to_have_text("All 5 voted on")
    expect(ballot).to_contain_text("5 votes count")
    expect(ballot.get_by_role("button", name="left is better")).to_have_attribute("aria-disabled", "true")
    assert exp.votes()["winner"].value_counts().to_dict() == {"left": 2, "right": 2, "tie": 1}
