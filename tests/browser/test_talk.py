"""The composer's conversations and tools in a real JupyterLab: by mouse, by keyboard alone, and in the file."""

from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, wait_for_answers

SETUP = '''import famnb
client = famnb.connect()
ran = []

@famnb.tool
def weather(city: str) -> dict:
    """The weather of a city right now."""
    ran.append(city)
    return {"city": city, "celsius": 4}'''


def open_composer(lab: Lab, composer: str, *sources: str) -> Locator:
    """A composer of these arguments, in the cell between the setup and further cells."""
    lab.notebook(SETUP, f"composer = famnb.Composer(client, {composer})\ncomposer", *sources).run(0)
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


def test_a_conversation_and_its_branches_outlive_a_reload(lab: Lab):
    composer = open_composer(lab, "prompt='My name is Ada. Answer in 10 words.'")
    send(composer)
    expect(pane(composer, 0)).to_contain_text("in all")
    pane(composer, 0).get_by_role("button", name="Edit", exact=True).click()
    composer.get_by_label("Edit prompt").fill("My name is Grace. Answer in 10 words.")
    composer.get_by_role("button", name="Resend").click()
    expect(pane(composer, 0)).to_contain_text("2 of 2")
    wait_for_answers(composer)
    expect(lab.output(1).locator(".famnb-saved")).to_be_hidden()
    lab.save()
    lab.reload()
    expect(pane(composer, 0)).to_contain_text("My name is Grace.")
    expect(composer).to_contain_text("show the Composer in a new cell")
    composer.get_by_role("button", name="Previous version").click()
    expect(pane(composer, 0)).to_contain_text("1 of 2")
    expect(pane(composer, 0)).to_contain_text("My name is Ada.")
    send(composer, "What is my name?")
    expect(pane(composer, 1)).to_contain_text("Earlier you said")


def test_the_keyboard_alone_talks_and_decides_and_a_tool_that_is_approved_runs(lab: Lab):
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
    lab.tab_to("Next version")
    keyboard.press("Enter")
    expect(pane(composer, 2)).to_contain_text("2 of 2")
    assert lab.page.locator(".jp-CodeCell").count() == 3

    send(composer, "What is the weather in Oslo?")
    composer.get_by_role("button", name="Approve").click()
    expect(composer).to_contain_text("weather returned")
    wait_for_answers(composer)
    expect(composer.get_by_label("Prompt", exact=True)).to_be_focused()
    lab.run(2)
    expect(lab.output(2)).to_contain_text("['Oslo']")
    widget, *_board, talk = lab.save().cells[1].outputs
    assert "application/vnd.jupyter.widget-view+json" in widget["data"]
    assert all("run this cell to use it" in widget["data"][form] for form in ("text/html", "text/plain"))
    for form in ("text/html", "text/markdown"):
        assert all(words in talk["data"][form] for words in ("calls weather", "weather returned", "celsius"))
