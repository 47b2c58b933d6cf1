"""Whatever a service sends, a call ends with a reply or with an error of famnb's own tree."""

import contextlib
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from famnb.client.response_reader import ResponseReader, reply_from_reads
from famnb.endpoints import ENDPOINTS
from famnb.errors import APIStatusError, FamnbError
from famnb.record import serialize
from famnb.reply import Reply
from famnb.wire import errors

MUTANTS = 1500
"""How many; a run of millions found what these now keep from coming back."""
FIXTURES = Path(__file__).parents[1] / "wire" / "fixtures"
STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1.5, -0.0, math.nan, math.inf),
    *("", "x", "12", "-3", "1e999", "²", "\ud83d", "<think>", "</think>", "text", "tool_use", "response.completed"),
    *([], [None], [[]], [{}], {}, {"type": None}, {"type": "text", "text": 5}, {"error": {"message": ["no"]}}),
)
"""Values of every JSON type, and words that mean something in one place or another."""


def mutants(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Recorded answers that were changed, each with the name of its endpoint."""
    paths = sorted([*FIXTURES.rglob("*.sse"), *FIXTURES.glob("*.json")])
    for _ in range(MUTANTS):
        path = chance.choice(paths)
        data = path.read_bytes()
        for _ in range(chance.randint(1, 4)):
            data = chance.choice((change_bytes, change_lines, change_value, change_value))(chance, data)
        yield next((name for name in ("messages", "responses") if name in path.stem), "web"), data


def change_bytes(chance: random.Random, data: bytes) -> bytes:
    """Some bytes replaced, dropped or put in; at times all that follows is dropped."""
    start = chance.randrange(len(data) + 1)
    end = chance.choice((start, start + 1, start + 9, len(data)))
    return data[:start] + chance.randbytes(chance.choice((0, 1, 5))) + data[end:]


def change_lines(chance: random.Random, data: bytes) -> bytes:
    """Lines repeated, dropped or replaced by others."""
    lines = data.split(b"\n")
    target, source = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[target : target + chance.randint(0, 2)] = lines[source : source + chance.randint(0, 2)]
    return b"\n".join(lines)


def change_value(chance: random.Random, data: bytes) -> bytes:
    """A JSON value in one of the lines replaced, dropped or doubled."""
    lines = [data] if data.lstrip().startswith(b"{") else data.split(b"\n")
    number = chance.randrange(len(lines))
    head, brace, rest = lines[number].partition(b"{")
    with contextlib.suppress(ValueError, IndexError):  # the line is no JSON, or an empty object
        value = json.loads(brace + rest)
        holder, key = chance.choice(list(places(value)))
        match chance.randrange(4):
            case 0:
                del holder[key]
            case 1:
                holder[key] = [holder[key], holder[key]]
            case _:
                holder[key] = chance.choice(STRANGE)
        lines[number] = head + json.dumps(value).encode()
    return b"\n".join(lines)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value: the list or object that holds it, and its index or name there."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


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
    assert serialize.read_pieces("call", [serialize.pack_reads(reply.reads)]) == reply.reads


def test_no_answer_crashes_the_client():
    chance = random.Random(1)
    for name, data in mutants(chance):
        for streamed in (True, False):
            reply = read_in_chunks(name, data, streamed=streamed, chance=chance)
            use_everything(reply)
            assert reply.error is not None or reply.complete is not False or reply.status == "failed"
            again = reply_from_reads(
                ENDPOINTS[name], streamed=reply.streamed, reads=reply.reads, headers_ns=None, end_ns=10**9
            )
            assert again.blocks == reply.blocks


def test_no_error_body_crashes_the_client():
    chance = random.Random(2)
    for _, data in mutants(chance):
        hints = ["", "-1", "nan", "1e400", "Thu, 99 Foo", data[:20].decode("latin-1")]
        headers = {name: chance.choice(hints) for name in ("retry-after", "retry-after-ms", "date", "x-request-id")}
        error = errors.read(chance.choice((400, 418, 429, 599)), headers, data)
        assert isinstance(error, APIStatusError)
        assert str(error)
