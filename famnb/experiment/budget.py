"""The spending limit: what a call can cost at most, what ended calls count for, and whether one more call fits.

counted (ended calls, of earlier runs too) + reserved (calls in flight, at most) + the next call, at most <= limit

Token counts that were not reported have no upper end but the cap of the request. A try that the client repeats may be
billed if the service had begun to answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from famnb.errors import BudgetExceeded, InvalidRequest, StreamInterrupted, WorkerLost
from famnb.formatting import format_usd
from famnb.record.price import UNMADE_ERRORS
from famnb.record.price_book import ceiling
from famnb.reply import Reply
from famnb.request import Request

if TYPE_CHECKING:
    # What has happened is counted without what plans: figures are to load without the network.
    from famnb.experiment.plan import Cell

DENIED_STATUSES = frozenset({401, 402, 403})
"""Statuses with which a service takes no call of this key: it is wrong, lacks a right, or is not paid for."""
BUSY_STATUSES = frozenset({429, 503, 529})
"""Statuses with which a service takes no call for the moment."""
UNAVAILABLE_STATUSES = DENIED_STATUSES | BUSY_STATUSES
_NOTHING = Decimal()


def worst_case(request: Request, profile: str, fault: str) -> Decimal:
    """The most that a call can cost in USD. Raises InvalidRequest if it is not known: `fault`, why, and what to do."""
    most = ceiling(request, profile)
    if most.usd is None:
        raise InvalidRequest(f"budget_usd: {fault}: {most.reason}")
    return most.usd


def worst_cases(cells: Iterable[Cell]) -> dict[str, Decimal]:
    """The most that each cell's call can cost in USD, by the cell's key.

    Raises InvalidRequest, saying what to do, if it is not known for a cell.
    """
    return {
        cell.key: worst_case(cell.request, cell.profile, f"variant {cell.variant.label!r} cannot be kept to one")
        for cell in cells
    }


@dataclasses.dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended."""

    status: str
    """The call's status."""
    call_id: str | None
    """Its id in the ledger."""
    high: Decimal | None
    """The high end of its cost in USD; None if it is not known."""
    http_status: int | None
    attempts: int
    """Requests sent."""
    error: str | None
    """The class name of its error."""
    replayed: bool = False
    """Whether a recorded call answered, which costs nothing."""
    simulated: bool = False
    """Whether a simulated service answered, which bills nothing."""
    ttft_s: float | None = None
    """Time to first token in seconds."""
    message: str = ""
    """What its error said."""
    retry_after_s: float | None = None
    """Seconds that the service asked to wait before the next call; None if it did not say."""
    is_estimate: bool = False
    """Whether its cost rests on estimated token counts."""

    @classmethod
    def from_reply(cls, reply: Reply, *, http_status: int | None, attempts: int) -> CallOutcome:
        """The outcome of a call that is over; a reply does not say how often it was tried."""
        return cls(
            status=reply.status,
            call_id=reply.call_id,
            # A cost without an upper end is one that is not known.
            high=high if (high := getattr(reply.cost, "high", None)) is None or high.is_finite() else None,
            http_status=http_status,
            attempts=attempts,
            error=None if reply.error is None else type(reply.error).__name__,
            replayed=reply.replayed,
            simulated=reply.service == "sim",
            ttft_s=reply.timing.ttft_s if reply.streamed else None,
            message="" if reply.error is None else str(reply.error),
            retry_after_s=getattr(reply.error, "retry_after", None),
            is_estimate=not getattr(reply.cost, "exact", True),
        )

    @property
    def is_failure(self) -> bool:
        """Whether the service took the call and gave no answer, or cut its stream off.

        An interrupted call whose process or worker ended has not failed.
        """
        is_cut_off = self.status == "interrupted" and self.error == StreamInterrupted.__name__
        return is_cut_off or (self.status == "failed" and not self.is_unavailable)

    @property
    def is_unavailable(self) -> bool:
        """Whether no service took the call, so that it says nothing of the model and its cell is still to be run.

        A network, a key or a limit kept it from the model; a stream that breaks off was taken.
        """
        is_untaken = self.error in UNMADE_ERRORS or self.http_status in UNAVAILABLE_STATUSES
        return self.status == "failed" and is_untaken

    @property
    def is_denied(self) -> bool:
        """Whether the service takes no call of this key."""
        return self.is_unavailable and self.http_status in DENIED_STATUSES

    @property
    def is_lost(self) -> bool:
        """Whether the worker that carried it is gone, so that its cell is to be run again."""
        return self.error == WorkerLost.__name__


def counted_cost(outcome: CallOutcome, worst: Decimal) -> Decimal:
    """What an ended call counts for in USD: its cost, or `worst` if it may have cost something that is not known."""
    http_status = outcome.http_status
    # The high end of a call whose stream broke off and was asked for again is not known: each try may be billed.
    worst *= max(outcome.attempts, 1)
    match outcome.status:
        case _ if outcome.replayed:
            return Decimal()
        case "completed" | "incomplete":
            return worst if outcome.high is None else outcome.high
        case "failed" if outcome.error in UNMADE_ERRORS or (http_status is not None and not 200 <= http_status < 300):
            return Decimal()
        case "cancelled" if outcome.attempts == 0:
            return Decimal()
        case _:
            # A stream that was stopped or cut off may be billed in full: the service need not notice at once.
            return max(worst, outcome.high or Decimal())


class Budget:
    """A spending limit with what is counted and reserved against it; used by one thread.

    Without a limit everything fits, and what is known of costs is counted.
    """

    def __init__(
        self, limit: Decimal | None, worst_of: Callable[[Any], Decimal | None], *, spent: Decimal = _NOTHING
    ) -> None:
        """`worst_of` gives the most that a call can cost in USD; None for one that counts for nothing."""
        self.limit = limit
        self.counted = spent
        """What earlier and ended calls count for, in USD."""
        self.worst_of = worst_of
        self._reserved = Decimal()

    def fits(self, call: Any) -> bool:
        """Whether one more call keeps the limit whatever the calls in flight cost."""
        worst = None if self.limit is None else self.worst_of(call)
        return self.limit is None or worst is None or self.counted + self._reserved + worst <= self.limit

    def check_fits(self, call: Any) -> None:
        """Raise BudgetExceeded if a call does not fit."""
        if not self.fits(call):
            amounts = (self.worst_of(call), self.counted, self.limit)
            worst, counted, limit = (format_usd(amount or _NOTHING) for amount in amounts)
            raise BudgetExceeded(
                f"not even one more call fits: it may cost {worst}, and {counted} of "
                f"{limit} are spent. Give a higher budget_usd, or a lower cap on the tokens of an answer"
            )

    def reserve(self, call: Any) -> Decimal | None:
        """Set aside the most that a call can cost, because it starts, and return that."""
        worst = _NOTHING if self.limit is None else self.worst_of(call)
        self._reserved += worst or _NOTHING
        return worst

    def settle(self, worst: Decimal | None, outcome: CallOutcome) -> None:
        """Count what an ended call cost instead of what was reserved for it."""
        if worst is None:
            return
        if self.limit is None:
            self.counted += outcome.high or _NOTHING
        else:
            self._reserved -= worst
            self.counted += counted_cost(outcome, worst)


NO_BUDGET = Budget(None, lambda _: None)
"""Of a run without a limit, which counts nothing."""


def parse_budget(budget_usd: float | str | Decimal) -> Decimal:
    """Return an amount in USD as a Decimal. Raises InvalidRequest unless it is 0 or more."""
    try:
        # By way of text, since Decimal(0.1) is 0.1000000000000000055511151231257827.
        amount = Decimal(str(budget_usd))
    except ArithmeticError:
        amount = Decimal("NaN")
    if isinstance(budget_usd, bool) or not amount.is_finite() or amount < 0:
        raise InvalidRequest(f"budget_usd: expected an amount in USD of 0 or more, got {budget_usd!r}")
    return amount
