"""The live view of a run: what `run(wait=False)` returns shows itself in a notebook, and leaves ordinary output.

Run ── progress, twice a second ── RunView (bar, figures, Stop) ── end ── the report, in the view's place
"""

from __future__ import annotations

import collections
import threading
from decimal import Decimal
from typing import Any

import traitlets
from IPython import get_ipython

from famnb.experiment.progress import Progress, RunReport
from famnb.experiment.runner import Job, Run
from famnb.formatting import format_count, format_duration, format_table, format_usd, html_table
from famnb.widget.html import notices, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.live.base import FRONT, BaseWidget
from famnb.widget.live.output import Output

# Often enough to follow a run by eye; each update sends the whole state, a few kilobytes.
PERIOD_S = 0.5
"""Between two updates of a view."""
# With these limits the view fits a window, however large the experiment is.
MAX_VARIANTS = 12
"""Variants in the table; the others are counted."""
MAX_ERRORS = 5
"""Classes of errors that are named; the others are counted."""
# A widget that was closed is gone for a page that is reloaded later, and one that is never closed stays in memory.
MAX_OPEN_VIEWS = 8
"""Views of runs that are over and still open for a page that is reloaded."""
_RELOADED = (
    "This page was reloaded, and a reloaded page cannot change outputs it already has. To save this with the notebook, "
    "show the run in a new cell."
)
_MISSING = "–"
_RELOAD_NOTE = SafeHtml("<p>{}</p>")


def view_state(run: Run, *, trouble: str = "", stopping: bool = False) -> dict[str, Any]:
    """What the view draws, all of it text or numbers.

    `said` is the summary; `bar` has shares of the plan in percent; `facts` are name, value and a note in small print;
    `rows` are those of the table under `head`.
    """
    progress, report = run.progress, run.report
    head, rows, more = _variants_table(run)
    share = 100 / max(progress.total, 1)
    return {
        "title": sanitize.visible(report.name),
        "said": _summary(progress),
        "percent": round(share * progress.done, 1),
        "bar": {
            "done": share * (progress.before + progress.completed),
            "failed": share * progress.failed,
            "running": share * progress.running,
        },
        "facts": [_spend(progress, report), *_times(progress), *_pause(progress)],
        "errors": _errors(run),
        "head": head,
        "rows": rows,
        "more": more,
        "note": progress.simulation_note,
        "trouble": sanitize.visible(trouble),
        "stopping": stopping,
        "result": "",
    }


def run_bundle(run: Run, *, trouble: str = "") -> Bundle:
    """The report of a run as ordinary notebook output."""
    report = run.report
    head, rows, more = _variants_table(run)
    failure = f"{type(run.failure).__name__}: {run.failure}" if run.failure is not None else ""
    errors = f"Errors: {_errors(run)}." if run.errors else ""
    sections = [
        Section("head", report.head),
        *(Section("failure", text) for text in (failure, trouble) if text),
        *(Section("note", text) for text in (*report.notes, errors) if text),
    ]
    before = transcript.render(sections)
    if not rows:
        return before
    after = transcript.render([Section("note", more)] if more else [])
    below = SafeHtml(after["text/html"]) if more else SafeHtml()
    markdown = [before["text/markdown"], sanitize.markdown_table([head, *rows]), after["text/markdown"]]
    return {
        # Marked as safe, since all three are escaped already: what is added to SafeHtml is escaped otherwise.
        "text/html": SafeHtml(before["text/html"]) + SafeHtml(html_table(head, rows)) + below,
        "text/markdown": "\n\n".join(markdown).strip(),
        "text/plain": "\n\n".join([before["text/plain"], format_table(head, rows), after["text/plain"]]).strip(),
    }


def _summary(progress: Progress) -> str:
    parts = [f"{progress.done:,} of {progress.total:,} done"]
    parts += [f"{progress.before:,} of them before"] if progress.before else []
    counts = ((progress.failed, "failed"), (progress.cancelled, "stopped"))
    parts += [f"{count:,} {name}" for count, name in counts if count]
    return " · ".join([*parts, f"{progress.running:,} running"])


def _spend(progress: Progress, report: RunReport) -> tuple[str, str, str]:
    notes = []
    if progress.spent_usd is not None:
        value = format_usd(progress.spent_usd)
        notes += [f"plus the unknown cost of {format_count(progress.unpriced, 'other')}"] if progress.unpriced else []
    elif progress.completed:
        value, notes = "unknown", ["no call has a known price"]
    else:
        value = format_usd(Decimal())
    if report.counted_usd is not None and report.budget_usd is not None:
        notes.append(f"{format_usd(report.counted_usd)} of the budget of {format_usd(report.budget_usd)} counted")
    return "spend", value, "; ".join(notes)


def _times(progress: Progress) -> list[tuple[str, str, str]]:
    ended = progress.completed + progress.failed + progress.cancelled
    rate = f"{ended / progress.elapsed_s:.1f}" if ended and progress.elapsed_s else _MISSING
    left = _MISSING if progress.eta_s is None else f"about {format_duration(progress.eta_s, brief=True)}"
    return [
        ("elapsed", format_duration(progress.elapsed_s, brief=True), ""),
        ("left", left, ""),
        ("calls a second", rate, ""),
    ]


def _pause(progress: Progress) -> list[tuple[str, str, str]]:
    """For how long the run waits for a service, and why; nothing while it does not."""
    if not progress.pause_s:
        return []
    return [("paused for", format_duration(progress.pause_s, brief=True), sanitize.visible(progress.pause_reason))]


def _errors(run: Run) -> str:
    """The classes of errors with their counts."""
    errors = list(run.errors.items())
    parts = [f"{count:,} × {name}" for name, count in errors[:MAX_ERRORS]]
    parts += [f"{len(errors) - MAX_ERRORS:,} other kinds"] if len(errors) > MAX_ERRORS else []
    return ", ".join(parts)


def _variants_table(run: Run) -> tuple[list[str], list[list[str]], str]:
    """The table of variants: its head, its rows, and how many variants are not in it."""
    variants = run.variants
    rows = [
        [
            sanitize.visible(variant.label),
            f"{variant.answered:,} of {variant.planned:,}",
            f"{variant.failed:,}",
            _MISSING if variant.ttft_s is None else format_duration(variant.ttft_s),
        ]
        for variant in variants[:MAX_VARIANTS]
    ]
    more = f"and {len(variants) - MAX_VARIANTS:,} more variants" if len(variants) > MAX_VARIANTS else ""
    return ["variant", "answered", "failed", "median first token"], rows, more


class RunView(BaseWidget):
    """The widget that draws one run.

    All it shows is in one trait, so that a view that is made late, again or twice shows the same.
    """

    _esm = FRONT / "run.js"
    _css = FRONT / "run.css"
    state = traitlets.Dict().tag(sync=True)
    """What is drawn; see `view_state`. Once `result` is not empty, that HTML is all there is."""


class ShownRun(Run):
    """A run that shows its progress if it is the last value of a notebook's cell."""

    def __init__(self, job: Job) -> None:
        self._display: RunDisplay | None = None
        super().__init__(job)

    def _ipython_display_(self) -> None:
        if not hasattr(get_ipython(), "kernel"):
            raise NotImplementedError  # IPython prints the repr then.
        if self._display is None:
            self._display = RunDisplay(self)
        self._display.show()


class RunDisplay:
    """Updates a run's view from a thread of its own, and replaces it by ordinary output at the end."""

    def __init__(self, run: Run) -> None:
        self.view = RunView(state=view_state(run))
        """The widget; closing it ends the updates, not the run."""
        self._run = run
        # Callbacks come on the main thread or on an ipykernel subshell's, updates on the thread of `_watch`.
        self._guard = threading.RLock()
        self._outputs: list[Output] = []
        self._watching = self._over = self._stopping = self._reloaded = False
        self._page = self._trouble = ""
        self.view.on_msg(self._on_message)

    def show(self) -> None:
        """Show the view under the cell that runs now, or the report if the run is over."""
        with self._guard:
            output = Output()
            if self._over or not self._run.running:
                output.show(run_bundle(self._run, trouble=self._trouble))
                return
            self.refresh()
            output.show(self.view)
            self._outputs.append(output)
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="famnb-run-view", daemon=True).start()

    def refresh(self) -> None:
        """Update the view now."""
        with self._guard:
            self.view.state = view_state(self._run, trouble=self._trouble, stopping=self._stopping)

    def _watch(self) -> None:
        while self.view.comm is not None:
            if self._run.over(PERIOD_S):
                self._end()
                return
            self.refresh()

    def _end(self) -> None:
        """Put the report in the place of the view, and into the view for a page that cannot change its outputs."""
        with self._guard:
            self._over = True
            result = run_bundle(self._run, trouble=self._trouble)
            self._set_result(result["text/html"])
            for output in self._outputs:
                if not output.captured:
                    output.replace(result)
        _open_views.append(self.view)
        while len(_open_views) > MAX_OPEN_VIEWS:
            _open_views.popleft().close()

    def _set_result(self, html: str) -> None:
        note = _RELOAD_NOTE.format(_RELOADED) if self._reloaded else SafeHtml()
        self.view.state = {**self.view.state, "result": SafeHtml(html) + note}

    def _on_message(self, _view: object, message: dict[str, Any], _buffers: object) -> None:
        with self._guard:
            try:
                self._handle(message)
            except Exception as error:
                # ipywidgets would only log it, where nobody sees it.
                self._trouble = notices.error_text(error)
            if not self._over:
                self.refresh()

    def _handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"kind": "ready", "page": str(page)}:
                if self._page not in ("", page) and not self._reloaded:
                    self._reloaded = True
                    if self._over:
                        self._set_result(self.view.state["result"])
                self._page = page
            case {"kind": "stop"}:
                self._stopping = True
                self._run.stop()
            case _:
                pass


_open_views: collections.deque[RunView] = collections.deque()
