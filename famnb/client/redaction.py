"""A key that came in pieces, a few characters an event: found in what the events add up to, and taken out of each."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from famnb.client.exchange import Exchange
from famnb.client.response_reader import replayed
from famnb.endpoints import Endpoint
from famnb.errors import FamnbError
from famnb.events import Address, Delta
from famnb.secret_patterns import MASK
from famnb.timing import Read
from famnb.wire import lenient_json

Find: TypeAlias = Callable[[str], Sequence[tuple[int, int]]]
"""Where a text has the key, as (start, end)."""
REST = "*"
"""In the place of each further piece: an event without content would change the latencies."""
_NOTHING = b"{}"
"""What is left of an event whose piece of the key could not be told from the rest."""


def conceal(exchange: Exchange, texts: Iterable[str], find: Find) -> None:
    """Mask a key that one of the `texts` has although no event alone had it; for a call that is over, not yet recorded.

    `texts` is what the deltas of each block add up to. Whoever watched the stream has seen the pieces; the reply, its
    bytes and the ledger do not keep them.
    """
    reply = exchange.reply
    if not exchange.streamed or not any(map(find, texts)):
        return
    reads = _concealed(exchange.endpoint, reply.reads, find)
    fresh = replayed(
        exchange.endpoint,
        streamed=exchange.streamed,
        reads=reads,
        headers_ns=exchange.headers_ns,
        end_ns=exchange.end_ns,
    )
    exchange.reads = reads
    changed = {name: getattr(fresh, name) for name in ("blocks", "reads", "events", "warnings")}
    exchange.reply = dataclasses.replace(reply, **changed)


def _concealed(endpoint: Endpoint, reads: Sequence[Read], find: Find) -> list[Read]:
    """The reads with the mask in the event that had the key's beginning, and a sign where some of the rest was."""
    data = [list(read.data) for read in reads]
    reader = endpoint.dialect.reader()
    pieces: dict[tuple[Address, bool], list[tuple[int, int, str]]] = {}
    for at, batch in enumerate(data):
        for number, each in enumerate(batch):
            with contextlib.suppress(FamnbError):  # an event that cannot be read has ended the reply, as its error says
                for event in reader.read(each):
                    if isinstance(event, Delta):
                        pieces.setdefault((event.at, event.kind == "signature"), []).append((at, number, event.text))
    for block in pieces.values():
        found = find("".join(text for _, _, text in block))
        start = 0
        for at, number, text in block:
            clean = _without(text, start, found)
            if clean != text:
                data[at][number] = _swapped(data[at][number], text, clean)
            start += len(text)
    return [Read(read.t_ns, tuple(batch)) for read, batch in zip(reads, data, strict=True)]


def _without(text: str, offset: int, found: Sequence[tuple[int, int]]) -> str:
    """A piece that begins at `offset` of the whole, without what it has of the key."""
    parts, done = [], 0
    for start, end in found:
        low, high = max(start - offset, 0), min(end - offset, len(text))
        if low < high:
            parts += [text[done:low], MASK if start >= offset else REST]
            done = high
    return "".join([*parts, text[done:]])


def _swapped(data: bytes, old: str, new: str) -> bytes:
    """An event with one text in the place of another."""
    try:
        decoded = lenient_json.decode(data)
    except ValueError:
        return _NOTHING
    swapped = _replaced(decoded, old, new)
    return _NOTHING if swapped == decoded else lenient_json.encode(swapped)


def _replaced(value: Any, old: str, new: str) -> Any:
    match value:
        case str():
            return new if value == old else value
        case list():
            return [_replaced(each, old, new) for each in value]
        case Mapping():
            return {name: _replaced(each, old, new) for name, each in value.items()}
        case _:
            return value
