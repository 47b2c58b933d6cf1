"""The dashboard on a bare page beside its Python: charts and rows under mouse and keys, while calls come."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import famnb
from famnb.widget.dashboard.dashboard import Dashboard
from tests.support.front_page import START, Bridge


@pytest.fixture
def client(server: famnb.service.Server) -> Iterator[famnb.Client]:
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        yield client


@pytest.fixture
def bridge(page: Page, client: famnb.Client) -> Iterator[Bridge]:
    """A dashboard of two calls on a page."""
    dashboard = Dashboard(client)
    bridge = Bridge(page, dashboard)
    for prompt in ("one", "two"):
        client.ask(prompt, model="fam-mini", endpoint="chat", stream=False)
    dashboard.poll()
    page.evaluate(START, ["/tools/dashboard.js", False])
    bridge.deliver()
    yield bridge
    dashboard.close()


def test_a_row_that_is_pressed_while_others_come_opens(bridge: Bridge, client: famnb.Client):
    page = bridge.page
    page.get_by_role("grid").get_by_text("two").hover()
    page.mouse.down()
    client.ask("three", model="fam-mini", endpoint="chat", stream=False)
    bridge.tool.poll()
    bridge.flush()
    expect(page.get_by_role("grid").locator("tbody tr")).to_have_count(3)
    page.mouse.up()
    bridge.deliver()
    expect(page.locator("tr[aria-selected=true]")).to_contain_text("two")
    expect(page.get_by_role("region", name="Call")).to_contain_text("two")


def test_the_slowest_call_opens_on_its_events(bridge: Bridge):
    bridge.page.get_by_role("button", name="slowest: ").last.click()
    bridge.deliver()
    expect(bridge.page.get_by_role("region", name="Call").get_by_role("tab", selected=True)).to_have_text("Events")


def test_a_chart_is_read_by_mouse_and_keys(bridge: Bridge):
    page = bridge.page
    chart = page.get_by_role("img", name="calls over time")
    figure = page.locator("figure", has=chart)
    expect(figure.locator(".famnb-mark")).to_have_count(0)
    chart.focus()
    page.keyboard.press("Home")
    expect(figure.get_by_role("status")).to_have_text(re.compile(r"to \d.*: \d calls?: fam-mini \d"))
    chart.blur()
    expect(figure.get_by_role("status")).to_be_empty()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 40)
    expect(figure.locator(".famnb-mark")).to_have_count(1)


def test_calls_are_filtered_opened_and_read_by_keyboard(bridge: Bridge, client: famnb.Client):
    page = bridge.page
    client.ask("<img src=x> hostile", model="fam-2-5-pro", endpoint="messages", thinking=64, max_tokens=1000)
    bridge.tool.poll()
    bridge.flush()
    rows = page.get_by_role("grid", name="Calls").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator("main")).to_contain_text("These calls were simulated")
    expect(page.locator(".famnb-chart")).to_have_count(4)
    page.get_by_role("button", name="fam-mini").click()
    bridge.deliver()
    expect(rows).to_have_count(2)
    expect(page.get_by_label("Model", exact=True)).to_have_value("fam-mini")
    page.get_by_label("Model", exact=True).select_option("fam-2-5-pro")
    bridge.deliver()
    rows.first.focus()
    page.keyboard.press("Enter")
    bridge.deliver()
    expect(rows.first).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("region", name="Call")).to_contain_text("hostile")
    page.get_by_role("tab", name="Response").press("Enter")
    bridge.deliver()
    expect(page.locator("main")).to_contain_text("Status 200")
    page.get_by_role("tab", name="Events").click()
    bridge.deliver()
    page.get_by_label("Filter").fill("message_start")
    page.clock.fast_forward(500)
    bridge.deliver()
    expect(page.locator("main")).to_contain_text("hold the text")
    page.get_by_role("tab", name="Request").click()
    bridge.deliver()
    expect(page.get_by_label("raw request", exact=True)).to_contain_text("Bearer ••••••")
    page.get_by_role("button", name="Close").click()
    bridge.deliver()
    expect(page.get_by_role("tab", name="Request")).to_be_hidden()


def test_a_missing_price_is_entered_where_it_is_missing(bridge: Bridge, client: famnb.Client):
    page = bridge.page
    entry = page.get_by_text("Set a missing price")
    expect(entry).to_have_count(0)
    client.ask("three", model="fam-2-5-pro", endpoint="messages", stream=False)
    bridge.tool.poll()
    bridge.flush()
    entry.click()
    page.get_by_label("USD for a million input tokens").fill("1.25")
    page.get_by_label("USD for a million output tokens").fill("10")
    page.get_by_role("button", name="Set price").click()
    bridge.deliver()
    bridge.tool.poll()
    bridge.flush()
    expect(entry).to_have_count(0)
    famnb.prices.unset("fam-2-5-pro")
