"""Makes README's pictures of the Composer and of a Board from the real page, light and dark.

    pytest -n 0 tests/browser/make_pictures.py

They are not made with the other tests, since a picture differs from one machine's fonts to the next one's.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_page import Lab, ask, wait_for_answers

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
    lab.notebook(source).change_theme(THEMES[theme])
    lab.run(0)
    return lab.output(0).locator(f".famnb.famnb-{tool}")


@pytest.mark.parametrize("theme", THEMES)
def test_the_composer(lab: Lab, theme: str):
    shown = show(lab, COMPOSER, theme, "composer")
    ask(shown, "Why is the sky blue?")
    wait_for_answers(shown)
    shown.screenshot(path=PICTURES / f"composer-{theme}.png")


@pytest.mark.parametrize("theme", THEMES)
def test_the_board(lab: Lab, theme: str):
    shown = show(lab, BOARD, theme, "board")
    ask(shown, "What makes a good unit test?")
    wait_for_answers(shown, 2)
    shown.get_by_role("button", name="Differences").click()
    expect(shown.locator("ins").first).to_be_visible()
    shown.screenshot(path=PICTURES / f"board-{theme}.png")
