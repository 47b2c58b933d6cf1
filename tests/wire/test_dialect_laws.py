"""The laws of the wire: what is written is what is read, however the bytes are cut."""

import dataclasses
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.events import Done, Ended, Fault, Usage
from famnb.reply import Reply, fold
from famnb.wire import lenient_json, responses, sse
from tests.support.strategies import DIALECTS, NAMES, cut, failing_streams, line_ends, read, streams, written

each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES.get)


@each_dialect
@given(data=st.data())
def test_a_stream_reads_as_it_was_written(dialect: ModuleType, data: st.DataObject):
    """fold(read(write(events))) == fold(events), for any cut of the bytes, named or not."""
    events = data.draw(streams(dialect))
    chunks = data.draw(cut(written(dialect, events, named=data.draw(st.booleans()))))
    assert fold(read(dialect, chunks)) == fold(events)


@each_dialect
@given(data=st.data())
def test_a_failing_stream_reads_as_it_was_written(dialect: ModuleType, data: st.DataObject):
    """What had arrived before a failure stays, and the failure keeps its words."""
    events = data.draw(failing_streams(dialect))
    reply = fold(read(dialect, data.draw(cut(written(dialect, events)))))
    assert without_closed(reply) == without_closed(fold(events))


@given(data=st.data())
def test_a_responses_stream_ends_with_the_output_of_the_whole_response(data: st.DataObject):
    events = data.draw(streams(responses, whole=True))
    content = [event for event in events if not isinstance(event, Ended | Usage | Done)]
    length = data.draw(st.integers(1, len(content)))
    fault = Fault("no", code="server_error")
    end = data.draw(st.sampled_from([Ended("error", fault=fault, status="failed"), Ended("length"), Ended("stop")]))
    cut_short = [*content[:length], end, Done()]
    sent = [lenient_json.decode(item) for item in sse.Decoder().feed(written(responses, cut_short))]
    output = responses.write(fold(cut_short))["output"]
    assert sent[-1]["response"]["output"] == output
    done = {event["output_index"]: event["item"] for event in sent if event["type"] == "response.output_item.done"}
    assert [item for _, item in sorted(done.items())] == output


@each_dialect
@given(data=st.data())
def test_a_whole_reply_reads_as_it_was_written(dialect: ModuleType, data: st.DataObject):
    """fold(read(write(reply))) == reply, through JSON."""
    reply = fold(data.draw(streams(dialect, whole=True)))
    body = lenient_json.decode(lenient_json.encode(dialect.write(reply)))
    assert fold(dialect.read(body)) == reply


@each_dialect
@given(data=st.data())
def test_a_streamed_reply_equals_the_whole_reply(dialect: ModuleType, data: st.DataObject):
    """The same events say the same, streamed or whole; only usage may be told in less detail."""
    events = data.draw(streams(dialect))
    streamed = fold(read(dialect, [written(dialect, events)]))
    whole = fold(dialect.read(dialect.write(fold(events))))
    assert without_usage(streamed) == without_usage(whole)


@each_dialect
@given(data=st.data())
def test_any_cut_gives_the_same_events(dialect: ModuleType, data: st.DataObject):
    """Whole, cut anywhere or byte by byte: the same list of events."""
    stream = written(dialect, data.draw(streams(dialect)))
    expected = read(dialect, [stream])
    assert read(dialect, data.draw(cut(stream))) == expected
    assert read(dialect, [stream[n : n + 1] for n in range(len(stream))]) == expected


@each_dialect
@given(data=st.data())
def test_line_ends_are_alike(dialect: ModuleType, data: st.DataObject):
    stream = written(dialect, data.draw(streams(dialect)))
    other = data.draw(line_ends(stream))
    assert read(dialect, data.draw(cut(other))) == read(dialect, [stream])


def without_closed(reply: Reply) -> Reply:
    """A reply without what only a normal end, and the responses dialect, say: which blocks were complete."""
    blocks = tuple(msgspec.structs.replace(block, closed=True) for block in reply.blocks)
    return dataclasses.replace(reply, blocks=blocks)


def without_usage(reply: Reply) -> Reply:
    return dataclasses.replace(reply, usage=Usage())
