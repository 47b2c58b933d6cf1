"""Whatever a service sends, a call ends with a reply or with an error of famnb's own tree."""

from __future__ import annotations

import random

from famnb.client.response_reader import ResponseReader, reply_from_reads
from famnb.endpoints import ENDPOINTS
from famnb.errors import APIStatusError, FamnbError
from famnb.record import serialize
from famnb.reply import Reply
from famnb.wire import errors
from tests.client.malformed_bodies import mutants

MUTANTS = 1500
"""How many; a run of millions found what these now keep from coming back."""


def read_in_chunks(name: str, data: bytes, *, streamed: bool, chance: random.Random) -> Reply:
    """What a client makes of an answer that comes in chunks of any size, whether it is complete or not."""
    reader, error = ResponseReader(ENDPOINTS[name], streamed=streamed), None
    offset = t_ns = 0
    try:
        while offset < len(data) and not reader.is_finished:
            size = chance.choice((1, 7, 100, 10_000))
            reader.feed(data[offset : offset + size], t_ns := t_ns + 1_000_000)
            offset += size
        reader.end(t_ns)
    except FamnbError as fault:
        error = fault
    reader.close(t_ns)
    return reader.outcome(error)


def use_everything(reply: Reply) -> None:
    """Everything that users and the ledger ask of a reply."""
    for text in (repr(reply), str(reply), reply.thinking):
        assert isinstance(text, str)
    assert isinstance(reply.raw, list) or not reply.streamed
    assert all(call.valid or call.arguments is None for call in reply.tool_calls)
    assert serialize.outcome_columns(reply)["status"] == reply.status
    assert serialize.unpack_reads([serialize.pack_reads(reply.reads)]) == reply.reads


def test_no_answer_crashes_the_client():
    """Fixtures with bytes, lines and values changed: read as a stream, as a whole body, and again from the record."""
    chance = random.Random(1)
    for name, data in mutants(1, MUTANTS):
        for streamed in (True, False):
            reply = read_in_chunks(name, data, streamed=streamed, chance=chance)
            use_everything(reply)
            assert reply.error is not None or reply.complete is not False or reply.status == "failed"
            again = reply_from_reads(
                ENDPOINTS[name], streamed=reply.streamed, reads=reply.reads, headers_ns=None, end_ns=10**9
            )
            assert again.blocks == reply.blocks


def test_no_error_body_crashes_the_client():
    """The same bytes as the body of an error status, beside headers that are nonsense."""
    chance = random.Random(2)
    for _, data in mutants(2, MUTANTS):
        hints = ["", "-1", "nan", "1e400", "Thu, 99 Foo", data[:20].decode("latin-1")]
        headers = {name: chance.choice(hints) for name in ("retry-after", "retry-after-ms", "date", "x-request-id")}
        error = errors.read(chance.choice((400, 418, 429, 599)), headers, data)
        assert isinstance(error, APIStatusError)
        assert str(error)
