"""Folding: events add up to a reply, at the same cost for each, with evidence for what it claims."""

import dataclasses
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.events import Closed, Delta, Done, Ended, Event, Fault, Opened, Other, Started, Status, Usage
from famnb.reply import Block, ReplyBuilder, fold
from famnb.timing import Read, Timing
from tests.support.strategies import texts

AT, NEXT = (0, 0), (0, 1)


def test_events_add_up():
    reply = fold(
        [
            *[Started("r"), Started(model="m"), Opened(NEXT, "text"), Delta(NEXT, "text", "Hi")],
            *[Delta(AT, "thinking", "h"), Delta(AT, "thinking", "m"), Closed(AT, latency_ms=5)],
            *[Delta(NEXT, "text", "!"), Other("x"), Ended("stop", "end_turn"), Usage(3, 2), Done()],
        ]
    )
    assert (reply.id, reply.model, reply.text, reply.thinking, str(reply)) == ("r", "m", "Hi!", "hm", "Hi!")
    assert reply.blocks == (Block(AT, "thinking", "hm", latency_ms=5, closed=True), Block(NEXT, "text", "Hi!"))
    assert (reply.finish_reason, reply.stop_reason) == ("stop", "end_turn")
    assert (reply.status, reply.complete, reply.usage.total_tokens) == ("completed", True, 5)


@pytest.mark.parametrize(
    ("events", "status", "complete"),
    [
        ([], "running", False),
        ([Delta(AT, "text", "Hi")], "running", False),
        ([Done()], "completed", None),
        ([Ended("stop")], "completed", True),
        ([Ended()], "completed", True),
        ([Ended("length")], "incomplete", True),
        ([Ended("content_filter")], "incomplete", True),
        ([Ended("tool_calls")], "completed", True),
        ([Ended("cancelled")], "cancelled", True),
        ([Ended("stop", status="incomplete")], "incomplete", True),
        ([Ended("error", fault=Fault("no"))], "failed", False),
        ([Ended("stop"), Ended(fault=Fault("no"))], "failed", False),
        ([Ended(fault=Fault("no")), Ended("stop")], "failed", False),
    ],
)
def test_complete_needs_evidence(events: list[Event], status: Status, complete: bool | None):
    reply = fold(events)
    assert (reply.status, reply.complete) == (status, complete)
    assert bool(reply.warnings) == (complete is None)


def test_later_evidence_fills_what_the_first_left_open():
    reply = fold([Ended("stop", "end_turn"), Ended(status="completed", stop_sequence="#")])
    assert (reply.finish_reason, reply.stop_reason, reply.stop_sequence) == ("stop", "end_turn", "#")


def test_the_final_text_wins():
    assert fold([Delta(AT, "text", "Hi"), Closed(AT, "Hi")]).warnings == ()
    assert fold([Opened(AT, "text"), Closed(AT, "Hi")]).warnings == ()
    reply = fold([Delta(AT, "text", "Ho"), Closed(AT, "Hi")])
    assert reply.text == "Hi"
    assert "disagree" in reply.warnings[0]


def test_a_tool_call_is_assembled():
    call = [Opened(AT, "tool_call", id="a"), Opened(AT, "tool_call", name="f"), Delta(AT, "tool_call", '{"x":')]
    (cut,) = fold(call).tool_calls
    assert (cut.id, cut.name, cut.text, cut.valid, cut.arguments) == ("a", "f", '{"x":', False, None)
    (whole,) = fold([*call, Delta(AT, "tool_call", "1}")]).tool_calls
    assert (whole.valid, whole.arguments) == (True, {"x": 1})
    (bare,) = fold(call[:2]).tool_calls
    assert (bare.valid, bare.arguments) == (True, {})
    assert fold([Delta(AT, "text", "{")]).blocks[0].valid


def test_what_no_decoder_can_take_is_kept_as_it_is():
    deep = "[" * 200_000
    (call,) = fold([Opened(AT, "tool_call"), Delta(AT, "tool_call", deep)]).tool_calls
    assert (call.valid, call.arguments, call.text) == (False, None, deep)
    assert dataclasses.replace(fold([]), reads=(Read(0, (deep.encode(),)),)).raw == deep


def test_a_signature_is_not_content():
    reply = fold([Delta(AT, "signature", "c2"), Delta(AT, "signature", "ln")])
    assert reply.blocks == (Block(AT, "thinking", signature="c2ln"),)


def test_a_character_cut_in_two_is_made_whole():
    assert fold([Delta(AT, "text", "a\ud83d"), Delta(AT, "text", "\ude00b")]).text == "a\U0001f600b"
    assert fold([Delta(AT, "text", "\ud83d")]).text == "\ufffd"
    halves = [Delta(AT, "text", "\ud83d"), Delta(AT, "text", "\ude00"), Closed(AT, "\ud83d\ude00")]
    assert (fold(halves).text, fold(halves).warnings) == ("\U0001f600", ())


@given(st.lists(texts))
def test_the_running_reply_is_the_text_so_far(pieces: list[str]):
    builder = ReplyBuilder()
    for n, piece in enumerate(pieces):
        builder.add(Delta(AT, "text", piece))
        assert builder.reply().text == "".join(pieces[: n + 1])
    assert (builder.content_deltas, builder.answer_deltas, builder.thinking_deltas) == (len(pieces), len(pieces), 0)


def test_empty_deltas_are_no_content():
    builder = ReplyBuilder()
    for event in (Delta(AT, "text", ""), Delta(NEXT, "thinking", ""), Delta((1, 0), "tool_call", "{")):
        builder.add(event)
    assert (builder.content_deltas, builder.answer_deltas, builder.thinking_deltas) == (1, 0, 0)


def test_folding_copies_nothing_that_came_before():
    builder = ReplyBuilder()
    builder.add(Delta(AT, "text", "x" * 2_000_000))
    delta = Delta(AT, "text", "x")
    tracemalloc.start()
    for _ in range(1000):
        builder.add(delta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert len(builder.reply().text) == 2_001_000


def test_raw_is_what_came():
    reads = (Read(1, (b'{"a":1}', b"[DONE]")), Read(2, (b'{"b":2}',)))
    assert dataclasses.replace(fold([]), streamed=True, reads=reads).raw == [{"a": 1}, "[DONE]", {"b": 2}]
    assert dataclasses.replace(fold([]), reads=reads[1:]).raw == {"b": 2}
    assert fold([]).raw is None


def test_replies_with_equal_content_are_equal():
    reply = fold([Delta(AT, "text", "Hi")])
    assert dataclasses.replace(reply, call_id="a", streamed=True, reads=(Read(1, (b"x",)),)) == reply
    assert fold([Delta(AT, "text", "Ho")]) != reply


def test_a_reply_shows_its_facts():
    reply = dataclasses.replace(
        fold([Started(model="m"), Delta(AT, "text", "x" * 100), Ended("stop"), Usage(1, 2)]),
        endpoint="chat",
        timing=Timing(e2e_s=1.23456),
    )
    facts = "completed chat m finish_reason='stop' output_tokens=2 e2e_s=1.235"
    assert repr(reply) == f"<Reply {facts} '{'x' * 59}…'>"
    assert repr(fold([Delta(AT, "text", "Hi")])) == "<Reply running 'Hi'>"
