"""The frame of stream events, and the walk over recorded bytes that it and other tools' definitions read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pandas as pd

from famnb import endpoints
from famnb.endpoints import Endpoint
from famnb.errors import FamnbError
from famnb.events import Address, Closed, Delta, Done, Event, Opened
from famnb.frame.columns import DELTAS, frame, listing
from famnb.frame.filters import HasLedger, source_of
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.timing import Read

CHUNK = 500

Which: TypeAlias = str | Reply | RecordedCall | pd.DataFrame | Iterable[str | Reply | RecordedCall]
"""Calls: an id, a reply, a recorded call, several of these, or a frame with `call_id`."""


class Step(NamedTuple):
    """One event of a stream, as it was on the wire and as it is read."""

    seq: int
    batch: int
    t_ns: int
    body: Any
    """The decoded JSON; None for the terminator and for what is not JSON."""
    type: str
    events: Sequence[Event]

    @property
    def deltas(self) -> list[Delta]:
        """The pieces of blocks that it brought."""
        return [event for event in self.events if isinstance(event, Delta)]


def walk(endpoint: Endpoint, reads: Iterable[Read]) -> Iterator[Step]:
    """The events of a recorded stream in order; what a reader held back until the end comes with the last event."""
    reader = endpoint.dialect.reader()
    step: Step | None = None
    seq, done = 0, False
    for batch, read in enumerate(reads):
        for data in read.data:
            body, kind = _decoded(data)
            try:
                events: Sequence[Event] = () if done else reader.read(data)
            except FamnbError:
                events = ()
            done = done or any(isinstance(event, Done) for event in events)
            step = Step(seq, batch, read.t_ns, body, kind, events)
            yield step
            seq += 1
    held = reader.end()
    if step is not None and held:
        yield step._replace(events=held)


def deltas(call_ids: Which | None = None, ledger: Ledger | str | HasLedger | None = None) -> pd.DataFrame:
    """One row a stream event, in order; all recorded streams unless `call_ids` names some.

    `call_ids` is an id, a `Reply`, a `RecordedCall`, a list of these, or a frame with a `call_id` column. Whole
    replies have no events. KeyError where the ledger has no such call; of calls of endpoints that are not known here,
    an error only where one is asked for. The columns:
    """
    values: dict[str, list[Any]] = {column.name: [] for column in DELTAS}
    for call_id, endpoint, reads in _streams(call_ids, ledger):
        for row in _rows(call_id, list(walk(endpoint, reads))):
            for name, value in zip(values, row, strict=True):
                values[name].append(value)
    return frame(DELTAS, values)


deltas.__doc__ = f"{deltas.__doc__}\n{listing(DELTAS)}\n"


def _decoded(data: bytes) -> tuple[Any, str]:
    """An event's JSON and the word for its type."""
    if data.strip() == b"[DONE]":
        return None, "[DONE]"
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, "invalid"
    word = (body.get("type") or body.get("object")) if isinstance(body, dict) else None
    return body, word if isinstance(word, str) else "unknown"


def _rows(call_id: str | None, steps: list[Step]) -> Iterator[tuple[Any, ...]]:
    addresses = {event.at for step in steps for event in step.events if isinstance(event, Opened | Delta | Closed)}
    index = {at: place for place, at in enumerate(sorted(addresses))}
    for step in steps:
        place = (call_id, step.seq, step.batch, step.t_ns / 1e9, step.type)
        pieces: dict[tuple[Address, str], list[str]] = {}
        for delta in step.deltas:
            pieces.setdefault((delta.at, delta.kind), []).append(delta.text)
        for (at, kind), texts in pieces.items():
            text = "".join(texts)
            yield *place, index[at], kind, len(text), text
        if not pieces:
            marks = [event for event in step.events if isinstance(event, Opened | Closed)]
            opened = next((event.kind for event in marks if isinstance(event, Opened)), None)
            yield *place, index[marks[0].at] if marks else None, opened, 0, None


def _streams(
    which: Which | None, source: Ledger | str | HasLedger | None
) -> Iterator[tuple[str | None, Endpoint, Sequence[Read]]]:
    """The streams meant, each with its call's id and endpoint."""
    wanted: list[str] = []
    for one in _each(which):
        if isinstance(one, str):
            wanted.append(one)
        elif one.reads:
            name = one.endpoint if isinstance(one, Reply) else one.endpoint.name
            streamed = one.streamed if isinstance(one, Reply) else one.reply.streamed
            if streamed:
                yield one.call_id, endpoints.endpoint(name), one.reads
        elif one.call_id:
            wanted.append(one.call_id)
    if which is not None and not wanted:
        return
    ledger = source_of(source)
    if which is None:
        wanted = [row["id"] for row in ledger.select()]
    for start in range(0, len(wanted), CHUNK):
        some = wanted[start : start + CHUNK]
        found = {row["id"]: row for row in ledger.select(f"id IN ({','.join('?' * len(some))})", some)}
        missing = [call_id for call_id in some if call_id not in found]
        if missing:
            raise KeyError(f"no call {missing[0]!r} in {ledger.path}; famnb.calls() lists what is there")
        for call_id, reads in ledger.reads(some):
            row = found[call_id]
            known = which is not None or row["endpoint"] in endpoints.ENDPOINTS
            if row["streamed"] and (row["http_status"] or 200) < 400 and known:
                yield call_id, endpoints.endpoint(row["endpoint"]), reads


def _each(which: Which | None) -> list[str | Reply | RecordedCall]:
    match which:
        case None:
            return []
        case str() | Reply() | RecordedCall():
            return [which]
        case pd.DataFrame() if "call_id" in which:
            return [str(call_id) for call_id in which["call_id"]]
        case Iterable() if not isinstance(which, pd.DataFrame):
            several = list(which)
            if all(isinstance(each, str | Reply | RecordedCall) for each in several):
                return several
    raise TypeError(
        "call_ids: expected an id, a Reply, a RecordedCall, a list of these, or a frame with a column `call_id`; "
        f"got {which!r:.80}"
    )
