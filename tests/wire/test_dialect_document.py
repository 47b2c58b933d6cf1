"""The document's own streams and bodies, written out by hand: our writers give these bytes, our readers read them."""

from pathlib import Path
from types import ModuleType

import pytest

from famnb.events import Closed, Delta, Done, Ended, Event, Fault, Opened, Started, Usage
from famnb.reply import fold
from famnb.wire import chat, errors, lenient_json, messages, responses
from tests.support.strategies import read

FIXTURES = Path(__file__).parent / "fixtures"
CHAT_ID = "chatcmpl-7d1f2c3a-0000-4000-8000-000000000001"
AT, NEXT = (0, 0), (0, 1)


def start(id_: str, created: int | None = 1700000000) -> Started:
    return Started(id_, "fam-2-5-pro", created)


HELLO = [Opened(AT, "text"), Delta(AT, "text", "Hello"), Delta(AT, "text", " world"), Closed(AT)]
THOUGHT = [
    *[Opened(AT, "thinking"), Delta(AT, "thinking", "Greet"), Delta(AT, "thinking", " back."), Closed(AT)],
    *[Opened(NEXT, "text"), Delta(NEXT, "text", "Hello"), Delta(NEXT, "text", " world"), Closed(NEXT)],
]
CUT_OFF = HELLO[:2]
FULL = Usage(12, 7, 4, 0, total_tokens=19)
TOTALS = Usage(12, 7, total_tokens=19)
FAULT = Fault("the engine stopped", "server_error", "engine_stopped")

WEB, RESPONSE, MESSAGE = start(CHAT_ID), start("resp_1"), start("msg_1", None)
STOPPED, CAPPED, COUNT = Ended("stop", "end_turn"), Ended("length", "max_tokens"), Usage(output_tokens=7)
INCOMPLETE = [Closed(AT), Ended("length", "max_output_tokens"), Usage(12, 1, total_tokens=13), Done()]


def failure(stop_reason: str | None = None, **fault: str) -> list[Event]:
    """The end of a stream that failed; `fault` is what the dialect says of it."""
    return [Ended("error", stop_reason, fault=Fault(FAULT.message, **fault), status="failed"), Done()]


STREAMS: dict[str, tuple[ModuleType, dict[str, bool], list[Event]]] = {
    "web": (chat, {}, [WEB, *HELLO, Ended("stop", "stop"), Done()]),
    "web_include_usage": (chat, {"include_usage": True}, [WEB, *HELLO, Ended("stop", "stop"), FULL, Done()]),
    "web_failure": (chat, {}, [WEB, *CUT_OFF, Ended("error", fault=FAULT, status="failed"), Done()]),
    "responses": (responses, {}, [RESPONSE, *HELLO, Ended("stop", "completed"), TOTALS, Done()]),
    "responses_incomplete": (responses, {}, [RESPONSE, *CUT_OFF, *INCOMPLETE]),
    "responses_failure": (responses, {}, [RESPONSE, *CUT_OFF, Closed(AT), *failure("failed", code="engine_stopped")]),
    "messages": (messages, {}, [MESSAGE, *THOUGHT, STOPPED, COUNT, Done()]),
    "messages_without_thinking": (messages, {}, [MESSAGE, *HELLO, CAPPED, COUNT, Done()]),
    "messages_named": (messages, {"named": True}, [MESSAGE, *HELLO, CAPPED, COUNT, Done()]),
    "messages_failure": (messages, {}, [MESSAGE, *CUT_OFF, *failure(type="api_error")]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_writer_gives_the_document_s_bytes(name: str):
    dialect, options, events = STREAMS[name]
    writer = dialect.writer(**options)
    frames = [frame for event in events for frame in writer.write(event)]
    assert b"".join(frames) == (FIXTURES / f"{name}.sse").read_bytes()
    assert all(frame.endswith(b"\n\n") and frame.count(b"\n\n") == 1 for frame in frames)


@pytest.mark.parametrize("name", STREAMS)
def test_the_reader_reads_the_document_s_bytes(name: str):
    dialect, _, events = STREAMS[name]
    assert fold(read(dialect, [(FIXTURES / f"{name}.sse").read_bytes()])) == fold(events)


ALL_COUNTS = Usage(12, 7, cached_tokens=0, cache_write_tokens=0)
WHOLE: dict[str, tuple[ModuleType, list[Event]]] = {
    "web": (chat, [WEB, *HELLO, Ended("stop", "stop"), FULL]),
    "responses": (responses, [RESPONSE, *HELLO, Ended("stop", "completed"), FULL]),
    "messages": (messages, [MESSAGE, *THOUGHT, Closed(AT, latency_ms=41), STOPPED, ALL_COUNTS]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_reply_has_the_document_s_body(name: str):
    dialect, events = WHOLE[name]
    body = lenient_json.decode((FIXTURES / f"{name}.json").read_bytes())
    assert lenient_json.encode(dialect.write(fold(events))) == lenient_json.encode(body)
    assert fold(dialect.read(body)) == fold(events)


@pytest.mark.parametrize(
    ("name", "dialect", "type_", "code"),
    [
        ("error_web", chat, "invalid_request_error", "invalid_api_key"),
        ("error_responses", responses, "invalid_request_error", "invalid_api_key"),
        ("error_messages", messages, "authentication_error", None),
    ],
)
def test_an_error_body_has_the_document_s_shape(name: str, dialect: ModuleType, type_: str, code: str | None):
    body = (FIXTURES / f"{name}.json").read_bytes()
    assert dialect.fault(Fault("the key is invalid", type_, code)) == lenient_json.decode(body)
    error = errors.read(401, {}, body)
    assert (str(error), error.type, error.code) == ("401: the key is invalid", type_, code)
