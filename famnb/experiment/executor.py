"""Who carries a cell's call, behind one small interface; when, and whether at all, is the schedule's business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from famnb.client.batch import Gates
from famnb.client.client import BaseClient
from famnb.client.exchange import Exchange
from famnb.experiment.budget import Outcome
from famnb.experiment.plan import Cell

Over: TypeAlias = Callable[[Outcome], object]
Stop: TypeAlias = Callable[[], object]


class Executor(Protocol):
    """Carries calls; it may hold a call back while the service throttles, and keeps nothing of one that is over."""

    def start(self, cell: Cell, *, labels: Mapping[str, str], over: Over) -> Stop:
        """Have a cell's call carried and recorded, without waiting; returns what stops it, from any thread.

        `over(outcome)` is called once, from any thread, when the call is over and recorded; it does not block.
        """


class ByClient:
    """Carries calls with one client of this process, fewer at a time while a service is throttling."""

    def __init__(self, client: BaseClient, *, concurrency: int) -> None:
        self._client = client
        self._gates = Gates(concurrency)

    def start(self, cell: Cell, *, labels: Mapping[str, str], over: Over) -> Stop:
        stream = self._client.start(cell.request, labels=labels, gates=self._gates)
        stream.add_done_callback(lambda ended: over(outcome_of(ended.exchange)))
        return stream.stop


def outcome_of(exchange: Exchange) -> Outcome:
    """How a call that is over has ended."""
    reply = exchange.reply
    return Outcome(
        status=reply.status,
        call_id=reply.call_id,
        high=getattr(reply.cost, "high", None),
        http_status=exchange.http_status,
        attempts=exchange.attempts,
        error=None if reply.error is None else type(reply.error).__name__,
        replayed=reply.replayed,
        simulated=reply.service == "sim",
        ttft_s=reply.timing.ttft_s if reply.streamed else None,
    )
