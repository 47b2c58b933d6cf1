"""`compat`: the vendors' own fields and paths work, and a request without them gets what it gets without `compat`."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from famnb.endpoints import ENDPOINTS
from famnb.service import Server
from tests.support.fault_server import DONE, Action, FaultServer, Received, Script, chunked, whole
from tests.support.service_requests import CONVERSATION, ServiceClient, error_of
from tests.support.strict_vendors import strict_vendor
from tests.support.thread_service import run_service
from tests.support.upstream_servers import answer_hello, chunk, completion, decode_body, fetch_reply, start_gateway
from tests.support.waiting import wait_until

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NESTED = {"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": SCHEMA}}
FLAT = {"type": "function", "name": "get_weather", "description": "d", "parameters": SCHEMA, "strict": True}
OWN = {"name": "get_weather", "description": "d", "input_schema": SCHEMA}
TOOLS: dict[str, Any] = {"chat": NESTED, "web": NESTED, "responses": FLAT, "messages": OWN}
CHOICES: dict[str, Any] = {
    "chat": {"type": "function", "function": {"name": "get_weather"}},
    "web": {"type": "function", "function": {"name": "get_weather"}},
    "responses": {"type": "function", "name": "get_weather"},
    "messages": {"type": "tool", "name": "get_weather"},
}
PROMPT = "How is the weather in Oslo?"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A service that understands the vendors' own fields."""
    with run_service(time_scale=0, compat=True) as running:
        yield running


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[ServiceClient]:
    with ServiceClient(server) as caller:
        yield caller


@pytest.fixture(scope="module")
def plain() -> Iterator[ServiceClient]:
    """A caller of a service that understands the document alone."""
    with run_service(time_scale=0) as running, ServiceClient(running) as caller:
        yield caller


@pytest.mark.parametrize("stream", [False, True])
def test_the_document_s_requests_get_the_document_s_answers(api, plain, endpoint, stream):
    def normal(answer: Any) -> str:
        text = answer.text
        for event in [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")] or [
            answer.json()
        ]:
            inner = event.get("response") or event.get("message") or event
            text = text.replace(str(inner.get("id", "?")).partition("_")[2] or str(inner.get("id")), "ID")
            for name in ("created", "created_at"):
                text = text.replace(f'"{name}":{inner.get(name)}', f'"{name}":0')
        return text

    fields = {"thinking": {"type": "enabled"}} if endpoint == "messages" else {"temperature": 0.5}
    with_compat, without = (caller.ask(endpoint, stream=stream, **fields) for caller in (api, plain))
    latency = '"thinking_latency_ms":'
    assert normal(with_compat).partition(latency)[0] == normal(without).partition(latency)[0]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("chosen", [True, False])
def test_tools_are_called_on_every_endpoint(api: ServiceClient, endpoint: str, stream: bool, chosen: bool):
    choice = {"tool_choice": CHOICES[endpoint]} if chosen else {}
    reply = fetch_reply(api, endpoint, PROMPT, stream=stream, tools=[TOOLS[endpoint]], **choice)
    (call,) = reply.tool_calls
    assert (call.name, list(call.arguments), reply.finish_reason) == ("get_weather", ["city"], "tool_calls")


def conversation(endpoint: str) -> dict[str, Any]:
    """A question, a call and its result, in the vendor's form."""
    match endpoint:
        case "responses":
            call = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
            output = {"type": "function_call_output", "call_id": "c1", "output": "11 degrees"}
            thought = {"type": "reasoning", "id": "rs_1", "summary": []}
            return {"input": [{"role": "user", "content": PROMPT}, thought, call, output]}
        case "messages":
            use = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Oslo"}}
            result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "11 degrees"}]}
            turn = {"role": "user", "content": PROMPT}
            return {"messages": [turn, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]}
        case _:
            function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
            call = {"id": "c1", "type": "function", "function": function}
            return {
                "messages": [
                    {"role": "user", "content": PROMPT},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "11 degrees"},
                ]
            }


def test_results_of_tools_are_read_on_every_endpoint(api: ServiceClient, endpoint: str):
    reply = fetch_reply(api, endpoint, tools=[TOOLS[endpoint]], **conversation(endpoint))
    assert (reply.tool_calls, reply.finish_reason) == ((), "stop")
    assert "11 degrees" in reply.text


def test_an_engine_gets_the_same_conversation_from_every_endpoint(endpoint: str):
    with FaultServer(choose=answer_hello) as upstream, start_gateway(upstream) as api:
        fetch_reply(api, endpoint, tools=[TOOLS[endpoint]], **conversation(endpoint))
        body = decode_body(upstream.requests[-1])
    function = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    for call in body["messages"][1]["tool_calls"]:
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    assert body["messages"] == [
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "content": "11 degrees", "tool_call_id": "c1"},
    ]
    strict = {"strict": True} if endpoint == "responses" else {}
    assert body["tools"] == [{**NESTED, "function": {**NESTED["function"], **strict}}]


CAPS = [("chat", "max_completion_tokens"), ("web", "max_tokens"), ("web", "max_completion_tokens")]


@pytest.mark.parametrize(("endpoint_", "name"), CAPS)
def test_the_cap_has_its_other_names(api: ServiceClient, plain: ServiceClient, endpoint_: str, name: str):
    answer = api.ask(endpoint_, **{name: 1})
    assert (answer.json()["usage"]["completion_tokens"], answer.json()["choices"][0]["finish_reason"]) == (1, "length")
    both = api.ask(endpoint_, **{name: 1, ENDPOINTS[endpoint_].request.cap: 2})
    assert both.json()["usage"]["completion_tokens"] == 2
    assert "x-famnb-ignored" not in answer.headers
    ignoring = plain.ask(endpoint_, **{name: 1})
    assert (ignoring.headers["x-famnb-ignored"], ignoring.json()["usage"]["completion_tokens"] > 1) == (name, True)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("endpoint_", "name"), [("chat", "stop"), ("web", "stop"), ("messages", "stop_sequences")])
def test_an_answer_ends_before_a_stop_text(api: ServiceClient, endpoint_: str, name: str, stream: bool):
    full = fetch_reply(api, endpoint_).text
    stop = full[40:52]
    reply = fetch_reply(api, endpoint_, stream=stream, **{name: ["no such text", stop]})
    assert reply.text == full[: full.index(stop)]
    assert reply.finish_reason == ("stop_sequence" if endpoint_ == "messages" else "stop")
    if endpoint_ == "messages":
        assert reply.stop_sequence == stop


def test_chat_streams_say_their_usage_when_asked(api: ServiceClient):
    events = api.events("chat", stream_options={"include_usage": True})
    assert (events[-2]["choices"], events[-2]["usage"]["completion_tokens"] > 0, events[-1]) == ([], True, "[DONE]")


def test_items_by_reference_are_those_of_the_store(api: ServiceClient):
    first = api.ask("responses", PROMPT, tools=[FLAT], tool_choice="required").json()
    (item,) = first["output"]
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "11 degrees"}
    items = [{"role": "user", "content": PROMPT}, {"type": "item_reference", "id": item["id"]}, output]
    assert "11 degrees" in fetch_reply(api, "responses", input=items, store=False).text
    unknown = api.ask("responses", input=[{"type": "item_reference", "id": "msg_1_0"}])
    assert (unknown.status_code, error_of("responses", unknown.json())["param"]) == (400, "input")


def test_a_conversation_continues_behind_a_call(api: ServiceClient):
    with FaultServer(choose=lambda _: whole(completion(None, tool_calls=[CALL]))) as upstream:
        with start_gateway(upstream) as gateway:
            first = gateway.ask("responses", PROMPT, tools=[FLAT]).json()
            output = {"type": "function_call_output", "call_id": "c1", "output": "11 degrees"}
            gateway.ask("responses", input=[output], previous_response_id=first["id"], tools=[FLAT])
        messages = decode_body(upstream.requests[-1])["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"] == [CALL]


CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}


@pytest.mark.parametrize("endpoint_", ["web", "messages", "responses"])
def test_what_the_engine_wants_back_is_returned_to_it(endpoint_: str):
    """No caller carries an engine's own fields: the gateway knows them by the ids of the calls."""
    call = {**CALL, "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    call["extra_content"] = {"google": {"thought_signature": "S"}}
    first = {"role": "assistant", "reasoning_content": "Hm.", "tool_calls": [call]}
    field = CONVERSATION[endpoint_]
    turns = conversation(endpoint_)[field]
    with (
        strict_vendor("chat", [first, {"role": "assistant", "content": "It is cold."}]) as upstream,
        start_gateway(upstream) as api,
    ):
        for messages in (turns[:1], turns):
            answer = api.ask(endpoint_, tools=[TOOLS[endpoint_]], **{field: messages})
            assert answer.status_code == 200, answer.text
    assert "It is cold." in answer.text


def test_any_model_is_accepted(api: ServiceClient, plain: ServiceClient, endpoint: str):
    answer = api.ask(endpoint, model="gpt-9")
    assert (answer.status_code, answer.json()["model"]) == (200, ENDPOINTS[endpoint].models[0])
    assert plain.ask(endpoint, model="gpt-9").status_code == 400


def test_an_engine_s_own_models_are_called_by_their_names(endpoint: str):
    models = whole({"data": [{"id": "llama-9"}, {"id": "qwen-9"}]})
    with FaultServer(choose=answer_hello, get=models) as upstream, start_gateway(upstream, upstream_model=()) as api:
        assert api.ask(endpoint, model="qwen-9").json()["model"] == "qwen-9"
        assert decode_body(upstream.requests[-1])["model"] == "qwen-9"
        listed = [model["id"] for model in api.get("/v1/models").json()["data"]]
    assert listed == ["fam-mini", "fam-2-5-pro", "fam-2-5-mini", "llama-9", "qwen-9"]


def test_models_are_listed_as_each_sdk_wants_them(server: Server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key) as client:
        ids = [model.id for model in client.models.list()]
        assert client.models.retrieve("fam-mini").id == "fam-mini"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("gpt-9")
    with anthropic.Anthropic(base_url=server.url, api_key=server.key, _strict_response_validation=True) as other:
        assert [model.id for model in other.models.list()] == ids == ["fam-mini", "fam-2-5-pro", "fam-2-5-mini"]
        assert other.models.retrieve("fam-2-5-pro").display_name == "fam-2-5-pro"


@pytest.mark.parametrize(
    ("endpoint_", "fields", "param"),
    [
        ("chat", {"max_tokens": 16_385}, ""),
        ("chat", {"tool_choice": "required"}, "tool_choice"),
        ("chat", {"stop": 5}, "stop"),
        ("responses", {"tools": [FLAT], "tool_choice": {"type": "function", "name": "other"}}, ""),
        ("responses", {"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ("messages", {"tools": [OWN], "tool_choice": {"type": "tool"}}, "tool_choice"),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0].source"),
        (
            "messages",
            {"messages": [{"role": "user", "content": [{"type": "document"}]}]},
            "messages[0].content[0].type",
        ),
        ("messages", {"stop_sequences": [""]}, "stop_sequences[0]"),
    ],
    ids=repr,
)
def test_what_is_wrong_with_a_vendor_s_field_is_said(api, endpoint_, fields, param):
    answer = api.ask(endpoint_, **fields)
    assert answer.status_code == 400, answer.text
    assert (error_of(endpoint_, answer.json()).get("param") or "").startswith(param)


def test_an_upstream_is_compatible_unless_told_otherwise():
    with FaultServer(choose=answer_hello) as upstream:
        for options, status in (({}, 200), ({"compat": False}, 404)):
            with start_gateway(upstream, **options) as api:
                assert api.get("/v1/models").status_code == status


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("endpoint_", "name"), [("chat", "stop"), ("web", "stop"), ("messages", "stop_sequences")])
def test_an_engine_that_ignores_stop_texts_is_stopped(endpoint_: str, name: str, stream: bool):
    pieces = ["One, t", "wo, th", "ree,", " four", ", five"]

    def answer(request: Received) -> Script:
        if not decode_body(request)["stream"]:
            return whole(completion("".join(pieces)))
        return [*chunked(*(chunk({"content": piece}) for piece in pieces), end=False), Action.STALL]

    with FaultServer(choose=answer) as upstream, start_gateway(upstream) as api:
        reply = fetch_reply(api, endpoint_, stream=stream, **{name: ["never", "three, f"]})
        assert reply.text == "One, two, "
        assert reply.finish_reason == ("stop_sequence" if endpoint_ == "messages" else "stop")
        assert reply.stop_sequence == ("three, f" if endpoint_ == "messages" else None)
        assert decode_body(upstream.requests[-1])["stop"] == ["never", "three, f"]
        wait_until(lambda: upstream.open == 0 or not stream)


def test_what_may_begin_a_stop_text_and_does_not_is_passed_on():
    call = {"index": 0, **CALL}
    for end in ([chunk({}, "stop")], [chunk({"tool_calls": [call]}), chunk({}, "tool_calls")]):
        script = chunked(chunk({"content": "One, t"}), chunk({"content": "w"}), *end, DONE)
        with FaultServer(script) as upstream, start_gateway(upstream) as api:
            assert fetch_reply(api, "web", stream=True, stop="two", tools=[NESTED]).text == "One, tw"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint_", ["chat", "web", "responses"])
def test_reasoning_and_log_probabilities_of_an_engine_reach_callers(endpoint_: str, stream: bool):
    token = {"token": "Yes.", "logprob": -0.5, "bytes": None, "top_logprobs": []}
    logprobs = {"content": [token]}

    def answer(request: Received) -> Script:
        if not decode_body(request)["stream"]:
            body = completion("Yes.", reasoning_content="Hm.")
            return whole({**body, "choices": [{**body["choices"][0], "logprobs": logprobs}]})
        choice = {"index": 0, "delta": {"content": "Yes."}, "logprobs": logprobs, "finish_reason": None}
        return chunked(chunk({"reasoning_content": "Hm."}), chunk(None, choices=[choice]), chunk({}, "stop"), DONE)

    wanted = {"include": ["message.output_text.logprobs"]} if endpoint_ == "responses" else {"logprobs": True}
    with FaultServer(choose=answer) as upstream, start_gateway(upstream) as api:
        plain = fetch_reply(api, endpoint_, stream=stream)
        full = fetch_reply(api, endpoint_, stream=stream, **wanted, top_logprobs=2)
        sent = [decode_body(request) for request in upstream.requests]
    assert [(block.kind, block.text) for block in plain.blocks] == [("thinking", "Hm."), ("text", "Yes.")]
    assert [block.entries for block in full.blocks if block.kind == "logprobs"] == [[token]]
    assert [(body.get("logprobs"), body.get("top_logprobs")) for body in sent] == [(None, None), (True, 2)]
