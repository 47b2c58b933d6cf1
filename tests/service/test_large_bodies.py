"""Large bodies: handled in a thread, so that others are served meanwhile, and answered as small ones are."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from famnb.service import Server, serve
from famnb.service.request_body import LARGE
from tests.support.service_requests import PATHS, ServiceClient, error_of, minimal_body
from tests.support.waiting import wait_until

TURN = {"role": "user", "content": "a"}


MANY = [TURN] * 500_000
"""As many messages as fit into 20 MB, or nearly."""


@pytest.fixture(scope="module")
def lifelike() -> Iterator[Server]:
    """A service that speaks at its natural pace."""
    with serve() as running:
        yield running


class Listening:
    """Someone who reads a long stream, and how many deltas have come so far."""

    def __init__(self, server: Server) -> None:
        self.deltas = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(server,))

    def _listen(self, server: Server) -> None:
        body = minimal_body("messages", "count to 99999", stream=True, model="fam-2-5-mini", max_tokens=90_000)
        with ServiceClient(server) as caller, caller.stream("POST", PATHS["messages"], json=body) as stream:
            for line in stream.iter_lines():
                self.deltas += "content_block_delta" in line
                if self._over.is_set():
                    return

    def __enter__(self) -> Listening:
        self._thread.start()
        wait_until(lambda: self.deltas > 3)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Upload:
    """A request by hand, so that the end of its sending is known: how many deltas had come then, and at its answer."""

    def __init__(self, server: Server, endpoint: str, body: bytes, *, listening: Listening) -> None:
        address = urlsplit(server.url)
        with socket.socket() as sender:
            # A small buffer: what is sent has been read by the service, or nearly.
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
            sender.connect((address.hostname, address.port))
            sender.sendall(head(server, endpoint, body) + body)
            self.begun = listening.deltas
            self.first = sender.recv(65_536)
            self.answered = listening.deltas


def head(server: Server, endpoint: str, body: bytes) -> bytes:
    """The head of a request with a body."""
    lines = ("host: x", f"authorization: Bearer {server.key}", f"content-length: {len(body)}")
    return "\r\n".join((f"POST {PATHS[endpoint]} HTTP/1.1", *lines, "", "")).encode()


@pytest.mark.parametrize(("endpoint_", "field"), [("responses", "input"), ("web", "messages")])
def test_a_stream_flows_on_while_a_large_body_is_read(lifelike: Server, endpoint_: str, field: str) -> None:
    """Its deltas go on to come while half a million turns are read, counted and stored, before the first answer."""
    body = json.dumps({"model": "fam-2-5-pro", field: MANY, "stream": True}).encode()
    with Listening(lifelike) as listening:
        upload = Upload(lifelike, endpoint_, body, listening=listening)
    assert b"200 OK" in upload.first
    assert b"text/event-stream" in upload.first
    assert upload.answered - upload.begun >= 10


BODIES: dict[str, dict[str, Any]] = {
    "sound": {},
    "a wrong value": {"temperature": 3},
    "several wrong values": {"temperature": "hot", "top_p": -1},
    "no model": {"model": ...},
    "an unknown model": {"model": "gpt"},
}


@pytest.mark.parametrize("case", BODIES)
def test_a_large_body_is_answered_as_a_small_one(api: ServiceClient, endpoint: str, case: str) -> None:
    """White space that makes it large changes neither the answer nor a word of an error."""
    body = json.dumps(minimal_body(endpoint, **BODIES[case])).encode()
    small, large = (api.post(PATHS[endpoint], content=content) for content in (body, body + b" " * LARGE))
    assert large.status_code == small.status_code == (200 if case == "sound" else 400)
    kept = {"id", "created", "created_at", "item_id"}
    assert without_fields(large.json(), kept) == without_fields(small.json(), kept)


@pytest.mark.parametrize("broken", [b"{", b"[]", b"\xff", b'{"a": NaN}', b"[" * 300, b'{"messages": "\\ud8"}'])
def test_a_large_body_that_is_broken_is_refused_as_a_small_one(api: ServiceClient, broken: bytes) -> None:
    """To the word, but for the place in the body, which is the same since the white space comes after."""
    small, large = (api.post(PATHS["web"], content=content) for content in (broken, broken + b" " * LARGE))
    assert large.status_code == small.status_code == 400
    assert error_of("web", large.json())["code"] == error_of("web", small.json())["code"] == "invalid_json"


def without_fields(value: Any, names: set[str]) -> Any:
    """A body without the fields that differ from reply to reply."""
    match value:
        case dict():
            return {name: without_fields(inner, names) for name, inner in value.items() if name not in names}
        case list():
            return [without_fields(inner, names) for inner in value]
        case _:
            return value


def test_a_body_nested_too_deep_is_refused_however_large(api: ServiceClient) -> None:
    """Brackets are counted first, yet many that are side by side are no depth."""
    deep = minimal_body("web", response_format={"type": "json_schema", "json_schema": {"schema": nested_schema(110)}})
    answer = api.post(PATHS["web"], json=deep)
    assert (answer.status_code, "nested more than 100" in error_of("web", answer.json())["message"]) == (400, True)
    wide = minimal_body("web", messages=[{"role": "user", "content": [{"type": "text", "text": "a"}]}] * 300)
    assert api.post(PATHS["web"], json=wide).status_code == 200


def nested_schema(levels: int) -> dict[str, Any]:
    """A schema of so many levels."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def test_a_caller_who_leaves_while_a_large_body_is_read_leaves_nothing_behind(lifelike: Server) -> None:
    """The service goes on, and the next call is answered."""
    body = json.dumps({"model": "fam-2-5-pro", "messages": MANY}).encode()
    address = urlsplit(lifelike.url)
    with socket.create_connection((address.hostname, address.port)) as sender:
        sender.sendall(head(lifelike, "web", body) + body)
    with ServiceClient(lifelike) as caller:
        answer = caller.ask("web", "Say hello briefly.")
    assert answer.status_code == 200
    assert httpx.get(f"{lifelike.url}/health").json()["status"] == "ok"
