"""When a call is tried again, how long it pauses, and that what is sent again is the same."""

import math

import pytest

from famnb.client.config import Clock
from famnb.client.retry import Retries, RetryBudget, compute_pause, is_worth_retrying
from famnb.errors import (
    APIStatusError,
    ConnectError,
    IdleTimeout,
    InvalidRequest,
    RateLimitError,
    ServerError,
    StreamDecodeError,
    StreamError,
    StreamInterrupted,
    status_error,
)
from tests.support.fault_server import Action, chunked, whole
from tests.support.wire_payloads import body, delta, opening, request, sse_stream

GOOD = whole(body("web", "Hello"))
WHOLE = request("web", stream=False)


def refusal(status: int, **headers: str) -> list[bytes]:
    return whole({"error": {"message": "not now", "type": "x", "code": "y"}}, status, **headers)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_request_at_fault_is_sent_once(caller, serve, connect, status):
    server = serve(refusal(status))
    error = caller.failure(connect(server), WHOLE)
    assert (type(error), error.status, len(server.requests)) == (status_error(status), status, 1)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_failure_that_may_pass_is_tried_three_times(caller, serve, connect, status):
    server = serve(refusal(status))
    client = connect(server)
    error = caller.failure(client, WHOLE)
    assert (type(error), len(server.requests), len(client.pauses)) == (status_error(status), 3, 2)
    assert error.reply.status == "failed"


def test_the_wait_includes_every_attempt_and_pause(serve, connect, recorder):
    server = serve(refusal(429, retry_after="2"), refusal(503, retry_after="3"), GOOD)
    elapsed_ns = 0

    async def pause(seconds: float) -> None:
        nonlocal elapsed_ns
        elapsed_ns += round(seconds * 1e9)

    clock = Clock(monotonic_ns=lambda: elapsed_ns, sleep=pause, uniform=lambda low, high: low)
    stream = connect(server, ledger=recorder, clock=clock).engine.start(WHOLE)
    assert stream.result().timing.e2e_s == 0
    assert (recorder.exchanges[0].wait_ns, recorder.exchanges[0].attempts) == (5_000_000_000, 3)


def test_a_call_that_fails_has_waited_too(serve, connect, recorder):
    connect(serve(refusal(400)), ledger=recorder).engine.start(WHOLE).wait()
    assert recorder.exchanges[0].wait_ns >= recorder.exchanges[0].headers_ns > 0


def test_the_same_bytes_are_sent_again_after_the_wait_that_was_asked_for(caller, serve, connect):
    """429 with Retry-After: 2, once: one retry after 2.0 to 2.3 s, same body, attempts = 2."""
    server = serve(refusal(429, retry_after="2"), GOOD)
    client = connect(server)
    stream = client.engine.start(WHOLE)
    assert stream.result().text == "Hello"
    assert 2.0 <= client.pauses[0] <= 2.3
    assert len(client.pauses) == 1
    assert stream.exchange.attempts == 2
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry_after_ms": "300", "retry_after": "5"}, 0.3, 0.35),
        ({"retry_after": "Wed, 01 Jan 2025 00:00:04 GMT", "date": "Wed, 01 Jan 2025 00:00:00 GMT"}, 4.0, 4.5),
        ({"retry_after": "0"}, 0.05, 1.0),
    ],
)
def test_the_wait_is_the_services_wish_or_our_own(serve, connect, headers, low, high):
    server = serve(refusal(429, **headers), GOOD)
    client = connect(server)
    assert client.send(WHOLE).text == "Hello"
    assert low <= client.pauses[0] <= high


def test_a_long_wait_is_the_callers_decision(caller, serve, connect):
    server = serve(refusal(429, retry_after="3600"))
    client = connect(server)
    error = caller.failure(client, WHOLE)
    assert isinstance(error, RateLimitError)
    assert (error.retry_after, client.pauses, len(server.requests)) == (3600, [], 1)


@pytest.mark.parametrize(("status", "word", "requests"), [(400, "true", 3), (500, "false", 1), (503, "?", 3)])
def test_the_service_may_say_whether_to_retry(serve, connect, status, word, requests):
    server = serve(refusal(status, x_should_retry=word))
    with pytest.raises(APIStatusError):
        connect(server).send(WHOLE)
    assert len(server.requests) == requests


@pytest.mark.parametrize("broken", [Action.RESET, Action.CLOSE])
def test_a_stream_is_tried_again_only_before_its_content(caller, serve, connect, broken):
    server = serve(chunked(*opening("web"), broken, end=False), chunked(*sse_stream("web", "Hel", "lo")))
    client = connect(server)
    reply = caller.send(client, request("web"))
    assert (reply.text, len(server.requests), len(client.pauses)) == ("Hello", 2, 1)
    assert len(reply.raw) == len(sse_stream("web", "Hel", "lo"))


@pytest.mark.parametrize("broken", [Action.RESET, Action.CLOSE])
def test_a_stream_is_not_tried_again_once_content_came(caller, serve, connect, broken):
    server = serve(chunked(*opening("web"), delta("web", "Hel"), broken, end=False))
    error = caller.failure(connect(server), request("web"))
    assert isinstance(error, StreamInterrupted)
    assert (error.reply.text, error.reply.status, len(server.requests)) == ("Hel", "interrupted", 1)


def test_many_failures_use_up_the_budget(serve, connect):
    """35 retries at 14 each exhaust a budget of 500: from then on a failing call is sent once."""
    server = serve(refusal(500))
    client = connect(server)
    for _ in range(20):
        with pytest.raises(ServerError):
            client.send(WHOLE)
    assert len(server.requests) == 20 + 35


def test_the_budget_is_refilled_by_success():
    budget = RetryBudget(capacity=28, cost=14)
    assert [budget.take(), budget.take(), budget.take()] == [True, True, False]
    budget.refill(retried=True)
    assert [budget.take(), budget.take()] == [True, False]
    for _ in range(14):
        budget.refill(retried=False)
    assert budget.take()


def high(low: float, up: float) -> float:
    return up


def test_our_own_delay_doubles_up_to_eight_seconds():
    """U(0, min(8, 0.5 · 2ⁿ)), twice as long for 429, never under 50 ms."""
    assert [compute_pause(ServerError("", status=500), retried=n, uniform=high) for n in range(6)] == [
        0.5,
        1,
        2,
        4,
        8,
        8,
    ]
    assert compute_pause(RateLimitError("", status=429), retried=0, uniform=high) == 1.0
    assert compute_pause(ConnectError(""), retried=0, uniform=lambda low, up: low) == 0.05


@pytest.mark.parametrize("error", [StreamError(""), StreamDecodeError(""), IdleTimeout(""), ValueError("")])
def test_other_failures_are_final(error):
    assert not is_worth_retrying(error)


@pytest.mark.parametrize(
    "fields", [{"tries": 0}, {"tries": True}, {"tries": 1.5}, {"max_wait": -1}, {"max_wait": math.nan}]
)
def test_senseless_settings_are_refused(fields):
    with pytest.raises(InvalidRequest):
        Retries(**fields)
