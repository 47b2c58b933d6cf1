"""Whole bodies: what is read of odd ones, and which are refused."""

import contextlib
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given

from famnb.errors import ResponseFormatError
from famnb.events import Fault
from famnb.wire import chat, messages, responses
from tests.support.strategies import DIALECTS, NAMES, json_values
from tests.wire.bodies import completion, fold_whole, message

each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES.get)


@pytest.mark.parametrize(
    ("dialect", "body", "expected"),
    [
        (chat, {"id": "x", "choices": []}, "a chat completion with `choices[0].message`"),
        (chat, {"choices": [{"delta": {}}]}, "a chat completion with `choices[0].message`"),
        (chat, [], "a chat completion with `choices[0].message`"),
        (responses, {"id": "x", "output": None}, "a response with an `output` list"),
        (responses, "hello", "a response with an `output` list"),
        (messages, {"type": "message"}, "a message with a `content` list"),
        (messages, None, "a message with a `content` list"),
    ],
)
def test_a_body_that_is_not_a_reply_is_refused(dialect: ModuleType, body: Any, expected: str):
    with pytest.raises(ResponseFormatError) as caught:
        dialect.read(body)
    assert f"expected {expected}; got " in str(caught.value)


@each_dialect
@given(body=json_values)
def test_no_body_breaks_the_reading(dialect: ModuleType, body: Any):
    shapes = [
        body,
        {"choices": body, "output": body, "content": body, "usage": body, "error": None},
        {"choices": [{"message": body, "finish_reason": body}], "output": [body], "content": [body], "id": body},
        {
            "choices": [{"message": {"content": body, "tool_calls": [body], "reasoning": body}}],
            "output": [
                {"type": "function_call", "arguments": body, "name": body},
                {"content": [body], "summary": body},
            ],
            "content": [{"type": body, "text": body}, {"type": "tool_use", "input": body, "id": body}],
            "stop_reason": body,
            "status": body,
            "usage": {"input_tokens": body, "prompt_tokens": body, "output_tokens_details": body},
        },
    ]
    for shape in shapes:
        with contextlib.suppress(ResponseFormatError):
            fold_whole(dialect, shape)


def test_calls_of_a_whole_chat_reply_stay_apart():
    calls = [{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "f", "arguments": {"x": 1}}}]
    reply = fold_whole(chat, completion({"content": None, "tool_calls": calls}, "tool_calls"))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("f", {}), ("f", {"x": 1})]


def test_a_whole_body_is_complete_even_without_a_reason():
    reply = fold_whole(chat, {"choices": [{"message": {"content": "yes"}}]})
    assert (reply.text, reply.finish_reason, reply.complete, reply.status) == ("yes", None, True, "completed")


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (chat, {"id": "x", "error": {"message": "no", "code": "c"}}),
        (responses, {"id": "x", "status": "failed", "output": [], "error": {"message": "no", "code": "c"}}),
        (messages, {"type": "error", "error": {"type": "error", "message": "no", "code": "c"}}),
    ],
)
def test_a_failure_with_a_success_status_is_a_failure(dialect: ModuleType, body: Any):
    reply = fold_whole(dialect, body)
    assert (reply.status, reply.complete, reply.fault) == ("failed", False, Fault("no", code="c"))


@pytest.mark.parametrize(
    ("dialect", "body"), [(responses, {"status": "completed", "output_text": "yes"}), (messages, {"content": "yes"})]
)
def test_a_plain_text_in_place_of_items_or_blocks_is_read(dialect: ModuleType, body: Any):
    assert fold_whole(dialect, body).text == "yes"


def test_an_unknown_block_keeps_its_kind():
    reply = fold_whole(messages, message({"type": "search_result", "text": "x"}, "yes", stop_reason="pause"))
    assert [(block.kind, block.text) for block in reply.blocks] == [
        ("search_result", '{"type":"search_result","text":"x"}'),
        ("text", "yes"),
    ]
    assert (reply.text, reply.finish_reason) == ("yes", "pause")
