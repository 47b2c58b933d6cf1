"""The composer's conversations, tools and JSON in a real JupyterLab: by mouse, by keyboard alone, and in the file."""

import itertools
import re
from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, wait_for_answers

SETUP = '''import famnb, pydantic
client = famnb.connect()
ran = []

@famnb.tool
def weather(city: str) -> dict:
    """The weather of a city right now."""
    ran.append(city)
    return {"city": city, "celsius": 4}

class Trip(pydantic.BaseModel):
    title: str
    days: list[str]
    nights: int'''
# Four times as slow as the other streams: a busy machine draws a few states of a second's stream, or one.
SLOWLY = """
slow = famnb.serve(time_scale=1.2)
client = famnb.Client(base_url=slow.url, api_key=slow.key, ledger=client.ledger)"""
FORMATS = ("text/html", "text/markdown")


def open_composer(lab: Lab, composer: str, *sources: str, setup: str = SETUP) -> Locator:
    """A composer of these arguments, in the cell between the setup and further cells."""
    lab.notebook(setup, f"composer = famnb.Composer(client, {composer})\ncomposer", *sources).run(0)
    lab.run(1)
    return lab.output(1).locator(".famnb.famnb-composer")


def pane(composer: Locator, number: int) -> Locator:
    """The live view of a call."""
    return composer.locator(".famnb-pane").nth(number)


def send(composer: Locator, prompt: str = "") -> None:
    """Send what is in the box, or a prompt, by Enter."""
    if prompt:
        composer.get_by_label("Prompt", exact=True).fill(prompt)
    composer.get_by_label("Prompt", exact=True).press("Enter")


def save(lab: Lab) -> dict[str, Any]:
    """The talk in the file, beside the widget."""
    widget, *_board, talk = lab.save().cells[1].outputs
    assert "application/vnd.jupyter.widget-view+json" in widget["data"]
    assert "run this cell to use it" in widget["data"]["text/html"]
    assert "run this cell to use it" in widget["data"]["text/plain"]
    data: dict[str, Any] = talk["data"]
    return data


def test_a_conversation_is_continued_branched_and_switched(lab: Lab):
    prompt = "My name is Ada. Answer in 10 words."
    composer = open_composer(lab, f"prompt={prompt!r}", "[turn.prompt for turn in composer.turns]")
    send(composer)
    expect(pane(composer, 0)).to_contain_text("in all")
    send(composer, "What is my name?")
    expect(pane(composer, 1)).to_contain_text("Earlier you said")
    expect(pane(composer, 1)).to_contain_text("in all")
    expect(composer.get_by_label("Prompt", exact=True)).to_have_value("")

    pane(composer, 0).get_by_role("button", name="Edit", exact=True).click()
    composer.get_by_label("Edit prompt").fill("My name is Grace. Answer in 10 words.")
    composer.get_by_role("button", name="Resend").click()
    expect(pane(composer, 0)).to_contain_text("2 of 2")
    expect(composer.locator(".famnb-pane")).to_have_count(1)

    composer.get_by_role("button", name="Previous version").click()
    expect(pane(composer, 0)).to_contain_text("1 of 2")
    expect(pane(composer, 1)).to_contain_text("What is my name?")
    expect(lab.output(1).locator(".famnb-saved")).to_be_hidden()
    lab.run(2)
    expect(lab.output(2)).to_contain_text(f"[{prompt!r}, 'What is my name?']")


def test_the_keyboard_alone_talks_and_decides(lab: Lab):
    composer = open_composer(lab, "tools=[weather], prompt='What is the weather in Oslo?'", "ran")
    keyboard = lab.page.keyboard
    composer.get_by_label("Prompt", exact=True).focus()
    keyboard.press("Enter")
    expect(composer.get_by_role("group", name="Run weather?")).to_be_visible()
    expect(pane(composer, 0).locator(".famnb-state")).to_have_text("weather waits for your approval")
    lab.tab_to("Decline", back=True)
    keyboard.press("Enter")
    expect(pane(composer, 1)).to_contain_text("declined this call")
    wait_for_answers(composer)
    lab.run(2)
    expect(lab.output(2)).to_contain_text("[]")

    composer.get_by_label("Prompt", exact=True).focus()
    keyboard.type("Never mind. Answer in 10 words.")
    keyboard.press("Enter")
    wait_for_answers(pane(composer, 2))
    expect(composer.get_by_label("Prompt", exact=True)).to_be_focused()
    lab.tab_to("Edit", back=True)
    keyboard.press("Enter")
    expect(composer.get_by_label("Edit prompt")).to_be_focused()
    keyboard.press("Escape")
    expect(composer.get_by_label("Edit prompt")).to_have_count(0)
    assert lab.focused() == "Edit"
    lab.tab_to("Retry")
    keyboard.press("Enter")
    expect(pane(composer, 2)).to_contain_text("2 of 2")
    # While an answer comes, no other version is shown.
    wait_for_answers(pane(composer, 2))
    composer.get_by_label("Prompt", exact=True).focus()
    lab.tab_to("Previous version", back=True)
    keyboard.press("Enter")
    expect(pane(composer, 2)).to_contain_text("1 of 2")
    expect(composer.get_by_role("button", name="Previous version")).to_be_focused()
    keyboard.press("ArrowRight")
    expect(pane(composer, 2)).to_contain_text("2 of 2")
    assert lab.page.locator(".jp-CodeCell").count() == 3


def test_a_tool_that_is_approved_runs_and_is_in_the_file(lab: Lab):
    composer = open_composer(
        lab, "tools=[weather], prompt='What is the weather in Oslo?'", "ran", "ran, len(composer.reply.rounds)"
    )
    send(composer)
    expect(composer.get_by_role("button", name="Approve")).to_be_visible()
    lab.run(2)
    expect(lab.output(2)).to_contain_text("[]")
    composer.get_by_role("button", name="Approve").click()
    expect(pane(composer, 0)).to_contain_text("weather returned")
    wait_for_answers(composer)
    lab.run(3)
    expect(lab.output(3)).to_contain_text("(['Oslo'], 1)")
    data = save(lab)
    for kind in FORMATS:
        places = [
            data[kind].index(words) for words in ("weather in Oslo", "calls weather", "weather returned", "celsius")
        ]
        assert places == sorted(places)


def test_json_grows_laid_out_and_ends_as_an_instance(lab: Lab):
    composer = open_composer(lab, "schema=Trip, prompt='Plan a trip.'", "composer.reply.parsed", setup=SETUP + SLOWLY)
    seen = "() => { window.seen ??= []; const tail = document.querySelector('.famnb-code .famnb-tail');"
    seen += " if (tail?.textContent && tail.textContent !== window.seen.at(-1)) window.seen.push(tail.textContent); }"
    lab.page.evaluate(f"() => {{ window.watch = setInterval({seen}, 5); }}")
    send(composer)
    expect(pane(composer, 0)).to_contain_text("`reply.parsed` is the Trip")
    grown = lab.page.evaluate("() => (clearInterval(window.watch), window.seen)")
    assert len(grown) > 3
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(grown))
    assert any(re.match(r'\{\n  "title": "', incomplete) for incomplete in grown[:-1])
    lab.run(2)
    expect(lab.output(2)).to_contain_text("Trip(title=")


def test_a_conversation_outlives_a_reload(lab: Lab):
    composer = open_composer(lab, "prompt='My name is Ada. Answer in 10 words.'")
    send(composer)
    expect(pane(composer, 0)).to_contain_text("in all")
    lab.save()
    lab.reload()
    expect(pane(composer, 0)).to_contain_text("My name is Ada.")
    expect(composer).to_contain_text("show the Composer in a new cell")
    send(composer, "What is my name?")
    expect(pane(composer, 1)).to_contain_text("Earlier you said")
