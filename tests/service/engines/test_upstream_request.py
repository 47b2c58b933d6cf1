"""The request to an upstream: every endpoint's fields as a chat completion, without what the upstream refuses."""

from typing import Any

import pytest

from tests.support.fault_server import FaultServer, Received, Script, chunked, whole
from tests.support.service_requests import ServiceClient, error_of
from tests.support.upstream_servers import (
    MODEL,
    THINKING,
    answer_hello,
    chunk,
    completion,
    decode_body,
    fetch_reply,
    start_gateway,
)

SCHEMA = {"type": "object", "properties": {"sky": {"type": "string"}}}


def forwarded_body(
    gateway_and_upstream: tuple[ServiceClient, FaultServer], endpoint: str, **fields: Any
) -> dict[str, Any]:
    """Return the body that the upstream gets when the service is sent these fields."""
    api, upstream = gateway_and_upstream
    fetch_reply(api, endpoint, "Why?", **fields)
    return decode_body(upstream.requests[-1])


ALL: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # what an endpoint leaves open is what its document says
    ("chat", {}, {"model": MODEL, "stream": False, "messages": [{"role": "user", "content": "Why?"}]}),
    ("web", {}, {"max_tokens": 2048, "temperature": 0.1, "top_p": 1.0}),
    ("responses", {}, {"max_tokens": 512, "temperature": 0.1, "top_p": 1.0}),
    ("messages", {}, {"max_tokens": 512, "temperature": 0.1, "top_p": 1.0}),
    # the cap, by whichever name
    ("chat", {"max_tokens": 9}, {"max_tokens": 9}),
    ("web", {"max_new_tokens": 9}, {"max_tokens": 9}),
    ("responses", {"max_output_tokens": 9}, {"max_tokens": 9}),
    ("messages", {"max_tokens": 9, "temperature": 1.5}, {"max_tokens": 9, "temperature": 1.5}),
    ("web", {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
    # thinking and its effort
    ("chat", {"reasoning": {"effort": "high"}}, {"reasoning_effort": "high"}),
    ("responses", {"reasoning": {"effort": "none"}}, {"chat_template_kwargs": {"enable_thinking": False}}),
    ("messages", {"thinking": {"type": "enabled", "budget_tokens": 480}}, {"reasoning_effort": "low"}),
    ("responses", {"text": {"verbosity": "low"}}, {"verbosity": "low"}),
    # the form of the answer
    ("web", {"response_format": {"type": "json"}}, {"response_format": {"type": "json_object"}}),
    (
        "chat",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "why", "schema": SCHEMA, "strict": True}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "why", "schema": SCHEMA, "strict": True}}},
    ),
    (
        "responses",
        {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("endpoint", "fields", "expected"), ALL)
def test_fields_are_forwarded(gateway_and_upstream, endpoint, fields, expected):
    body = forwarded_body(gateway_and_upstream, endpoint, **fields)
    assert {name: body.get(name) for name in expected} == expected


SYSTEMS: list[tuple[str, dict[str, Any]]] = [
    ("responses", {"instructions": "Be brief."}),
    ("messages", {"system": [{"type": "text", "text": "Be brief."}]}),
    *(
        (endpoint, {"messages": [{"role": role, "content": "Be brief."}, {"role": "user", "content": "Why?"}]})
        for endpoint in ("chat", "web")
        for role in ("system", "developer")
    ),
    ("responses", {"input": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Why?"}]}),
]


@pytest.mark.parametrize(("endpoint", "fields"), SYSTEMS)
def test_system_text_is_one_system_message(gateway_and_upstream, endpoint, fields):
    messages = forwarded_body(gateway_and_upstream, endpoint, **fields)["messages"]
    assert messages == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]


NAMED = {"type": "function", "function": {"name": "b"}}


@pytest.mark.parametrize(
    ("names", "choice", "expected"),
    [
        ("ab", "none", ("ab", "none")),
        ("ab", "required", ("ab", "required")),
        ("a", "required", ("a", "required")),
        ("ab", NAMED, ("b", "required")),
        ("b", NAMED, ("b", "required")),
    ],
)
def test_the_tool_choice_is_forwarded_in_a_word(names: str, choice: Any, expected: tuple[str, str]):
    """A tool that is named is the only one that is sent, which all servers understand that know the word."""
    with FaultServer(choose=lambda _: whole(completion(None, tool_calls=[CALL], finish="stop"))) as upstream:
        with start_gateway(upstream) as api:
            fetch_reply(api, "web", tools=declare(names), tool_choice=choice)
        (body,) = map(decode_body, upstream.requests)
    assert ("".join(tool["function"]["name"] for tool in body["tools"]), body["tool_choice"]) == expected


CALL = {"id": "call_1", "type": "function", "function": {"name": "b", "arguments": "{}"}}


def declare(names: str) -> list[Any]:
    return [{"type": "function", "function": {"name": name}} for name in names]


def understands(choices: str) -> Any:
    """A server that calls a tool for a choice in words, or by name, and refuses the other."""

    def choose(request: Received) -> Script:
        body = decode_body(request)
        if choices == ("words" if isinstance(body["tool_choice"], str) else "names"):
            if body["stream"]:
                call = chunk({"tool_calls": [{"index": 0, **CALL}]})
                return chunked(chunk({"content": "\n\n"}), call, chunk({}, "stop"))
            return whole(completion(None, tool_calls=[CALL]))
        return whole({"error": {"message": "tool_choice: Input should be an object"}}, 422)

    return choose


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choices", ["words", "names"])
def test_a_tool_is_called_whichever_way_the_upstream_understands(choices: str, stream: bool):
    with FaultServer(choose=understands(choices)) as upstream, start_gateway(upstream) as api:
        for _ in range(3):
            reply = fetch_reply(api, "web", stream=stream, tools=declare("ab"), tool_choice=NAMED)
            assert [call.name for call in reply.tool_calls] == ["b"]
            assert (reply.text.strip(), reply.finish_reason) == ("", "tool_calls")
        sent = [decode_body(request)["tool_choice"] for request in upstream.requests]
    assert sent == (["required"] * 3 if choices == "words" else ["required", NAMED, NAMED, NAMED])


@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_calls_no_tool_at_all_answers_as_it_can(stream: bool):
    with FaultServer(choose=answer_hello) as upstream, start_gateway(upstream) as api:
        reply = fetch_reply(api, "web", stream=stream, tools=declare("b"), tool_choice="required")
    assert (reply.text, reply.finish_reason) == ("Hello, world.", "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_the_cap_cut_off_is_incomplete(stream: bool):
    streamed = chunked(chunk({"content": '{"na'}), chunk({}, "length"))
    script = streamed if stream else whole(completion("{", finish="length"))
    with FaultServer(script) as upstream, start_gateway(upstream) as api:
        reply = fetch_reply(api, "web", stream=stream, tools=declare("b"), tool_choice="required", max_new_tokens=1)
    assert (reply.finish_reason, reply.status) == ("length", "incomplete")


def picky(*known: str, words: str = "each") -> Any:
    """A server that answers 422 to fields it does not know: all at once, or naming only the first."""

    def choose(request: Received) -> Script:
        unknown = sorted(set(decode_body(request)) - {"model", "messages", "stream", *known})
        if not unknown:
            return answer_hello(request)
        if words == "first":
            error = f"unknown field `{unknown[0]}`, expected one of `model`, `max_tokens`, `reasoning_effort`"
            return whole({"detail": error}, 422)
        detail = [
            {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
            for name in unknown
        ]
        return whole({"detail": detail}, 422)

    return choose


@pytest.mark.parametrize("words", ["each", "first"])
def test_fields_that_the_upstream_refuses_are_left_out(endpoint: str, words: str):
    known = ("max_tokens", "temperature", "top_p")
    thinking = {"thinking": THINKING} if endpoint == "messages" else {"reasoning": {"effort": "high"}}
    with FaultServer(choose=picky(*known, words=words)) as upstream, start_gateway(upstream) as api:
        assert fetch_reply(api, endpoint, stream=True, **thinking).text == "Hello, world."
        tries = len(upstream.requests)
        assert tries == (2 if words == "each" else 4)
        assert api.ask(endpoint, **thinking).headers["x-famnb-ignored"] == "reasoning_effort"
        assert "x-famnb-ignored" not in api.ask(endpoint).headers
        assert len(upstream.requests) == tries + 2


def test_what_the_caller_set_is_not_left_out():
    with FaultServer(choose=picky("max_tokens", "top_p")) as upstream, start_gateway(upstream) as api:
        refused = api.ask("web", temperature=0.7)
        assert (refused.status_code, "temperature" in error_of("web", refused.json())["message"]) == (400, True)
        assert fetch_reply(api, "web").text == "Hello, world."
        assert "temperature" not in decode_body(upstream.requests[-1])


def test_a_cap_by_its_newer_name():
    def newer(request: Received) -> Script:
        if "max_tokens" not in decode_body(request):
            return whole(completion())
        words = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
        return whole({"error": {"message": words, "type": "invalid_request_error", "param": "max_tokens"}}, 400)

    with FaultServer(choose=newer) as upstream, start_gateway(upstream) as api:
        for cap in (9, 10):
            assert fetch_reply(api, "messages", max_tokens=cap).text == "Hello, world."
            assert decode_body(upstream.requests[-1])["max_completion_tokens"] == cap
        assert len(upstream.requests) == 3


def test_a_schema_in_the_other_way():
    def older(request: Received) -> Script:
        form = decode_body(request)["response_format"]
        if form["type"] == "json_object":
            return whole(completion('{"sky": "blue"}'))
        if "bad" in form["json_schema"]["schema"]:
            return whole({"error": {"message": "Invalid schema for response_format 'answer'", "code": None}}, 400)
        words = "1 validation error: ('body', 'response_format', 'type'): should be 'json_object', input: 'json_schema'"
        return whole({"error": {"message": words}}, 500)

    form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    bad = {"type": "json_schema", "json_schema": {"schema": {"bad": 1}}}
    with FaultServer(choose=older) as upstream, start_gateway(upstream) as api:
        assert api.ask("chat", response_format=bad).status_code == 400
        assert fetch_reply(api, "chat", response_format=form).text == '{"sky": "blue"}'
        assert decode_body(upstream.requests[-1])["response_format"] == {"type": "json_object", "schema": SCHEMA}
        assert "x-famnb-ignored" not in api.ask("chat", response_format=form).headers
        form["json_schema"] |= {"name": "sky", "strict": True}
        names = "response_format.json_schema.name, response_format.json_schema.strict"
        assert api.ask("chat", response_format=form).headers["x-famnb-ignored"] == names
        flat = {"format": {"type": "json_schema", "schema": SCHEMA, "name": "sky", "strict": False}}
        names = "text.format.name, text.format.strict"
        assert api.ask("responses", text=flat).headers["x-famnb-ignored"] == names


def test_an_error_is_not_taken_for_a_refused_field():
    """A prompt that is too long stays so, whichever fields the words name; nothing is tried again."""
    words = "'max_tokens' is too large: 2048. This model's maximum context length is 1024 tokens."
    with FaultServer(whole({"error": {"message": words}}, 400)) as upstream, start_gateway(upstream) as api:
        assert error_of("web", api.ask("web").json())["code"] == "context_length_exceeded"
        assert len(upstream.requests) == 1
