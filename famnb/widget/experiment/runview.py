"""The live view of a run: what `run(wait=False)` returns shows itself in a notebook, and leaves ordinary output.

Run ── progress, twice a second ── RunView (bar, figures, Stop) ── over ── the report, in the view's place
"""

from __future__ import annotations

import collections
import threading
from typing import Any

import traitlets
from IPython import get_ipython

from famnb.errors import FamnbError
from famnb.experiment import Run
from famnb.experiment.job import Job
from famnb.widget.experiment import runstate
from famnb.widget.view.heard import FRONT, Heard
from famnb.widget.view.shown import Output

PERIOD_S = 0.5
"""Between two looks at a run."""
REMEMBERED = 8
"""How many views of runs that are over stay open for a page that was reloaded meanwhile."""
_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save this with the notebook, "
    "show the run in a new cell."
)


class RunView(Heard):
    """One run, drawn; all it shows is in one trait, so that a view made late, again or twice shows the same."""

    _esm = FRONT / "run.js"
    _css = FRONT / "run.css"
    state = traitlets.Dict().tag(sync=True)
    """What is drawn; see `runstate.state`. Once `result` is not empty, that HTML is all there is."""


class ShownRun(Run):
    """A run under way that shows itself, wherever it ends a notebook's cell."""

    def __init__(self, job: Job) -> None:
        self._display: Display | None = None
        super().__init__(job)

    def _ipython_display_(self) -> None:
        if not hasattr(get_ipython(), "kernel"):
            raise NotImplementedError  # which has IPython print the repr
        if self._display is None:
            self._display = Display(self)
        self._display.show()


class Display:
    """Keeps a run's view up to date from a thread of its own, and puts ordinary output in its place at the end."""

    def __init__(self, run: Run) -> None:
        self.view = RunView(state=runstate.state(run))
        """The widget; closing it ends the looking, not the run."""
        self._run = run
        # Callbacks come on the main thread, on a subshell's; looks on the watching one.
        self._guard = threading.RLock()
        self._outputs: list[Output] = []
        self._watching = self._over = self._stopping = self._reloaded = False
        self._page = self._trouble = ""
        self.view.on_msg(self._message)

    def show(self) -> None:
        """Show the view under the cell that runs now, or what the run came to where it is over."""
        with self._guard:
            output = Output()
            if self._over or not self._run.running:
                output.show(runstate.bundle(self._run, trouble=self._trouble))
                return
            self.refresh()
            output.show(self.view)
            self._outputs.append(output)
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="famnb-run-view", daemon=True).start()

    def refresh(self) -> None:
        """Look at the run now."""
        with self._guard:
            self.view.state = runstate.state(self._run, trouble=self._trouble, stopping=self._stopping)

    def _watch(self) -> None:
        while self.view.comm is not None:
            if self._run.over(PERIOD_S):
                self._end()
                return
            self.refresh()

    def _end(self) -> None:
        """Have the report stand where the view stood, and in the view for a page that cannot change its outputs."""
        with self._guard:
            self._over = True
            made = runstate.bundle(self._run, trouble=self._trouble)
            self._result(made["text/html"])
            for output in self._outputs:
                if not output.captured:
                    output.replace(made)
        _open.append(self.view)
        while len(_open) > REMEMBERED:
            _open.popleft().close()

    def _result(self, html: str) -> None:
        note = f"<p>{_RELOADED}</p>" if self._reloaded else ""
        self.view.state = {**self.view.state, "result": html + note}

    def _message(self, _view: object, message: dict[str, Any], _buffers: object) -> None:
        with self._guard:
            try:
                self._heard(message)
            except Exception as error:
                # In a callback there is nobody else to tell.
                self._trouble = str(error) if isinstance(error, FamnbError) else f"{type(error).__name__}: {error}"
            if not self._over:
                self.refresh()

    def _heard(self, message: dict[str, Any]) -> None:
        match message:
            case {"kind": "ready", "page": str(page)}:
                if self._page not in ("", page) and not self._reloaded:
                    self._reloaded = True
                    if self._over:
                        self._result(self.view.state["result"])
                self._page = page
            case {"kind": "stop"}:
                self._stopping = True
                self._run.stop()
            case _:
                pass


_open: collections.deque[RunView] = collections.deque()
