"""What happens when it takes too long: each deadline has its own error, and no trickle of bytes puts one off."""

import math
import time

import pytest

from famnb.client.config import Clock, Deadlines
from famnb.client.retry import Retries
from famnb.errors import ConnectError, FirstEventTimeout, IdleTimeout, PoolTimeout, TotalTimeout
from tests.support.fault_server import Action, chunk, chunked, head, whole
from tests.support.wire_payloads import body, closing, delta, request, sse_stream

STREAM = request("web")
WHOLE = request("web", stream=False)
DRIP = [b" ", 0.05] * 100
STREAM_HEAD = head(200, content_type="text/event-stream", transfer_encoding="chunked")


@pytest.mark.parametrize(
    "silence", [[Action.STALL], [STREAM_HEAD, Action.STALL], [STREAM_HEAD, chunk(b": wait\n\n"), Action.STALL]]
)
def test_a_first_event_that_does_not_come(caller, serve, connect, recorder, silence):
    server = serve(silence)
    client = connect(server, deadlines=Deadlines(first_event=0.2), ledger=recorder)
    error = caller.failure(client, STREAM)
    assert isinstance(error, FirstEventTimeout)
    assert (error.seconds, len(server.requests)) == (0.2, 1)
    assert recorder.exchanges[0].reply.status == "failed"


def test_a_drip_is_silence(caller, serve, connect):
    server = serve([STREAM_HEAD, chunk(delta("web", "Hel")), chunk(b"data: "), *[chunk(b" "), 0.05] * 100])
    error = caller.failure(connect(server, deadlines=Deadlines(idle=0.3)), STREAM)
    assert isinstance(error, IdleTimeout)


def test_comments_are_signs_of_life(caller, serve, connect):
    # Longer than the limit in all, and each pause a tenth of it, so that a loaded machine may be late.
    waiting = [b": still here\n\n", 0.1] * 12
    server = serve(chunked(delta("web", "Hel"), *waiting, delta("web", "lo"), *closing("web")))
    assert caller.send(connect(server, deadlines=Deadlines(idle=1.0)), STREAM).text == "Hello"


def test_the_total_counts_everything(caller, serve, connect):
    server = serve(chunked(*[delta("web", "x"), 0.05] * 100))
    error = caller.failure(connect(server, deadlines=Deadlines(total=0.4)), STREAM)
    assert isinstance(error, TotalTimeout)
    assert set(error.reply.text) <= {"x"}


def test_the_total_counts_the_pauses_between_tries(serve, connect):
    server = serve(whole(b"", 503))
    client = connect(server, deadlines=Deadlines(total=0.2), clock=Clock(uniform=lambda low, high: 30.0))
    with pytest.raises(TotalTimeout):
        client.send(WHOLE)


@pytest.mark.parametrize("silence", [[Action.STALL], [head(200, content_length="999"), *DRIP]])
def test_a_whole_reply_has_the_total_alone(caller, serve, connect, silence):
    limits = Deadlines(first_event=0.1, total=0.4)
    assert isinstance(caller.failure(connect(serve(silence), deadlines=limits), WHOLE), TotalTimeout)


def test_a_whole_body_that_stops_is_idle(serve, connect):
    server = serve([head(200, content_length="999"), b"{", Action.STALL])
    with pytest.raises(IdleTimeout):
        connect(server, deadlines=Deadlines(idle=0.2)).send(WHOLE)


def test_silence_after_the_evidence_is_the_end(serve, connect):
    server = serve(chunked(b"".join(sse_stream("web", "Hello")[:-1]), Action.STALL))
    reply = connect(server, deadlines=Deadlines(idle=0.2)).send(STREAM)
    assert (reply.text, reply.complete, reply.error) == ("Hello", True, None)


@pytest.mark.parametrize(
    ("limits", "message"), [({"pool": 0.2}, r"0.2 s \(deadlines: pool\)"), ({"total": 1}, r"1 s \(deadlines: total\)")]
)
def test_no_free_connection(serve, connect, limits, message):
    """By default the wait counts against the total alone."""
    assert Deadlines().pool == math.inf
    server = serve(chunked(delta("web", "Hel"), Action.STALL))
    client = connect(server, connections=1)
    with client.stream(STREAM) as holding:
        next(iter(holding))
        # For the second call alone: the first would else end just before it, and leave it the connection.
        client.engine.deadlines = Deadlines(**limits)
        with pytest.raises(PoolTimeout, match=f"within {message}") as caught:
            client.send(STREAM)
    assert (len(server.requests), caught.value.reply.timing.e2e_s) == (1, None)


def test_ten_streams_on_two_connections(serve, connect):
    server = serve(chunked(delta("web", "Hel"), 0.02, delta("web", "lo"), *closing("web")))
    client = connect(server, connections=2)
    streams = [client.engine.start(STREAM) for _ in range(10)]
    assert [stream.result().text for stream in streams] == ["Hello"] * 10
    assert server.connections <= 2


def test_waiting_for_a_connection_is_not_latency(serve, connect):
    """A call that waited 0.3 s for its turn reports the time from when it was sent: the two follow one another."""
    server = serve(chunked(0.3, *sse_stream("web", "slow")), whole(body("web", "fast")))
    client = connect(server, connections=1)
    start = time.monotonic()
    first, second = (stream.result().timing for stream in [client.engine.start(STREAM), client.engine.start(WHOLE)])
    elapsed = time.monotonic() - start
    assert first.e2e_s > 0.3
    assert first.e2e_s + second.e2e_s <= elapsed


def test_a_connection_that_is_not_made_in_time(connect, deaf_url):
    client = connect(deaf_url, deadlines=Deadlines(connect=0.2), retries=Retries(tries=2))
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1"):
        client.send(WHOLE)
    assert len(client.pauses) == 1
