"""Makes README's pictures of the Composer and of a Board from the real page, light and dark.

    pytest -n 0 tests/browser/make_pictures.py

They are not made with the other tests, since a picture differs from one machine's fonts to the next one's.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab

pytestmark = pytest.mark.always

PICTURES = Path(__file__).parents[2] / "notebooks" / "pictures"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
COMPOSER = """import famnb
famnb.Composer(famnb.connect(), endpoint="messages")"""
BOARD = """import famnb
famnb.prices.set("fam-2-5-pro", input=1.25, output=10)
famnb.prices.set("fam-2-5-mini", input=0.25, output=2)
famnb.Board(famnb.connect(), {"pro": {"model": "fam-2-5-pro"}, "mini": {"model": "fam-2-5-mini"}})"""


def show(lab: Lab, source: str, theme: str, tool: str) -> Locator:
    """One of the tools in a notebook of its own, as wide as a laptop's."""
    lab.page.set_viewport_size({"width": 1280, "height": 1200})
    lab.notebook(source).command("apputils:change-theme", theme=THEMES[theme])
    expect(lab.page.locator(f'body[data-jp-theme-name="{THEMES[theme]}"]')).to_have_count(1)
    expect(lab.page.locator("#jupyterlab-splash")).to_have_count(0)  # it covers the page while the theme changes
    lab.run(0)
    return lab.output(0).locator(f".famnb.famnb-{tool}")


def ask(shown: Locator, prompt: str) -> None:
    """Send a prompt, and wait for the end of what it is answered with."""
    box = shown.get_by_label("Prompt", exact=True)
    box.fill(prompt)
    box.press("Enter")
    # The pace is a third of lifelike, and an answer a few lines.
    expect(shown.get_by_role("button", name="Stop").first).to_be_visible()
    expect(shown.get_by_role("button", name="Stop")).to_have_count(0)


@pytest.mark.parametrize("theme", THEMES)
def test_the_composer(lab: Lab, theme: str):
    shown = show(lab, COMPOSER, theme, "composer")
    ask(shown, "Why is the sky blue?")
    shown.screenshot(path=PICTURES / f"composer-{theme}.png")


@pytest.mark.parametrize("theme", THEMES)
def test_the_board(lab: Lab, theme: str):
    shown = show(lab, BOARD, theme, "board")
    ask(shown, "What makes a good unit test?")
    shown.get_by_role("button", name="Differences").click()
    expect(shown.locator("ins").first).to_be_visible()
    shown.screenshot(path=PICTURES / f"board-{theme}.png")
