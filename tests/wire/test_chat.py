"""Plain chunks of chat completions take a shorter way through the reader, which must change nothing but the time."""

import json
from typing import Any

import pytest

from famnb.events import Delta, Ended, Opened, Usage
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
