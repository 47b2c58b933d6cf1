"""Answers that were changed at random: the same outcome however the bytes are cut, no hang, nothing left behind.

FAMNB_MUTATIONS is how many; some hundreds unless it is set.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator

import httpx
import pytest

from famnb.client.config import Deadlines
from famnb.client.live_call import LiveCall
from famnb.client.retry import Retries
from famnb.client.transport import StampedTransport
from famnb.client.transport.connection import Body, Connection, ResponseParser
from famnb.reply import Reply
from tests.support.fault_server import Action, Received, Script, chunked, head, whole
from tests.support.waiting import wait_until
from tests.support.wire_payloads import ENDPOINTS, body, failure, opening, request, sse_stream

MUTATIONS = int(os.getenv("FAMNB_MUTATIONS", "400"))
AT_ONCE = 8
ANSWERS = {
    endpoint: [
        chunked(*sse_stream(endpoint, "Hel", "lo ☃")),
        chunked(b"".join(sse_stream(endpoint, "Hel", "lo ☃"))),
        [head(200, content_type="text/event-stream"), *sse_stream(endpoint, "Hel", "lo")],
        chunked(*opening(endpoint), *failure(endpoint)),
        whole(body(endpoint, "Hello")),
        whole({"error": {"message": "no"}}, 400),
        [b"HTTP/1.1 100 Continue\r\n\r\n", *chunked(*sse_stream(endpoint, "Hello"))],
    ]
    for endpoint in ENDPOINTS
}


def mutate(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some changed, left out, put in, repeated or cut off."""
    changed = bytearray(data)
    for _ in range(chance.randint(0, 3)):
        place, length = chance.randrange(len(changed) + 1), chance.randint(1, 20)
        match chance.randrange(5):
            case 0:
                changed[place : place + 1] = chance.randbytes(1)
            case 1:
                del changed[place : place + length]
            case 2:
                changed[place:place] = chance.choice(
                    [b"\r\n", b"\n\n", b"0\r\n\r\n", b"data: ", chance.randbytes(length)]
                )
            case 3:
                changed[place:place] = changed[place : place + length]
            case 4:
                del changed[max(place, 1) :]
    return bytes(changed)


def pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """The bytes in writes of one to seven."""
    start = 0
    while start < len(data):
        end = start + chance.randint(1, 7)
        yield data[start:end]
        start = end


def outcome(reply: Reply) -> tuple[object, ...]:
    """All that a reply says, but for the times and for what came together with its end."""
    verdict = reply.status, reply.complete, reply.finish_reason, repr(reply.error)
    return reply.text, reply.thinking, *verdict, reply.usage


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", ["plain", "tls"])
def test_a_cut_changes_nothing(serve, connect, certificate, way):
    """Each changed answer is sent in one write and in writes of one to seven bytes, to calls that run together."""
    mutated = {}

    def choose(received: Received) -> Script:
        # Which one, and how, the caller says in the prompt.
        number, shape = received.body.partition(b"answer ")[2].partition(b".")[0].split()
        data = mutated[int(number)]
        return [*(pieces(data, random.Random(data)) if shape == b"cut" else [data]), Action.CLOSE]

    is_encrypted = way == "tls"
    server = serve(choose=choose, tls=certificate.server_context() if is_encrypted else None)
    transport = StampedTransport(
        tls=certificate.client_context() if is_encrypted else None,
        # What follows the end of a changed answer may come late, and would be the beginning of the next one.
        limits=httpx.Limits(max_keepalive_connections=0),
    )
    client = connect(
        server, retries=Retries(tries=1), transport=transport, deadlines=Deadlines(idle=20, first_event=20)
    )
    chance, before = random.Random(way), count_calls()
    # Under TLS every request shakes hands, which takes ten times as long as the rest.
    count = MUTATIONS // 10 if is_encrypted else MUTATIONS
    for begin in range(0, count, AT_ONCE):
        calls = {}
        for number in range(begin, min(begin + AT_ONCE, count)):
            endpoint, streams = chance.choice(ENDPOINTS), chance.random() < 0.7
            mutated[number] = mutate(b"".join(chance.choice(ANSWERS[endpoint])), chance)
            for shape in ("cut", "whole"):
                calls[number, shape] = client.engine.start(
                    request(endpoint, f"answer {number} {shape}.", stream=streams)
                )
        for call in calls.values():
            assert call.wait(60), "a call hangs"
        for number in range(begin, min(begin + AT_ONCE, count)):
            replies = [calls[number, shape].reply for shape in ("cut", "whole")]
            assert outcome(replies[0]) == outcome(replies[1]), mutated.pop(number)
    # The server closes every connection, which each side sees when it comes to it.
    wait_until(lambda: (client.engine.in_use, transport.connections, server.open) == (0, 0, 0))
    # The client keeps its last reply, and with an error the frames that raised it.
    mutated[count] = b"".join(whole(body("web", "Hello")))
    assert client.send(request("web", f"answer {count} whole.", stream=False)).text == "Hello"
    client.close()
    del calls, call, replies
    wait_until(lambda: count_calls() <= before)


def count_calls() -> int:
    """How much is left in memory of calls that are over."""
    gc.collect()
    return sum(isinstance(value, Body | Connection | ResponseParser | LiveCall) for value in gc.get_objects())
