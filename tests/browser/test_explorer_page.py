"""The explorer on a bare page beside its Python: points under mouse and keys."""

import pandas as pd
import pytest
from playwright.sync_api import Locator, Page, expect

import famnb
from tests.support.front_page import START, Bridge

POINTS = pd.DataFrame({"seconds": [0.0, 50, 100], "dollars": [1.0, 2, 3], "kind": ["a", "b", "b"]})


@pytest.fixture
def bridge(page: Page) -> Bridge:
    """An explorer of three points."""
    bridge = Bridge(page, famnb.plot.explore(POINTS, x="seconds", y="dollars", by="kind"))
    page.evaluate(START, ["/tools/explorer.js", False])
    bridge.deliver()
    return bridge


def press(bridge: Bridge, *keys: str) -> Locator:
    """Press keys in the plot; returns it."""
    plot = bridge.page.get_by_role("application")
    plot.focus()
    for key in keys:
        plot.press(key)
    bridge.deliver()
    return plot


def test_what_is_known_of_a_point_is_said_beside_it(bridge: Bridge):
    plot = press(bridge, "End", "ArrowLeft")
    tip = bridge.page.locator(".famnb-tip")
    expect(tip).to_have_text("bseconds50dollars2")
    plot.blur()
    expect(tip).to_have_count(0)


def test_a_brushed_area_can_be_shown_alone_and_given_up(bridge: Bridge):
    page = bridge.page
    press(bridge, "End", " ", "ArrowLeft", " ")
    expect(page.get_by_role("status").filter(has_text="2 of 3 rows chosen")).to_be_visible()
    page.get_by_role("button", name="Zoom in").click()
    press(bridge, "Home")
    expect(page.locator(".famnb-tip")).to_contain_text("seconds50")
    page.get_by_role("button", name="Zoom out").click()
    press(bridge, "Home")
    expect(page.locator(".famnb-tip")).to_contain_text("seconds0")
    press(bridge, "Escape")
    expect(page.get_by_role("status").filter(has_text="3 rows")).to_be_visible()
    expect(page.get_by_role("button", name="Choose all")).to_have_count(0)


def test_a_group_is_hidden_and_shown_by_its_name_in_the_legend(bridge: Bridge):
    page = bridge.page
    entry = page.get_by_role("button", name="b 2")
    expect(entry).to_have_attribute("aria-pressed", "true")
    entry.click()
    bridge.deliver()
    expect(entry).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("grid").locator("tbody tr")).to_have_count(1)
    press(bridge, "End")
    expect(page.locator(".famnb-tip")).to_contain_text("seconds0")
    entry.click()
    bridge.deliver()
    expect(page.get_by_role("grid").locator("tbody tr")).to_have_count(3)
