"""A real JupyterLab with folders of its own, and a Chromium page on it."""

from __future__ import annotations

import dataclasses
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
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

import famnb

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
START_S = 60
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        reason = "no `chromium` on the PATH; install it (Debian: apt install chromium) to run the browser tests"
        if REQUIRED:
            pytest.fail(f"{reason}; FAMNB_REQUIRE_BROWSER=1 makes its absence a failure")
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def service() -> Iterator[famnb.service.Server]:
    """The local service at a pace that can be watched, a third of lifelike."""
    with famnb.serve(time_scale=0.3) as running:
        yield running


@dataclasses.dataclass
class Jupyter:
    """A running JupyterLab."""

    url: str
    home: Path
    """Everything it and its kernels write."""
    service: famnb.service.Server
    """What `famnb.connect()` finds in its kernels."""

    @property
    def root(self) -> Path:
        """Where its notebooks are."""
        return self.home / "root"


@pytest.fixture(scope="session")
def jupyter(
    browser: Browser, service: famnb.service.Server, tmp_path_factory: pytest.TempPathFactory
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
        "--expose-app-in-browser",
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
            process.wait(20)


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


class Lab:
    """A JupyterLab page as a person uses it: open a notebook, run cells, save."""

    def __init__(self, page: Page, jupyter: Jupyter) -> None:
        self.page = page
        self.jupyter = jupyter
        self.path = jupyter.root
        self.dialogs: list[str] = []
        """Every alert that opened; hostile text wants one."""
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))

    def notebook(self, *sources: str, name: str = "test.ipynb") -> Lab:
        """Open a new notebook of these cells, its kernel idle."""
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        self.path = self.jupyter.root / name
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), self.path)
        return self.open(name)

    def open(self, name: str) -> Lab:
        """Open a notebook file, its kernel idle."""
        self.path = self.jupyter.root / name
        self.page.goto(f"{self.jupyter.url}/lab/tree/{name}?reset")
        return self.ready()

    def reload(self) -> Lab:
        """Reload the page; the kernel goes on."""
        self.page.reload()
        return self.ready(idle=False)

    def ready(self, *, idle: bool = True) -> Lab:
        """Wait until the notebook is drawn and its kernel is connected, and idle."""
        self.page.wait_for_function(_KERNEL, arg=["idle"] if idle else ["idle", "busy"], timeout=60_000)
        return self

    def command(self, name: str, **arguments: Any) -> None:
        """Run one of JupyterLab's commands and wait for it."""
        self.page.evaluate("([name, given]) => window.jupyterapp.commands.execute(name, given)", [name, arguments])

    def start(self, number: int) -> None:
        """Start a cell and return at once."""
        self.page.evaluate(_RUN, number)

    def run(self, number: int) -> None:
        """Run a cell to its end."""
        self.start(number)
        self.settled(number)

    def run_all(self) -> None:
        """Run every cell to its end."""
        self.command("notebook:run-all-cells")

    def settled(self, number: int) -> None:
        """Wait until a cell has a number, so that it has ended."""
        self.page.wait_for_function(_ENDED, arg=number, timeout=60_000)

    def output(self, number: int) -> Locator:
        """The outputs of a code cell."""
        return self.page.locator(".jp-CodeCell").nth(number).locator(".jp-OutputArea")

    def save(self) -> Any:
        """Save, and read the file."""
        self.command("docmanager:save")
        return nbformat.read(self.path, as_version=4)


_KERNEL = """wanted => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  return wanted.includes(panel?.sessionContext?.session?.kernel?.status) && panel.content.widgets.length > 0;
}"""
_RUN = """number => {
  const panel = window.jupyterapp.shell.currentWidget;
  const code = panel.content.widgets.map((cell, index) => [cell, index]).filter(([cell]) => cell.model.type === "code");
  panel.content.deselectAll();
  panel.content.activeCellIndex = code[number][1];
  window.jupyterapp.commands.execute("notebook:run-cell");
}"""
_ENDED = """number => {
  const panel = window.jupyterapp.shell.currentWidget;
  const cell = panel.content.widgets.filter(cell => cell.model.type === "code")[number];
  return cell.model.executionCount !== null && cell.model.executionState !== "running"
    && panel.sessionContext.session.kernel.status === "idle";
}"""


@pytest.fixture
def lab(browser: Browser, jupyter: Jupyter) -> Iterator[Lab]:
    """A fresh page on the JupyterLab that all browser tests share; its kernels end with the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    page = context.new_page()
    yield Lab(page, jupyter)
    page.evaluate("() => window.jupyterapp?.serviceManager.sessions.shutdownAll()")
    context.close()
