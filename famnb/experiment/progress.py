"""The state of a run, while it lasts and once it is over: `RunReport`, which prints as a line or as sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, TypeAlias

from famnb.formatting import escape_html, format_count, format_duration, format_usd
from famnb.record.token_estimates import USAGE_HINT

StopReason: TypeAlias = Literal["budget", "stop", "interrupt", "trouble"]
SIMULATED = "The answers are simulated: nothing is billed."
PARTLY_SIMULATED = "Some of the answers are simulated: these are not billed, and their costs are in none of the sums."


@dataclasses.dataclass(slots=True, kw_only=True)
class VariantProgress:
    """The state of one variant of a run."""

    label: str
    planned: int = 0
    """Cells of it that the run is to run."""
    answered: int = 0
    """Cells answered, whole or cut short by their token cap."""
    failed: int = 0
    ttft_s: float | None = None
    """Median time to first token of the latest answers in seconds, without warm-ups; None before there is one."""


@dataclasses.dataclass(slots=True, kw_only=True, repr=False)
class RunReport:
    """The state of a run at one moment; `run()` returns the last, `run.progress` that of now."""

    name: str
    """The experiment."""
    planned: int
    """Cells of the plan."""
    skipped: int = 0
    """Cells that this run leaves alone, because they were answered or failed earlier."""
    failed_before: int = 0
    """Skipped cells that failed earlier."""
    other_service: int = 0
    """Cells that this run was to run although another service had answered them, which does not count."""
    completed: int = 0
    """Cells answered in this run, whole or cut short by their token cap."""
    failed: int = 0
    """Cells that failed in this run; they are run again only with `retry_failed=True`."""
    cancelled: int = 0
    """Cells stopped or cut off in this run; resuming runs them again."""
    running: int = 0
    """Calls under way."""
    lost: int = 0
    """Calls of this run that were cut off because the worker that carried them was lost."""
    requeued: int = 0
    """Calls that no service took; their cells wait again, and have not failed."""
    errors: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """How often each class of error ended a call, the most frequent first."""
    variants: tuple[VariantProgress, ...] = ()
    """The variants that have cells to run."""
    spent_usd: Decimal | None = None
    """The high end of the cost of this run's ended calls; None while no cost is known.

    What is simulated is not billed, and counts only while no other service has answered.
    """
    spent_is_estimate: bool = False
    """Whether `spent_usd` rests on estimated token counts, as of a stopped call."""
    unpriced: int = 0
    """Answered cells of this run whose cost is not known."""
    simulated: bool = False
    """Whether a simulated service answered any of them."""
    billed: bool = False
    """Whether a service that is not simulated answered any of them, or charged for a call without an answer."""
    counted_usd: Decimal | None = None
    """What counts against the budget, earlier runs included: costs, and the worst case of calls of unknown cost.

    None for a run without a budget.
    """
    budget_usd: Decimal | None = None
    elapsed_s: float = 0.0
    """Seconds since the run began, or that it took."""
    eta_s: float | None = None
    """Estimate of the seconds left, at the pace so far; None before a call has ended, 0 once the run is over."""
    waited_s: float = 0.0
    """Seconds in which nothing ran since a service took no calls."""
    pause_s: float = 0.0
    """Seconds until a service is called again that takes no calls just now; 0 while no service is waited for."""
    pause_reason: str = ""
    """Why it is waited for."""
    is_over: bool = False
    stopped_by: StopReason | None = None
    """What ended the run before its plan was done; None if nothing did."""
    reason: str = ""
    """The trouble that stopped it, if any did."""

    @property
    def done(self) -> int:
        """Cells that were answered or have failed, in this run or before."""
        return self.skipped + self.completed + self.failed

    @property
    def ended(self) -> int:
        """Cells whose call in this run is over."""
        return self.completed + self.failed + self.cancelled

    @property
    def remaining(self) -> int:
        """Cells that the next run would run."""
        return self.planned - self.done

    @property
    def spent(self) -> str:
        """What was spent as text, `at most $0.0105` if that rests on estimates; empty while no cost is known."""
        return "" if self.spent_usd is None else f"{'at most ' * self.spent_is_estimate}{format_usd(self.spent_usd)}"

    @property
    def simulation_note(self) -> str:
        """A sentence on simulated answers; empty without any."""
        return "" if not self.simulated else PARTLY_SIMULATED if self.billed else SIMULATED

    def __str__(self) -> str:
        if self.is_over:
            return f"{self.head}. {' '.join(self.notes)}".strip()
        parts = [f"{self.done:,} of {self.planned:,}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [self.spent] if self.spent else []
        parts += [f"{format_duration(self.eta_s, brief=True)} left"] if self.eta_s else []
        if self.pause_s:
            parts.append(f"paused for {format_duration(self.pause_s, brief=True)}: {self.pause_reason}")
        return " · ".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<br>{escape_html(note)}" for note in self.notes)
        return f"<p><b>{escape_html(self.head)}</b>{notes}</p>"

    @property
    def head(self) -> str:
        """The result in one line."""
        parts = [f"{self.completed:,} answered"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{self.cancelled:,} {'stopped' if self.stopped_by else 'cut off'}"] if self.cancelled else []
        parts += [f"{self.skipped:,} left alone"] if self.skipped else []
        took = format_duration(self.elapsed_s, brief=True)
        head = f"{self.name}: {', '.join(parts)} of {self.planned:,} planned in {took}"
        if self.spent:
            unpriced = f" plus the unknown cost of {format_count(self.unpriced, 'other')}" if self.unpriced else ""
            return f"{head}; spent {self.spent}{unpriced}"
        return f"{head}; cost not known" if self.completed else head

    @property
    def notes(self) -> list[str]:
        """Further sentences: budget, simulation, lost workers and, once it is over, what running again would do."""
        notes = []
        if self.counted_usd is not None and self.budget_usd is not None:
            notes.append(f"{format_usd(self.counted_usd)} of the budget of {format_usd(self.budget_usd)} are counted.")
        if self.spent_is_estimate:
            notes.append(f"Tokens that were not reported count at the most they can be: {USAGE_HINT}.")
        if self.simulation_note:
            notes.append(self.simulation_note)
        if self.other_service:
            cells = format_count(self.other_service, "cell")
            notes.append(f"{cells} had an answer from another service, which does not count here.")
        if self.requeued:
            waited = format_duration(self.waited_s, brief=True)
            waiting = f", and {waited} were spent waiting" if self.waited_s >= 1 else ""
            notes.append(f"Calls that no service took: {self.requeued:,}; their cells were put back{waiting}.")
        if self.lost:
            notes.append(f"{self.lost:,} calls were lost with their workers and made again; both are counted.")
        if not self.is_over:
            return notes
        match self.stopped_by:
            case "budget":
                notes.append("The next call could have passed the budget: run() with a higher one goes on.")
            case "trouble":
                notes.append(f"Stopped, since {self.reason}.")
            case "stop" | "interrupt":
                notes.append("Stopped; all that had come is kept.")
        if self.remaining:
            notes.append(f"{self.remaining:,} are left: run() again goes on with them.")
        if self.failed_before:
            notes.append(f"{self.failed_before:,} of those left alone failed earlier.")
        if self.failed or self.failed_before:
            notes.append("run(retry_failed=True) tries those that failed again.")
        return notes
