"""One recorded call, and its reply, read again from the recorded bytes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import msgspec

from famnb import endpoints, errors
from famnb.client.exchange import Exchange
from famnb.client.response_reader import reply_from_reads
from famnb.endpoints import Endpoint
from famnb.errors import FamnbError, InvalidRequest
from famnb.events import Status
from famnb.formatting import escape_controls
from famnb.profiles import find_endpoints
from famnb.record import serialize
from famnb.record.price import Cost
from famnb.reply import NoteBook, Reply
from famnb.request import Request
from famnb.timing import Read, Timing


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RecordedCall:
    """A call in the ledger.

    Its reply is read from the recorded bytes on first use, so that a better reader improves old calls.
    """

    row: Mapping[str, Any]
    """The stored columns."""
    body: dict[str, Any]
    """The request's JSON body."""
    reads: tuple[Read, ...] = ()
    """What came from the socket, and when."""
    ledger: NoteBook | None = None
    """The ledger that it was read from."""

    @property
    def call_id(self) -> str:
        """The call's id in the ledger."""
        return str(self.row["id"])

    @property
    def started_at(self) -> datetime:
        """When it started, UTC."""
        return serialize.moment(self.row["started_us"])

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint it went to: of its profile, or the document's if that is not known here."""
        return endpoints.endpoint(self.row["endpoint"], find_endpoints(self.row["profile"]))

    @property
    def status(self) -> Status:
        """The call's status; `interrupted` if its process died before it ended."""
        status: Status = self.row["status"]
        return status

    @property
    def simulated(self) -> bool:
        """Whether a simulated engine answered."""
        return bool(self.row["service"] == "sim")

    @property
    def labels(self) -> dict[str, str]:
        """The labels the caller gave it, by name."""
        decoded = msgspec.json.decode(self.row["labels"] or "{}", type=dict[str, Any])
        return {name: str(value) for name, value in decoded.items() if value is not None}

    @property
    def note(self) -> str:
        """What was noted on it (`Ledger.note`); empty if nothing was."""
        return self.row.get("note") or ""

    @property
    def cost(self) -> Cost | None:
        """The cost as computed when the call ended; None if it was not known."""
        figures = [self.row[name] for name in ("cost_usd", "cost_low_usd", "cost_high_usd")]
        return None if None in figures else Cost(*(Decimal(str(figure)) for figure in figures))

    @cached_property
    def request(self) -> Request:
        """The request that was sent; raises InvalidRequest where today's limits would refuse it."""
        return self.endpoint.request.from_body(self.body)

    @cached_property
    def reply(self) -> Reply:
        """The reply, or as much of it as came."""
        timing = Timing(**{name: self.row[name] for name in serialize.TIMINGS})
        is_imported = self.row["attempts"] is None  # its body and its times are what another tool has noted
        if (self.row["http_status"] or 200) >= 400 or not self.reads:
            # An error's body is no reply: `error` has it.
            recorded = Reply(streamed=bool(self.row["streamed"]), reads=self.reads, timing=timing)
        else:
            recorded = reply_from_reads(
                self.endpoint,
                streamed=bool(self.row["streamed"]) and not is_imported,
                reads=self.reads,
                headers_ns=self.row["headers_ns"],
                end_ns=self.row["end_ns"] or self.reads[-1].t_ns,
                connect_ns=self._connect_ns,
            )
        # Every call that ends gets sources, also those without counts; a running or just killed one has none.
        has_ended = self.row["output_tokens_source"] is not None
        complete = self.row["complete"]
        request = None
        # A request that today's limits refuse was still answered.
        with contextlib.suppress(InvalidRequest):
            request = self.request
        return dataclasses.replace(
            recorded,
            timing=timing if is_imported else recorded.timing,
            call_id=self.call_id,
            endpoint=self.endpoint.name,
            request=request,
            status=self.status,
            complete=(None if complete is None else bool(complete)) if has_ended else False,
            finish_reason=self.row["finish_reason"] if has_ended else recorded.finish_reason,
            cost=self.cost,
            error=self.error,
            service=self.row["service"],
            profile=self.row["profile"] or "",
            ledger=self.ledger,
        )

    @property
    def timing(self) -> Timing:
        """The latencies, derived anew from the reads."""
        return self.reply.timing

    @property
    def error(self) -> FamnbError | None:
        """The error it ended with; None when there was none."""
        name, message = self.row["error"], self.row["error_message"]
        if name is None:
            return None
        # A class of a newer famnb, or one that is gone, is at least a FamnbError.
        error_class: Callable[..., FamnbError] = getattr(errors, name, FamnbError)
        details = msgspec.json.decode(self.row["error_details"] or "{}", type=dict[str, Any])
        return error_class(message, **details)

    def exchange(self) -> Exchange:
        """Return the call as the client had it when it was over, to be replayed."""
        row = self.row
        return Exchange(
            request=self.request,
            endpoint=self.endpoint,
            url=row["url"] or "",
            profile=row["profile"],
            id=self.call_id,
            started_at=self.started_at,
            labels=self.labels,
            attempts=row["attempts"] or 0,
            http_status=row["http_status"],
            request_id=row["request_id"],
            service=row["service"],
            response_headers=msgspec.json.decode(row["response_headers"] or "[]", type=tuple[tuple[str, str], ...]),
            streamed=bool(row["streamed"]),
            connect_ns=self._connect_ns,
            headers_ns=row["headers_ns"],
            end_ns=row["end_ns"],
            reads=list(self.reads),
            reply=self.reply,
        )

    @property
    def _connect_ns(self) -> int | None:
        seconds = self.row["connect_s"]
        return None if seconds is None else round(seconds * 1e9)

    def __repr__(self) -> str:
        when = f"{self.started_at:%Y-%m-%d %H:%M:%S}"
        return escape_controls(
            f"<RecordedCall {self.call_id} {when} {self.status} {self.row['endpoint']} {self.row['model']}>"
        )
