"""Nothing is dropped in silence: each field of each request reaches an engine, or is named as one without effect."""

import typing
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest

from famnb.endpoints import ENDPOINTS
from famnb.request.gateway_fields import GATEWAY_MODELS
from tests.support.fault_server import FaultServer, Received, Script, whole
from tests.support.service_requests import ServiceClient
from tests.support.upstream_servers import answer_hello, decode_body, start_gateway

V = "the value of the field"
"""Stands in a body for the value of the field under test."""
LEFT_OUT: Any = ...
IMAGE, OTHER_IMAGE = "https://pictures.example/cat.png", "https://pictures.example/dog.png"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
ASKED = {"role": "user", "content": "Why?"}
HM = {"type": "text", "text": "Hm."}

# Each with its path, a body, and two values for the field.
CONTENTS: list[tuple[str, Any, Any, Any]] = [
    ("", V, "Why?", "How?"),
    (".text", [{"type": "text", "text": V}], "Why?", "How?"),
    (".image_url", [{"type": "image_url", "image_url": V}, HM], IMAGE, OTHER_IMAGE),
    (".image_url.url", [{"type": "image_url", "image_url": {"url": V}}, HM], IMAGE, OTHER_IMAGE),
    (".image_url.detail", [{"type": "image_url", "image_url": {"url": IMAGE, "detail": V}}, HM], "low", LEFT_OUT),
    (".image_url", [{**HM, "image_url": V}], IMAGE, LEFT_OUT),
    (".image_url", [{**HM, "image_url": V}], {"url": IMAGE}, LEFT_OUT),
    (".thinking", [HM, {"type": "thinking", "thinking": V}], "So.", LEFT_OUT),
    (".signature", [HM, {"type": "thinking", "signature": V}], "c2ln", LEFT_OUT),
    (".data", [HM, {"type": "redacted_thinking", "data": V}], "ZGF0YQ==", LEFT_OUT),
]
SHARED: list[tuple[str, Any, Any, Any]] = [
    ("model", {"model": V}, "fam-2-5-pro", "fam-2-5-mini"),
    ("temperature", {"temperature": V}, 1.5, LEFT_OUT),
    ("top_p", {"top_p": V}, 0.5, LEFT_OUT),
    ("stream", {"stream": V}, True, LEFT_OUT),
    ("reasoning.effort", {"reasoning": {"effort": V}}, "high", LEFT_OUT),
    ("reasoning.summary", {"reasoning": {"summary": V}}, "concise", LEFT_OUT),
]
TOOL, OTHER_TOOL = ({"type": "function", "function": {"name": name}} for name in "fg")
FLAT, OTHER_FLAT = ({"type": "function", "name": name} for name in "fg")
OWN, OTHER_OWN = ({"name": name} for name in "fg")


def within(body: Any, value: Any) -> Any:
    """Return a body with a value in place of `V`, or without the field if the value is left out."""
    if isinstance(body, dict):
        return {name: within(field, value) for name, field in body.items() if field != V or value is not LEFT_OUT}
    return [within(item, value) for item in body] if isinstance(body, list) else value if body == V else body


def contents(path: str, body: Any, cases: Any = CONTENTS) -> list[tuple[str, Any, Any, Any]]:
    """Return the cases of a content in place of `V` in a body."""
    return [(path + field, within(body, content), *values) for field, content, *values in cases]


def calls(id_: str = "c1", answers: str = "c1", **function: str) -> dict[str, Any]:
    call = {"id": id_, "type": "function", "function": {"name": "f", **function}}
    answer = {"role": "tool", "tool_call_id": answers, "content": "11 degrees"}
    return {"messages": [ASKED, {"role": "assistant", "tool_calls": [call]}, answer]}


def json_schema(**fields: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA, **fields}}}


def tool(**fields: Any) -> dict[str, Any]:
    return {"tools": [{**TOOL, "function": {"name": "f", **fields}}]}


SHOWING_SYSTEM = {"role": "system", "content": [HM, {"type": "image_url", "image_url": V}]}
CHOSEN = {"type": "function", "function": {"name": V}}
CHAT = [
    *SHARED,
    *contents("messages.content", {"messages": [{"role": "user", "content": V}]}),
    ("messages.content.image_url", {"messages": [ASKED, SHOWING_SYSTEM]}, IMAGE, OTHER_IMAGE),
    ("messages.role", {"messages": [{"role": V, "content": "Why?"}]}, "user", "assistant"),
    ("messages.name", {"messages": [{**ASKED, "name": V}]}, "ada", LEFT_OUT),
    ("messages.name", {"messages": [{"role": "system", "content": "Be kind.", "name": V}, ASKED]}, "ada", LEFT_OUT),
    ("messages.tool_call_id", calls(answers=V), "c1", "c2"),
    ("messages.tool_calls.id", calls(id_=V), "c1", "c2"),
    ("messages.tool_calls.function.name", calls(name=V), "f", "g"),
    ("messages.tool_calls.function.arguments", calls(arguments=V), '{"a":1}', LEFT_OUT),
    ("response_format.json_schema.name", json_schema(name=V), "why", LEFT_OUT),
    ("response_format.json_schema.schema", json_schema(schema=V), SCHEMA, {"type": "object"}),
    ("response_format.json_schema.strict", json_schema(strict=V), True, LEFT_OUT),
    ("response_format.json_schema", {"response_format": {"type": "json", "json_schema": V}}, {"schema": {}}, LEFT_OUT),
    ("tools.function.name", tool(name=V), "f", "g"),
    ("tools.function.description", tool(description=V), "d", LEFT_OUT),
    ("tools.function.parameters", tool(parameters=V), SCHEMA, LEFT_OUT),
    ("tools.function.strict", tool(strict=V), True, LEFT_OUT),
    ("tool_choice", {"tools": [TOOL], "tool_choice": V}, "none", LEFT_OUT),
    ("tool_choice.function.name", {"tools": [TOOL, OTHER_TOOL], "tool_choice": CHOSEN}, "f", "g"),
    ("parallel_tool_calls", {"tools": [TOOL], "parallel_tool_calls": V}, False, LEFT_OUT),
    ("max_tokens", {"max_tokens": V}, 9, LEFT_OUT),
    ("max_completion_tokens", {"max_completion_tokens": V}, 9, LEFT_OUT),
    ("max_completion_tokens", {"max_tokens": 8, "max_completion_tokens": V}, 9, LEFT_OUT),
    ("stop", {"stop": V}, "END", LEFT_OUT),
    ("seed", {"seed": V}, 7, LEFT_OUT),
    ("frequency_penalty", {"frequency_penalty": V}, 0.5, LEFT_OUT),
    ("presence_penalty", {"presence_penalty": V}, 0.5, LEFT_OUT),
    ("logit_bias", {"logit_bias": V}, {"7": -100}, LEFT_OUT),
    ("top_k", {"top_k": V}, 40, LEFT_OUT),
    ("min_p", {"min_p": V}, 0.1, LEFT_OUT),
    ("logprobs", {"logprobs": V}, True, LEFT_OUT),
    ("top_logprobs", {"logprobs": True, "top_logprobs": V}, 2, LEFT_OUT),
    ("reasoning_effort", {"reasoning_effort": V}, "high", LEFT_OUT),
    ("reasoning_effort", {"reasoning": {"effort": "low"}, "reasoning_effort": V}, "high", LEFT_OUT),
]
CALL = {"type": "function_call", "call_id": "c1", "name": "f"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": V}
THOUGHT = {"type": "reasoning", "id": "rs_1"}
FORM = {"type": "json_schema", "schema": SCHEMA}
RESPONSES = [
    ("include", {"include": V}, ["message.output_text.logprobs"], LEFT_OUT),
    ("top_logprobs", {"top_logprobs": V}, 2, LEFT_OUT),
    *SHARED,
    ("input", {"input": V}, "Why?", "How?"),
    *contents("input.content", {"input": [{"role": "user", "content": V}]}),
    ("input.role", {"input": [{"role": V, "content": "Why?"}]}, "user", "assistant"),
    ("input.call_id", {"input": [ASKED, {**CALL, "call_id": V}]}, "c1", "c2"),
    ("input.name", {"input": [ASKED, {**CALL, "name": V}]}, "f", "g"),
    ("input.arguments", {"input": [ASKED, {**CALL, "arguments": V}]}, '{"a":1}', LEFT_OUT),
    *contents("input.output", {"input": [ASKED, OUTPUT]}),
    ("input.summary", {"input": [ASKED, {**THOUGHT, "summary": V}]}, [{"type": "summary_text"}], LEFT_OUT),
    ("input.content", {"input": [ASKED, {**THOUGHT, "content": V}]}, [{"type": "reasoning_text"}], LEFT_OUT),
    ("input.encrypted_content", {"input": [ASKED, {**THOUGHT, "encrypted_content": V}]}, "c2VjcmV0", LEFT_OUT),
    ("instructions", {"instructions": V}, "Be kind.", LEFT_OUT),
    ("max_output_tokens", {"max_output_tokens": V}, 9, LEFT_OUT),
    ("text.format.name", {"text": {"format": {**FORM, "name": V}}}, "why", LEFT_OUT),
    ("text.format.schema", {"text": {"format": {**FORM, "schema": V}}}, SCHEMA, {"type": "object"}),
    ("text.format.schema", {"text": {"format": {"type": "json", "schema": V}}}, SCHEMA, LEFT_OUT),
    ("text.format.strict", {"text": {"format": {**FORM, "strict": V}}}, True, LEFT_OUT),
    ("text.verbosity", {"text": {"verbosity": V}}, "low", LEFT_OUT),
    ("metadata", {"metadata": V}, {"a": "b"}, LEFT_OUT),
    ("tools.name", {"tools": [{"type": "function", "name": V}]}, "f", "g"),
    ("tools.description", {"tools": [{**FLAT, "description": V}]}, "d", LEFT_OUT),
    ("tools.parameters", {"tools": [{**FLAT, "parameters": V}]}, SCHEMA, LEFT_OUT),
    ("tools.strict", {"tools": [{**FLAT, "strict": V}]}, True, LEFT_OUT),
    ("tool_choice", {"tools": [FLAT], "tool_choice": V}, "none", LEFT_OUT),
    ("tool_choice.name", {"tools": [FLAT, OTHER_FLAT], "tool_choice": {"type": "function", "name": V}}, "f", "g"),
    ("parallel_tool_calls", {"tools": [FLAT], "parallel_tool_calls": V}, False, LEFT_OUT),
]


def image(**source: str) -> list[dict[str, Any]]:
    return [{"type": "image", "source": source}, HM]


def use(**fields: Any) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "c1", "name": "f", **fields}
    return {"messages": [ASKED, {"role": "assistant", "content": [call]}]}


def result(**fields: Any) -> dict[str, Any]:
    output = {"type": "tool_result", "tool_use_id": "c1", **fields}
    return {"messages": [ASKED, {"role": "user", "content": [output]}]}


BLOCKS: list[tuple[str, Any, Any, Any]] = [
    (".source.data", image(type="base64", media_type="image/png", data=V), "YQ==", "Yg=="),
    (".source.media_type", image(type="base64", media_type=V, data="YQ=="), "image/png", "image/gif"),
    (".source.url", image(type="url", url=V), IMAGE, OTHER_IMAGE),
    (".source.url", image(type="base64", media_type="image/png", data="YQ==", url=V), IMAGE, LEFT_OUT),
    (".source.data", image(type="url", url=IMAGE, data=V), "YQ==", LEFT_OUT),
    (".source.media_type", image(type="url", url=IMAGE, media_type=V), "image/png", LEFT_OUT),
]
ALONE = {"type": "auto", "disable_parallel_tool_use": V}
DISABLED, ENABLED = ({"type": type_} for type_ in ("disabled", "enabled"))
MESSAGES = [
    *SHARED[:4],
    *contents("messages.content", {"messages": [{"role": "user", "content": V}]}),
    *contents("system", {"system": V}),
    ("messages.role", {"messages": [{"role": V, "content": "Why?"}]}, "user", "assistant"),
    *contents("messages.content", {"messages": [{"role": "user", "content": V}]}, BLOCKS),
    *contents("messages.content.content", result(content=V), BLOCKS),
    ("messages.content.id", use(id=V), "c1", "c2"),
    ("messages.content.name", use(name=V), "f", "g"),
    ("messages.content.input", use(input=V), {"a": 1}, LEFT_OUT),
    ("messages.content.tool_use_id", result(tool_use_id=V), "c1", "c2"),
    ("messages.content.is_error", result(content="No.", is_error=V), True, LEFT_OUT),
    *contents("messages.content.content", result(content=V)),
    ("max_tokens", {"max_tokens": V}, 9, LEFT_OUT),
    ("thinking.budget_tokens", {"max_tokens": 9000, "thinking": {**ENABLED, "budget_tokens": V}}, 99, 5000),
    ("thinking.budget_tokens", {"thinking": {**DISABLED, "budget_tokens": V}}, 99, LEFT_OUT),
    ("thinking.display", {"thinking": {**ENABLED, "display": V}}, "omitted", LEFT_OUT),
    ("tools.name", {"tools": [{"name": V}]}, "f", "g"),
    ("tools.description", {"tools": [{**OWN, "description": V}]}, "d", LEFT_OUT),
    ("tools.input_schema", {"tools": [{**OWN, "input_schema": V}]}, SCHEMA, LEFT_OUT),
    ("tools.strict", {"tools": [{**OWN, "strict": V}]}, True, LEFT_OUT),
    ("tool_choice.name", {"tools": [OWN, OTHER_OWN], "tool_choice": {"type": "tool", "name": V}}, "f", "g"),
    ("tool_choice.name", {"tools": [OWN], "tool_choice": {"type": "any", "name": V}}, "f", LEFT_OUT),
    ("tool_choice.disable_parallel_tool_use", {"tools": [OWN], "tool_choice": ALONE}, True, LEFT_OUT),
    ("stop_sequences", {"stop_sequences": V}, ["END"], LEFT_OUT),
    ("top_k", {"top_k": V}, 40, LEFT_OUT),
    ("output_config.format.schema", {"output_config": {"format": {**FORM, "schema": V}}}, SCHEMA, {"type": "object"}),
    ("output_config.effort", {"output_config": {"effort": V}}, "high", LEFT_OUT),
    ("output_config.effort", {"thinking": DISABLED, "output_config": {"effort": V}}, "high", LEFT_OUT),
    ("output_format.schema", {"output_format": {**FORM, "schema": V}}, SCHEMA, {"type": "object"}),
    ("output_format", {"output_config": {"format": FORM}, "output_format": V}, {**FORM, "schema": {}}, LEFT_OUT),
]
CASES: dict[str, list[tuple[str, Any, Any, Any]]] = {
    "chat": CHAT,
    "web": [*CHAT, ("max_new_tokens", {"max_new_tokens": V}, 9, LEFT_OUT)],
    "responses": RESPONSES,
    "messages": MESSAGES,
}
OF_THE_SERVICE = {
    "stream_options.include_usage",  # an engine is always asked
    "store",
    "previous_response_id",  # the stored conversation is sent, see `test_a_conversation_continues_behind_a_call`
    "input.id",  # of an item by reference, see `test_items_by_reference_are_those_of_the_store`; of others no engine's
    "input.status",  # what became of an item when it was new
}
"""Fields that are meant for the service itself."""


def leaves(annotation: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields in a type that hold no further fields, lists and alternatives taken as one."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        annotation.model_rebuild()
        for name, field in annotation.model_fields.items():
            yield from leaves(field.annotation, f"{path}.{field.alias or name}")
    elif typing.get_origin(annotation) is typing.Annotated:
        yield from leaves(typing.get_args(annotation)[0], path)
    else:
        alternatives = [item for item in typing.get_args(annotation) if item is not type(None)]
        is_open = typing.get_origin(annotation) in (dict, typing.Literal) or not alternatives
        for alternative in [] if is_open else alternatives:
            yield from leaves(alternative, path)
        if is_open:
            yield path.removeprefix(".")


def test_every_field_is_tried(endpoint: str):
    fields = {path for path in leaves(GATEWAY_MODELS[ENDPOINTS[endpoint].request]) if not path.endswith("type")}
    assert endpoint in CASES, f"the fields of {endpoint} are to be added to CASES"
    assert fields - {path for path, *_ in CASES[endpoint]} - OF_THE_SERVICE == set()


@pytest.fixture(scope="module")
def upstream_and_api() -> Iterator[tuple[FaultServer, ServiceClient]]:
    """An engine that takes any model's name, and a caller of the service in front of it."""

    def answer(request: Received) -> Script:
        return whole({"data": []}) if request.method == "GET" else answer_hello(request)

    with FaultServer(choose=answer) as upstream, start_gateway(upstream, upstream_model=()) as api:
        yield upstream, api


@pytest.mark.parametrize(
    ("endpoint_", "path", "body", "value", "other"),
    [(name, *case) for name, cases in CASES.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_reaches_the_engine_or_is_named(upstream_and_api, endpoint_, path, body, value, other):
    upstream, api = upstream_and_api
    sent = []
    for setting in (other, value):
        answer = api.ask(endpoint_, **within(body, setting))
        assert answer.status_code == 200, answer.text
        sent.append(decode_body(upstream.requests[-1]))
    named = answer.headers.get("x-famnb-ignored", "").replace("[]", "").split(", ")
    is_named = any(f"{path}.".startswith(f"{name}.") for name in named)
    assert is_named is (sent[0] == sent[1])
