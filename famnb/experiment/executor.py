"""Executors carry the calls of a run; `runner.Run` decides when each one starts, and whether at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from famnb.client.batch import ServiceLimiters
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.experiment.budget import CallOutcome
from famnb.experiment.plan import Cell

OnDone: TypeAlias = Callable[[CallOutcome], object]
Stop: TypeAlias = Callable[[], object]


class Executor(Protocol):
    """Carries calls; it may delay a call while the service throttles, and keeps nothing of a call that is over."""

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> Stop:
        """Start a cell's call and return a function that stops it, from any thread; does not wait for the call.

        `on_done(outcome)` is called once, from any thread, when the call is over and recorded; it does not block.
        """


class LocalExecutor:
    """Carries calls with one client of this process, fewer at a time while a service is throttling."""

    def __init__(self, client: BaseClient, *, concurrency: int) -> None:
        self._client = client
        self._limiters = ServiceLimiters(concurrency)

    def start(self, cell: Cell, *, labels: Mapping[str, str], on_done: OnDone) -> Stop:
        stream = self._client.start(cell.request, labels=labels, limiters=self._limiters)
        stream.add_done_callback(lambda ended: on_done(outcome_of(ended.exchange)))
        return stream.stop


def outcome_of(exchange: Exchange) -> CallOutcome:
    """The outcome of a call that is over."""
    return CallOutcome.from_reply(exchange.reply, http_status=exchange.http_status, attempts=exchange.attempts)
