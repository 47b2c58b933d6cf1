"""What goes wrong with an upstream: failures that never look like an end, and errors of the endpoint's own shape."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fault_server import DONE, Do, FaultServer, Script, chunked, event, whole
from tests.support.service_requests import BaseClient
from tests.support.upstream_servers import HELLO, answer, chunk, completion, reply

BROKEN = {
    "the connection breaks": chunked(*HELLO, Do.RESET, end=False),
    "the body ends without a finish reason": chunked(*HELLO),
    "another request killed it": chunked(*HELLO, DONE, Do.CLOSE, end=False),
    "[DONE] without a finish reason": chunked(*HELLO, DONE),
    "an error event": chunked(*HELLO, event({"error": {"message": "out of memory", "code": 500}}), DONE),
    "an error in an object": chunked(*HELLO, event({"object": "error", "message": "out of memory", "code": 50})),
    "an event that is not JSON": chunked(*HELLO, event(b'{"choices": [{"del'), DONE),
    "a finish reason that says so": chunked(*HELLO, chunk({}, "abort"), DONE),
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN.keys())
def test_an_upstream_that_dies_is_a_failure_never_an_end(
    through: BaseClient, upstream: FaultServer, endpoint: str, script: Script
) -> None:
    """What had come is told; then the endpoint's own failure event, and no sign of a normal end."""
    answer(upstream, script)
    told = reply(through, endpoint, stream=True)
    assert (told.text, told.status, told.complete) == ("Hello, world.", "failed", False)
    assert told.fault is not None
    assert told.fault.message.startswith("the engine behind this service")


@pytest.mark.parametrize(
    "script",
    [
        [Do.RESET],
        [whole(completion())[0][:-20], Do.CLOSE],
        whole(b"<html><body>Welcome</body></html>", content_type="text/html"),
        whole(b""),
        whole({"choices": []}),
        whole({"error": {"message": "out of memory", "code": 500}}),
        whole(b"<html><title>502 Bad Gateway</title></html>", 502, content_type="text/html"),
        whole({"detail": "Not authenticated"}, 401),
        whole({"error": "model not found"}, 404),
        whole(b"", 301, location="http://127.0.0.1:1/"),
        [b"SSH-2.0-OpenSSH\r\n", Do.CLOSE],
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_wrong_with_the_upstream_is_a_500_in_shape(
    through: BaseClient, upstream: FaultServer, endpoint: str, stream: bool, script: Script
) -> None:
    """Before anything is sent it is an ordinary error body; a refused key is ours, not the caller's."""
    answer(upstream, script)
    answered = through.ask(endpoint, stream=stream)
    inner = answered.json()["error"]
    inner = inner["error"] if endpoint == "messages" else inner
    assert (answered.status_code, inner["type"]) == (500, "api_error" if endpoint == "messages" else "server_error")
    assert inner["message"].startswith("the engine behind this service")
    assert "www-authenticate" not in answered.headers


TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens."


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"error": {"message": TOO_LONG, "code": 400, "type": "BadRequestError"}}, "context_length_exceeded"),
        (400, {"error": {"message": "too big", "type": "exceed_context_size_error"}}, "context_length_exceeded"),
        (400, {"error": {"message": "no such thing", "code": "bad_thing"}}, "bad_thing"),
        (400, {"object": "error", "message": "no such thing", "code": 40001}, "invalid_request_error"),
        (422, {"detail": [{"loc": ["body", "messages"], "msg": "no such thing"}]}, "invalid_request_error"),
        (413, b"<html><title>no such thing</title></html>", "invalid_request_error"),
        (
            500,
            {"error": {"message": '1 validation error:\n no such thing\n\n  File "/srv/x.py"'}},
            "invalid_request_error",
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_wrong_with_the_request_is_a_400(
    through: BaseClient, upstream: FaultServer, status: int, body: Any, code: str, stream: bool
) -> None:
    """With the upstream's words for it, but nothing of its inside, and a code that is a word."""
    answer(upstream, whole(body, status))
    answered = through.ask("web", stream=stream)
    error = answered.json()["error"]
    assert (answered.status_code, error["type"], error["code"]) == (400, "invalid_request_error", code)
    assert any(words in error["message"] for words in ("no such thing", "maximum context length", "too big"))
    assert "/srv" not in error["message"]


@pytest.mark.parametrize(
    ("hint", "seconds"),
    [({"retry_after": "7"}, "7"), ({"retry_after_ms": "2500"}, "3"), ({"retry_after": "soon"}, None), ({}, None)],
)
def test_a_busy_upstream_is_a_429_with_its_retry_after(
    through: BaseClient, upstream: FaultServer, endpoint: str, hint: dict[str, str], seconds: str | None
) -> None:
    """Truthful, or none."""
    answer(upstream, whole({"error": {"message": "slow down"}}, 429, **hint))
    answered = through.ask(endpoint, stream=True)
    assert (answered.status_code, answered.headers.get("retry-after")) == (429, seconds)


def test_an_error_in_the_first_event_of_a_stream_is_an_error_response(
    through: BaseClient, upstream: FaultServer
) -> None:
    """Nothing was sent yet, so the status can still say it."""
    answer(upstream, chunked(event({"error": {"message": TOO_LONG, "code": 400}}), DONE))
    answered = through.ask("web", stream=True)
    assert (answered.status_code, answered.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_the_token_cap_is_an_incomplete_reply(through: BaseClient, upstream: FaultServer, endpoint: str) -> None:
    """As every endpoint says it."""
    answer(upstream, chunked(*HELLO, chunk({}, "length"), DONE))
    told = reply(through, endpoint, stream=True)
    assert (told.finish_reason, told.status) == ("length", "incomplete")
