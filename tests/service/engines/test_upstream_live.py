"""A real engine behind all four endpoints: llama.cpp with a tiny model of random weights made here."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.service_requests import PATHS, ServiceClient, minimal_body
from tests.support.tiny_engine import ENGINE_KEY, run_engine
from tests.support.upstream_servers import fetch_reply, start_gateway

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
    with start_gateway(engine, upstream_model=(), upstream_key=ENGINE_KEY) as caller:
        # By which the vendors' clients are known: streams of messages have all counts then.
        caller.headers["anthropic-version"] = "2023-06-01"
        yield caller


@pytest.mark.parametrize("stream", [False, True])
def test_every_endpoint_is_answered(api: ServiceClient, endpoint: str, stream: bool):
    usage = {"stream_options": {"include_usage": True}} if stream and endpoint in ("chat", "web") else {}
    reply = fetch_reply(api, endpoint, stream=stream, **usage, **{CAPS[endpoint]: 16})
    assert reply.text
    assert (reply.complete, reply.model) == (True, minimal_body(endpoint)["model"])
    assert reply.finish_reason in ("length", "stop")
    assert reply.usage.input_tokens
    assert 0 < reply.usage.output_tokens <= 16


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("named", [True, False])
def test_a_required_tool_is_called(api: ServiceClient, stream: bool, named: bool):
    tools = [{"type": "function", "function": {"name": "tell_weather", "parameters": SCHEMA}}]
    choice: Any = {"type": "function", "function": {"name": "tell_weather"}} if named else "required"
    reply = fetch_reply(api, "web", stream=stream, tools=tools, tool_choice=choice)
    (call,) = reply.tool_calls
    assert (call.name, reply.finish_reason) == ("tell_weather", "tool_calls")
    assert isinstance(call.arguments["sunny"], bool)


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_is_kept(api: ServiceClient, stream: bool):
    chat = {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}
    responses = {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    for endpoint, form in {"chat": chat, "web": chat, "responses": responses}.items():
        assert isinstance(json.loads(fetch_reply(api, endpoint, stream=stream, **form).text)["sunny"], bool)


def test_a_conversation_goes_on(api: ServiceClient):
    first = api.ask("responses", max_output_tokens=8).json()
    second = api.ask("responses", previous_response_id=first["id"], max_output_tokens=8).json()
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_an_error_with_the_engines_words(api: ServiceClient, endpoint: str, stream: bool):
    answer = api.ask(endpoint, "long " * CONTEXT, stream=stream, **{CAPS[endpoint]: 16})
    assert answer.status_code == 400
    assert "exceeds the available context size (1024 tokens)" in answer.text


def test_an_engine_that_dies_breaks_the_stream_off_and_the_next_call_says_so(tmp_path: Path):
    # Its answers are short unless they must not be.
    schema: dict[str, Any] = {"type": "boolean"}
    for _ in range(3):
        schema = {"type": "array", "items": schema, "minItems": 50}
    form = {"type": "json_schema", "json_schema": {"schema": schema}}
    body = minimal_body("web", stream=True, max_new_tokens=60_000, response_format=form)
    with (
        run_engine(tmp_path, context=64_000) as url,
        start_gateway(url, upstream_model=(), upstream_key=ENGINE_KEY) as api,
    ):
        with api.stream("POST", PATHS["web"], json=body) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data: ")
            next(child for child in psutil.Process().children() if str(tmp_path) in str(child.cmdline())).kill()
            rest = "\n".join(lines)
        assert "the engine behind this service broke off" in rest
        assert "does not answer" in api.ask("web").text
