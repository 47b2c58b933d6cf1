"""What the writers make of events that the document's examples do not show."""

from types import ModuleType
from typing import Any

import pytest

from famnb.events import Closed, Delta, Done, Ended, Event, Fault, Opened, Started, Usage
from famnb.reply import Reply, fold
from famnb.wire import chat, lenient_json, messages, responses, sse
from tests.support.strategies import DIALECTS, NAMES, read, written

each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES.get)
STARTED = Started("resp_1", "m", 1700000000)
AT, CALL, NEXT_CALL = (0, 0), (0, 1), (0, 2)
TEXT = [Opened(AT, "text"), Delta(AT, "text", "Hi"), Delta(AT, "text", "!"), Closed(AT)]
CALLS = [
    *[Opened(CALL, "tool_call", "a", "f"), Delta(CALL, "tool_call", "{"), Opened(NEXT_CALL, "tool_call", "b", "g")],
    *[Delta(NEXT_CALL, "tool_call", "{}"), Delta(CALL, "tool_call", "}"), Closed(CALL), Closed(NEXT_CALL)],
]


def write_events(dialect: ModuleType, *events: Event, **options: bool) -> list[Any]:
    """What the writer says of these events, event by event, decoded; `[DONE]` as text."""
    writer = dialect.writer(**options)
    frames = [frame for event in events for frame in writer.write(event)]
    data = sse.Decoder().feed(b"".join(frames))
    return ["[DONE]" if item == sse.DONE else lenient_json.decode(item) for item in data]


def fold_written(dialect: ModuleType, *events: Event) -> Reply:
    """The reply that is read from the stream of these events."""
    return fold(read(dialect, [written(dialect, events)]))


def deltas(events: list[Any]) -> list[Any]:
    """The deltas of chat chunks."""
    return [event["choices"][0]["delta"] for event in events]


def types(events: list[Any]) -> list[str]:
    """The types of events, without `response.`."""
    return [event if isinstance(event, str) else event["type"].removeprefix("response.") for event in events]


def test_chat_writes_the_role_once_and_thinking_in_a_field_of_its_own():
    thought = [Opened((0, 5), "thinking"), Delta((0, 5), "thinking", "hm"), Closed((0, 5), "hm")]
    assert deltas(write_events(chat, STARTED, *thought, *TEXT, Delta((0, 1), "refusal", "No."))) == [
        {"role": "assistant", "reasoning_content": "hm"},
        {"content": "Hi"},
        {"content": "!"},
        {"refusal": "No."},
    ]


def test_chat_calls_are_indexed_deltas():
    assert deltas(write_events(chat, STARTED, *CALLS)) == [
        {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]},
    ]


def test_a_whole_chat_reply_with_calls_has_empty_content():
    message = chat.write(fold([*CALLS, Ended("tool_calls")]))["choices"][0]["message"]
    assert message["content"] == ""
    assert message["tool_calls"][0] == {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_chat_writes_usage_only_when_asked():
    end = [Ended("stop"), Usage(3, 2), Done()]
    assert write_events(chat, STARTED, *TEXT, *end)[-2]["choices"]
    last = write_events(chat, STARTED, *TEXT, *end, include_usage=True)[-2]
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert (last["choices"], last["usage"]) == ([], usage)
    failed = Ended("error", status="failed", fault=Fault("broken"))
    assert "error" in write_events(chat, STARTED, *TEXT, failed, Done(), include_usage=True)[-2]


def test_responses_interleaves_items():
    assert types(write_events(responses, STARTED, *TEXT, *CALLS, Ended("tool_calls"), Done())) == [
        *["created", "in_progress"],
        *["output_item.added", "content_part.added", "output_text.delta", "output_text.delta", "output_text.done"],
        *["output_item.done", "output_item.added", "function_call_arguments.delta", "output_item.added"],
        *["function_call_arguments.delta", "function_call_arguments.delta"],
        *["function_call_arguments.done", "output_item.done", "function_call_arguments.done", "output_item.done"],
        "completed",
    ]


def test_responses_items_have_ids_and_indices_of_their_own():
    events = write_events(responses, STARTED, *TEXT, *CALLS, Ended("tool_calls"), Done())
    added = [(event["output_index"], event["item"]["id"]) for event in events if event["type"].endswith("item.added")]
    assert added == [(0, "msg_1_0"), (1, "fc_1_1"), (2, "fc_1_2")]
    done = {event["output_index"]: event["item"] for event in events if event["type"].endswith("item.done")}
    assert events[-1]["response"]["output"] == [done[0], done[1], done[2]]
    call = {"call_id": "a", "name": "f", "arguments": "{}"}
    assert done[1] == {"id": "fc_1_1", "type": "function_call", "status": "completed", **call}


@each_dialect
@pytest.mark.parametrize(
    "repeated",
    [
        [STARTED, STARTED, *TEXT, Closed(AT), Ended("stop"), Ended("stop")],
        [STARTED, *TEXT[:-1], Closed(AT, "Hi!"), Ended("stop")],
    ],
    ids=["events", "the whole text"],
)
def test_what_an_upstream_repeats_is_written_once(dialect: ModuleType, repeated: list[Event]):
    rest = [Usage(1, 2), Done()]
    once = write_events(dialect, STARTED, *TEXT, Ended("stop"), *rest)
    assert write_events(dialect, *repeated, *rest) == once


@pytest.mark.parametrize("dialect", [chat, responses], ids=NAMES.get)
def test_id_and_name_of_a_call_may_come_apart(dialect: ModuleType):
    opened = [Opened(CALL, "tool_call", id="a"), Opened(CALL, "tool_call", name="f")]
    events = [STARTED, *opened, Delta(CALL, "tool_call", "{}"), Closed(CALL), Ended("tool_calls"), Done()]
    (call,) = fold_written(dialect, *events).tool_calls
    assert (call.id, call.name, call.arguments) == ("a", "f", {})


@each_dialect
def test_thinking_and_text_that_come_only_when_their_blocks_close_are_written_as_what_they_are(dialect: ModuleType):
    blocks = [Opened((0, 9), "thinking"), Closed((0, 9), "hm"), Opened(AT, "text"), Closed(AT, "Hi!")]
    reply = fold_written(dialect, STARTED, *blocks, Ended("stop"), Done())
    whole = fold(dialect.read(dialect.write(reply)))
    assert (reply.thinking, reply.text, whole.thinking, whole.text) == ("hm", "Hi!", "hm", "Hi!")


@each_dialect
def test_a_failure_stays_a_failure(dialect: ModuleType):
    failure = [STARTED, *TEXT[:2], Ended("error", fault=Fault("no"), status="failed"), Usage(1, 1)]
    events = write_events(dialect, *failure, Done())
    tail = {chat: ["error", "[DONE]"], responses: ["response"], messages: ["error", "[DONE]"]}[dialect]
    names = [event if event == "[DONE]" else next(name for name in event if name != "type") for event in events]
    assert names[-len(tail) :] == tail
    assert fold_written(dialect, *failure, Done()).fault == Fault("no", "api_error" if dialect is messages else None)
    assert write_events(dialect, *failure, Ended("stop"), Done()) == events


def test_a_whole_failed_response_has_status_and_error():
    body = responses.write(fold([STARTED, *TEXT[:2], Ended("error", fault=Fault("no", code="c"), status="failed")]))
    assert (body["status"], body["error"]) == ("failed", {"code": "c", "message": "no"})
    assert [item["status"] for item in body["output"]] == ["incomplete"]


def test_details_that_are_not_known_are_left_out():
    reply = fold([Ended("stop"), Usage(1, 2)])
    assert chat.write(reply)["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert responses.write(reply)["usage"] == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    assert list(messages.write(reply)["usage"].values()) == [1, 2, None, None]
    nothing = fold([Ended("stop")])
    assert [dialect.write(nothing)["usage"] for dialect in (chat, responses)] == [None, None]


@each_dialect
def test_an_end_that_never_came_is_not_made_up(dialect: ModuleType):
    assert fold_written(dialect, STARTED, *TEXT, Done()).complete is not True


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", ("stop", "completed", "end_turn")),
        ("length", ("length", "incomplete", "max_tokens")),
        ("content_filter", ("content_filter", "incomplete", "refusal")),
        ("tool_calls", ("tool_calls", "completed", "tool_use")),
        ("stop_sequence", ("stop", "completed", "stop_sequence")),
        ("cancelled", ("stop", "cancelled", "end_turn")),
        (None, ("stop", "completed", "end_turn")),
        ("odd", ("odd", "completed", "odd")),
    ],
)
def test_each_reason_has_its_word(finish: str | None, expected: tuple[str, str, str]):
    reply = fold([Ended(finish)])
    chat_word, status = chat.write(reply)["choices"][0]["finish_reason"], responses.write(reply)["status"]
    assert (chat_word, status, messages.write(reply)["stop_reason"]) == expected


def test_a_named_stream_names_every_event():
    for dialect in (responses, messages):
        writer = dialect.writer(named=True)
        frames = [frame for event in [STARTED, *TEXT, *CALLS, Ended("stop"), Done()] for frame in writer.write(event)]
        for frame in frames[: -1 if dialect is messages else None]:
            name, data, *_ = frame.split(b"\n")
            assert name == b"event: " + lenient_json.decode(data.removeprefix(b"data: "))["type"].encode()


@each_dialect
def test_half_characters_are_carried(dialect: ModuleType):
    halves = [Delta(AT, "text", "\ud83d"), Delta(AT, "text", "\ude00")]
    assert fold_written(dialect, STARTED, *halves, Ended("stop"), Done()).text == "\U0001f600"
