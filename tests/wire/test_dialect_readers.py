"""What the readers say, event by event: nothing twice, nothing unsaid, an end that can be relied on."""

import json
from types import ModuleType
from typing import Any

import pytest

from famnb.events import Closed, Delta, Done, Ended, Event, Opaque, Opened, Other, Started, Usage
from famnb.reply import fold
from famnb.wire import chat, messages, responses
from tests.support.strategies import read

AT = (0, 0)


def events(dialect: ModuleType, *bodies: dict[str, Any] | str) -> list[Event]:
    """The events of a stream of these bodies."""
    data = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return read(dialect, [f"data: {item}\n\n".encode() for item in data])


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chat chunk."""
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def test_a_chat_stream_event_by_event():
    assert events(
        chat,
        chunk({"role": "assistant"}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "Hi"}),
        chunk({"content": "!"}),
        chunk({}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 2}),
        "[DONE]",
    ) == [
        Started("c", "m"),
        *[Opened(AT, "thinking"), Delta(AT, "thinking", "hm"), Closed(AT)],
        *[Opened((0, 1), "text"), Delta((0, 1), "text", "Hi"), Delta((0, 1), "text", "!"), Closed((0, 1))],
        *[Opaque((-1, 0), '{"reasoning_content":"hm"}'), Ended("stop", "stop"), Usage(1, 2), Done()],
    ]


def test_a_chat_identity_may_come_late():
    late = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    assert events(chat, late, chunk({"content": "Hi"}), chunk({"content": "!"}))[:2] == [Other(), Started("c", "m")]


def test_a_chat_stream_that_breaks_off_gives_what_was_held_back():
    assert fold(events(chat, chunk({"content": "<th"}))).text == "<th"
    assert fold(events(chat, chunk({"content": "<th"}), {"error": "no"})).text == "<th"
    assert fold(events(chat, chunk({"content": "<th"}), "[DONE]")).text == "<th"
    assert fold(events(chat, chunk({"content": "<think>hm</"}))).thinking == "hm</"


def test_a_repeated_finish_reason_closes_no_block_twice():
    stream = events(chat, chunk({"content": "Hi"}), chunk({}, "stop"), chunk({}, "stop"))
    assert stream.count(Closed(AT)) == 1


def test_thinking_in_its_own_field_ends_the_search_for_tags():
    stream = [chunk({"reasoning_content": "hm"}), chunk({"content": "<think>x</think>"})]
    assert fold(events(chat, *stream)).text == "<think>x</think>"


def test_thinking_between_texts_keeps_its_place():
    stream = [chunk({"content": "a"}), chunk({"reasoning_content": "hm"}), chunk({"content": "b"})]
    blocks = fold(events(chat, *stream)).blocks
    assert [(block.kind, block.text) for block in blocks] == [("text", "a"), ("thinking", "hm"), ("text", "b")]


def test_a_whole_message_in_a_chunk_is_read_once():
    whole = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert fold(events(chat, whole)).text == "Hi"
    assert fold(events(chat, chunk({"content": "Hi"}), whole)).text == "Hi"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (
            [{"index": 2, "id": "a", "function": {"name": "f"}}, {"index": 0, "id": "b", "function": {"name": "g"}}],
            "gf",
        ),
        ([{"id": "a", "function": {"name": "f"}}, {"id": "b", "function": {"name": "g"}}, {"id": "a"}], "fg"),
        ([{"function": {"name": "f"}}, {"function": {"name": "f"}}], "ff"),
        ([{"index": 0, "id": "a", "function": {"name": "f"}}, {"index": 0, "id": "b", "function": {}}], "f"),
        ([{"index": 0, "function": {"name": "f"}}, {"index": 0, "id": "a", "function": {"name": "f"}}], "f"),
        ([{"index": 1, "id": "a", "function": {"name": "f"}}, {"id": "c", "function": {"name": "g"}}], "gf"),
        ({"id": "a", "function": {"name": "f"}}, "f"),
        (["f", None, 3], ""),
    ],
)
def test_which_call_a_delta_belongs_to(calls: Any, expected: str):
    reply = fold(events(chat, chunk({"tool_calls": calls}, "tool_calls")))
    assert "".join(call.name for call in reply.tool_calls) == expected


def response(status: str, *output: Any, **more: Any) -> dict[str, Any]:
    """A terminal responses event."""
    return {"type": f"response.{status}", "response": {"id": "r", "status": status, "output": list(output), **more}}


def text_delta(piece: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece}


def test_a_responses_stream_event_by_event():
    message = {"id": "x", "type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    opaque = Opaque((0, -1), json.dumps(message, separators=(",", ":")))
    assert events(
        responses,
        {"type": "response.created", "response": {"id": "r", "model": "m", "created_at": 5, "usage": None}},
        {"type": "response.in_progress", "response": {"id": "r", "model": "m", "created_at": 5}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"id": "x", "type": "message", "content": []},
        },
        text_delta("Hi"),
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hi"},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        response("completed", message, usage={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        {"type": "response.output_text.delta", "delta": "never read"},
    ) == [
        *[Started("r", "m", 5), Other("response.in_progress"), Other("response.output_item.added")],
        *[Opened(AT, "text"), Delta(AT, "text", "Hi"), Closed(AT, "Hi"), opaque, Started("r"), opaque],
        *[Ended("stop", "completed", status="completed"), Usage(1, 2, total_tokens=3), Done()],
    ]


@pytest.mark.parametrize(
    "bookkeeping",
    [
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": ""},
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0},
        {"type": "response.output_item.done", "output_index": 0, "item": {"content": [{"type": "output_text"}]}},
        response("completed", {"content": [{"type": "output_text", "text": ""}]}),
        response("completed", {"content": []}),
    ],
)
def test_a_final_text_that_is_missing_does_not_win(bookkeeping: dict[str, Any]):
    reply = fold(events(responses, text_delta("Hi"), bookkeeping))
    assert (reply.text, reply.warnings) == ("Hi", ())


def test_a_text_may_come_with_the_end_of_its_part_alone():
    part = {"type": "response.content_part.done", "output_index": 0, "content_index": 0}
    assert fold(events(responses, part | {"part": {"type": "output_text", "text": "Hi"}})).text == "Hi"


def test_an_error_body_inside_a_responses_stream_is_a_failure():
    failed = fold(events(responses, text_delta("Hi"), {"error": {"message": "no"}}))
    assert (failed.status, failed.text, failed.fault and failed.fault.message) == ("failed", "Hi", "no")
    assert fold(events(responses, {"type": "response.note", "error": "no"})).fault is None


def test_kinds_that_claim_one_place_stay_apart():
    stream = [{"type": f"response.{name}.delta", "delta": name} for name in ("reasoning_text", "output_text")]
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    reply = fold(events(responses, *stream, *stream, response("completed", call)))
    assert [(block.kind, block.text) for block in reply.blocks] == [
        ("thinking", "reasoning_text" * 2),
        ("text", "output_text" * 2),
        ("tool_call", "{}"),
    ]
    assert reply.finish_reason == "tool_calls"


def test_items_are_found_by_their_ids():
    reply = fold(
        events(
            responses,
            {"type": "response.output_item.added", "output_index": 1, "item": {"id": "x", "type": "message"}},
            {"type": "response.output_text.delta", "item_id": "x", "delta": "Hi"},
            response("completed", {"id": "x", "type": "message", "content": [{"type": "output_text", "text": "Hi!"}]}),
        )
    )
    assert [(block.at, block.text) for block in reply.blocks] == [((1, 0), "Hi!")]


@pytest.mark.parametrize(
    ("terminal", "finish", "status"),
    [
        (response("completed"), "stop", "completed"),
        (response("incomplete", incomplete_details={"reason": "max_output_tokens"}), "length", "incomplete"),
        (response("incomplete", incomplete_details={"reason": "max_tokens"}), "length", "incomplete"),
        (response("incomplete"), "incomplete", "incomplete"),
        (response("cancelled"), "cancelled", "cancelled"),
        ({"type": "response.completed"}, "stop", "completed"),
        ({"type": "response.incomplete", "response": {"status": "in_progress"}}, "incomplete", "incomplete"),
        (response("completed", {"type": "function_call", "call_id": "a", "name": "f"}), "tool_calls", "completed"),
    ],
)
def test_how_a_response_ended(terminal: dict[str, Any], finish: str, status: str):
    reply = fold(events(responses, text_delta("Hi"), terminal))
    assert (reply.finish_reason, reply.status, reply.complete) == (finish, status, True)


def test_a_messages_stream_event_by_event():
    assert events(
        messages,
        {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 0}}},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": None}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
        "[DONE]",
    ) == [
        *[Started("m", "x"), Other("ping")],
        *[Opened(AT, "text"), Delta(AT, "text", "Hi"), Closed(AT), Other("message_delta")],
        *[Ended("stop", "end_turn"), Usage(output_tokens=2), Done()],
    ]


def test_a_block_without_an_index_is_the_one_before():
    start = {"type": "content_block_start", "index": "1", "content_block": {"type": "text"}}
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}
    assert fold(events(messages, start, delta)).blocks[0].at == (0, 1)


def test_the_latency_of_thinking_may_come_with_its_start():
    block = {"type": "thinking", "thinking": "", "thinking_latency_ms": "41"}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    assert fold(events(messages, start, {"type": "content_block_stop", "index": 0})).blocks[0].latency_ms == 41
