"""The live view of a run: what `run(wait=False)` returns shows itself in a notebook, and leaves ordinary output.

Run ── progress, twice a second ── RunView (bar, figures, Stop) ── over ── the report, in the view's place

MERGED: A run in words: what its live view says while it is under way, and the ordinary output that is left of it.
"""

from __future__ import annotations

import collections
import threading
from decimal import Decimal
from typing import Any

import traitlets
from IPython import get_ipython

from famnb.errors import FamnbError
from famnb.experiment import Run, RunReport
from famnb.experiment.progress import SIMULATED, Progress
from famnb.experiment.runner import Job
from famnb.formatting import format_count, format_duration, format_table, format_usd, html_table
from famnb.widget.html import sanitize, transcript
from famnb.widget.live.base import FRONT, BaseWidget
from famnb.widget.live.output import Output

VARIANTS = 12
"""Variants in the table; the others are counted."""
ERRORS = 5
"""Classes of errors that are named."""
_MISSING = "–"


def state(run: Run, *, trouble: str = "", stopping: bool = False) -> dict[str, Any]:
    """What the view draws, all of it text or numbers.

    `bar` has shares of the plan; `facts` are name, value and a small print; `rows` are those of the table under `head`.
    """
    now, report = run.progress, run.report
    head, rows, more = _variants(run)
    share = 100 / max(now.total, 1)
    return {
        "title": sanitize.visible(report.name),
        "said": _said(now),
        "percent": round(share * now.done, 1),
        "bar": {
            "done": share * (now.before + now.completed),
            "failed": share * now.failed,
            "running": share * now.running,
        },
        "facts": [_spend(now, report), *_times(now)],
        "errors": _errors(run),
        "head": head,
        "rows": rows,
        "more": more,
        "note": SIMULATED if now.simulated else "",
        "trouble": sanitize.visible(trouble),
        "stopping": stopping,
        "result": "",
    }


def bundle(run: Run, *, trouble: str = "") -> transcript.Bundle:
    """What a run came to, as ordinary notebook output."""
    report = run.report
    head, rows, more = _variants(run)
    broken = f"{type(run.failure).__name__}: {run.failure}" if run.failure is not None else ""
    errors = f"Errors: {_errors(run)}." if run.errors else ""
    notes = [*report.notes, errors]
    said = [
        transcript.Section("head", report.head),
        *(transcript.Section("failure", each) for each in (broken, trouble) if each),
        *(transcript.Section("note", each) for each in notes if each),
    ]
    made = transcript.render(said)
    if not rows:
        return made
    after = transcript.render([transcript.Section("note", more)] if more else [])
    return {
        # Marked as safe, since all three are escaped already: what is added to SafeHtml is escaped otherwise.
        "text/html": sanitize.SafeHtml("").join(
            map(sanitize.SafeHtml, (made["text/html"], html_table(head, rows), after["text/html"] if more else ""))
        ),
        "text/markdown": "\n\n".join([made["text/markdown"], _markdown([head, *rows]), after["text/markdown"]]).strip(),
        "text/plain": "\n\n".join([made["text/plain"], format_table(head, rows), after["text/plain"]]).strip(),
    }


def _said(now: Progress) -> str:
    words = [f"{now.done:,} of {now.total:,} done"]
    words += [f"{now.before:,} of them before"] if now.before else []
    words += [f"{count:,} {what}" for count, what in ((now.failed, "failed"), (now.cancelled, "stopped")) if count]
    return " · ".join([*words, f"{now.running:,} running"])


def _spend(now: Progress, report: RunReport) -> tuple[str, str, str]:
    answered, small = now.completed, []
    if now.spent_usd is not None:
        value = format_usd(now.spent_usd)
        small += [f"plus the unknown cost of {format_count(now.unpriced, 'other')}"] if now.unpriced else []
    elif answered:
        value, small = "unknown", ["no call has a known price"]
    else:
        value = format_usd(Decimal())
    if report.counted_usd is not None and report.budget_usd is not None:
        small.append(f"{format_usd(report.counted_usd)} of the budget of {format_usd(report.budget_usd)} counted")
    return "spend", value, "; ".join(small)


def _times(now: Progress) -> list[tuple[str, str, str]]:
    ended = now.completed + now.failed + now.cancelled
    pace = f"{ended / now.elapsed_s:.1f}" if ended and now.elapsed_s else _MISSING
    left = _MISSING if now.eta_s is None else f"about {format_duration(now.eta_s, brief=True)}"
    return [
        ("elapsed", format_duration(now.elapsed_s, brief=True), ""),
        ("left", left, ""),
        ("calls a second", pace, ""),
    ]


def _errors(run: Run) -> str:
    found = list(run.errors.items())
    words = [f"{count:,} × {name}" for name, count in found[:ERRORS]]
    return ", ".join([*words, *([f"{len(found) - ERRORS:,} other kinds"] if len(found) > ERRORS else [])])


def _variants(run: Run) -> tuple[list[str], list[list[str]], str]:
    """The table of variants: its head, its rows, and what is to be said of those that are not in it."""
    found = run.variants
    rows = [
        [
            sanitize.visible(one.label),
            f"{one.answered:,} of {one.planned:,}",
            f"{one.failed:,}",
            _MISSING if one.ttft_s is None else format_duration(one.ttft_s),
        ]
        for one in found[:VARIANTS]
    ]
    more = f"and {len(found) - VARIANTS:,} more variants" if len(found) > VARIANTS else ""
    return ["variant", "answered", "failed", "median first token"], rows, more


def _markdown(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(sanitize.escape_markdown(' '.join(cell.split())) for cell in row)} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])


PERIOD_S = 0.5
"""Between two looks at a run."""
REMEMBERED = 8
"""How many views of runs that are over stay open for a page that was reloaded meanwhile."""
_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save this with the notebook, "
    "show the run in a new cell."
)


class RunView(BaseWidget):
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
        self.view = RunView(state=state(run))
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
                output.show(bundle(self._run, trouble=self._trouble))
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
            self.view.state = state(self._run, trouble=self._trouble, stopping=self._stopping)

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
            made = bundle(self._run, trouble=self._trouble)
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
