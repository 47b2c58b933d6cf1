"""Answers that are not a reply: each leads to one typed error, which carries what had come and is recorded."""

import json
import socket

import pytest

from famnb.client.config import Deadlines
from famnb.client.retry import Retries
from famnb.errors import (
    APIStatusError,
    AuthenticationError,
    ConnectError,
    FamnbError,
    ResponseFormatError,
    ServerError,
    StreamInterrupted,
)
from tests.support.client_shells import KEY
from tests.support.fault_server import Action, head, whole
from tests.support.wire_payloads import body, request

WHOLE = request("web", stream=False)
STREAM = request("web")
ONCE = Retries(tries=1)


@pytest.mark.parametrize("question", [WHOLE, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "answer",
    [
        whole(b"<html><body>Welcome to the hotel network</body></html>", content_type="text/html"),
        whole(b""),
        whole(b"", content_type="text/event-stream"),
        whole(b'{"choices": [{"message": {"content": "Hel'),
        whole({"choices": []}),
        whole([1, 2]),
        whole({"unexpected": "x" * 1000}),
    ],
    ids=["html", "nothing", "empty stream", "cut json", "no choices", "a list", "something else"],
)
def test_a_200_that_is_not_a_reply_says_so(caller, serve, connect, question, answer):
    server = serve(answer)
    error = caller.failure(connect(server), question)
    assert isinstance(error, ResponseFormatError)
    assert "200" in str(error)
    assert len(str(error)) < 400
    assert (len(server.requests), error.reply.status) == (1, "failed")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"error": {"message": "no such key", "type": "invalid_request_error", "code": "invalid_api_key"}},
            "no such key",
        ),
        (b"<html><title>no such key</title></html>", "no such key"),
        (b"", "Unauthorized"),
    ],
)
@pytest.mark.parametrize("question", [WHOLE, STREAM], ids=["whole", "stream"])
def test_every_error_body_gives_the_class_of_its_status(serve, connect, question, answer, message):
    server = serve(whole(answer, 401, x_request_id="req_1"))
    with pytest.raises(AuthenticationError, match=message) as caught:
        connect(server).send(question)
    assert caught.value.request_id == "req_1"
    assert caught.value.reply.raw == (answer.decode() if isinstance(answer, bytes) and answer else answer or None)


def test_an_error_body_that_never_ends_does_not_hide_the_error(serve, connect, monkeypatch):
    monkeypatch.setattr("famnb.client.engine.ERROR_BODY_S", 0.2)
    server = serve([head(500, content_length="100"), b"the engine", Action.STALL])
    with pytest.raises(ServerError, match="the engine"):
        connect(server, retries=ONCE).send(WHOLE)


def test_nobody_listens(caller, connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = connect(f"http://127.0.0.1:{port}")
    error = caller.failure(client, WHOLE)
    assert isinstance(error, ConnectError)
    assert f"127.0.0.1:{port}" in str(error)
    assert KEY not in str(error)
    assert (len(client.pauses), error.reply.status, error.reply.timing.e2e_s is not None) == (2, "failed", True)


def test_a_name_that_nobody_has(connect):
    with pytest.raises(ConnectError, match=r"nobody\.invalid"):
        connect("http://nobody.invalid:1", retries=ONCE).send(WHOLE)


def test_a_server_that_speaks_no_tls(serve, connect):
    server = serve(whole(body("web", "Hello")))
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1"):
        connect(server.url.replace("http:", "https:"), retries=ONCE, deadlines=Deadlines(connect=1)).send(WHOLE)


@pytest.mark.parametrize(
    ("data", "raw", "text"),
    [
        (b'{"choices": [', '{"choices": [', ""),
        (json.dumps(body("web", "Hello")).encode(), body("web", "Hello"), "Hello"),
    ],
)
def test_a_whole_body_that_breaks_off_is_not_asked_again(serve, connect, data, raw, text):
    """The answer was made and perhaps paid for: one request, an error, what came kept."""
    server = serve([head(200, content_type="application/json", content_length="9999"), data, Action.CLOSE])
    with pytest.raises(StreamInterrupted, match="closed before the body was complete") as caught:
        connect(server).send(WHOLE)
    reply = caught.value.reply
    assert (reply.raw, reply.text, reply.status, reply.complete) == (raw, text, "interrupted", False)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_key_does_not_follow_a_redirect(caller, serve, connect, status):
    elsewhere = serve(whole(body("web", "Hello")))
    server = serve(whole(b"", status, location=f"{elsewhere.url}/v1/web/chat/completions"))
    error = caller.failure(connect(server), WHOLE)
    assert isinstance(error, APIStatusError)
    assert elsewhere.url in str(error)
    assert "base_url" in str(error)
    assert elsewhere.requests == []


def test_long_headers_are_read(serve, connect):
    """Policies and cookies of a proxy in between may well be longer than 8 KB."""
    assert connect(serve(whole(body("web", "Hello"), x_policy="x" * 30_000))).send(WHOLE).text == "Hello"


def test_cookies_are_not_kept(serve, connect):
    server = serve(whole(body("web", "Hello"), set_cookie="session=1"))
    client = connect(server)
    client.send(WHOLE)
    client.send(WHOLE)
    assert "cookie" not in server.requests[1].headers


def test_a_bug_of_ours_is_an_error_too(serve, connect, recorder, monkeypatch, caplog):
    monkeypatch.setattr("famnb.client.engine.read_response", lambda *_, **__: 1 / 0)
    client = connect(serve(whole(body("web", "Hello"))), ledger=recorder)
    with pytest.raises(FamnbError, match="ZeroDivisionError"):
        client.send(WHOLE)
    assert recorder.steps == ["on_open", "on_close"]
    assert "a bug in famnb" in caplog.text
