"""Shapes that vendors add to the dialects: contents without a word of ours, choices, zeros, what wants to go back."""

import json
from types import ModuleType
from typing import Any

import pytest

from famnb.events import Usage
from famnb.wire import chat, messages, responses
from tests.wire.bodies import (
    END,
    Body,
    block_delta,
    chunk,
    completion,
    fold_stream,
    fold_whole,
    item_event,
    message,
    response,
    start,
    stop,
    terminal,
)

AUDIO = {"id": "audio_1", "data": "UklGRg==", "transcript": "Yes."}
TOOL = {"index": 0, "type": "search", "arguments": '{"query":"x"}', "output": "Title: X"}
SIGNED = {"id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"g": "S"}}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"type": "web_search_result", "encrypted_content": "E"}],
}
COMPACTION = {"type": "compaction", "content": "Earlier.", "encrypted_content": "C"}
CALL = {"type": "tool_use", "id": "t", "name": "roll", "input": {"dice": 2}, "caller": {"type": "code_execution"}}
PREFILLED = message(CALL, stop_reason="tool_use")
IMAGE_ITEM = {"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "output_format": "webp"}
CUSTOM_ITEM = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": "sql", "input": "SELECT 1"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "R"}
DETAILS = [
    {"type": "reasoning.text", "index": 0, "text": "First.", "signature": "S"},
    {"type": "reasoning.encrypted", "index": 1, "data": "D"},
]

SHAPES: dict[str, tuple[ModuleType, Body, list[Body], list[tuple[str, str, str, str]], dict[tuple[int, int], Any]]] = {
    "audio": (
        chat,
        completion({"content": None, "audio": AUDIO}),
        [
            chunk({"audio": {"id": "audio_1", "data": "Ukl"}}),
            chunk({"audio": {"data": "GRg==", "transcript": "Yes."}}),
            chunk({}, "stop"),
        ],
        [("audio", "audio_1", "", json.dumps(AUDIO))],
        {(-1, 0): {"audio": {"id": "audio_1"}}},
    ),
    "images": (
        chat,
        completion({"content": "Here.", "images": [{"image_url": {"url": "data:image/png;base64,AA"}}]}),
        [chunk({"content": "Here."}), chunk({"images": [{"image_url": "data:image/png;base64,AA"}]}, "stop")],
        [("text", "", "", "Here."), ("image", "", "", "data:image/png;base64,AA")],
        {},
    ),
    "executed tools": (
        chat,
        completion({"content": "Yes.", "executed_tools": [TOOL]}),
        [
            chunk({"executed_tools": [{**TOOL, "output": "Title"}]}),
            chunk({"content": "Yes.", "executed_tools": [{"index": 0, "type": "search", "output": ": X"}]}, "stop"),
        ],
        [("text", "", "", "Yes."), ("executed_tools", "", "", json.dumps(TOOL))],
        {},
    ),
    "custom call": (
        chat,
        completion({"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}]}),
        [
            chunk({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}]}),
            chunk({"tool_calls": [{"index": 0, "custom": {"input": "x"}}]}, "stop"),
        ],
        [("custom_tool_call", "a", "f", "x")],
        {},
    ),
    "thought signature": (
        chat,
        completion({"tool_calls": [SIGNED]}),
        [
            chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}, "extra_content": {"g": "S"}}]}, "stop"),
        ],
        [("tool_call", "a", "f", "{}")],
        {(1, 0): {"extra_content": {"g": "S"}}},
    ),
    "reasoning details": (
        chat,
        completion({"content": "Yes.", "reasoning": "First.", "reasoning_details": DETAILS}),
        [
            chunk({"reasoning": "Fir", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Fir"}]}),
            chunk({"reasoning": "st.", "reasoning_details": [{**DETAILS[0], "text": "st."}]}),
            chunk({"content": "Yes.", "reasoning_details": [DETAILS[1]]}, "stop"),
        ],
        [("thinking", "", "", "First."), ("text", "", "", "Yes.")],
        {(-1, 0): {"reasoning_details": DETAILS}},
    ),
    "server tools": (
        messages,
        message(SEARCH, RESULT, {"type": "text", "text": "Yes."}),
        [
            *[start(0, {**SEARCH, "input": {}}), block_delta(0, "input_json_delta", partial_json='{"query":')],
            *[block_delta(0, "input_json_delta", partial_json='"x"}'), stop(0), start(1, RESULT), stop(1)],
            *[start(2, {"type": "text", "text": ""}), block_delta(2, "text_delta", text="Yes."), stop(2), END],
        ],
        [
            ("server_tool_use", "srv_1", "web_search", '{"query":"x"}'),
            ("web_search_tool_result", "srv_1", "", json.dumps(RESULT)),
            ("text", "", "", "Yes."),
        ],
        {(0, 0): SEARCH, (0, 1): RESULT},
    ),
    "compaction": (
        messages,
        message(COMPACTION),
        [
            start(0, {"type": "compaction", "content": None}),
            block_delta(0, "compaction_delta", content="Earlier.", encrypted_content="C"),
            *[stop(0), END],
        ],
        [("compaction", "", "", "Earlier.")],
        {(0, 0): COMPACTION},
    ),
    "prefilled start": (
        messages,
        PREFILLED,
        [{"type": "message_start", "message": PREFILLED}, {"type": "message_stop"}],
        [("tool_call", "t", "roll", '{"dice":2}')],
        {(0, 0): {"caller": CALL["caller"]}},
    ),
    "image item": (
        responses,
        response(IMAGE_ITEM),
        [item_event("added", {**IMAGE_ITEM, "result": None}), item_event("done", IMAGE_ITEM), terminal(IMAGE_ITEM)],
        [
            ("image_generation_call", "ig_1", "", json.dumps(IMAGE_ITEM)),
            ("image", "", "", "data:image/webp;base64,AAAA"),
        ],
        {(0, -1): IMAGE_ITEM},
    ),
    "custom item": (
        responses,
        response(REASONING, CUSTOM_ITEM),
        [
            item_event("added", {**REASONING, "encrypted_content": ""}),
            item_event("added", {**CUSTOM_ITEM, "input": ""}, 1),
            {"type": "response.custom_tool_call_input.delta", "output_index": 1, "delta": "SELECT"},
            *[item_event("done", CUSTOM_ITEM, 1), terminal(REASONING, CUSTOM_ITEM)],
        ],
        [("custom_tool_call", "call_1", "sql", "SELECT 1")],
        {(0, -1): REASONING, (1, -1): CUSTOM_ITEM},
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_content_without_a_word_is_a_block_streamed_as_whole(name: str):
    dialect, whole, streamed, blocks, opaque = SHAPES[name]
    for reply in (fold_whole(dialect, whole), fold_stream(dialect, *streamed)):
        found = [(block.kind, block.id, block.name, normalize(block.text)) for block in reply.blocks]
        assert found == [(kind, id_, name, normalize(text)) for kind, id_, name, text in blocks]
        assert {item.at: json.loads(item.text) for item in reply.opaque} == opaque


def normalize(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


def test_a_choice_without_a_message_keeps_reason_id_and_usage():
    """Azure leaves out a message that its filter has removed, and says what the filter found."""
    results = {"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False}}
    choice = {"index": 0, "finish_reason": "content_filter", "content_filter_results": results}
    body = {"id": "c", "model": "m", "choices": [choice], "usage": {"prompt_tokens": 15, "completion_tokens": 19}}
    reply = fold_whole(chat, body)
    assert (reply.id, reply.finish_reason, reply.usage.output_tokens) == ("c", "content_filter", 19)
    assert [(block.kind, block.entries) for block in reply.blocks] == [("content_filter_results", [results])]
    assert fold_stream(chat, {**body, "choices": [{**choice, "delta": {}}]}).blocks == reply.blocks


def test_sources_beside_the_choices_are_citations():
    """Perplexity repeats them in every chunk of a stream."""
    links = ["https://a.example", "https://b.example"]
    whole = fold_whole(chat, completion({"content": "Yes.[1]"}, citations=links))
    chunks = [chunk({"content": "Yes."}, citations=links), chunk({"content": "[1]"}, "stop", citations=links)]
    assert [block.entries for block in whole.blocks if block.kind == "citations"] == [links]
    assert fold_stream(chat, *chunks).blocks == whole.blocks


def test_the_model_of_a_fallback_is_that_of_the_reply():
    block = {"type": "fallback", "from": {"model": "large"}, "to": {"model": "small"}}
    opening = {"type": "message_start", "message": {"id": "m", "model": "large", "content": []}}
    assert fold_whole(messages, message(block, model="large")).model == "small"
    assert fold_stream(messages, opening, start(0, block), stop(0), END).model == "small"


def test_a_message_that_begins_anew_within_its_stream_mixes_no_blocks():
    opening = {"type": "message_start", "message": {"id": "m", "content": []}}
    opened = [opening, start(0, {"type": "tool_use", "id": "a", "name": "f", "input": {}})]
    cut, whole = (block_delta(0, "input_json_delta", partial_json=piece) for piece in ('{"x":', "{}"))
    reply = fold_stream(messages, *opened, cut, *opened, whole, stop(0), END)
    assert [call.text for call in reply.tool_calls] == ['{"x":', "{}"]


def test_an_error_as_the_finish_reason_is_a_failure_with_its_cause():
    """OpenRouter writes it beside the choice, with the words of the vendor behind it."""
    metadata = {"raw": "out of memory", "provider_name": "X"}
    error = {"code": 502, "message": "Provider returned error", "metadata": metadata}
    reply = fold_whole(chat, completion({"content": "Ye"}, "error", choice={"error": error}))
    assert (reply.status, reply.text, reply.stop_reason) == ("failed", "Ye", "error")
    assert reply.fault is not None
    assert "Provider returned error" in reply.fault.message


def test_thoughts_that_google_counts_in_the_total_alone_are_output():
    usage = {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}
    reply = fold_whole(chat, completion({"content": "Yes."}, usage=usage, model="gemini-3.5-flash"))
    assert reply.usage == Usage(35, 74, 62, total_tokens=109, derived=("output_tokens", "reasoning_tokens"))
    assert reply.warnings == ()


def test_a_cost_in_ticks_is_read():
    """The ticks of xAI are tenths of a billionth of a dollar."""
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8, "cost_in_usd_ticks": 1497500}
    assert fold_whole(chat, completion({"content": "Yes."}, usage=usage)).usage.cost_usd == 0.00014975
