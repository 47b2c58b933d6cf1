"""Requests as anyone would send them, the events of a stream, and the error inside an error body."""

import json
import socket
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import httpx

from famnb.endpoints import ENDPOINTS, compose
from famnb.service import Server
from famnb.wire.sse import Decoder
from tests.support.thread_service import ThreadService

PATHS = {name: endpoint.path for name, endpoint in ENDPOINTS.items()}
CAPS = {name: endpoint.request.cap for name, endpoint in ENDPOINTS.items()}
"""The field that limits the tokens of an answer."""
CONVERSATION = {name: endpoint.request.prompt_field for name, endpoint in ENDPOINTS.items()}
"""The field of the prompt."""


class ServiceClient(httpx.Client):
    """Sends what it is told to the endpoints of one service, with its key."""

    def __init__(self, server: Server | ThreadService) -> None:
        headers = {"authorization": f"Bearer {server.key}"}
        # Where no address is encrypted, to load certificates would take most of a test's time.
        super().__init__(base_url=server.url, headers=headers, timeout=60, verify=False)

    def ask(self, endpoint: str, prompt: str = "Why is the sky blue?", **fields: Any) -> httpx.Response:
        """Post a request that is valid but for what `fields` make of it; a field given as `...` is left out."""
        return self.post(PATHS[endpoint], json=minimal_body(endpoint, prompt, **fields))

    def events(self, endpoint: str, prompt: str = "Why is the sky blue?", **fields: Any) -> list[Any]:
        """The decoded events of a streamed answer, `[DONE]` as it is."""
        return decode_stream(self.ask(endpoint, prompt, stream=True, **fields).content)


def minimal_body(endpoint: str, prompt: str = "Why is the sky blue?", **fields: Any) -> dict[str, Any]:
    """The smallest valid body of an endpoint, with some fields changed."""
    field = ENDPOINTS[endpoint].request.prompt_field
    is_text = isinstance(compose(endpoint, "…").body()[field], str)
    conversation = prompt if is_text else [{"role": "user", "content": prompt}]
    body = {"model": ENDPOINTS[endpoint].models[0], field: conversation, **fields}
    return {name: value for name, value in body.items() if value is not ...}


def send_raw(server: Server | ThreadService, request: bytes) -> bytes:
    """Everything a service answers to these bytes, up to the end of the connection."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def open_call(server: Server | ThreadService, endpoint: str, **fields: Any) -> socket.socket:
    """A connection that has sent a request and read nothing yet."""
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=60)
    body = json.dumps(minimal_body(endpoint, **fields)).encode()
    head = f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key}\r\n"
    connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def own_address(server: Server, endpoint: str) -> str:
    """The address at which the document has an endpoint."""
    return server.alt_url if ENDPOINTS[endpoint].alt else server.url


def is_answering(url: str) -> bool:
    """Whether a service answers at an address."""
    try:
        return httpx.get(f"{url}/health", verify=False).status_code == 200
    except httpx.TransportError:
        return False


def start_python(code: str) -> subprocess.Popen[str]:
    """Start a process that runs some code."""
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def decode_stream(stream: bytes) -> list[Any]:
    """The events of a stream's bytes."""
    decoder = Decoder()
    return [data.decode() if data == b"[DONE]" else json.loads(data) for data in decoder.feed(stream) + decoder.end()]


def error_of(endpoint: str, body: Any) -> dict[str, Any]:
    """The innermost error object of an error body, the endpoint's own wrapping checked."""
    if endpoint != "messages":
        assert list(body) == ["error"]
        assert {"message", "type", "code"} <= body["error"].keys()
        return dict(body["error"])
    assert list(body) == ["error"]
    assert body["error"]["type"] == "error"
    assert {"message", "type"} <= body["error"]["error"].keys()
    return dict(body["error"]["error"])


def failure_of(endpoint: str, events: list[Any]) -> dict[str, Any]:
    """The error with which a stream ends, all that its endpoint wants around it checked."""
    match endpoint:
        case "responses":
            assert (events[-1]["type"], events[-1]["response"]["status"]) == ("response.failed", "failed")
            return dict(events[-1]["response"]["error"])
        case "messages":
            assert (events[-2]["type"], events[-1]) == ("error", "[DONE]")
            assert not any(event["type"] == "message_delta" for event in events[:-1])
        case _:
            assert events[-1] == "[DONE]"
            assert not any(choice["finish_reason"] for event in events[:-2] for choice in event["choices"])
    return dict(events[-2]["error"])
