"""Keys, paths, methods and sizes: each refusal in the shape of the endpoint it concerns, in the order promised."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from famnb.service import Server, serve
from tests.support.service_requests import PATHS, BaseClient, minimal, said

FIXTURES = Path(__file__).parents[1] / "wire" / "fixtures"


def raw(server: Server, request: bytes) -> bytes:
    """Everything the service answers to these bytes, up to the end of the connection."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    return received


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Bearer wrong")],
        [("authorization", "Basic {key}")],
        [("authorization", "{key}")],
        [("authorization", "Bearer {key} {key}")],
        [("authorization", "Bearer {key}"), ("authorization", "Bearer {key}")],
        [("authorization", f"Bearer {'k' * 30_000}")],
        [("authorization", "Bearer schlüssel")],
    ],
    ids=lambda headers: repr(headers)[:60],
)
def test_a_key_that_is_not_the_key_is_refused(
    server: Server, endpoint: str, headers: list[tuple[str, str]], streams: bool
) -> None:
    """No, empty, wrong, doubled or oversize key: 401 as JSON in the endpoint's shape, also where a stream was asked."""
    sent = [(name, value.format(key=server.key).encode("latin-1")) for name, value in headers]
    answer = httpx.post(server.url + PATHS[endpoint], headers=sent, json=minimal(endpoint, stream=streams))
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/json"
    error = said(endpoint, answer.json())
    if endpoint == "messages":
        assert error["type"] == "authentication_error"
    else:
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
    assert server.key not in answer.text


@pytest.mark.parametrize("name", ["web", "responses", "messages"])
def test_an_error_body_is_the_documents(server: Server, name: str) -> None:
    """The body for an invalid key equals the document's, but for the message."""
    expected = json.loads((FIXTURES / f"error_{name}.json").read_text())
    body = httpx.post(server.url + PATHS[name], json=minimal(name)).json()
    inner = body["error"]["error"] if name == "messages" else body["error"]
    (expected["error"]["error"] if name == "messages" else expected["error"])["message"] = inner["message"]
    assert body == expected


def test_the_key_comes_before_the_body(server: Server, endpoint: str) -> None:
    """A wrong key is 401 even when the body is nonsense, and even when it never comes."""
    assert httpx.post(server.url + PATHS[endpoint], content=b"{").status_code == 401
    head = f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n"
    assert raw(server, head.encode()).startswith(b"HTTP/1.1 401 ")


def test_the_scheme_may_be_written_in_any_case(server: Server) -> None:
    """`bearer` is `Bearer`, as HTTP has it."""
    headers = {"authorization": f"bEARER  {server.key}"}
    assert httpx.post(server.url + PATHS["web"], headers=headers, json=minimal("web")).status_code == 200


def test_the_messages_endpoint_also_takes_the_header_of_its_sdk(server: Server) -> None:
    """`x-api-key` is accepted there and nowhere else, and a wrong Authorization is not mended by it."""
    headers = {"x-api-key": server.key}
    assert httpx.post(server.url + PATHS["messages"], headers=headers, json=minimal("messages")).status_code == 200
    assert httpx.post(server.url + PATHS["web"], headers=headers, json=minimal("web")).status_code == 401
    headers["authorization"] = "Bearer wrong"
    assert httpx.post(server.url + PATHS["messages"], headers=headers, json=minimal("messages")).status_code == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_405_and_says_what_is_allowed(api: BaseClient, endpoint: str, method: str) -> None:
    """Only POST is allowed, and `Allow` says so."""
    answer = api.request(method, PATHS[endpoint])
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "POST" in said(endpoint, answer.json())["message"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/completions", "/v1/responses/", "/v2/responses", "/health/x", "//"])
def test_an_unknown_path_is_404_in_the_common_shape(api: BaseClient, path: str) -> None:
    """A path that belongs to no endpoint gets the web chat's error shape."""
    answer = api.post(path, json={})
    assert (answer.status_code, said("web", answer.json())["type"]) == (404, "invalid_request_error")


def test_an_unknown_path_below_an_endpoint_has_its_shape(api: BaseClient) -> None:
    """Below the messages endpoint an error looks as it does there."""
    answer = api.post("/v1/messages/count_tokens", json={})
    assert (answer.status_code, said("messages", answer.json())["type"]) == (404, "invalid_request_error")


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """A service that takes bodies of 10,000 bytes within a fraction of a second."""
    with serve(time_scale=0, body_limit=10_000, upload_timeout=0.3) as running:
        yield running


def test_a_body_over_the_limit_is_413_while_others_are_served(
    small: Server, calling: Callable[[Server], BaseClient], endpoint: str
) -> None:
    """Too large a body is refused, declared or not, and the connection serves on."""
    caller = calling(small)
    declared = caller.ask(endpoint, "x" * 10_001)
    chunked = caller.post(PATHS[endpoint], content=iter([b'{"a": "', *[b"x" * 1000] * 20, b'"}']))
    assert (declared.status_code, chunked.status_code) == (413, 413)
    assert "10,000" in said(endpoint, declared.json())["message"]
    assert caller.ask(endpoint).status_code == 200


def test_the_default_limit_is_20_megabytes(api: BaseClient) -> None:
    """20 MB pass; one byte more does not."""
    body = json.dumps(minimal("web")).encode()
    assert api.post(PATHS["web"], content=body.ljust(20_000_000)).status_code == 200
    assert api.post(PATHS["web"], content=body.ljust(20_000_001)).status_code == 413


def test_a_large_upload_does_not_stop_others(server: Server, calling: Callable[[Server], BaseClient]) -> None:
    """While one caller uploads without end, another is answered."""
    uploading = threading.Event()
    served = threading.Event()

    def endless() -> Iterator[bytes]:
        yield b'{"a": "'
        uploading.set()
        served.wait(20)
        yield b'"}'

    slow = threading.Thread(target=lambda: calling(server).post(PATHS["web"], content=endless()))
    slow.start()
    assert uploading.wait(20)
    assert calling(server).ask("web").status_code == 200
    served.set()
    slow.join()


def test_a_slow_upload_is_408(small: Server, endpoint: str) -> None:
    """A body that does not arrive in time ends the request, in the endpoint's shape, and the connection."""
    head = f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {small.key}\r\n"
    answer = raw(small, f'{head}content-length: 1000\r\n\r\n{{"model": '.encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    body = answer.partition(b"\r\n\r\n")[2]
    assert "0.3 s" in said(endpoint, json.loads(body))["message"]


def test_unknown_fields_are_refused_only_when_strict(calling: Callable[[Server], BaseClient]) -> None:
    """`strict` makes a field that does not exist a 400 that names it, at every depth."""
    with serve(time_scale=0, strict=True) as strict:
        caller = calling(strict)
        answer = caller.ask("web", max_tokens=5)
        assert (answer.status_code, said("web", answer.json())["param"]) == (400, "max_tokens")
        answer = caller.ask("messages", messages=[{"role": "user", "content": "x", "mood": "calm"}])
        assert (answer.status_code, said("messages", answer.json())["param"]) == (400, "messages[0].mood")
        assert caller.ask("web").status_code == 200


def test_every_answer_carries_its_marks(api: BaseClient, endpoint: str) -> None:
    """A request id of its own, the engine's name and the server's, whatever the status."""
    answers = [api.ask(endpoint), api.ask(endpoint, stream=True), api.ask(endpoint, model="x"), api.get("/nowhere")]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 4
    for answer in answers:
        assert answer.headers["x-famnb-engine"] == "sim"
        assert answer.headers.get_list("server") == ["famnb"]


def test_health_and_description_need_no_key(server: Server) -> None:
    """Anyone may ask whether the service is there and what it offers."""
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok", "engine": "sim"}
    description = httpx.get(f"{server.url}/openapi.json").json()
    assert set(description["paths"]) == set(PATHS.values())
    properties = description["components"]["schemas"]["ResponsesRequest"]["properties"]
    assert properties["max_output_tokens"]["default"] == 512
    assert properties["previous_response_id"]["description"]
