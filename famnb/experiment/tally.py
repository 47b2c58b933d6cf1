"""What a run has counted so far: its calls by how they ended, by variant and by error, and what they cost."""

from __future__ import annotations

import collections
import dataclasses
import statistics
from collections.abc import Iterable
from decimal import Decimal

from famnb.experiment.budget import Outcome
from famnb.experiment.plan import Cell

LATEST = 1000
"""Answers of a variant over which its median is taken: a run of any length needs no more memory than one of these."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VariantProgress:
    """What a run has had of one variant."""

    label: str
    planned: int
    """Cells of it that the run is to run."""
    answered: int
    """Cells answered, whole or cut short by their token cap."""
    failed: int
    ttft_s: float | None
    """The median time to first token of the latest answers, in seconds, warm-ups left out; None before there is one."""


class _VariantTally:
    """The same while it is counted."""

    def __init__(self) -> None:
        self.planned = self.answered = self.failed = 0
        self.times: collections.deque[float] = collections.deque(maxlen=LATEST)


class Tally:
    """The counts of one run; used by one thread at a time."""

    def __init__(self, todo: Iterable[Cell], variants: Iterable[str] = ()) -> None:
        self.completed = self.failed = self.cancelled = 0
        self.unpriced = 0
        """Answered cells whose cost is not known."""
        self.spent: Decimal | None = None
        """The high end of what ended calls cost; None while no cost is known."""
        self.lost = 0
        """Calls cut off because the worker that carried them was lost."""
        self.simulated = False
        """Whether a simulated service answered any of them."""
        self.errors: collections.Counter[str] = collections.Counter()
        """How often each class of error ended a call."""
        self._variants = {label: _VariantTally() for label in variants}
        for cell in todo:
            self._variants.setdefault(cell.variant.label, _VariantTally()).planned += 1

    @property
    def ended(self) -> int:
        """Cells whose call is over."""
        return self.completed + self.failed + self.cancelled

    @property
    def variants(self) -> tuple[VariantProgress, ...]:
        """What has come of each variant of which there is anything to run."""
        return tuple(
            VariantProgress(
                label=label,
                planned=own.planned,
                answered=own.answered,
                failed=own.failed,
                ttft_s=statistics.median(own.times) if own.times else None,
            )
            for label, own in self._variants.items()
            if own.planned
        )

    def add(self, cell: Cell, outcome: Outcome, *, again: bool = False) -> None:
        """A cell's call is over; `again` says that the cell is not, since it is run again."""
        own = self._variants[cell.variant.label]
        self.lost += outcome.lost
        match outcome.status:
            case _ if again:
                pass
            case "completed" | "incomplete":
                self.completed += 1
                own.answered += 1
                self.unpriced += outcome.high is None and not outcome.replayed
                if outcome.ttft_s is not None and not cell.warmup:
                    own.times.append(outcome.ttft_s)
            case _ if outcome.failed:
                self.failed += 1
                own.failed += 1
                self.errors[outcome.error or "no reason given"] += 1
            case _:
                self.cancelled += 1
                self.errors.update([outcome.error] if outcome.status == "interrupted" and outcome.error else [])
        self.simulated |= outcome.simulated
        if outcome.high is not None and not outcome.replayed:
            self.spent = (self.spent or Decimal()) + outcome.high
