"""Executors carry the calls of a run; `runner.Run` decides when each one starts, and whether at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from famnb.client.batch import ServiceLimiters
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.experiment.budget import CallOutcome
from famnb.experiment.plan import Cell

BRIEF_WAIT_S = 1.0
"""The longest wait asked for by a service that a call waits for itself; the schedule sees to longer ones, so that they
are shown, and hold back all calls to that service."""
OnDone: TypeAlias = Callable[[CallOutcome], object]
Stop: TypeAlias = Callable[[], object]


class Executor(Protocol):
    """Carries calls; it may delay a call while the service throttles, and keeps nothing of a call that is over."""

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> Stop:
        """Start a cell's call and return a function that stops it, from any thread; does not wait for the call.

        `on_done(outcome)` is called once, from any thread, when the call is over and recorded; it does not block.
        """


class LocalExecutor:
    """Carries calls with clients of this process, fewer at a time while a service is throttling."""

    def __init__(self, client_of: Callable[[Cell], BaseClient], *, concurrency: int) -> None:
        """`client_of` gives the client that carries a cell's call."""
        self._client_of = client_of
        self._limiters = ServiceLimiters(concurrency)

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> Stop:
        client = self._client_of(cell)
        retries = client.retries.capped(BRIEF_WAIT_S)
        stream = client.start(cell.request, labels=labels, limiters=self._limiters, retries=retries)
        stream.add_done_callback(lambda ended: on_done(outcome_of(ended.exchange)))
        return stream.stop

    def limit(self, cell: Cell) -> int | None:
        """How many calls the cell's service takes at once; None unless it has asked for less."""
        return self._client_of(cell).batch_limit(cell.request.endpoint)


def outcome_of(exchange: Exchange) -> CallOutcome:
    """The outcome of a call that is over."""
    return CallOutcome.from_reply(exchange.reply, http_status=exchange.http_status, attempts=exchange.attempts)
