"""How far a run is (`Progress`) and how it went (`RunReport`), both of which print as text."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Literal, TypeAlias

from famnb.formatting import ESTIMATE_MARK, escape_html, format_count, format_duration, format_usd

StopReason: TypeAlias = Literal["budget", "stop", "interrupt", "trouble"]
SIMULATED = "The answers are simulated: nothing is billed."
PARTLY_SIMULATED = "Some of the answers are simulated: these are not billed, and their costs are in none of the sums."


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run at one moment."""

    total: int
    """Cells of the plan."""
    before: int
    """Cells that this run leaves alone, because they were answered or failed earlier."""
    completed: int
    """Cells answered in this run, whole or cut short by their token cap."""
    failed: int
    """Cells that failed in this run."""
    cancelled: int
    """Cells stopped or cut off in this run; resuming runs them again."""
    running: int
    """Calls under way."""
    spent_usd: Decimal | None
    """The high end of the cost of this run's ended calls; None while no cost is known."""
    unpriced: int
    """Answered cells of this run whose cost is not known."""
    simulated: bool
    """Whether a simulated service answered any of them, so that their costs are not billed."""
    elapsed_s: float
    """Seconds since the run began."""
    eta_s: float | None
    """Estimate of the seconds left, at the pace so far; None before a call has ended, 0 once the run is over."""
    over: bool
    """Whether the run is over."""
    billed: bool = False
    """Whether a service that is not simulated answered any of them."""
    pause_s: float = 0.0
    """Seconds until a service is called again that takes no calls just now; 0 while none is waited for."""
    pause_reason: str = ""
    """Why it is waited for."""
    spent_is_estimate: bool = False
    """Whether `spent_usd` rests on estimated token counts, as of a stopped call."""

    @property
    def done(self) -> int:
        """Cells that were answered or have failed, in this run or before."""
        return self.before + self.completed + self.failed

    def __str__(self) -> str:
        parts = [f"{self.done:,} of {self.total:,}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [self.spent] if self.spent_usd is not None else []
        parts += [f"{format_duration(self.eta_s, brief=True)} left"] if self.eta_s else []
        parts += [self.pause] if self.pause else []
        return " · ".join(parts)

    @property
    def spent(self) -> str:
        """What was spent as text, `≈ $0.0105` where that rests on estimates; empty while no cost is known."""
        return _format_spent(self.spent_usd, is_estimate=self.spent_is_estimate)

    @property
    def pause(self) -> str:
        """For how long it waits, and why; empty while it does not."""
        return f"paused for {format_duration(self.pause_s, brief=True)}: {self.pause_reason}" if self.pause_s else ""

    @property
    def simulation_note(self) -> str:
        """What to say of simulated answers; empty without any."""
        return _simulation_note(simulated=self.simulated, billed=self.billed)


def _format_spent(usd: Decimal | None, *, is_estimate: bool) -> str:
    return "" if usd is None else f"{ESTIMATE_MARK if is_estimate else ''}{format_usd(usd)}"


def _simulation_note(*, simulated: bool, billed: bool) -> str:
    return "" if not simulated else PARTLY_SIMULATED if billed else SIMULATED


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The result of a run, which prints as sentences."""

    name: str
    """The experiment."""
    planned: int
    """Cells of the plan."""
    completed: int
    """Cells answered in this run."""
    failed: int
    """Cells that failed in this run; they are run again only with `retry_failed=True`."""
    cancelled: int
    """Cells stopped or cut off in this run; resuming runs them again."""
    skipped: int
    """Cells that this run left alone, because they were answered or failed earlier."""
    spent_usd: Decimal | None
    """The high end of the cost of this run's calls; None if no cost is known."""
    unpriced: int
    """Answered cells of this run whose cost is not known."""
    counted_usd: Decimal | None
    """What counts against the budget, earlier runs included: costs, and the worst case of calls of unknown cost.

    None for a run without a budget.
    """
    budget_usd: Decimal | None
    elapsed_s: float
    stopped_by: StopReason | None
    """What ended the run before its plan was done; None if nothing did."""
    failed_before: int = 0
    """Skipped cells that failed earlier."""
    simulated: bool = False
    """Whether a simulated service answered any of them, so that their costs are not billed."""
    lost: int = 0
    """Calls of this run that were cut off because the worker that carried them was lost."""
    billed: bool = False
    """Whether a service that is not simulated answered any of them."""
    put_back: int = 0
    """Calls that no service took; their cells were put back, and have not failed."""
    waited_s: float = 0.0
    """Seconds in which nothing ran since a service took no calls."""
    elsewhere: int = 0
    """Cells that this run was to run although another service had answered them, which does not count."""
    reason: str = ""
    """The trouble that stopped it, if any did."""
    spent_is_estimate: bool = False
    """Whether `spent_usd` rests on estimated token counts, as of a stopped call."""

    @property
    def left(self) -> int:
        """Cells that the next run would run."""
        return self.planned - self.completed - self.failed - self.skipped

    def __str__(self) -> str:
        return f"{self.head}. {' '.join(self.notes)}".strip()

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
        if self.spent_usd is not None:
            unpriced = f" plus the unknown cost of {format_count(self.unpriced, 'other')}" if self.unpriced else ""
            return f"{head}; spent {_format_spent(self.spent_usd, is_estimate=self.spent_is_estimate)}{unpriced}"
        return f"{head}; cost not known" if self.completed else head

    @property
    def notes(self) -> list[str]:
        """Further sentences: budget, simulation, lost workers, and what running again would do."""
        notes = []
        if self.counted_usd is not None and self.budget_usd is not None:
            notes.append(f"{format_usd(self.counted_usd)} of the budget of {format_usd(self.budget_usd)} are counted.")
        if simulated := _simulation_note(simulated=self.simulated, billed=self.billed):
            notes.append(simulated)
        if self.elsewhere:
            notes.append(
                f"{format_count(self.elsewhere, 'cell')} had an answer from another service, which does not count here."
            )
        if self.put_back:
            waited = format_duration(self.waited_s, brief=True)
            waiting = f", and {waited} were spent waiting" if self.waited_s >= 1 else ""
            notes.append(f"Calls that no service took: {self.put_back:,}; their cells were put back{waiting}.")
        if self.lost:
            notes.append(f"{self.lost:,} calls were lost with their workers and made again; both are counted.")
        match self.stopped_by:
            case "budget":
                notes.append("The next call could have passed the budget: run() with a higher one goes on.")
            case "trouble":
                notes.append(f"Stopped, since {self.reason}.")
            case "stop" | "interrupt":
                notes.append("Stopped; all that had come is kept.")
            case None:
                pass
        if self.left:
            notes.append(f"{self.left:,} are left: run() again goes on with them.")
        if self.failed_before:
            notes.append(f"{self.failed_before:,} of those left alone failed earlier.")
        if self.failed or self.failed_before:
            notes.append("run(retry_failed=True) tries those that failed again.")
        return notes
