"""The composer in a real JupyterLab: by keyboard alone, with an image, a preset, a past call, and its code."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.support.lab_page import Lab

pytestmark = pytest.mark.browser

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


def opened(lab: Lab, *sources: str) -> Locator:
    """A notebook with the composer in its first cell."""
    lab.notebook(SETUP, *sources).run(0)
    return lab.output(0).locator(".famnb-composer")


def test_the_keyboard_alone_composes_and_sends(lab: Lab):
    """Tab, arrows, letters and Enter: another endpoint, a folded field, a prompt; no key goes to the notebook."""
    form = opened(lab, "composer.replies[-1].request.body(), len(composer.replies)")
    form.get_by_label("Endpoint").focus()
    lab.page.keyboard.press("ArrowUp")
    expect(form).to_contain_text("POST /v1/web/chat/completions")
    lab.tab_to("max_new_tokens")
    lab.page.keyboard.type("300")
    lab.tab_to("System")
    lab.page.keyboard.type("Be brief.")
    lab.tab_to("Reasoning")
    assert lab.page.evaluate("() => document.activeElement.getAttribute('aria-expanded')") == "false"
    lab.page.keyboard.press("Enter")
    expect(form.get_by_label("reasoning.effort")).to_be_visible()
    expect(form.get_by_role("button", name="Reasoning")).to_have_attribute("aria-expanded", "true")
    lab.tab_to("reasoning.effort")
    lab.page.keyboard.type("low")
    expect(form.get_by_role("button", name="Reasoning")).to_contain_text("1 set")
    lab.tab_to("Prompt")
    lab.page.keyboard.type("What is a tide?")
    lab.page.keyboard.press("Control+Enter")
    expect(lab.output(0)).to_contain_text("in all")
    assert lab.page.locator(".jp-CodeCell").count() == 2
    lab.run(1)
    shown = lab.output(1)
    for words in ("'max_new_tokens': 300", "'Be brief.'", "'effort': 'low'", "'What is a tide?'"):
        expect(shown).to_contain_text(words)


def test_an_image_goes_along_and_stays_out_of_the_notebook(lab: Lab, tmp_path: Path):
    """Uploaded, listed, sent, removed; the saved file has not one byte of it, and a text file is refused."""
    form = opened(lab, "composer.request.body()['messages'][-1]['content'][-1]['image_url']['url'][:30]")
    form.get_by_label("Endpoint").select_option("chat")
    form.get_by_label("Prompt").fill("What is it?")
    form.get_by_role("button", name="Images", exact=True).click()
    form.get_by_role("button", name="JSON body", exact=True).click()
    image, text = tmp_path / "dot.png", tmp_path / "dot.txt"
    image.write_bytes(PNG)
    text.write_text("no image")
    with lab.page.expect_file_chooser() as chooser:
        form.get_by_role("button", name="Upload images").click()
    chooser.value.set_files([image, text])
    expect(form).to_contain_text("dot.png, png, 1 kB")
    expect(form.locator(".famnb-fault[role=alert]")).to_contain_text("dot.txt")
    lab.run(1)
    expect(lab.output(1)).to_contain_text("data:image/png;base64,iVBORw0K")
    form.get_by_role("button", name="Send").click()
    expect(lab.output(0)).to_contain_text("1, counted but not opened")
    lab.save()
    assert base64.b64encode(PNG).decode()[20:] not in lab.path.read_text()
    form.get_by_role("button", name="Remove dot.png").click()
    expect(form.locator(".famnb-composer-list")).to_be_empty()


def test_a_preset_a_past_call_and_code(lab: Lab):
    """Saved under a name and loaded; a past call opens with its reply; the code that is shown is what is copied."""
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    form = opened(lab, "composer.request == composer.replies[0].request")
    prompt = form.get_by_label("Prompt")
    prompt.fill("What is a tide?")
    form.get_by_label("max_tokens").fill("200")
    form.get_by_role("button", name="Send").click()
    expect(lab.output(0)).to_contain_text("tokens out")

    form.get_by_role("button", name="Presets").click()
    form.get_by_label("Save as").fill("tides")
    form.get_by_role("button", name="Save preset").click()
    expect(form.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    prompt.fill("Another")
    form.get_by_label("Endpoint").select_option("chat")
    form.get_by_role("button", name="Load").click()
    expect(prompt).to_have_value("What is a tide?")
    expect(form).to_contain_text("POST /v1/messages")
    form.get_by_role("button", name="Presets").click()

    form.get_by_label("Endpoint").select_option("web")
    prompt.fill("Something else")
    form.get_by_role("button", name="History").click()
    form.get_by_label("Filter calls").fill("tide")
    expect(form.get_by_label("Latest calls").locator("option")).to_have_count(1)
    form.get_by_role("button", name="Open in the form").click()
    expect(prompt).to_have_value("What is a tide?")
    expect(form.get_by_role("tab", name="Events")).to_be_visible()
    expect(form.locator(".widget-tab-contents")).to_contain_text("What is a tide?")
    lab.run(1)
    expect(lab.output(1)).to_contain_text("True")
    form.get_by_role("button", name="History").click()

    form.get_by_role("button", name="Code").click()
    form.get_by_label("As").select_option("httpx")
    shown = form.get_by_role("region", name="code")
    expect(shown).to_contain_text("import httpx")
    form.get_by_role("button", name="Copy code").click()
    expect(form.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    copied = lab.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == shown.text_content()
    assert lab.jupyter.service.key not in copied
