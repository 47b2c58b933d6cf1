"""What real servers send: one stream a quirk, and what must come of it."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from famnb.events import Usage
from famnb.reply import Reply, fold
from famnb.wire import chat, messages, responses
from tests.support.strategies import read

FIXTURES = Path(__file__).parent / "fixtures" / "quirks"
DIALECTS = {"chat": chat, "responses": responses, "messages": messages}

YES = {"text": "Yes.", "finish_reason": "stop", "status": "completed", "complete": True}
THOUGHT = YES | {"thinking": "Let me see."}
CALLED = {"text": "", "finish_reason": "tool_calls", "status": "completed"}
F, G = ("a", "f", '{"x":"\\n"}'), ("b", "g", "{}")
FAILED = {"text": "Yes.", "finish_reason": "error", "status": "failed", "complete": False}
OUT_OF_MEMORY = FAILED | {"fault": ("out of memory", None, None)}
COUNTED = YES | {"usage": Usage(3, 2, total_tokens=5)}

EXPECTED: dict[str, dict[str, Any]] = {
    "chat_reasoning_content": THOUGHT | {"model": "m", "id": "c"},
    "chat_reasoning_twice": THOUGHT,
    "chat_reasoning_object": THOUGHT,
    "chat_think_tags": THOUGHT,
    "chat_tag_in_the_text": YES | {"text": "Use <think> tags.", "thinking": ""},
    "chat_parts": THOUGHT,
    "chat_refusal": {"text": "", "refusal": "I cannot.", "finish_reason": "content_filter", "status": "incomplete"},
    "chat_calls_by_index": CALLED | {"calls": [F, G], "valid": [True, True]},
    "chat_calls_without_index": CALLED | {"calls": [("a", "f", "{}"), G]},
    "chat_calls_all_index_zero": CALLED | {"calls": [("a", "f", "{}"), G]},
    "chat_call_of_old": CALLED | {"calls": [("", "f", "{}")], "stop_reason": "function_call"},
    "chat_call_with_broken_arguments": CALLED | {"calls": [("a", "f", '{"x":')], "valid": [False]},
    "chat_usage_on_the_finish_chunk": COUNTED,
    "chat_usage_cumulative": COUNTED,
    "chat_usage_beside_reasoning": YES | {"usage": Usage(3, 12, 10, total_tokens=15, derived=("output_tokens",))},
    "chat_numbers_as_text": COUNTED | {"id": "7", "created": 1700000000},
    "chat_empty_deltas": YES,
    "chat_two_choices": {"text": "No.", "finish_reason": "length", "complete": True, "status": "incomplete"},
    "chat_unknown_finish": YES | {"finish_reason": "eos_token", "stop_reason": "eos_token"},
    "chat_without_done": YES,
    "chat_without_finish": {"text": "Yes.", "finish_reason": None, "complete": None, "status": "completed"},
    "chat_cut_off": {"text": "Yes.", "finish_reason": None, "complete": False, "status": "running"},
    "chat_failure_by_object": FAILED | {"fault": ("out of memory", "server_error", "50001")},
    "chat_failure_in_words": OUT_OF_MEMORY,
    "responses_bare": COUNTED | {"id": "r"},
    "responses_repeated": YES | {"usage": Usage(), "warnings": ()},
    "responses_terminal_only": THOUGHT,
    "responses_final_text_differs": YES
    | {"warnings": ("the deltas of block (0, 0) disagree with its final text; the final text is kept",)},
    "responses_reasoning_summary": THOUGHT | {"warnings": ()},
    "responses_reasoning_text": THOUGHT,
    "responses_refusal": {"refusal": "I cannot.", "finish_reason": "content_filter", "status": "incomplete"},
    "responses_calls": CALLED | {"calls": [F, G], "warnings": ()},
    "responses_error_event": FAILED | {"fault": ("out of memory", None, "server_error")},
    "responses_failed_without_words": FAILED
    | {"fault": ("the service reported a failed response without a message", None, None)},
    "responses_cancelled": YES | {"finish_reason": "cancelled", "status": "cancelled"},
    "messages_opening_with_counts": YES
    | {"usage": Usage(23, 2, None, 20, 0, 25, derived=("input_tokens", "total_tokens"))},
    "messages_zero_usage": YES | {"usage": Usage()},
    "messages_signature": THOUGHT | {"signature": "c2ln", "latency_ms": 41, "usage": Usage()},
    "messages_redacted_thinking": YES
    | {"thinking": "", "kinds": ["redacted_thinking", "text"], "signature": "aGlkZGVu"},
    "messages_calls": CALLED | {"calls": [F, ("b", "g", '{"y":1}')]},
    "messages_bare": THOUGHT | {"finish_reason": "stop_sequence", "stop_sequence": "###"},
    "messages_error_event": FAILED | {"fault": ("out of memory", "overloaded_error", None)},
    "messages_error_wrapped": FAILED | {"fault": ("out of memory", "api_error", None)},
}


def facts(reply: Reply) -> dict[str, Any]:
    """A reply as the table above puts it."""
    fields = ("id", "model", "created", "finish_reason", "stop_reason", "stop_sequence", "status", "complete")
    return {
        **{name: getattr(reply, name) for name in (*fields, "text", "thinking", "usage", "warnings")},
        "refusal": "".join(block.text for block in reply.blocks if block.kind == "refusal"),
        "calls": [(call.id, call.name, call.text) for call in reply.tool_calls],
        "valid": [call.valid for call in reply.tool_calls],
        "kinds": [block.kind for block in reply.blocks],
        "signature": "".join(block.signature for block in reply.blocks),
        "latency_ms": reply.blocks[0].latency_ms if reply.blocks else None,
        "fault": reply.fault and (reply.fault.message, reply.fault.type, reply.fault.code),
    }


def dialect_of(name: str) -> ModuleType:
    return DIALECTS[name.split("_")[0]]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_quirk_is_read(name: str):
    found = facts(fold(read(dialect_of(name), [(FIXTURES / f"{name}.sse").read_bytes()])))
    assert {fact: found[fact] for fact in EXPECTED[name]} == EXPECTED[name]


def test_every_fixture_is_used():
    assert {path.stem for path in FIXTURES.iterdir()} == set(EXPECTED)
