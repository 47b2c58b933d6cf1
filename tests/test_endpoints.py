"""The endpoints as values, one neutral prompt for any of them, and that nothing else matches on them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import famnb
from famnb.endpoints import _BY_PREFERENCE, ENDPOINTS, EndpointName, compose, endpoint, resolve_endpoint
from famnb.errors import InvalidRequest
from famnb.request.gateway_fields import GATEWAY_MODELS

PACKAGE = Path(famnb.__file__).parent
DECLARED_IN = ("request", "wire", "endpoints.py", "profiles")
"""The folders and the module where endpoints are declared: the document's, and the vendors'."""
EXCEPTIONS = {
    "service/openresponses.py": "the profile is that of the responses endpoint alone, and fills in its fields"
}
"""Modules that match on an endpoint all the same, and why; the list may only shrink."""
REQUESTS = {kind.__name__ for endpoint in ENDPOINTS.values() for kind in endpoint.request.__mro__[:2]}


@pytest.mark.parametrize(
    ("name", "path", "alt", "default"),
    [
        ("chat", "/v1/chat/completions", False, "fam-mini"),
        ("responses", "/v1/responses", True, "fam-2-5-pro"),
        ("web", "/v1/web/chat/completions", True, "fam-2-5-pro"),
        ("messages", "/v1/messages", True, "fam-2-5-pro"),
    ],
)
def test_each_endpoint_is_the_document_s(name: str, path: str, alt: bool, default: str):
    value = endpoint(name)
    assert (value.path, value.alt, value.models[0], value.request.endpoint) == (path, alt, default, name)
    assert value.request.cap in value.request.model_fields
    assert value.request.prompt_field in value.request.model_fields


@pytest.mark.parametrize("name", ENDPOINTS)
def test_an_endpoint_is_named_wherever_one_has_to_be(name: str):
    value = ENDPOINTS[name]
    literal, _ = get_args(EndpointName)
    gateway_model = GATEWAY_MODELS.get(value.request)
    places = {
        "famnb/__init__.py": hasattr(famnb, value.request.__name__),
        "request/gateway_fields.py": gateway_model and {*gateway_model.model_fields} >= {*value.request.model_fields},
        "EndpointName": name in get_args(literal),
        "_BY_PREFERENCE": name in _BY_PREFERENCE,
    }
    assert [label for label, is_named in places.items() if not is_named] == []
    assert getattr(famnb, value.request.__name__) is value.request


@pytest.mark.parametrize(
    ("model", "name"),
    [("fam-2-5-pro", "messages"), ("fam-2-5-mini", "messages"), ("fam-mini", "chat"), ("p/m", "chat"), ("m", "chat")],
)
def test_a_model_has_an_endpoint(model: str, name: str):
    assert resolve_endpoint(None, model).name == name


TALK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
EFFORT = {"reasoning": {"effort": "medium"}}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("chat", {"model": "fam-mini", "messages": TALK, "max_tokens": 9, **EFFORT}),
        ("responses", {"input": "hi", "instructions": "be brief", "max_output_tokens": 9, **EFFORT}),
        ("web", {"messages": TALK, "max_new_tokens": 9, **EFFORT}),
        (
            "messages",
            {
                "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
                "system": [{"type": "text", "text": "be brief"}],
                "max_tokens": 9,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
            },
        ),
    ],
)
def test_one_prompt_for_any_endpoint(name: str, fields: dict[str, Any]):
    request = compose(name, "hi", system="be brief", max_tokens=9, thinking=1024, temperature=0.5)
    assert request.body() == {"model": "fam-2-5-pro", **fields, "temperature": 0.5}
    loss = f"`thinking=1024` is carried as the nearest reasoning effort: {name} has no token budget"
    assert request.losses == (() if name == "messages" else (loss,))


def test_a_field_of_another_endpoint_is_a_loss():
    request = compose("chat", "hi", metadata={"a": "b"}, tools=[])
    assert request.losses == (
        "`metadata` is left out: chat cannot carry it (only responses)",
        "`tools` is left out: chat cannot carry it (only web)",
    )
    assert request.key() == compose("chat", "hi").key()


def test_a_field_given_as_none_is_unset():
    assert compose("web", "hi", temperature=None, system=None).body() == compose("web", "hi").body()


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("chat", {"temprature": 1}, "temprature: no endpoint has such a field; did you mean 'temperature'? Fields of"),
        ("chat", {"qqq": 1}, "qqq: no endpoint has such a field. Fields of chat: model, messages"),
        ("chat", {"max_tokens": 20_000}, "ChatRequest: max_tokens: input should be less than or equal to 16384"),
        ("web", {"model": "fam-mini"}, "WebChatRequest: model: input should be 'fam-2-5-pro' or"),
        ("messages", {"messages": []}, "messages: given beside a prompt; build a MessagesRequest instead"),
        ("responses", {"input": "ho"}, "input: given beside a prompt; build a ResponsesRequest instead"),
        ("messages", {"thinking": 0}, "thinking: expected a number of tokens of at least 1, or None, got 0"),
        ("chat", {"thinking": True}, "thinking: expected a number of tokens of at least 1, or None, got True"),
    ],
)
def test_what_no_endpoint_can_do_is_refused(name: str, fields: dict[str, Any], message: str):
    with pytest.raises(InvalidRequest) as caught:
        compose(name, "hi", **fields)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", ENDPOINTS)
def test_an_empty_prompt_is_refused(name: str):
    with pytest.raises(InvalidRequest):
        compose(name, "")


def test_a_budget_becomes_the_nearest_effort():
    efforts = [compose("web", "hi", thinking=tokens).body()["reasoning"]["effort"] for tokens in (1, 1023, 1024, 4096)]
    assert efforts == ["low", "low", "medium", "high"]


def test_what_differs_between_endpoints_hangs_on_the_endpoint():
    """No module but those that declare endpoints names a request class or compares an endpoint's name."""
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    others = [path for path in modules if path.parts[0] not in DECLARED_IN]
    lines_by_path = {path.as_posix(): [*matches((PACKAGE / path).read_text())] for path in others}
    matching = {path: lines for path, lines in lines_by_path.items() if lines}
    assert {path: lines for path, lines in matching.items() if path not in EXCEPTIONS} == {}
    assert matching.keys() == EXCEPTIONS.keys(), "an exception that is not needed any more must go"


def matches(code: str) -> Iterator[str]:
    """The places where code names a request class, or asks which endpoint it has before it."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in REQUESTS:
                yield name
            case ast.Compare():
                yield from (name for side in (node.left, *node.comparators) for name in names_in(side))
            case ast.MatchValue(value=value):
                yield from names_in(value)
            case ast.Subscript(value=ast.Name(id="ENDPOINTS"), slice=index):
                yield from names_in(index)
            case ast.Call(func=ast.Name(id="endpoint"), args=[name]):
                yield from names_in(name)
            case ast.Dict(keys=keys):
                names = [name for key in keys if key is not None for name in names_in(key)]
                yield from names if len(names) > 1 else ()


def names_in(node: ast.expr) -> Iterator[str]:
    """The endpoints' names that an expression is, or that its tuple, list or set holds."""
    match node:
        case ast.Constant(value=str(name)) if name in ENDPOINTS:
            yield name
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            yield from (name for item in items for name in names_in(item))


def test_a_composed_stream_asks_for_its_usage_unless_that_is_unset():
    default = {"include_usage": True}
    assert compose("web", "Hi", stream=True).body()["stream_options"] == default
    for fields in ({}, {"stream": False}, {"stream": True, "stream_options": None}):
        assert "stream_options" not in compose("web", "Hi", **fields).body()
    options = {"include_usage": False}
    assert compose("web", "Hi", stream=True, stream_options=options).body()["stream_options"] == options
    for name in ("chat", "responses", "messages"):
        assert set(compose(name, "Hi", stream=True).body()) == {*compose(name, "Hi").body(), "stream"}
