"""Composer, board, dashboard and explorer in marimo, by `mo.ui.anywidget`: the same front end and the same messages."""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import famnb
from tests.browser.conftest import REQUIRED
from tests.browser.lab_page import ask, wait_for_answers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.full

APP = """
import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import famnb
    import marimo as mo

    composer = mo.ui.anywidget(famnb.Composer(endpoint="messages"))
    composer
    return famnb, mo


@app.cell
def _(famnb, mo):
    board = mo.ui.anywidget(famnb.Board())
    board
    return


@app.cell
def _(famnb, mo):
    dashboard = mo.ui.anywidget(famnb.Dashboard())
    dashboard
    return


@app.cell
def _(famnb, mo):
    import pandas

    points = pandas.DataFrame({"seconds": [1, 2, 3], "dollars": [1, 9, 4], "model": ["a", "a", "b"]})
    explorer = mo.ui.anywidget(famnb.plot.explore(points, x="seconds", y="dollars"))
    explorer
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def address(service: famnb.service.Server, tmp_path: Path) -> Iterator[str]:
    """A marimo server that shows the app."""
    if importlib.util.find_spec("marimo") is None:
        assert not REQUIRED, "marimo is not installed; FAMNB_REQUIRE_BROWSER=1 makes its absence a failure"
        pytest.skip("marimo is not installed")
    app = tmp_path / "app.py"
    app.write_text(APP)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAM")} | {
        "FAMNB_LEDGER": str(tmp_path / "ledger.sqlite"),
        "FAMNB_PRICES": str(tmp_path / "prices.toml"),
        "FAMNB_SERVICE_URL": service.url,
        "FAMNB_SERVICE_KEY": service.key,
        "HOME": str(tmp_path),
    }
    command = [sys.executable, "-m", "marimo", "run", str(app), "--headless", "--no-token", "--port", str(port)]
    log = tmp_path / "marimo.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: process.poll() is not None or answers(port))
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def answers(port: int) -> bool:
    """Whether somebody listens at a port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_marimo_shows_it_and_talks(address: str, browser: Browser):
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.goto(address)
    dashboard = page.get_by_role("group", name="Dashboard")
    explorer = page.get_by_role("group", name="Explorer")
    plot = explorer.get_by_role("application", name="dollars against seconds, 3 points")
    expect(plot).to_be_visible()  # it loads pandas and matplotlib first
    plot.focus()
    plot.press("End")
    expect(explorer.locator(".famnb-tip")).to_have_text("bseconds3dollars4")
    plot.press(" ")
    plot.press(" ")
    expect(explorer).to_contain_text("1 of 3 rows chosen")
    composer, board = page.locator(".famnb-composer"), page.locator(".famnb-board")
    composer.get_by_label("max_tokens", exact=True).fill("90000")
    ask(composer, "My name is Ada.")
    expect(composer.locator(".famnb-pane table")).to_contain_text("90,000")
    wait_for_answers(composer)
    ask(composer, "Count to 50000, please.")
    expect(composer.locator(".famnb-pane").nth(1)).to_contain_text("1, 2, 3")
    composer.get_by_role("button", name="Stop").click()
    expect(composer.locator(".famnb-pane").nth(1)).to_contain_text("stopped after")
    ask(board, "My name is Ada.")
    wait_for_answers(board, 2)
    board.get_by_role("button", name="Make an experiment").click()
    expect(board.locator(".famnb-shown")).to_contain_text("famnb.Experiment(")
    expect(board.get_by_role("button", name="Insert cell below")).to_be_hidden()
    rows = dashboard.get_by_role("grid", name="Calls").locator("tbody tr")
    expect(rows.filter(has_text="cancelled")).to_have_count(1)
    rows.last.click()
    expect(dashboard.locator(".famnb-sheet")).to_contain_text("My name is Ada.")
    context.close()
