"""Takes a key out of a stream that brought it in pieces, a few characters an event, before the call is recorded.

A key within one event is masked as it is read (`Credential.mask_bytes`); this is for the one that no event had alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from famnb.client.exchange import Exchange
from famnb.client.response_reader import reply_from_reads
from famnb.endpoints import Endpoint
from famnb.errors import FamnbError
from famnb.events import Address, Delta
from famnb.secret_patterns import mask_spans
from famnb.timing import Read
from famnb.wire import lenient_json

Find: TypeAlias = Callable[[str], Sequence[tuple[int, int]]]
"""The places of the key in a text, as (start, end)."""
# Not nothing: an event without content would change the latencies.
PIECE_MASK = "*"
"""In the place of each further piece of a key."""
_EMPTY_EVENT = b"{}"
"""What is left of an event that has the piece of the key in other letters, such as escapes."""


def conceal(exchange: Exchange, texts: Iterable[str], find: Find) -> None:
    """Mask a key that one of the `texts` has although no event alone had it; for a call that is over, not yet recorded.

    `texts` is what the deltas of each block add up to. Whoever watched the stream has seen the pieces; the reply, its
    bytes and the ledger do not keep them.
    """
    reply = exchange.reply
    # A whole body is one piece, which `Credential.mask_bytes` has seen.
    if not exchange.streamed or not any(map(find, texts)):
        return
    reads = redact_reads(exchange.endpoint, reply.reads, find)
    redacted = reply_from_reads(
        exchange.endpoint,
        streamed=exchange.streamed,
        reads=reads,
        headers_ns=exchange.headers_ns,
        connect_ns=exchange.connect_ns,
        end_ns=exchange.end_ns,
    )
    exchange.reads = reads
    changed = {name: getattr(redacted, name) for name in ("blocks", "reads", "events", "warnings")}
    exchange.reply = dataclasses.replace(reply, **changed)


def redact_reads(endpoint: Endpoint, reads: Sequence[Read], find: Find) -> list[Read]:
    """Return the reads with MASK in the event that had the key's beginning, and PIECE_MASK where more of it was."""
    data = [list(read.data) for read in reads]
    reader = endpoint.dialect.reader()
    # Signatures apart: a block's text and its signature are two texts, and a key may be in either.
    pieces: dict[tuple[Address, bool], list[tuple[int, int, str]]] = {}
    for read_index, batch in enumerate(data):
        for event_index, event_data in enumerate(batch):
            with contextlib.suppress(FamnbError):  # an event that cannot be read has ended the reply, as its error says
                for event in reader.read(event_data):
                    if isinstance(event, Delta):
                        block_pieces = pieces.setdefault((event.at, event.kind == "signature"), [])
                        block_pieces.append((read_index, event_index, event.text))
    for block_pieces in pieces.values():
        texts = [text for _, _, text in block_pieces]
        spans = [[span] for span in find("".join(texts))]
        for (read_index, event_index, text), clean in zip(
            block_pieces, mask_spans(texts, spans, rest=PIECE_MASK), strict=True
        ):
            if clean != text:
                event_data, old, new = data[read_index][event_index], *map(lenient_json.encode, (text, clean))
                data[read_index][event_index] = event_data.replace(old, new) if old in event_data else _EMPTY_EVENT
    return [msgspec.structs.replace(read, data=tuple(batch)) for read, batch in zip(reads, data, strict=True)]
