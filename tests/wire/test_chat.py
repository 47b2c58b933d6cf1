"""Plain chunks of chat completions take a shorter way through the reader, which must change nothing but the time."""

import json
from typing import Any

import pytest

from famnb.events import Closed, Delta, Ended, Opened, Usage
from famnb.wire import chat


def chunk(delta: dict[str, Any], **more: Any) -> bytes:
    """A chunk of one choice; `more` goes into the chunk, `finish_reason` into the choice."""
    choice = {"index": more.pop("index", 0), "delta": delta, "finish_reason": more.pop("finish_reason", None)}
    return json.dumps({"id": "chatcmpl-1", "model": "fam-mini", "choices": [choice], **more}).encode()


def flowing() -> chat.ChatReader:
    """A reader in the middle of a text."""
    reader = chat.reader()
    reader.read(chunk({"role": "assistant", "content": ""}))
    reader.read(chunk({"content": "Hello"}))
    return reader


@pytest.mark.parametrize("named", [{}, {"role": "assistant"}, {"refusal": None, "tool_calls": None}])
def test_text_is_one_delta_whatever_empty_fields_stand_beside_it(named: dict[str, Any]):
    assert flowing().read(chunk({"content": " world", **named}, usage=None)) == [Delta((0, 0), "text", " world")]


def test_what_stands_beside_text_is_never_passed_over():
    assert Usage(input_tokens=3, output_tokens=4, total_tokens=7) in flowing().read(
        chunk({"content": "x"}, usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})
    )
    assert Ended("stop", "stop") in flowing().read(chunk({"content": "x"}, finish_reason="stop"))
    call = {"index": 0, "id": "call_1", "function": {"name": "look", "arguments": "{}"}}
    assert Opened((1, 0), "tool_call", "call_1", "look") in flowing().read(
        chunk({"content": "x", "tool_calls": [call]})
    )
    (ended,) = flowing().read(chunk({"content": "x"}, error={"message": "gone"}))
    assert isinstance(ended, Ended)
    assert ended.status == "failed"


def test_thinking_after_text_opens_a_block_and_text_after_it_another():
    reader = flowing()
    reader.read(chunk({"reasoning_content": "hm"}))
    opened = [Closed((0, 1)), Opened((0, 2), "text"), Delta((0, 2), "text", "Well")]
    assert reader.read(chunk({"content": "Well"})) == opened
    assert reader.read(chunk({"content": " then"})) == [Delta((0, 2), "text", " then")]


def test_another_choice_is_not_followed():
    assert not [e for e in flowing().read(chunk({"content": "other"}, index=1)) if isinstance(e, Delta)]


def test_nothing_counts_after_the_terminator():
    reader = flowing()
    reader.read(b"[DONE]")
    assert reader.read(chunk({"content": "late"})) == []


def test_many_pieces_of_a_text_are_read_at_once():
    chunks = [chunk({"content": text}) for text in ("a", "b ☃", "c")]
    one_by_one, at_once = flowing(), flowing()
    assert at_once.read_texts(chunks) == [event for data in chunks for event in one_by_one.read(data)]
    assert at_once.read(chunk({"content": "d"})) == one_by_one.read(chunk({"content": "d"}))


@pytest.mark.parametrize(
    "odd",
    [
        chunk({"content": "x"}, finish_reason="stop"),
        chunk({"content": "x"}, index=1),
        chunk({"content": ""}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "x"}, usage={"prompt_tokens": 3}),
        chunk({"content": "x"}) + b"\n" + chunk({"content": "y"}),
        b"[DONE]",
        b"{",
        b"\xff",
    ],
)
def test_what_is_more_than_text_is_not_read_at_once(odd: bytes):
    reader = flowing()
    assert reader.read_texts([chunk({"content": "a"}), odd, chunk({"content": "b"})]) == []
    assert reader.read(chunk({"content": "a"})) == [Delta((0, 0), "text", "a")]


def test_nothing_is_read_at_once_before_a_text_has_begun():
    assert chat.reader().read_texts([chunk({"content": "a"})] * 2) == []
    reader = flowing()
    reader.read(chunk({"reasoning_content": "hm"}))
    assert reader.read_texts([chunk({"content": "a"})] * 2) == []
