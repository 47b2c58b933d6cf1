"""A JupyterLab page as a person uses it: open a notebook, run cells, reload, save."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Dialog, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

import famnb

# Unless told otherwise Playwright looks at every frame, and so has the page draw one sixty times a second.
POLLING_MS = 50
RELOAD_MS = 15_000
"""How long a kernel may take to start before the page is loaded anew."""


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


class Lab:
    """A JupyterLab page as a person uses it: open a notebook, run cells, save."""

    def __init__(self, page: Page, jupyter: Jupyter) -> None:
        self.page = page
        self.jupyter = jupyter
        self.path = jupyter.root
        self.dialogs: list[str] = []
        """Every alert that opened; hostile text wants one."""
        self._listeners: list[tuple[str, Callable[..., Any]]] = []
        self.on("dialog", self._answer)

    def on(self, event: Any, listener: Callable[..., Any]) -> None:
        """Listen to an event of the page until `clear`."""
        self._listeners.append((event, listener))
        self.page.on(event, listener)

    def _answer(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":
            # JupyterLab asks before unsaved work is left; to stay would abort what loads the page anew.
            dialog.accept()
        else:
            self.dialogs.append(dialog.message)
            dialog.dismiss()

    def clear(self) -> None:
        """Make the page as good as new: nothing is open, no kernel runs, nobody listens, the looks are the default."""
        self.page.unroute_all()
        self.page.evaluate(_CLEAR)
        for event, listener in self._listeners:
            self.page.remove_listener(event, listener)

    def notebook(self, *sources: str, name: str = "test.ipynb") -> Lab:
        """Open a new notebook of these cells, its kernel idle."""
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        self.path = self.jupyter.root / name
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), self.path)
        return self.open(name)

    def open(self, name: str) -> Lab:
        """Open a notebook file, its kernel idle; JupyterLab itself is loaded only if it is not yet."""
        if not self.page.url.startswith(self.jupyter.url):
            return self.load(name)
        self.path = self.jupyter.root / name
        self.command("docmanager:open", path=name)
        try:
            return self.ready(timeout_ms=RELOAD_MS)
        except PlaywrightTimeoutError:
            # As a person would: a connection that was lost while a kernel started is not made again.
            return self.load(name)

    def load(self, name: str) -> Lab:
        """Load JupyterLab anew with a notebook file, its kernel idle."""
        self.path = self.jupyter.root / name
        self.page.goto(f"{self.jupyter.url}/lab/tree/{name}?reset")
        return self.ready()

    def reload(self) -> Lab:
        """Reload the page; the kernel goes on."""
        self.page.reload()
        return self.ready(idle=False)

    def ready(self, *, idle: bool = True, timeout_ms: float | None = None) -> Lab:
        """Wait until the notebook is drawn and its kernel is connected, and idle."""
        wanted = [self.path.name, ["idle"] if idle else ["idle", "busy"]]
        self.page.wait_for_function(_KERNEL, arg=wanted, polling=POLLING_MS, timeout=timeout_ms)
        return self

    def command(self, name: str, **arguments: Any) -> None:
        """Run one of JupyterLab's commands and wait for it."""
        self.page.evaluate(_COMMAND, [name, arguments])

    def change_theme(self, theme: str) -> None:
        """Change the looks, such as JupyterLab Dark, and wait until nothing covers the page any more."""
        self.command("apputils:change-theme", theme=theme)
        expect(self.page.locator(f'body[data-jp-theme-name="{theme}"]')).to_have_count(1)
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)

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
        self.page.wait_for_function(_ENDED, arg=number, polling=POLLING_MS)

    def tab_to(self, name: str, *, back: bool = False) -> None:
        """Press Tab, or Shift+Tab to go back, until the control of that name has the focus."""
        for _ in range(60):
            self.page.keyboard.press("Shift+Tab" if back else "Tab")
            if self.focused() == name:
                return
        raise AssertionError(f"Tab never reached {name!r}")

    def focused(self) -> str:
        """The name of what has the focus."""
        name: str = self.page.evaluate(_FOCUSED)
        return name.partition(" · ")[0]

    def output(self, number: int) -> Locator:
        """The outputs of a code cell."""
        return self.page.locator(".jp-CodeCell").nth(number).locator(".jp-OutputArea")

    def save(self) -> Any:
        """Save, and read the file."""
        self.command("docmanager:save")
        return nbformat.read(self.path, as_version=4)


def ask(tool: Locator, prompt: str) -> None:
    """Write a prompt into a Composer or a Board, and send it by Enter."""
    tool.get_by_label("Prompt", exact=True).fill(prompt)
    tool.get_by_label("Prompt", exact=True).press("Enter")


def wait_for_answers(tool: Locator, count: int | None = None) -> None:
    """Wait until a Composer or a Board has as many answers that can be retried, and none is still on its way."""
    retries = tool.get_by_role("button", name="Retry", exact=True)
    if count is not None:
        expect(retries).to_have_count(count)
    # All are locked until the last answer has ended, and are drawn anew then: a click before that can be lost.
    expect(retries.first).not_to_have_attribute("aria-disabled", "true")


_FOCUSED = """() => {
  const element = document.activeElement;
  return element.labels?.[0]?.textContent || element.getAttribute("aria-label") || element.textContent;
}"""
_CLEAR = """async () => {
  const { shell, commands, serviceManager } = window.jupyterapp;
  for (const widget of [...shell.widgets("main")]) widget.dispose();
  await serviceManager.sessions.shutdownAll();
  if (shell.leftCollapsed) shell.expandLeft();
  if (document.body.dataset.jpThemeLight === "false") {
    await commands.execute("apputils:change-theme", { theme: "JupyterLab Light" });
  }
}"""
# What a command returns is often half of JupyterLab, which Playwright would take seconds to bring over.
_COMMAND = "async ([name, given]) => { await window.jupyterapp.commands.execute(name, given); }"
_KERNEL = """([name, wanted]) => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  return panel?.context?.path.endsWith(name) && panel.content.widgets.length > 0
    && wanted.includes(panel.sessionContext?.session?.kernel?.status);
}"""
_RUN = """number => {
  const panel = window.jupyterapp.shell.currentWidget;
  const code = panel.content.widgets.map((cell, index) => [cell, index]).filter(([cell]) => cell.model.type === "code");
  panel.content.deselectAll();
  panel.content.activeCellIndex = code[number][1];
  code[number][0].model.executionCount = null; // that of an earlier run would look like the end of this one
  window.jupyterapp.commands.execute("notebook:run-cell");
}"""
_ENDED = """number => {
  const panel = window.jupyterapp.shell.currentWidget;
  const cell = panel.content.widgets.filter(cell => cell.model.type === "code")[number];
  return cell.model.executionCount !== null && cell.model.executionState !== "running"
    && panel.sessionContext.session.kernel.status === "idle";
}"""
