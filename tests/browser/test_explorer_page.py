"""The explorer on a bare page beside its Python: points under mouse and keys, three of them and 100,000."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Locator, Page, expect

import famnb
from tests.support.front_page import START, Bridge

POINTS = pd.DataFrame({"seconds": [0.0, 50, 100], "dollars": [1.0, 2, 3], "kind": ["a", "b", "b"]})


def show(page: Page, frame: pd.DataFrame, **options: Any) -> Bridge:
    """An explorer of points on a page."""
    bridge = Bridge(page, famnb.plot.explore(frame, x="seconds", y="dollars", by="kind", **options))
    page.evaluate(START, ["/tools/explorer.js", False])
    bridge.deliver_until(page.get_by_role("application").count)
    return bridge


@pytest.fixture
def bridge(page: Page) -> Bridge:
    """An explorer of three points."""
    return show(page, POINTS)


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
    bridge.deliver()
    press(bridge, "Home")
    expect(page.locator(".famnb-tip")).to_contain_text("seconds50")
    page.get_by_role("button", name="Zoom out").click()
    bridge.deliver()
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


def box_of(plot: Locator) -> np.ndarray[Any, Any]:
    """Where a plot lies in the window, and its width and height."""
    box = plot.bounding_box()
    assert box is not None
    return np.array([[box["x"], box["y"]], [box["width"], box["height"]]])


def test_of_100_000_points_each_is_found_opened_and_brushed(page: Page, server: famnb.service.Server):
    random, n = np.random.default_rng(5), 100_000
    frame = pd.DataFrame({"seconds": random.normal(50, 12, n).clip(0), "dollars": random.lognormal(0, 0.5, n)})
    questions = ("What is a tide?", "Why is the sky blue?", "<img src=x onerror=alert(1)> hostile")
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        calls = client.send_many(
            [famnb.compose("chat", question, stream=False) for question in questions], progress=False
        )
    number = np.arange(n)
    texts = {"prompt": [f"prompt number {row}" for row in number], "kind": np.where(number % 3, "odd", "even")}
    call_ids = [calls[row % 3].call_id for row in number]
    bridge = show(page, frame.assign(**texts, call_id=call_ids), ledger=client.ledger)
    plot, tip, mouse = page.get_by_role("application"), page.locator(".famnb-tip"), page.mouse
    expect(plot).to_have_attribute("aria-label", re.compile("^dollars against seconds, 100,000 points; arrow keys go"))
    plot.scroll_into_view_if_needed()
    corner, size = box_of(plot)
    # From 0 on, and at the far end with 3 % of the span to spare.
    shares = frame / (frame.max() + (frame.max() - frame.min()) * 0.03)
    places = np.column_stack([shares["seconds"], 1 - shares["dollars"]]) * size

    def expect_tip(words: str) -> None:
        bridge.deliver_until(lambda: words in "".join(tip.all_inner_texts()))

    # In the thick of it, and the outermost: the one that lies nearest to the pointer.
    for pointer in (size * (0.5, 0.85), places[places[:, 1].argmin()] + 2):
        nearest = int(((places - pointer) ** 2).sum(axis=1).argmin())
        mouse.move(*(corner + pointer))
        expect_tip(f"prompt number {nearest}")
        expect(tip).to_contain_text("even" if nearest % 3 == 0 else "odd")
    mouse.down()
    mouse.up()
    bridge.deliver_until(lambda: questions[nearest % 3] in "".join(page.locator(".famnb-sheet").all_inner_texts()))

    # An area on the right, by mouse: what it holds is what `selection` holds.
    plot.scroll_into_view_if_needed()
    corner, size = box_of(plot)
    low = size * (0.8, 0.1)
    mouse.move(*(corner + low))
    mouse.down()
    mouse.move(*(corner + size - 1), steps=3)
    mouse.up()
    bridge.deliver_all()
    inside = np.flatnonzero((places >= low).all(axis=1))
    expect(page.get_by_role("status").filter(has_text="chosen")).to_contain_text(f"{len(inside):,} of 100,000 rows")
    assert bridge.tool.selection.index.tolist() == inside.tolist()

    # By keys: the last one along x opens; two corners are an area; Escape chooses all again.
    press(bridge, "End")
    expect_tip(f"prompt number {frame['seconds'].argmax()}")
    press(bridge, " ", "ArrowLeft", " ")
    expect(page.get_by_role("status").filter(has_text="chosen")).to_contain_text("2 of 100,000 rows")
    press(bridge, "Enter")
    expect(page.get_by_role("grid", name="Rows").locator("tbody tr")).to_have_count(2)
    expect(page.locator("tr[aria-selected=true]")).to_contain_text("prompt number")
    press(bridge, "Escape")
    expect(page.get_by_text("100,000 rows; the last 100")).to_be_visible()
