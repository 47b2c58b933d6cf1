"""The spending limit: what a call can cost at worst, what ended calls count for, and whether one more fits.

counted (ended calls, of earlier runs too) + reserved (calls in flight, at worst) + the next, at worst <= limit

A try that the client makes again within one call had brought no content; it counts as not billed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from famnb.errors import BudgetExceeded, InvalidRequest, StreamInterrupted, WorkerLost
from famnb.experiment.plan import Cell
from famnb.formatting import format_usd
from famnb.record import prices
from famnb.record.price import MILLION, Price
from famnb.request import Request
from famnb.request.types import MINI_MODELS, MINI_OUTPUT_TOKENS
from famnb.wire import lenient_json

FREE = frozenset({"ConnectError", "PoolTimeout"})
"""Errors of calls that no service has accepted."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that one call can cost."""

    input_tokens: int
    """No fewer than the request can have: one for each byte of its body."""
    output_tokens: int | None
    """The request's cap; None where nothing caps it."""
    usd: Decimal | None
    """The most it can cost; None where that is not known."""
    why: str = ""
    """Why it is not known, and what to do about it."""


def ceiling(request: Request, *, size: int | None = None) -> Ceiling:
    """The most that a call can cost by today's prices; `size` is that of its JSON body in bytes, where it is known."""
    tokens_in = len(lenient_json.encode(request.body())) if size is None else size
    model = str(getattr(request, "model", ""))
    tokens_out = _output_cap(request, model)
    if getattr(request, "previous_response_id", None):
        return Ceiling(tokens_in, tokens_out, None, "what an earlier response adds to the input is not known")
    if tokens_out is None:
        return Ceiling(tokens_in, None, None, f"nothing limits the answer of {model!r}: give {request.cap}")
    found = _reachable(model, tokens_in)
    if not found:
        say = (
            f"no price is known for {model!r}: famnb.prices.set({model!r}, input=…, output=…) in USD per million tokens"
        )
        return Ceiling(tokens_in, tokens_out, None, say)
    worst = max(tokens_in * _dearest_input(price) + tokens_out * price.output for price in found)
    return Ceiling(tokens_in, tokens_out, worst / MILLION)


def worst_cases(cells: Iterable[Cell]) -> dict[str, Decimal]:
    """The most that each cell's call can cost; InvalidRequest, saying what to do, where that is not known."""
    known: dict[int, Decimal] = {}
    worst: dict[str, Decimal] = {}
    for cell in cells:
        if id(cell.request) not in known:  # all repeats share one request
            found = ceiling(cell.request)
            if found.usd is None:
                raise InvalidRequest(f"budget_usd: variant {cell.variant.label!r} cannot be kept to one: {found.why}")
            known[id(cell.request)] = found.usd
        worst[cell.key] = known[id(cell.request)]
    return worst


def _output_cap(request: Request, model: str) -> int | None:
    cap: int | None = getattr(request, request.cap)
    return MINI_OUTPUT_TOKENS if cap is None and model in MINI_MODELS else cap


def _reachable(model: str, tokens_in: int) -> list[Price]:
    """The prices of all tiers in which a request of at most so many tokens can fall."""
    tiers = {entry.until_context for entry in prices if entry.model == model and entry.until_context is not None}
    now = datetime.now(UTC)
    steps = [0, *(tier for tier in tiers if tier <= tokens_in)]
    return [found for step in steps if (found := prices.price(model, at=now, context=step)) is not None]


def _dearest_input(price: Price) -> Decimal:
    return max(each for each in (price.input, price.cached, price.cache_write) if each is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, as far as the schedule needs to know."""

    status: str
    """A call's status."""
    call_id: str | None
    """Its id in the ledger."""
    high: Decimal | None
    """The high end of its cost in USD; None where it is not known."""
    http_status: int | None
    attempts: int
    """Requests sent."""
    error: str | None
    """The class of its error."""
    replayed: bool = False
    """Whether a recorded call answered; it costs nothing."""
    simulated: bool = False
    """Whether a simulated service answered; nothing is billed."""
    ttft_s: float | None = None
    """Its time to first token, in seconds."""

    @property
    def failed(self) -> bool:
        """Whether the service gave no answer, or cut it off."""
        return fruitless(self.status, self.error)

    @property
    def lost(self) -> bool:
        """Whether the worker that carried it is gone, so that its cell is to be run again."""
        return self.error == WorkerLost.__name__


def fruitless(status: str, error: str | None) -> bool:
    """Whether a call has failed; one that was cut off has if the service did it, not a process or worker that ended."""
    return status == "failed" or (status == "interrupted" and error == StreamInterrupted.__name__)


def counted(outcome: Outcome, worst: Decimal) -> Decimal:
    """What an ended call counts for: its cost; its worst case where it may have cost something that is not known."""
    status = outcome.http_status
    match outcome.status:
        case _ if outcome.replayed:
            return Decimal()
        case "completed" | "incomplete":
            return worst if outcome.high is None else outcome.high
        case "failed" if outcome.error in FREE or (status is not None and not 200 <= status < 300):
            return Decimal()
        case "cancelled" if outcome.attempts == 0:
            return Decimal()
        case _:
            return max(worst, outcome.high or Decimal())


class Budget:
    """A limit with what is counted and reserved against it; used by one thread."""

    def __init__(self, limit: Decimal, *, worst: dict[str, Decimal], spent: Decimal) -> None:
        self.limit = limit
        self.counted = spent
        """What earlier and ended calls count for."""
        self._worst = worst
        self._reserved = Decimal()

    def fits(self, key: str) -> bool:
        """Whether a cell's call keeps the limit whatever the calls in flight cost."""
        return self.counted + self._reserved + self._worst[key] <= self.limit

    def expect(self, key: str) -> None:
        """BudgetExceeded where not even this cell's call fits."""
        if not self.fits(key):
            raise BudgetExceeded(
                f"not even one more call fits: it may cost {format_usd(self._worst[key])}, and "
                f"{format_usd(self.counted)} of {format_usd(self.limit)} are spent. Give a higher budget_usd, or a "
                "lower cap on the tokens of an answer"
            )

    def reserve(self, key: str) -> None:
        """A cell's call starts."""
        self._reserved += self._worst[key]

    def settle(self, key: str, outcome: Outcome) -> None:
        """A cell's call has ended."""
        self._reserved -= self._worst[key]
        self.counted += counted(outcome, self._worst[key])


def amount(budget_usd: float | str | Decimal) -> Decimal:
    """A budget as an amount; InvalidRequest for what is none."""
    try:
        found = Decimal(str(budget_usd))
    except ArithmeticError:
        found = Decimal("NaN")
    if isinstance(budget_usd, bool) or not found.is_finite() or found < 0:
        raise InvalidRequest(f"budget_usd: expected an amount in USD of 0 or more, got {budget_usd!r}")
    return found
