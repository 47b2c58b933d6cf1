"""What the readers say, event by event: nothing twice, nothing unsaid, an end that can be relied on."""

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given

from famnb.errors import StreamDecodeError
from famnb.events import Closed, Delta, Done, Ended, Event, Fault, Opaque, Opened, Other, Started, Usage
from famnb.reply import fold
from famnb.wire import chat, lenient_json, messages, responses
from tests.support.strategies import DIALECTS, NAMES, json_values
from tests.wire.bodies import (
    END,
    Body,
    block_delta,
    chunk,
    fold_stream,
    item_event,
    read_stream,
    start,
    stop,
    terminal,
    text_delta,
)

AT = (0, 0)
each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES.get)


@each_dialect
@given(json_values.map(lenient_json.encode))
def test_any_json_is_an_event(dialect: ModuleType, data: bytes):
    """Of known events with malformed fields `test_response_reader_fuzz.py` tries many."""
    fold(dialect.reader().read(data))


@each_dialect
@pytest.mark.parametrize("data", [b"{", b"nope", b'{"a":}', b"[DONE", b"<html>"])
def test_what_is_not_json_is_a_decode_error(dialect: ModuleType, data: bytes):
    with pytest.raises(StreamDecodeError):
        dialect.reader().read(data)


@each_dialect
@pytest.mark.parametrize("data", [b"[]", b'"x"', b"3", b"null", b"{}"])
def test_json_that_says_nothing_is_other(dialect: ModuleType, data: bytes):
    assert dialect.reader().read(data) == [Other()]


@each_dialect
def test_nothing_counts_after_the_terminator(dialect: ModuleType):
    reader = dialect.reader()
    reader.read(b" [DONE] ")
    assert reader.read(b"{") == []
    assert reader.end() == []


def test_a_chat_stream_event_by_event():
    assert read_stream(
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


@pytest.mark.parametrize("named", [{}, {"role": "assistant"}, {"refusal": None, "tool_calls": None}])
def test_text_is_one_delta_whatever_empty_fields_stand_beside_it(named: Body):
    """Plain chunks take a shorter way through the reader, which changes nothing but the time."""
    events = read_stream(chat, chunk({"content": "Hello"}), chunk({"content": " world", **named}, usage=None))
    assert events[-1] == Delta(AT, "text", " world")


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        (chunk({"content": "x"}, usage={"prompt_tokens": 3, "completion_tokens": 4}), Usage(3, 4)),
        (chunk({"content": "x"}, "stop"), Ended("stop", "stop")),
        (
            chunk({"content": "x", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}),
            Opened((1, 0), "tool_call", "a", "f"),
        ),
        (chunk({"content": "x"}, error={"message": "gone"}), Ended("error", status="failed", fault=Fault("gone"))),
    ],
)
def test_what_stands_beside_text_is_never_passed_over(beside: Body, expected: Event):
    assert expected in read_stream(chat, chunk({"content": "Hello"}), beside)


def test_a_chat_identity_may_come_late():
    late = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    assert read_stream(chat, late, chunk({"content": "Hi"}), chunk({"content": "!"}))[:2] == [
        Other(),
        Started("c", "m"),
    ]


def test_a_chat_stream_that_breaks_off_gives_what_was_held_back():
    assert fold_stream(chat, chunk({"content": "<th"})).text == "<th"
    assert fold_stream(chat, chunk({"content": "<th"}), {"error": "no"}).text == "<th"
    assert fold_stream(chat, chunk({"content": "<th"}), "[DONE]").text == "<th"
    assert fold_stream(chat, chunk({"content": "<think>hm</"})).thinking == "hm</"


def test_a_repeated_finish_reason_closes_no_block_twice():
    stream = read_stream(chat, chunk({"content": "Hi"}), chunk({}, "stop"), chunk({}, "stop"))
    assert stream.count(Closed(AT)) == 1


def test_thinking_in_its_own_field_ends_the_search_for_tags():
    stream = [chunk({"reasoning_content": "hm"}), chunk({"content": "<think>x</think>"})]
    assert fold_stream(chat, *stream).text == "<think>x</think>"


def test_thinking_between_texts_keeps_its_place():
    stream = [chunk({"content": "a"}), chunk({"reasoning_content": "hm"}), chunk({"content": "b"})]
    blocks = fold_stream(chat, *stream).blocks
    assert [(block.kind, block.text) for block in blocks] == [("text", "a"), ("thinking", "hm"), ("text", "b")]


def test_a_whole_message_in_a_chunk_is_read_once():
    whole = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    assert fold_stream(chat, whole).text == "Hi"
    assert fold_stream(chat, chunk({"content": "Hi"}), whole).text == "Hi"


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
    reply = fold_stream(chat, chunk({"tool_calls": calls}, "tool_calls"))
    assert "".join(call.name for call in reply.tool_calls) == expected


def test_a_responses_stream_event_by_event():
    message = {"id": "x", "type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    opaque = Opaque((0, -1), json.dumps(message, separators=(",", ":")))
    assert read_stream(
        responses,
        {"type": "response.created", "response": {"id": "r", "model": "m", "created_at": 5, "usage": None}},
        {"type": "response.in_progress", "response": {"id": "r", "model": "m", "created_at": 5}},
        item_event("added", {"id": "x", "type": "message", "content": []}),
        text_delta("Hi"),
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hi"},
        item_event("done", message),
        terminal(message, usage={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        {"type": "response.output_text.delta", "delta": "never read"},
    ) == [
        *[Started("r", "m", 5), Other("response.in_progress"), Other("response.output_item.added")],
        *[Opened(AT, "text"), Delta(AT, "text", "Hi"), Closed(AT, "Hi"), opaque, Started("r", "m"), opaque],
        *[Ended("stop", "completed", status="completed"), Usage(1, 2, total_tokens=3), Done()],
    ]


@pytest.mark.parametrize(
    "bookkeeping",
    [
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": ""},
        {"type": "response.output_text.done", "output_index": 0, "content_index": 0},
        item_event("done", {"content": [{"type": "output_text"}]}),
        terminal({"content": [{"type": "output_text", "text": ""}]}),
        terminal({"content": []}),
    ],
)
def test_a_final_text_that_is_missing_does_not_win(bookkeeping: Body):
    reply = fold_stream(responses, text_delta("Hi"), bookkeeping)
    assert (reply.text, reply.warnings) == ("Hi", ())


def test_a_text_may_come_with_the_end_of_its_part_alone():
    part = {"type": "response.content_part.done", "output_index": 0, "content_index": 0}
    assert fold_stream(responses, part | {"part": {"type": "output_text", "text": "Hi"}}).text == "Hi"


def test_an_error_body_inside_a_responses_stream_is_a_failure():
    failed = fold_stream(responses, text_delta("Hi"), {"error": {"message": "no"}})
    assert (failed.status, failed.text, failed.fault and failed.fault.message) == ("failed", "Hi", "no")
    assert fold_stream(responses, {"type": "response.note", "error": "no"}).fault is None


def test_kinds_that_claim_one_place_stay_apart():
    stream = [{"type": f"response.{name}.delta", "delta": name} for name in ("reasoning_text", "output_text")]
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    reply = fold_stream(responses, *stream, *stream, terminal(call))
    assert [(block.kind, block.text) for block in reply.blocks] == [
        ("thinking", "reasoning_text" * 2),
        ("text", "output_text" * 2),
        ("tool_call", "{}"),
    ]
    assert reply.finish_reason == "tool_calls"


def test_items_are_found_by_their_ids():
    reply = fold_stream(
        responses,
        item_event("added", {"id": "x", "type": "message"}, 1),
        {"type": "response.output_text.delta", "item_id": "x", "delta": "Hi"},
        terminal({"id": "x", "type": "message", "content": [{"type": "output_text", "text": "Hi!"}]}),
    )
    assert [(block.at, block.text) for block in reply.blocks] == [((1, 0), "Hi!")]


@pytest.mark.parametrize(
    ("end", "finish", "status"),
    [
        (terminal(), "stop", "completed"),
        (terminal(status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "length", "incomplete"),
        (terminal(status="incomplete", incomplete_details={"reason": "max_tokens"}), "length", "incomplete"),
        (terminal(status="incomplete"), "incomplete", "incomplete"),
        (terminal(status="cancelled"), "cancelled", "cancelled"),
        ({"type": "response.completed"}, "stop", "completed"),
        ({"type": "response.incomplete", "response": {"status": "in_progress"}}, "incomplete", "incomplete"),
        (terminal({"type": "function_call", "call_id": "a", "name": "f"}), "tool_calls", "completed"),
    ],
)
def test_how_a_response_ended(end: Body, finish: str, status: str):
    reply = fold_stream(responses, text_delta("Hi"), end)
    assert (reply.finish_reason, reply.status, reply.complete) == (finish, status, True)


def test_a_messages_stream_event_by_event():
    assert read_stream(
        messages,
        {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 0}}},
        {"type": "ping"},
        *[start(0, {"type": "text", "text": ""}), block_delta(0, "text_delta", text="Hi"), stop(0)],
        {"type": "message_delta", "delta": {"stop_reason": None}},
        END,
        {"type": "message_stop"},
        "[DONE]",
    ) == [
        *[Started("m", "x"), Other("ping")],
        *[Opened(AT, "text"), Delta(AT, "text", "Hi"), Closed(AT), Other("message_delta")],
        *[Ended("stop", "end_turn"), Usage(output_tokens=3), Done()],
    ]


def test_a_block_without_an_index_is_the_one_before():
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}
    assert fold_stream(messages, {**start(1, {"type": "text"}), "index": "1"}, delta).blocks[0].at == (0, 1)


def test_the_latency_of_thinking_may_come_with_its_start():
    block = {"type": "thinking", "thinking": "", "thinking_latency_ms": "41"}
    assert fold_stream(messages, start(0, block), stop(0)).blocks[0].latency_ms == 41
