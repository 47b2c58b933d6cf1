"""The frame of stream events, and the reading of recorded bytes into events that other tools' latencies use too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pandas as pd

from famnb import endpoints
from famnb.endpoints import Endpoint
from famnb.errors import FamnbError, InvalidArgument, UnknownName
from famnb.events import Address, Closed, Delta, Done, Event, Opened
from famnb.frame.columns import DELTAS, build_frame, format_columns
from famnb.record import Ledger, RecordedCall, sql
from famnb.record.ledger import HasLedger, ledger_of
from famnb.reply import Reply
from famnb.timing import Read

CallSelection: TypeAlias = str | Reply | RecordedCall | pd.DataFrame | Iterable[str | Reply | RecordedCall]
"""Calls: an id, a reply, a recorded call, several of these, or a frame with `call_id`."""


class WireEvent(NamedTuple):
    """One event of a recorded stream: its JSON, and the events that the dialect's reader makes of it."""

    seq: int
    """Its place in the stream, from 0."""
    batch: int
    """The place of `read` among the reads, from 0."""
    read: Read
    """What completed it, and when."""
    body: Any
    """The decoded JSON; None for the terminator and for data that is not JSON."""
    type: str
    """As the column `type` has it."""
    events: Sequence[Event]

    @property
    def deltas(self) -> list[Delta]:
        """The pieces of blocks among its events."""
        return [event for event in self.events if isinstance(event, Delta)]


def read_wire_events(endpoint: Endpoint, reads: Iterable[Read]) -> Iterator[WireEvent]:
    """Yield the events of a recorded stream in order; what a reader holds back to the end comes with the last one."""
    reader = endpoint.dialect.reader()
    wire_event: WireEvent | None = None
    seq, is_done = 0, False
    for batch, read in enumerate(reads):
        for data in read.data:
            body, event_type = _decode(data)
            try:
                events: Sequence[Event] = () if is_done else reader.read(data)
            except FamnbError:  # the call ended here; what else came is shown, though it was not part of the reply
                events = ()
            is_done = is_done or any(isinstance(event, Done) for event in events)
            wire_event = WireEvent(seq, batch, read, body, event_type, events)
            yield wire_event
            seq += 1
    rest = reader.end()
    if wire_event is not None and rest:
        yield wire_event._replace(events=rest)


def deltas(call_ids: CallSelection | None = None, ledger: Ledger | str | HasLedger | None = None) -> pd.DataFrame:
    """One row a stream event, in order; all recorded streams unless `call_ids` names some.

    `call_ids` is an id, a `Reply`, a `RecordedCall`, a list of these, or a frame with a `call_id` column. Whole
    replies have no events. KeyError where the ledger has no such call; of calls of endpoints that are not known here,
    an error only where one is asked for. In `attrs`: how many streams there are, and how many of them are simulated.
    The columns:
    """
    values: dict[str, list[Any]] = {column.name: [] for column in DELTAS}
    streams = simulated = 0
    for call_id, endpoint, reads, service in _streams(call_ids, ledger):
        streams, simulated = streams + 1, simulated + (service == "sim")
        for row in _rows(call_id, list(read_wire_events(endpoint, reads))):
            for name, value in zip(values, row, strict=True):
                values[name].append(value)
    frame = build_frame(DELTAS, values)
    # Of the frame rather than a column, which would have the same in all the thousands of rows of a stream.
    frame.attrs |= {"streams": streams, "simulated_streams": simulated}
    return frame


deltas.__doc__ = f"{deltas.__doc__}\n{format_columns(DELTAS)}\n"


def _decode(data: bytes) -> tuple[Any, str]:
    """An event's JSON, and its value in the column `type`."""
    if data.strip() == b"[DONE]":
        return None, "[DONE]"
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, "invalid"
    event_type = (body.get("type") or body.get("object")) if isinstance(body, dict) else None
    return body, event_type if isinstance(event_type, str) else "unknown"


def _rows(call_id: str | None, wire_events: list[WireEvent]) -> Iterator[tuple[Any, ...]]:
    """The rows of one stream, in the order of the columns."""
    addresses = {
        event.at
        for wire_event in wire_events
        for event in wire_event.events
        if isinstance(event, Opened | Delta | Closed)
    }
    block_of = {address: index for index, address in enumerate(sorted(addresses))}
    for wire_event in wire_events:
        read = wire_event.read
        start = call_id, wire_event.seq, wire_event.batch, read.t_ns / 1e9, wire_event.type
        end = None if read.late_ns is None else read.late_ns / 1e6, read.is_exact
        pieces: dict[tuple[Address, str], list[str]] = {}
        for delta in wire_event.deltas:
            pieces.setdefault((delta.at, delta.kind), []).append(delta.text)
        for (address, kind), texts in pieces.items():
            text = "".join(texts)
            yield *start, block_of[address], kind, len(text), text, *end
        if not pieces:
            marks = [event for event in wire_event.events if isinstance(event, Opened | Closed)]
            kind_opened = next((event.kind for event in marks if isinstance(event, Opened)), None)
            yield *start, block_of[marks[0].at] if marks else None, kind_opened, 0, None, *end


def _streams(
    selection: CallSelection | None, source: Ledger | str | HasLedger | None
) -> Iterator[tuple[str | None, Endpoint, Sequence[Read], str | None]]:
    """The selected streams, each with its call's id, endpoint and engine; from memory where a reply has its reads."""
    ids: list[str] = []
    for item in _items(selection):
        if isinstance(item, str):
            ids.append(item)
        elif item.reads:
            name = item.endpoint if isinstance(item, Reply) else item.endpoint.name
            reply = item if isinstance(item, Reply) else item.reply
            if reply.streamed:
                yield item.call_id, endpoints.endpoint(name), item.reads, reply.service
        elif item.call_id:
            ids.append(item.call_id)
    if selection is not None and not ids:
        return
    ledger = ledger_of(source)
    if selection is None:
        ids = [row["id"] for row in ledger.select()]
    for chunk in sql.iter_chunks(ids):
        rows = {row["id"]: row for row in ledger.select(f"id IN {sql.placeholders(chunk)}", chunk)}
        missing = [call_id for call_id in chunk if call_id not in rows]
        if missing:
            raise UnknownName(f"no call {missing[0]!r} in {ledger.path}; famnb.calls() lists what is there")
        for call_id, reads in ledger.reads(chunk):
            row = rows[call_id]
            is_readable = selection is not None or row["endpoint"] in endpoints.ENDPOINTS
            # An error body is recorded too, and is no stream though one was asked for.
            if row["streamed"] and (row["http_status"] or 200) < 400 and is_readable:
                yield call_id, endpoints.endpoint(row["endpoint"]), reads, row["service"]


def _items(selection: CallSelection | None) -> list[str | Reply | RecordedCall]:
    """The selected calls one by one; raises TypeError if it is not a selection."""
    match selection:
        case None:
            return []
        case str() | Reply() | RecordedCall():
            return [selection]
        case pd.DataFrame() if "call_id" in selection:
            return [str(call_id) for call_id in selection["call_id"]]
        case Iterable() if not isinstance(selection, pd.DataFrame):
            items = list(selection)
            if all(isinstance(item, str | Reply | RecordedCall) for item in items):
                return items
    raise InvalidArgument(
        "call_ids: expected an id, a Reply, a RecordedCall, a list of these, or a frame with a column `call_id`; "
        f"got {selection!r:.80}"
    )
