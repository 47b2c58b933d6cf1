"""The composer in a real JupyterLab: by keyboard alone, with an image, a preset, a past call, and its code."""

import base64
from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, ask

SETUP = """
import os, famnb
os.environ["FAMNB_PRESETS"] = "presets.json"
client = famnb.connect(ledger=f"{os.getpid()}.sqlite")
composer = famnb.Composer(client)
composer
"""
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def open_composer(lab: Lab, *sources: str, source: str = SETUP) -> Locator:
    """A notebook with the composer in its first cell, wide enough for the settings beside the talk."""
    lab.page.set_viewport_size({"width": 1400, "height": 1000})
    lab.notebook(source, *sources).run(0)
    composer = lab.output(0).locator(".famnb.famnb-composer")
    expect(composer.get_by_label("Endpoint")).to_be_visible()
    return composer


def test_the_keyboard_alone_composes_and_sends(lab: Lab):
    composer = open_composer(lab, "composer.replies[-1].request.body(), len(composer.replies)")
    composer.get_by_label("Endpoint").focus()
    lab.page.keyboard.press("ArrowUp")
    expect(composer).to_contain_text("POST /v1/web/chat/completions")
    lab.tab_to("max_new_tokens")
    lab.page.keyboard.type("300")
    lab.tab_to("temperature")
    lab.page.keyboard.type("0.5")
    lab.tab_to("Reasoning")
    lab.page.keyboard.press("Enter")
    expect(composer.get_by_label("reasoning.effort")).to_be_visible()
    lab.tab_to("reasoning.effort")
    lab.page.keyboard.type("low")
    expect(composer.locator("summary", has_text="Reasoning")).to_contain_text("1 set")
    lab.tab_to("Systemnot set", back=True)
    lab.page.keyboard.press("Enter")
    lab.page.keyboard.press("Tab")
    lab.page.keyboard.type("Be brief.")
    lab.tab_to("Prompt")
    lab.page.keyboard.type("What is a tide?")
    lab.page.keyboard.press("Shift+Enter")
    lab.page.keyboard.type("And why?")
    lab.page.keyboard.press("Enter")
    expect(composer.locator(".famnb-figures")).to_contain_text("in all")
    assert lab.page.locator(".jp-CodeCell").count() == 2
    lab.run(1)
    body = lab.output(1)
    for words in ("'max_new_tokens': 300", "'Be brief.'", "'effort': 'low'", "'What is a tide?\\nAnd why?'", "0.5"):
        expect(body).to_contain_text(words)


def test_images_go_along_and_stay_out_of_the_notebook(lab: Lab, tmp_path: Path):
    composer = open_composer(lab, "composer.request.body()['messages'][-1]['content'][-1]['image_url']['url'][:30]")
    composer.get_by_label("Endpoint").select_option("chat")
    composer.get_by_label("Prompt", exact=True).fill("What is it?")
    image, text = tmp_path / "dot.png", tmp_path / "dot.txt"
    image.write_bytes(PNG)
    text.write_text("no image")
    with lab.page.expect_file_chooser() as chooser:
        composer.get_by_role("button", name="Add images").click()
    chooser.value.set_files([text, image])
    images = composer.get_by_role("list", name="Images")
    expect(images).to_contain_text("dot.png, png, 1 kB")
    lab.run(1)
    expect(lab.output(1)).to_contain_text("data:image/png;base64,iVBORw0K")
    composer.get_by_role("button", name="Send", exact=True).click()
    expect(composer.locator(".famnb-pane")).to_contain_text("1, counted but not opened")
    expect(images).to_be_hidden()
    lab.save()
    assert base64.b64encode(PNG).decode()[20:] not in lab.path.read_text()


def test_a_preset_a_past_call_and_code(lab: Lab):
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    composer = open_composer(lab, "composer.request == composer.replies[0].request")
    prompt = composer.get_by_label("Prompt", exact=True)
    composer.get_by_label("max_tokens", exact=True).fill("200")
    prompt.fill("What is a tide?")
    composer.get_by_role("button", name="Presets").click()
    composer.get_by_label("Save as").fill("tides")
    composer.get_by_role("button", name="Save preset").click()
    expect(composer.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    prompt.press("Enter")
    expect(composer.locator(".famnb-figures")).to_contain_text("tokens out")
    expect(prompt).to_have_value("")
    composer.get_by_role("button", name="Load").click()
    expect(prompt).to_have_value("What is a tide?")

    composer.get_by_role("button", name="Settings").click()
    composer.get_by_label("Endpoint").select_option("web")
    prompt.fill("Something else")
    composer.get_by_role("button", name="History").click()
    composer.get_by_label("Filter calls").fill("tide")
    expect(composer.get_by_role("list", name="Latest calls").locator("li")).to_have_count(1)
    composer.get_by_role("list", name="Latest calls").get_by_role("button").click()
    expect(composer.locator(".famnb-shown")).to_contain_text("What is a tide?")
    expect(prompt).to_have_value("Something else")
    composer.get_by_role("button", name="Continue this chat").click()
    expect(prompt).to_have_value("")
    expect(prompt).to_be_focused()
    expect(composer.locator(".famnb-chat .famnb-prompt-text")).to_have_text("What is a tide?")
    lab.run(1)
    expect(lab.output(1)).to_contain_text("True")

    composer.get_by_role("button", name="Code", exact=True).click()
    expect(composer.locator(".famnb-shown")).to_contain_text("client.ask(")
    composer.get_by_role("button", name="Insert cell below").click()
    expect(lab.page.locator(".jp-CodeCell")).to_have_count(3)
    expect(lab.page.locator(".jp-CodeCell").nth(1)).to_contain_text("client.ask(")
    composer.get_by_label("As", exact=True).select_option("anthropic")
    expect(composer.locator(".famnb-shown")).to_contain_text("import anthropic")
    composer.locator(".famnb-side").get_by_role("button", name="Copy code").click()
    expect(composer.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    copied = lab.page.evaluate("() => navigator.clipboard.readText()")
    assert copied.strip() == composer.locator(".famnb-shown").inner_text().strip()
    assert lab.jupyter.service.key not in copied


def test_compare_opens_a_board_that_goes_on_from_the_talk(lab: Lab):
    composer = open_composer(lab)
    composer.get_by_label("temperature", exact=True).fill("0.4")
    ask(composer, "My name is Ada.")
    expect(composer.locator(".famnb-figures")).to_contain_text("in all")
    composer.get_by_label("Prompt", exact=True).fill("What is my name?")
    composer.get_by_role("button", name="Compare").click()
    board = lab.output(0).locator(".famnb-board")
    expect(board.locator(".famnb-column")).to_have_count(2)
    expect(board.get_by_label("Prompt", exact=True)).to_have_value("What is my name?")
    expect(board.get_by_label("Prompt", exact=True)).to_be_focused()
    expect(board.get_by_label("Prompt", exact=True)).to_be_in_viewport()
    board.get_by_label("Prompt", exact=True).press("Enter")
    for number, model in enumerate(("fam-2-5-pro", "fam-2-5-mini")):
        answer = board.locator(".famnb-pane").nth(number)
        for words in (model, "Earlier you said", "0.4"):
            expect(answer).to_contain_text(words)
        expect(answer.locator(".famnb-text")).to_be_in_viewport()
    expect(composer.get_by_label("Prompt", exact=True)).to_have_value("What is my name?")


def test_in_a_box_it_is_one_widget_and_in_a_narrow_one_the_settings_are_a_drawer(lab: Lab):
    lab.page.set_viewport_size({"width": 1000, "height": 1000})
    box = "import ipywidgets\nipywidgets.HBox([composer, ipywidgets.Label('beside')])"
    lab.notebook(SETUP.replace("\ncomposer\n", "\n"), box).run(0)
    lab.run(1)
    composer = lab.output(1).locator(".famnb-composer")
    expect(lab.output(1)).to_contain_text("beside")
    expect(composer.get_by_label("Endpoint")).to_be_hidden()
    composer.get_by_role("button", name="Settings").click()
    expect(composer.get_by_label("Endpoint")).to_be_visible()
    composer.get_by_label("Endpoint").press("Escape")
    expect(composer.get_by_label("Endpoint")).to_be_hidden()
    assert lab.focused() == "Settings"
    ask(composer, "Say hello.")
    expect(composer.locator(".famnb-figures")).to_contain_text("in all")
    (output,) = lab.save().cells[1].outputs
    assert "VBox" not in output["data"]["text/plain"]
