"""A real JupyterLab with folders of its own, and a Chromium page on it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import famnb
from tests.browser.lab_page import Jupyter, Lab
from tests.support.front_page import serve_front

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("FAMNB_REQUIRE_BROWSER") == "1"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
UNUSED = [
    *("csvviewer", "debugger", "extensionmanager", "htmlviewer", "hub", "imageviewer", "inspector", "launcher"),
    *("logconsole", "lsp", "metadataform", "running", "settingeditor", "terminal", "toc", "tooltip", "workspaces"),
]
"""Extensions of JupyterLab that no test needs: without them a page, and each of its notebooks, takes a tenth less."""
PAGE = {
    "disabledExtensions": {f"@jupyterlab/{name}-extension": True for name in UNUSED},
    # Else every page that is loaded has the server start two processes of Node.js.
    "buildCheck": False,
    "buildAvailable": False,
}
START_S = 180
# Long enough for a machine with much else to do: a test that passes never waits this long.
GUARD_MS = 120_000
expect.set_options(timeout=GUARD_MS)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark all tests here as `browser`, and those that need a JupyterLab as `full`, but for those marked `always`."""
    item.add_marker("browser")
    if "jupyter" in item.fixturenames and item.get_closest_marker("always") is None:
        item.add_marker("full")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium's program."""
    if CHROMIUM is None:
        reason = "no `chromium` on the PATH; install it (Debian: apt install chromium) to run the browser tests"
        if REQUIRED:
            pytest.fail(f"{reason}; FAMNB_REQUIRE_BROWSER=1 makes its absence a failure")
        pytest.skip(reason)
    return CHROMIUM


# Not for the session: while Playwright runs, so does its event loop, inside which the `asyncio.run` of other folders'
# tests refuses to work.
@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def service() -> Iterator[famnb.service.Server]:
    """The local service at a pace that can be watched, a third of lifelike."""
    with famnb.serve(time_scale=0.3) as running:
        yield running


@pytest.fixture(scope="session")
def jupyter(
    chromium: str, service: famnb.service.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Jupyter]:
    """A JupyterLab whose every folder is its own."""
    home = tmp_path_factory.mktemp("lab")
    folders = {name: home / name for name in ("config", "data", "runtime", "settings", "workspaces", "root", "ipython")}
    for folder in folders.values():
        folder.mkdir()
    for name, values in SETTINGS.items():
        file = folders["settings"] / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    looks = folders["config"] / "labconfig" / "page_config.json"
    looks.parent.mkdir()
    looks.write_text(json.dumps(PAGE))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FAM", "JUPYTER"))}
    environment |= {
        "JUPYTER_CONFIG_DIR": str(folders["config"]),
        "JUPYTER_DATA_DIR": str(folders["data"]),
        "JUPYTER_RUNTIME_DIR": str(folders["runtime"]),
        "JUPYTERLAB_SETTINGS_DIR": str(folders["settings"]),
        "JUPYTERLAB_WORKSPACES_DIR": str(folders["workspaces"]),
        "IPYTHONDIR": str(folders["ipython"]),
        "FAMNB_LEDGER": str(home / "ledger.sqlite"),
        # Else a price that one test sets would be kept for all, and for the user of this machine.
        "FAMNB_PRICES": str(home / "prices.toml"),
        "FAMNB_KEEP_PRICES": "0",
        "FAMNB_SERVICE_URL": service.url,
        "FAMNB_SERVICE_KEY": service.key,
    }
    options = [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folders['root']}",
        "--IdentityProvider.token=",
        "--ServerApp.jpserver_extensions={'jupyter_lsp': False, 'jupyter_server_terminals': False}",
        "--expose-app-in-browser",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    with (home / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_up(url, process, home / "lab.log")
            yield Jupyter(url, home, service)
        finally:
            process.terminate()
            try:
                process.wait(60)
            # It ends its kernels one after another, which takes longer on a busy machine.
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server answers; fail with its log when it ends or takes too long."""
    due = time.monotonic() + START_S
    while time.monotonic() < due and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/api", timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def blank_context(browser: Browser) -> Iterator[BrowserContext]:
    """What the one blank page of a module's tests is opened in."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def blank_page(blank_context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A blank page, the same for all tests of a module, since to make one takes longer than most of them.

    After a failure the next test has one of its own.
    """
    page = blank_context.pages[0] if blank_context.pages else blank_context.new_page()
    page.set_viewport_size({"width": 1280, "height": 720})
    page.mouse.move(0, 0)
    failures = request.session.testsfailed
    yield page
    if page.url.startswith("http"):
        # Where the front end remembers a reader's choices.
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    # What still runs there ends with its document.
    page.goto("about:blank")
    page.unroute_all()
    if request.session.testsfailed > failures:
        page.close()


@pytest.fixture
def page(blank_page: Page) -> Iterator[Page]:
    """A page beside the modules of the front end."""
    yield from serve_front(blank_page)


@pytest.fixture(scope="package")
def lab_context(browser: Browser) -> Iterator[BrowserContext]:
    """What the one page of all tests with a JupyterLab is opened in."""
    context = browser.new_context()
    context.set_default_timeout(GUARD_MS)
    yield context
    context.close()


@pytest.fixture
def lab(lab_context: BrowserContext, jupyter: Jupyter, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A JupyterLab with nothing open, on one page for all tests, since to load it takes longer than most of them.

    Its kernels end with the test; after a failure the next test has a page of its own.
    """
    page = lab_context.pages[0] if lab_context.pages else lab_context.new_page()
    page.set_viewport_size({"width": 1100, "height": 900})
    lab, failures = Lab(page, jupyter), request.session.testsfailed
    yield lab
    lab.clear()
    if request.session.testsfailed > failures:
        page.close()
