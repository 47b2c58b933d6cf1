"""Bodies: read no larger and no slower than allowed, and whatever is wrong with one is a 400 that names the field."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from famnb.endpoints import ENDPOINTS
from famnb.service import Server, serve
from tests.support.service_requests import PATHS, ServiceClient, error_of, minimal_body


def raw(server: Server, request: bytes) -> bytes:
    """Everything the service answers to these bytes, up to the end of the connection."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    return received


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """A service that takes bodies of 10,000 bytes within a fraction of a second."""
    with serve(time_scale=0, body_limit=10_000, upload_timeout=0.3) as running:
        yield running


def test_a_body_over_the_limit_is_413_while_others_are_served(
    small: Server, make_client: Callable[[Server], ServiceClient], endpoint: str
) -> None:
    """Too large a body is refused, declared or not, and the connection serves on."""
    caller = make_client(small)
    declared = caller.ask(endpoint, "x" * 10_001)
    chunked = caller.post(PATHS[endpoint], content=iter([b'{"a": "', *[b"x" * 1000] * 20, b'"}']))
    assert (declared.status_code, chunked.status_code) == (413, 413)
    assert "10,000" in error_of(endpoint, declared.json())["message"]
    assert caller.ask(endpoint).status_code == 200


def test_the_default_limit_is_20_megabytes(api: ServiceClient) -> None:
    """20 MB pass; one byte more does not."""
    body = json.dumps(minimal_body("web")).encode()
    assert api.post(PATHS["web"], content=body.ljust(20_000_000)).status_code == 200
    assert api.post(PATHS["web"], content=body.ljust(20_000_001)).status_code == 413


def test_a_large_upload_does_not_stop_others(server: Server, make_client: Callable[[Server], ServiceClient]) -> None:
    """While one caller uploads without end, another is answered."""
    uploading = threading.Event()
    served = threading.Event()

    def endless() -> Iterator[bytes]:
        yield b'{"a": "'
        uploading.set()
        served.wait(20)
        yield b'"}'

    slow = threading.Thread(target=lambda: make_client(server).post(PATHS["web"], content=endless()))
    slow.start()
    assert uploading.wait(20)
    assert make_client(server).ask("web").status_code == 200
    served.set()
    slow.join()


def test_a_slow_upload_is_408(small: Server, endpoint: str) -> None:
    """A body that does not arrive in time ends the request, in the endpoint's shape, and the connection."""
    head = f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {small.key}\r\n"
    answer = raw(small, f'{head}content-length: 1000\r\n\r\n{{"model": '.encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    body = answer.partition(b"\r\n\r\n")[2]
    assert "0.3 s" in error_of(endpoint, json.loads(body))["message"]


def test_unknown_fields_are_refused_only_when_strict(make_client: Callable[[Server], ServiceClient]) -> None:
    """`strict` makes a field that does not exist a 400 that names it, at every depth."""
    with serve(time_scale=0, strict=True) as strict:
        caller = make_client(strict)
        answer = caller.ask("web", max_tokens=5)
        assert (answer.status_code, error_of("web", answer.json())["param"]) == (400, "max_tokens")
        answer = caller.ask("messages", messages=[{"role": "user", "content": "x", "mood": "calm"}])
        assert (answer.status_code, error_of("messages", answer.json())["param"]) == (400, "messages[0].mood")
        assert caller.ask("web").status_code == 200


def test_a_compressed_body_is_refused_in_words(api: ServiceClient, endpoint: str) -> None:
    """It is not decoded, and the answer says so rather than that it is no JSON."""
    data = gzip.compress(json.dumps(minimal_body(endpoint)).encode())
    answer = api.post(PATHS[endpoint], content=data, headers={"content-encoding": "gzip"})
    assert (answer.status_code, error_of(endpoint, answer.json())["param"]) == (400, "content-encoding")


@pytest.mark.parametrize(
    "type_", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=x", ""]
)
def test_what_a_body_calls_itself_does_not_matter(api: ServiceClient, endpoint: str, type_: str) -> None:
    """JSON is JSON."""
    content = json.dumps(minimal_body(endpoint)).encode()
    assert api.post(PATHS[endpoint], content=content, headers={"content-type": type_}).status_code == 200


CAPS = {name: endpoint.request.cap for name, endpoint in ENDPOINTS.items()}


CONVERSATION = {name: endpoint.request.prompt_field for name, endpoint in ENDPOINTS.items()}


def tool(name: Any = "look_up", **changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}, **changes}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"42",
        b"true",
        b"NaN",
        b"\xff\xfe",
        b'{"model": "\xff"}',
        b'{"model": "\\ud800"}',
        b'{"temperature": NaN}',
        b'{"temperature": Infinity}',
        b'{"temperature": 1e999}',
        b"{'model': 'fam-mini'}",
        b'{"model": "fam-mini"} {}',
        b"9" * 5000,
        b"[" * 100_000,
        b'{"a":' * 200 + b"1" + b"}" * 200,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_no_json_object_is_refused(api: ServiceClient, endpoint: str, body: bytes) -> None:
    """Bytes that are not one JSON object get 400 `invalid_json`."""
    answer = api.post(PATHS[endpoint], content=body)
    assert answer.status_code == 400
    error = error_of(endpoint, answer.json())
    assert error["type"] == "invalid_request_error"
    assert endpoint == "messages" or error["code"] == "invalid_json"


@pytest.mark.parametrize("field", ["model", "conversation"])
def test_a_missing_required_field_is_named(api: ServiceClient, endpoint: str, field: str) -> None:
    """Without a required field the message and `param` name it."""
    name = CONVERSATION[endpoint] if field == "conversation" else field
    answer = api.ask(endpoint, **{name: ...})
    error = error_of(endpoint, answer.json())
    assert (answer.status_code, error["param"]) == (400, name)
    assert name in error["message"]
    assert endpoint == "messages" or error["code"] == "missing_required_parameter"


COMMON: list[tuple[str, Any]] = [
    *(("temperature", value) for value in (-0.01, 2.01, "0.5", True, [], {})),
    *(("top_p", value) for value in (-0.01, 1.01, "0.5", True)),
    *(("cap", value) for value in (0, -1, 1.5, True, "5", [1])),
    *(("stream", value) for value in ("true", 1, "yes")),
    *(("model", value) for value in ("", "gpt", 5, None, ["fam-mini"])),
    *(("conversation", value) for value in ([], "", 5, {}, None, [None], ["x"], [[]])),
]


@pytest.mark.parametrize(("field", "value"), COMMON)
def test_a_wrong_value_is_refused_on_every_endpoint(api: ServiceClient, endpoint: str, field: str, value: Any) -> None:
    """A value outside the limits, or of another type, gets 400 and is named, whole and streamed alike."""
    name = {"cap": CAPS[endpoint], "conversation": CONVERSATION[endpoint]}.get(field, field)
    for streams in ({}, {"stream": True}) if field != "stream" else ({},):
        answer = api.ask(endpoint, **{**streams, name: value})
        assert answer.status_code == 400, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert error_of(endpoint, answer.json())["param"].startswith(name)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "oracle", "content": "x"},
        {"role": 5, "content": "x"},
        {"role": "user", "content": ""},
        {"role": "user", "content": []},
        {"role": "user", "content": [{}]},
        {"role": "user", "content": [123]},
        {"role": "user", "content": 5},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "hologram", "text": "x"}]},
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "user"},
        {"content": "x"},
    ],
    ids=repr,
)
def test_a_wrong_message_is_refused_on_every_endpoint(api: ServiceClient, endpoint: str, message: Any) -> None:
    """An unknown role or a content that says nothing gets 400, the place named."""
    answer = api.ask(endpoint, **{CONVERSATION[endpoint]: [message]})
    assert answer.status_code == 400, answer.text
    assert error_of(endpoint, answer.json())["param"].startswith(f"{CONVERSATION[endpoint]}[0]")


@pytest.mark.parametrize(
    ("endpoint_", "fields", "param"),
    [
        ("chat", {"max_tokens": 16_385}, "max_tokens"),
        ("chat", {"model": "fam-2-5-pro"}, "model"),
        ("web", {"model": "fam-mini"}, "model"),
        ("responses", {"model": "fam-mini"}, "model"),
        ("messages", {"model": "vendor/fam"}, "model"),
        ("responses", {"metadata": {f"k{n}": "v" for n in range(17)}}, "metadata"),
        ("responses", {"metadata": {"k" * 65: "v"}}, "metadata"),
        ("responses", {"metadata": {"k": "é" * 513}}, "metadata.k"),
        ("responses", {"metadata": {"k": 5}}, "metadata.k"),
        ("responses", {"metadata": "x"}, "metadata"),
        ("responses", {"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format"),
        ("responses", {"text": {"verbosity": "loud"}}, "text.verbosity"),
        ("responses", {"reasoning": {"effort": "heroic"}}, "reasoning.effort"),
        ("responses", {"reasoning": {"summary": 5}}, "reasoning.summary"),
        ("responses", {"store": "yes"}, "store"),
        ("web", {"tools": [tool("n" * 65)]}, "tools[0].function.name"),
        ("web", {"tools": [tool("a b")]}, "tools[0].function.name"),
        ("web", {"tools": [tool("é")]}, "tools[0].function.name"),
        ("web", {"tools": [tool("")]}, "tools[0].function.name"),
        ("web", {"tools": [tool(type="retrieval")]}, "tools[0].type"),
        ("web", {"tools": [{"type": "function"}]}, "tools[0].function"),
        ("web", {"tools": "look_up"}, "tools"),
        ("web", {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
        ("web", {"tool_choice": {"type": "function", "function": {"name": "look_up"}}}, "tool_choice"),
        ("web", {"tool_choice": "required"}, "tool_choice"),
        ("web", {"tool_choice": "sometimes"}, "tool_choice"),
        ("web", {"tool_choice": 5}, "tool_choice"),
        ("web", {"response_format": {"type": "json_schema"}}, "response_format"),
        ("web", {"response_format": {"type": "xml"}}, "response_format.type"),
        ("web", {"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
        ("web", {"messages": [{"role": "tool", "content": "4"}]}, "messages[0]"),
        ("messages", {"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 0}}, "thinking.budget_tokens"),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": -1}}, "thinking.budget_tokens"),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": "10"}}, "thinking.budget_tokens"),
        ("messages", {"thinking": {"type": "sometimes"}}, "thinking.type"),
        ("messages", {"system": 5}, "system"),
    ],
    ids=repr,
)
def test_a_wrong_value_of_one_endpoint_is_refused(
    api: ServiceClient, endpoint_: str, fields: dict[str, Any], param: str
) -> None:
    """A limit of one endpoint is kept there, the field named."""
    answer = api.ask(endpoint_, **fields)
    assert answer.status_code == 400, answer.text
    assert error_of(endpoint_, answer.json())["param"].startswith(param)


@pytest.mark.parametrize(
    ("endpoint_", "fields"),
    [
        *((name, {"temperature": value}) for name in ENDPOINTS for value in (0, 2, 0.0, 2.0)),
        *((name, {"top_p": value}) for name in ENDPOINTS for value in (0, 1)),
        ("chat", {"max_tokens": 16_384}),
        ("chat", {"model": "vendor/some-model"}),
        ("responses", {"metadata": {"k" * 64: "é" * 512, **{f"k{n}": "" for n in range(15)}}}),
        ("web", {"tools": [tool("n" * 64)]}),
        ("web", {"max_new_tokens": 10**30}),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 10**6}}),
        ("messages", {"thinking": {"type": "disabled"}}),
        ("messages", {"system": [{"type": "text", "text": "Be brief."}]}),
        *((name, {"something_new": {"deep": [1]}}) for name in ENDPOINTS),
    ],
    ids=repr,
)
def test_a_value_at_the_limit_passes(api: ServiceClient, endpoint_: str, fields: dict[str, Any]) -> None:
    """The limits themselves are allowed, and unknown fields are ignored."""
    assert api.ask(endpoint_, **fields).status_code == 200


@pytest.mark.parametrize(
    "content",
    [
        "x",
        {"type": "text", "text": "x"},
        [{"type": "input_text", "text": "x"}, {"type": "output_text", "text": "y", "annotations": []}],
        [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "http://192.0.2.1/never.png"}}],
        [{"type": "input_image", "image_url": "http://192.0.2.1/never.png"}],
    ],
    ids=repr,
)
def test_every_shape_of_content_is_accepted_everywhere(api: ServiceClient, endpoint: str, content: Any) -> None:
    """A content may be a text, a part or a list of parts; images are counted, never fetched."""
    answer = api.ask(endpoint, **{CONVERSATION[endpoint]: [{"role": "user", "content": content}]})
    assert answer.status_code == 200, answer.text


def test_a_model_that_does_not_exist_has_its_own_code(api: ServiceClient) -> None:
    """An unknown model, also one of the other address, gets `model_not_found`."""
    for endpoint, model in (("web", "fam-9"), ("web", "fam-mini"), ("chat", "fam-2-5-pro"), ("responses", "x")):
        assert error_of(endpoint, api.ask(endpoint, model=model).json())["code"] == "model_not_found"


def test_a_million_faulty_items_are_one_fault(api: ServiceClient) -> None:
    """A long list of nonsense is refused at its first item, with a short message."""
    body = b'{"model": "fam-2-5-pro", "messages": [' + b"1," * 1_000_000 + b"1]}"
    answer = api.post(PATHS["web"], content=body)
    assert (answer.status_code, error_of("web", answer.json())["param"]) == (400, "messages[0]")
    assert len(answer.content) < 1000


def test_a_very_long_key_does_not_come_back_whole(api: ServiceClient) -> None:
    """The message and `param` stay short, however long what they name is."""
    answer = api.ask("responses", metadata={"k" * 1_000_000: "v"})
    assert answer.status_code == 400
    assert len(answer.content) < 5000


def test_a_prompt_beyond_the_context_window_is_refused(api: ServiceClient) -> None:
    """`fam-mini` reads at most 256K tokens; more is `context_length_exceeded`."""
    answer = api.ask("chat", "word " * 256_001)
    assert (answer.status_code, error_of("chat", answer.json())["code"]) == (400, "context_length_exceeded")


def test_minimal_requests_are_valid(api: ServiceClient, endpoint: str) -> None:
    """The request that the other tests spoil is itself answered."""
    assert api.post(PATHS[endpoint], json=minimal_body(endpoint)).status_code == 200
