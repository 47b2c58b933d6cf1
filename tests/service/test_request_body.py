"""Bodies: read no larger and no slower than allowed, and whatever is wrong with one is a 400 that names the field."""

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from famnb.endpoints import ENDPOINTS
from famnb.service import Server
from tests.support.service_requests import CAPS, CONVERSATION, PATHS, ServiceClient, error_of, minimal_body, send_raw
from tests.support.thread_service import run_service
from tests.support.upstream_servers import fetch_reply


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """A service that takes bodies of 10,000 bytes within a fraction of a second."""
    with run_service(time_scale=0, body_limit=10_000, upload_timeout=0.3) as running:
        yield running


def test_a_body_over_the_limit_is_413_while_others_are_served(small, endpoint):
    with ServiceClient(small) as caller:
        declared = caller.ask(endpoint, "x" * 10_001)
        chunked = caller.post(PATHS[endpoint], content=iter([b'{"a": "', *[b"x" * 1000] * 20, b'"}']))
        assert (declared.status_code, chunked.status_code) == (413, 413)
        assert "10,000" in error_of(endpoint, declared.json())["message"]
        assert caller.ask(endpoint).status_code == 200


def test_the_default_limit_is_20_megabytes(api: ServiceClient):
    body = json.dumps(minimal_body("web")).encode()
    assert api.post(PATHS["web"], content=body.ljust(20_000_000)).status_code == 200
    assert api.post(PATHS["web"], content=body.ljust(20_000_001)).status_code == 413


def test_a_slow_upload_is_408(small: Server, endpoint: str):
    head = f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {small.key}\r\n"
    answer = send_raw(small, f'{head}content-length: 1000\r\n\r\n{{"model": '.encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    body = answer.partition(b"\r\n\r\n")[2]
    assert "0.3 s" in error_of(endpoint, json.loads(body))["message"]


def test_unknown_fields_are_refused_only_when_strict():
    with run_service(time_scale=0, strict=True) as strict, ServiceClient(strict) as caller:
        answer = caller.ask("web", max_tokens=5)
        assert (answer.status_code, error_of("web", answer.json())["param"]) == (400, "max_tokens")
        answer = caller.ask("messages", messages=[{"role": "user", "content": "x", "mood": "calm"}])
        assert (answer.status_code, error_of("messages", answer.json())["param"]) == (400, "messages[0].mood")
        assert caller.ask("web").status_code == 200


def test_a_compressed_body_is_refused_in_words(api: ServiceClient, endpoint: str):
    data = gzip.compress(json.dumps(minimal_body(endpoint)).encode())
    answer = api.post(PATHS[endpoint], content=data, headers={"content-encoding": "gzip"})
    assert (answer.status_code, error_of(endpoint, answer.json())["param"]) == (400, "content-encoding")


def tool(name: Any = "look_up", **changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}, **changes}


NO_OBJECTS = [b"", b"   ", b"{", b"null", b"[]", b'"x"', b"42", b"true", b"NaN", b"\xff\xfe", b"9" * 5000]
BAD_VALUES = [b'"\xff"', b'"\\ud800"', b"NaN", b"Infinity", b"1e999", b"'fam-mini'", b'"fam-mini"} {']
TOO_DEEP = [b"[" * 100_000, b'{"a":' * 200 + b"1" + b"}" * 200]


@pytest.mark.parametrize(
    "body",
    [*NO_OBJECTS, *(b'{"model": ' + value + b"}" for value in BAD_VALUES), *TOO_DEEP],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_not_a_json_object_is_refused(api: ServiceClient, endpoint: str, body: bytes):
    answer = api.post(PATHS[endpoint], content=body)
    assert answer.status_code == 400
    error = error_of(endpoint, answer.json())
    assert error["type"] == "invalid_request_error"
    assert endpoint == "messages" or error["code"] == "invalid_json"


@pytest.mark.parametrize("field", ["model", "conversation"])
def test_a_missing_required_field_is_named(api: ServiceClient, endpoint: str, field: str):
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
def test_a_wrong_value_is_refused_on_every_endpoint(api: ServiceClient, endpoint: str, field: str, value: Any):
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
def test_a_wrong_message_is_refused_on_every_endpoint(api: ServiceClient, endpoint: str, message: Any):
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
        *(
            ("responses", {"metadata": data}, "metadata")
            for data in ({f"k{n}": "v" for n in range(17)}, {"k" * 65: "v"}, "x")
        ),
        *(("responses", {"metadata": {"k": value}}, "metadata.k") for value in ("é" * 513, 5)),
        ("responses", {"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format"),
        ("responses", {"text": {"verbosity": "loud"}}, "text.verbosity"),
        ("responses", {"reasoning": {"effort": "heroic"}}, "reasoning.effort"),
        ("responses", {"reasoning": {"summary": 5}}, "reasoning.summary"),
        ("responses", {"store": "yes"}, "store"),
        *(
            ("web", {"tools": [tool(name)]}, "tools[0].function.name")
            for name in ("n" * 65, "a b", "é", "", "a\n", None, 3)
        ),
        ("web", {"tools": [tool(type="retrieval")]}, "tools[0].type"),
        ("web", {"tools": [{"type": "function"}]}, "tools[0].function"),
        ("web", {"tools": "look_up"}, "tools"),
        ("web", {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
        ("web", {"tool_choice": {"type": "function", "function": {"name": "look_up"}}}, "tool_choice"),
        *(("web", {"tool_choice": choice}, "tool_choice") for choice in ("required", "sometimes", 5)),
        ("web", {"response_format": {"type": "json_schema"}}, "response_format"),
        ("web", {"response_format": {"type": "xml"}}, "response_format.type"),
        ("web", {"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
        ("web", {"messages": [{"role": "tool", "content": "4"}]}, "messages[0]"),
        *((name, {"messages": "hi"}, "messages") for name in ("chat", "web", "messages")),
        ("messages", {"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
        *(
            ("messages", {"thinking": {"type": "enabled", "budget_tokens": budget}}, "thinking.budget_tokens")
            for budget in (0, -1, "10")
        ),
        *(
            ("messages", {"thinking": thinking}, "thinking")
            for thinking in ({"type": "sometimes"}, {"budget_tokens": 5})
        ),
        ("messages", {"system": 5}, "system"),
    ],
    ids=repr,
)
def test_a_wrong_value_of_one_endpoint_is_refused(api, endpoint_, fields, param):
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
        ("web", {"tools": [tool("aZ0_-".ljust(64, "n"))]}),
        ("web", {"max_new_tokens": 10**30}),
        *((name, {"reasoning": {}, "response_format": {}}) for name in ("chat", "web")),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 10**6}}),
        ("messages", {"thinking": {"type": "disabled"}}),
        ("messages", {"system": [{"type": "text", "text": "Be brief."}]}),
        *((name, {"something_new": {"deep": [1]}}) for name in ENDPOINTS),
    ],
    ids=repr,
)
def test_a_value_at_the_limit_passes(api: ServiceClient, endpoint_: str, fields: dict[str, Any]):
    assert api.ask(endpoint_, **fields).status_code == 200


@pytest.mark.parametrize(
    "content",
    [
        "x",
        {"type": "text", "text": "x"},
        [{"type": "input_text", "text": "x"}, {"type": "output_text", "text": "y", "annotations": []}],
        [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "http://192.0.2.1/never.png"}}],
        [{"type": "input_image", "image_url": "http://192.0.2.1/never.png"}],
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
    ],
    ids=repr,
)
def test_every_shape_of_content_is_accepted_everywhere(api: ServiceClient, endpoint: str, content: Any):
    answer = api.ask(endpoint, **{CONVERSATION[endpoint]: [{"role": "user", "content": content}]})
    assert answer.status_code == 200, answer.text


def test_a_model_that_does_not_exist_has_its_own_code(api: ServiceClient):
    for endpoint, model in (("web", "fam-9"), ("web", "fam-mini"), ("chat", "fam-2-5-pro"), ("responses", "x")):
        assert error_of(endpoint, api.ask(endpoint, model=model).json())["code"] == "model_not_found"


def test_a_million_faulty_items_are_one_fault(api: ServiceClient):
    body = b'{"model": "fam-2-5-pro", "messages": [' + b"1," * 1_000_000 + b"1]}"
    answer = api.post(PATHS["web"], content=body)
    assert (answer.status_code, error_of("web", answer.json())["param"]) == (400, "messages[0]")
    assert len(answer.content) < 1000


def test_a_prompt_beyond_the_context_window_is_refused(api: ServiceClient):
    answer = api.ask("chat", "word " * 256_001)
    assert (answer.status_code, error_of("chat", answer.json())["code"]) == (400, "context_length_exceeded")


def optional_fields(model: type[BaseModel]) -> list[str]:
    """The names in JSON of the fields that a model does not require."""
    return [field.alias or name for name, field in model.model_fields.items() if not field.is_required()]


@pytest.mark.parametrize(
    ("endpoint_", "field"), [(name, field) for name in ENDPOINTS for field in optional_fields(ENDPOINTS[name].request)]
)
def test_null_for_an_optional_field_is_its_default(api: ServiceClient, endpoint_: str, field: str):
    replies = [fetch_reply(api, endpoint_, **fields) for fields in ({field: None}, {})]
    with_null, without = ((reply.text, reply.usage, reply.finish_reason) for reply in replies)
    assert with_null == without


@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_system_text_counts_as_absent(api: ServiceClient, stream: bool):
    for endpoint, empty in (("messages", []), ("messages", ""), ("messages", None), ("responses", "")):
        field = "system" if endpoint == "messages" else "instructions"
        answer = api.ask(endpoint, stream=stream, **{field: empty})
        assert answer.status_code == 200, answer.text
    usage = [api.ask("messages", **fields).json()["usage"] for fields in ({"system": []}, {"system": ""}, {})]
    assert usage[0] == usage[1] == usage[2]


def test_a_byte_order_mark_is_read_over(api: ServiceClient, endpoint: str):
    body = json.dumps(minimal_body(endpoint)).encode()
    assert api.post(PATHS[endpoint], content=b"\xef\xbb\xbf" + body).status_code == 200
    assert api.post(PATHS[endpoint], content=b"\xef\xbb\xbf" * 2 + body).status_code == 400


PYTHON = re.compile(r"\b(None|True|False|NoneType|dict(ionary)?|tuple|codec|TypeError|'utf-8')\b|\{'|\['|valid list")
NONSENSE: list[Any] = [None, True, [None], {"a": None}, {"a": [True]}, 10**30, "x" * 1000, [[]], [{"type": None}]]


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: repr(value)[:20])
def test_messages_are_in_the_terms_of_json(api: ServiceClient, endpoint: str, value: Any):
    for field in ENDPOINTS[endpoint].request.model_fields:
        answer = api.ask(endpoint, **{field: value})
        assert answer.status_code in (200, 400), answer.text
        if answer.status_code == 400:
            assert not PYTHON.search(error_of(endpoint, answer.json())["message"])


@pytest.mark.parametrize("stream", [False, True])
def test_fields_without_effect_are_named(api: ServiceClient, endpoint: str, stream: bool):
    fields = {"max_completion_tokens": 1, "user": "me", "top_k": None, CONVERSATION[endpoint]: [MOODY]}
    answer = api.ask(endpoint, stream=stream, **fields)
    named = answer.headers["x-famnb-ignored"].split(", ")
    assert named == [f"{CONVERSATION[endpoint]}[].mood", "max_completion_tokens", "user"]
    assert "x-famnb-ignored" not in api.ask(endpoint, stream=stream).headers


MOODY = {"role": "user", "content": [{"type": "text", "text": "x"}], "mood": "calm"}


def test_only_what_looks_like_a_field_is_named(api: ServiceClient):
    answer = api.ask("web", **{"a\r\nset-cookie: b": 1, "ä": 1, "x" * 100: 1, **{f"f{n}": n for n in range(1000)}})
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-famnb-ignored"].split(", ") == [f"f{n}" for n in range(17)]


def test_a_field_without_effect_is_logged_once(caplog: pytest.LogCaptureFixture):
    with run_service(time_scale=0) as server, ServiceClient(server) as caller:
        for endpoint in ("web", "web", "messages"):
            assert caller.ask(endpoint, seed=1, max_completion_tokens=1).status_code == 200
    assert [line.partition(" has no effect")[0] for line in caplog.messages] == [
        f"{endpoint}: the field {field}"
        for endpoint in ("web", "messages")
        for field in ("seed", "max_completion_tokens")
    ]
