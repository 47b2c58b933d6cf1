"""Exchange, one call with what was asked, what came and when; and Recorder, the protocol of what keeps exchanges.

Pure data: the ledger, the frames and the cluster's workers import this without the network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import Protocol, runtime_checkable

from famnb.endpoints import Endpoint
from famnb.errors import InvalidRequest
from famnb.reply import Reply
from famnb.request import Request
from famnb.timing import Read


def normalize_labels(labels: object) -> dict[str, str]:
    """Return labels as they are recorded: numbers as texts, None left out. Raises InvalidRequest for anything else."""
    if not isinstance(labels, Mapping):
        raise InvalidRequest(f"labels: expected texts by name, such as {{'tag': 'first'}}; got {labels!r:.80}")
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | None):
            raise InvalidRequest(f"labels: expected a text under a name, got {value!r:.80} under {name!r:.80}")
    return {name: str(value) for name, value in labels.items() if value is not None}


@dataclasses.dataclass(slots=True, kw_only=True)
class Exchange:
    """One call: what was asked, what came and when; written by the I/O thread alone."""

    id: str
    started_at: datetime
    request: Request
    endpoint: Endpoint
    url: str
    """Where it was sent; never holds the key."""
    profile: str = "fam"
    """The name of the profile of the client that sent it."""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The caller's names for it in the ledger: `experiment`, `tag`, …"""
    mask: Callable[[str], str] = str
    """Takes the key out of a text that is recorded; a prompt may hold it by mistake."""
    attempts: int = 0
    """Requests sent, retries included."""
    broken_tries: int = 0
    """How many of them a service began to answer before the last, each of which it may bill."""
    http_status: int | None = None
    request_id: str | None = None
    """The service's `x-request-id`, or `request-id`."""
    service: str | None = None
    """The engine a famnb service says it is (`sim`, `upstream`); None for any other service."""
    response_headers: tuple[tuple[str, str], ...] = ()
    replayed: bool = False
    """Whether it is a recorded call that is played again, in which case nothing is sent."""
    streamed: bool = False
    """Whether the answer came as an event stream."""
    connect_ns: int | None = None
    """Nanoseconds from looking up the service's name to the open connection; None where a kept one was used."""
    headers_ns: int | None = None
    """Monotonic nanoseconds from sending to the response headers."""
    end_ns: int | None = None
    """Monotonic nanoseconds from sending to the end of what was observed."""
    wait_ns: int | None = None
    """Monotonic nanoseconds from the first attempt's start to the end: all attempts, pauses and waits for a connection.

    None for a call that was not made, and while it runs.
    """
    reads: list[Read] = dataclasses.field(default_factory=list)
    """What came from the socket in the last attempt, as it came."""
    reply: Reply = dataclasses.field(default_factory=Reply)
    """The outcome once the call is over; its `error` is the error raised, if any."""

    def identify(self, reply: Reply) -> Reply:
        """Return a reply with what only the call knows."""
        return dataclasses.replace(
            reply,
            call_id=self.id,
            request=self.request,
            service=self.service,
            profile=self.profile,
            replayed=self.replayed,
        )


@runtime_checkable
class Recorder(Protocol):
    """Records exchanges; called on the I/O thread, so no method may block."""

    def on_open(self, exchange: Exchange) -> None:
        """The call starts: from here on it must leave a record."""

    def on_reads(self, exchange: Exchange) -> None:
        """More reads came; called about once a second while a stream runs, so that a crash keeps them."""

    def on_close(self, exchange: Exchange) -> Future[None]:
        """The call is over; completes `exchange.reply` with its cost; the future is done when the row is durable."""
