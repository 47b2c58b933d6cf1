"""Requests as command-line agents send them, through the gateway to an engine that has functions and nothing else."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.support.fault_server import FaultServer, Received, Script, chunked
from tests.support.service_requests import ServiceClient
from tests.support.upstream_servers import chunk, start_gateway, stream_chunks

ROUNDS = 3


def answer_in_rounds(received: Received) -> Script:
    """A call of the tool in each of three rounds, then an answer; by how many results the conversation has."""
    body = json.loads(received.body)
    done = sum(message["role"] == "tool" for message in body["messages"])
    if done == ROUNDS:
        return chunked(*stream_chunks("It is cold."))
    call = {"index": 0, "id": f"call_{done}", "function": {"name": "look_up", "arguments": '{"city": "Oslo"}'}}
    return chunked(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"), *stream_chunks()[-1:])


def key_of(api: ServiceClient) -> str:
    return api.headers["authorization"].removeprefix("Bearer ")


@pytest.fixture
def engine() -> Iterator[FaultServer]:
    with FaultServer(choose=answer_in_rounds) as server:
        yield server


def test_an_agent_on_messages_works_through_its_rounds(engine: FaultServer):
    @anthropic.beta_tool
    def look_up(city: str) -> str:
        """The weather of a city."""
        return f"4 degrees in {city}"

    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    turns: list[Any] = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "How cold is it?", "cache_control": {"type": "ephemeral"}}],
        },
        {"role": "system", "content": "Be brief."},
    ]
    with (
        start_gateway(engine, compat=True) as api,
        anthropic.Anthropic(base_url=str(api.base_url), api_key=key_of(api), max_retries=0) as client,
    ):
        runner = client.beta.messages.tool_runner(
            model="agent-model", max_tokens=500, messages=turns, tools=[look_up, search], stream=True, max_iterations=6
        )
        replies = [stream.get_final_message() for stream in runner]
        raw = client.messages.with_raw_response.create(
            model="agent-model", max_tokens=500, messages=turns, tools=[search]
        )
    assert [reply.stop_reason for reply in replies] == [*["tool_use"] * ROUNDS, "end_turn"]
    assert replies[-1].content[0].text == "It is cold."
    first, *_ = [json.loads(received.body) for received in engine.requests]
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["look_up"]
    assert "tools[].web_search_20250305" in raw.headers["x-famnb-ignored"]


def test_an_agent_on_responses_works_through_its_rounds(engine: FaultServer):
    function = {"type": "function", "name": "look_up", "parameters": {"type": "object"}, "strict": False}
    tools: list[Any] = [function, {"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []}]
    items: list[Any] = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "How cold is it?"}]
    with (
        start_gateway(engine, compat=True) as api,
        openai.OpenAI(base_url=f"{api.base_url}/v1", api_key=key_of(api), max_retries=0) as client,
    ):
        for _ in range(ROUNDS + 1):
            with client.responses.stream(
                model="agent-model", input=items, tools=tools, store=False, extra_body={"prompt_cache_key": "k"}
            ) as stream:
                reply = stream.get_final_response()
            items += [item.model_dump(exclude_none=True) for item in reply.output]
            items.append({"type": "web_search_call", "id": "ws", "status": "completed"})
            items += [
                {"type": "function_call_output", "call_id": item.call_id, "output": "4 degrees"}
                for item in reply.output
                if item.type == "function_call"
            ]
    assert reply.output_text == "It is cold."
    assert len(engine.requests) == ROUNDS + 1
