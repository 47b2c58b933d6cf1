"""The live view of a run: what `run(wait=False)` returns shows itself in a notebook, and leaves ordinary output.

Run ── report so far, twice a second ── RunView ── front/tools/run.js (bar, report, Stop)
                                           └ end ── the report, in the view's place
"""

from __future__ import annotations

import functools
import time

from IPython import get_ipython

from famnb.experiment.runner import Run
from famnb.formatting import format_duration
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.runtime.intent import urgent_intent
from famnb.widget.runtime.output import Output
from famnb.widget.runtime.tool import RELOADED, BaseTool, keep_ended
from famnb.widget.runtime.view import View

# Often enough to follow a run by eye; each update sends the whole state, a few kilobytes.
PERIOD_S = 0.5
"""Between two updates of a view."""
# With this limit the view fits a window, however large the experiment is.
MAX_VARIANTS = 12
"""Variants in the table; the others are counted."""


class RunStateView(View, frozen=True):
    """A run."""

    name: str
    progress: str
    """How far it is; empty once it is over."""
    percent: float
    """Of the plan's cells that are done."""
    is_stopping: bool
    report: SafeHtml
    """What it has come to so far."""


def run_bundle(run: Run, *, trouble: str = "") -> Bundle:
    """The report of a run, under way or over, as ordinary notebook output."""
    report = run.progress
    failure = f"{type(run.failure).__name__}: {run.failure}" if run.failure is not None else ""
    kinds = [f"{count:,} × {name}" for name, count in report.errors.items()]
    errors = f"Errors: {', '.join(kinds)}." if kinds else ""
    sections = [
        Section("head", report.head),
        *(Section("failure", text) for text in (failure, trouble) if text),
        *(Section("note", text) for text in (*report.notes, errors) if text),
    ]
    rows = [
        [
            sanitize.visible(variant.label),
            f"{variant.answered:,} of {variant.planned:,}",
            f"{variant.failed:,}",
            "–" if variant.ttft_s is None else format_duration(variant.ttft_s),
        ]
        for variant in report.variants
    ]
    bundles = [transcript.render(sections)]
    if rows:
        head = ("variant", "answered", "failed", "median first token")
        bundles.append(transcript.table_bundle(head, rows[:MAX_VARIANTS]))
    if len(rows) > MAX_VARIANTS:
        bundles.append(transcript.render([Section("note", f"and {len(rows) - MAX_VARIANTS:,} more variants")]))
    return transcript.join_bundles(bundles)


class RunView(BaseTool):
    """One run: its report so far, twice a second; Stop; and what it came to, as ordinary output in its place."""

    entry = "tools/run.js"
    note = "A run was under way here when this was saved: `famnb.calls()` has what came of it."

    def __init__(self, run: Run) -> None:
        """Follow a run to its end; closing the view ends that, not the run."""
        self._run = run
        self._outputs: list[Output] = []
        self._is_stopping = False
        self._next_look_s = 0.0
        super().__init__()
        if run.running:
            self.follow([self], on_end=self._end)

    def view(self) -> RunStateView:
        report, is_running = self._run.progress, self._run.running
        # For a page that cannot change its outputs.
        note = RELOADED.format(what="this", tool="the run") if self.reloaded and not is_running else ""
        return RunStateView(
            name=sanitize.visible(report.name),
            progress=sanitize.visible(str(report)) if is_running else "",
            percent=round(100 * report.done / max(report.planned, 1), 1),
            is_stopping=self._is_stopping,
            report=SafeHtml(self.saved()["text/html"]) + (SafeHtml("<p>{}</p>").format(note) if note else ""),
        )

    @urgent_intent
    def stop(self) -> None:
        """Stop the run; what has come is kept."""
        self._is_stopping = True
        self.refresh()
        self._run.stop()

    def saved(self) -> Bundle:
        return run_bundle(self._run, trouble=self.error)

    def _ipython_display_(self) -> None:
        """Show the view under the cell that runs now, or the report if the run is over."""
        with self.lock:
            output = Output()
            if not self._run.running:
                output.show(self.saved())
                return
            output.show(self.mime_bundle(self.saved())[0])
            self._outputs.append(output)
            self.refresh()

    # The run as a Source

    @property
    def is_running(self) -> bool:
        """Whether the run is under way."""
        return self._run.running

    def advance(self) -> bool:
        """Have the progress shown again after a while."""
        is_due = time.monotonic() >= self._next_look_s
        self._next_look_s = time.monotonic() + PERIOD_S if is_due else self._next_look_s
        return is_due

    def finish(self) -> None:
        """Do nothing: the view shows the report by itself."""

    def _end(self) -> None:
        """Put the report in the place of the view, which shows it too, for a page that cannot change its outputs."""
        with self.lock:
            if self.comm is None:
                return
            for output in self._outputs:
                if not output.captured:
                    output.replace(self.saved())
        keep_ended(self)


class ShownRun(Run):
    """A run that shows its progress if it is the last value of a notebook's cell."""

    @functools.cached_property
    def view(self) -> RunView:
        """The widget that shows this run; it can stand in boxes beside others."""
        return RunView(self)

    def _ipython_display_(self) -> None:
        if not hasattr(get_ipython(), "kernel"):
            raise NotImplementedError  # IPython prints the repr then.
        self.view._ipython_display_()
