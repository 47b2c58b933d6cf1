"""A real engine behind all four endpoints: llama.cpp's Python server with a tiny model of random weights made here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.service_requests import PATHS, ServiceClient, minimal_body
from tests.support.tiny_engine import NO_ENGINE, run_engine
from tests.support.upstream_servers import fetch_reply, start_gateway

pytestmark = [pytest.mark.full, NO_ENGINE]


CAPS = {"chat": "max_tokens", "web": "max_new_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}


CONTEXT = 1024


SCHEMA = {"type": "object", "properties": {"sunny": {"type": "boolean"}}, "required": ["sunny"]}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the engine, once it answers."""
    with run_engine(tmp_path_factory.mktemp("model"), context=CONTEXT) as url:
        yield url


@pytest.fixture(scope="module")
def api(engine: str) -> Iterator[ServiceClient]:
    with start_gateway(engine, upstream_model=()) as caller:
        yield caller


@pytest.mark.parametrize("stream", [False, True])
def test_every_endpoint_is_answered(api: ServiceClient, endpoint: str, stream: bool) -> None:
    """With text, a proven end, and the counts that the engine gives: for whole replies all, for streams none."""
    reply = fetch_reply(api, endpoint, stream=stream, **{CAPS[endpoint]: 16})
    assert reply.text
    assert (reply.complete, reply.model) == (True, minimal_body(endpoint)["model"])
    assert reply.finish_reason in ("length", "stop")
    if stream:
        assert reply.usage.output_tokens is None
    else:
        assert reply.usage.input_tokens
        assert reply.usage.output_tokens


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("named", [True, False])
def test_a_required_tool_is_called(api: ServiceClient, stream: bool, named: bool) -> None:
    """With arguments that its schema allows."""
    tools = [{"type": "function", "function": {"name": "tell_weather", "parameters": SCHEMA}}]
    choice: Any = {"type": "function", "function": {"name": "tell_weather"}} if named else "required"
    reply = fetch_reply(api, "web", stream=stream, tools=tools, tool_choice=choice)
    (call,) = reply.tool_calls
    assert (call.name, reply.finish_reason) == ("tell_weather", "tool_calls")
    assert isinstance(call.arguments["sunny"], bool)


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_is_kept(api: ServiceClient, stream: bool) -> None:
    """Though this engine refuses `json_schema` and wants the schema in another way."""
    chat = {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}
    responses = {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    for endpoint, form in {"chat": chat, "web": chat, "responses": responses}.items():
        assert isinstance(json.loads(fetch_reply(api, endpoint, stream=stream, **form).text)["sunny"], bool)


def test_a_conversation_goes_on(api: ServiceClient) -> None:
    """By `previous_response_id`, on an engine that stores nothing."""
    first = api.ask("responses", max_output_tokens=8).json()
    second = api.ask("responses", previous_response_id=first["id"], max_output_tokens=8).json()
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


def test_a_prompt_that_is_too_long_is_an_error(api: ServiceClient, endpoint: str) -> None:
    """A 400; but streamed this engine breaks off without a word, which is a 500, and no harm to the next call."""
    too_long = {"prompt": "long " * CONTEXT, CAPS[endpoint]: 16}
    for _ in range(3):
        whole, streamed = (api.ask(endpoint, **too_long, stream=stream) for stream in (False, True))
        assert (whole.status_code, "maximum context length" in whole.text) == (400, True)
        assert (streamed.status_code, "the engine behind this service" in streamed.text) == (500, True)


def test_a_stream_that_the_engine_drops_for_the_next_request_has_failed(api: ServiceClient) -> None:
    """This engine serves one at a time: it ends the first stream with [DONE] and no finish reason."""
    # Its answers are short unless they must not be.
    many = {"type": "array", "items": {"type": "boolean"}, "minItems": 300}
    long = {"type": "object", "properties": {"a": many}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "t", "parameters": long}}
    body = minimal_body("web", stream=True, max_new_tokens=900, tools=[tool], tool_choice="required")
    # Now and then this engine (llama-cpp-python 0.3.36) goes on with the first reply for long before it drops it.
    api.timeout = 60
    with api.stream("POST", PATHS["web"], json=body) as first:
        lines = first.iter_lines()
        begun = next(lines)
        try:
            second = fetch_reply(api, "web", stream=True, max_new_tokens=4)
        except httpx.ReadTimeout:
            pytest.skip("the engine goes on with the first reply, so that there is no dropped stream to look at")
        rest = "\n".join(lines)
    assert begun.startswith("data: ")
    assert second.complete is True
    assert "the engine behind this service broke off" in rest
    assert '"finish_reason":"' not in rest
