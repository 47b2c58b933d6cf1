"""The pure core: what chunks, times and recorded reads amount to, without a socket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.client.response_reader import ResponseReader, reply_from_reads
from famnb.endpoints import endpoint
from famnb.errors import StreamDecodeError, StreamError, StreamInterrupted
from famnb.timing import Read
from famnb.wire import lenient_json
from tests.support.fault_server import DONE, event
from tests.support.strategies import cut
from tests.support.wire_payloads import (
    ENDPOINTS,
    body,
    closing,
    delta,
    evidence,
    failure,
    opening,
    sse_stream,
    thinking,
)

MS = 1_000_000


def read_chunks(name: str, *chunks: tuple[int, bytes], streamed: bool = True, end_ms: int = 1000) -> ResponseReader:
    """A reader that was fed chunks at times in milliseconds, and ended."""
    reader = ResponseReader(endpoint(name), streamed=streamed, headers_ns=5 * MS)
    for t_ms, chunk in chunks:
        reader.feed(chunk, t_ms * MS)
    reader.end(end_ms * MS)
    return reader


def test_times_are_those_of_the_reads():
    """Thinking at 100, answer at 300, more at 340 and 390, evidence at 400: every latency follows."""
    pieces = [(90, opening("messages")[0]), (100, thinking("Hm.")), (300, delta("messages", "a"))]
    pieces += [(340, delta("messages", "b")), (390, delta("messages", "c")), (400, evidence("messages")), (450, DONE)]
    timing = read_chunks("messages", *pieces).reply().timing
    assert (timing.ttfb_s, timing.ttft_s, timing.ttfa_s, timing.think_s) == (0.005, 0.1, 0.3, 0.2)
    assert timing.e2e_s == 0.45
    assert (timing.icl_p50_s, timing.icl_max_s) == (0.05, 0.2)
    assert timing.tpot_s == pytest.approx(0.29 / 3)
    assert timing.output_tps == pytest.approx(4 / 0.45)


def test_roles_and_empty_deltas_are_no_content():
    timing = (
        read_chunks(
            "web", (10, opening("web")[0]), (20, delta("web", "")), (30, delta("web", "a")), (40, evidence("web"))
        )
        .reply()
        .timing
    )
    assert (timing.ttft_s, timing.ttfa_s, timing.think_s) == (0.03, 0.03, None)


def test_what_came_with_the_first_word_blurs_it():
    """Role and two words with one stamp: the first word came after the headers at 5 ms; a word alone came then."""
    together = b"".join([opening("web")[0], delta("web", "a"), delta("web", "b")])
    reader = ResponseReader(endpoint("web"), streamed=True, headers_ns=5 * MS)
    for t_ms, chunk in [(20, together), (30, delta("web", "c")), (40, b"".join([evidence("web"), DONE]))]:
        reader.feed(chunk, t_ms * MS, 2 * MS)
    reader.end(1000 * MS)
    timing = reader.reply().timing
    assert (timing.ttft_low_s, timing.ttft_s) == (0.005, 0.02)
    # The gap after the second word is known, 10 ms; that before it, which is not, may be longer.
    assert (timing.icl_n, timing.icl_max_s) == (1, None)
    assert (timing.exact_share, timing.late_p50_ms, timing.clock) == (1 / 6, 2, "kernel")


@pytest.mark.parametrize(
    ("last", "low_s"),
    [([evidence("web"), DONE], 0.04), ([evidence("web"), delta("web", "")], 0.03), ([DONE, b": bye\n\n"], 0.04)],
)
def test_an_end_is_exact_where_its_event_came_last(last, low_s):
    """The terminator is, also where the evidence came with it; evidence that more follows is not."""
    reader = ResponseReader(endpoint("web"), streamed=True, headers_ns=5 * MS)
    for t_ms, data in [(20, delta("web", "a")), (30, delta("web", "b")), (40, b"".join(last))]:
        reader.feed(data, t_ms * MS, 0)
    reader.close(1000 * MS)
    assert (reader.reply().timing.e2e_low_s, reader.reply().timing.e2e_s) == (low_s, 0.04)


REST = [delta("web", "b")[:10], b": wait\n\n", b"event: message\n", b"data: ", b"\n"]


@pytest.mark.parametrize("rest", REST)
def test_what_follows_an_event_blurs_it_where_it_may_have_come_later(rest):
    """If the two may have been merged, the stamp is that of the last byte, which is not the event's."""
    for merged in (True, False):
        reader = ResponseReader(endpoint("web"), streamed=True, headers_ns=5 * MS)
        reader.feed(delta("web", "a") + rest, 20 * MS, 0, merged=merged)
        assert [read.blurred for read in reader.reads] == [merged]
        assert (reader.reply().timing.ttft_low_s, reader.reply().timing.ttft_s) == (0.005 if merged else 0.02, 0.02)


def test_headers_that_came_with_an_event_are_no_earliest_time_for_it():
    """They have its stamp, which is that of what came last."""
    reader = ResponseReader(endpoint("web"), streamed=True, headers_ns=20 * MS)
    reader.feed(delta("web", "a") + b": wait\n\n", 20 * MS, 0, merged=True)
    assert (reader.reply().timing.ttft_low_s, reader.reply().timing.ttft_s) == (0.0, 0.02)


def test_a_character_that_was_held_back_counts_when_it_came():
    """A text that could have begun a tag is content of the read that brought it."""
    reader = read_chunks("web", (10, delta("web", "<")), (20, delta("web", "a")), (30, evidence("web")))
    assert reader.reply().text == "<a"


@pytest.mark.parametrize("name", ENDPOINTS)
@given(data=st.data())
def test_any_cut_of_the_bytes_gives_the_same_reply(name, data):
    chunks = data.draw(cut(b"".join(sse_stream(name, "Hel", "lo ☃"))))
    reader = read_chunks(name, *((10, chunk) for chunk in chunks))
    assert reader.outcome(None) == read_chunks(name, (10, b"".join(chunks))).outcome(None)
    assert reader.reply().text == "Hello ☃"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_recorded_reply_reads_the_same_again(name, streamed):
    stream = [(10, b"".join(opening(name))), (20, delta(name, "Hello")), (30, b"".join(closing(name, "Hello")))]
    whole = [(10, lenient_json.encode(body(name, "Hello")))]
    live = read_chunks(name, *(stream if streamed else whole), streamed=streamed)
    again = reply_from_reads(
        endpoint(name), streamed=streamed, reads=live.reads, headers_ns=5 * MS, end_ns=live.stopwatch.end_ns
    )
    first = live.outcome(None)
    assert (again, again.timing, again.events, again.raw) == (first, first.timing, first.events, first.raw)
    assert again.text == "Hello"


@pytest.mark.parametrize(
    ("data", "error", "status"),
    [
        ([delta("web", "Hel")], StreamInterrupted, "interrupted"),
        ([delta("web", "Hel"), *failure("web")], StreamError, "failed"),
        ([delta("web", "Hel"), event(b"{")], StreamDecodeError, "failed"),
    ],
)
def test_a_record_that_ended_badly_reads_as_it_ended(data, error, status):
    reads = [Read(10 * MS, tuple(piece[6:-2] for piece in data))]
    reply = reply_from_reads(endpoint("web"), streamed=True, reads=reads, headers_ns=5 * MS, end_ns=10 * MS)
    assert (type(reply.error), reply.status, reply.text) == (error, status, "Hel")


def test_a_record_of_an_error_body_is_a_failure():
    for data in (b'{"error": {"message": "no"}}', b"<html>", b'{"choices": [{'):
        reply = reply_from_reads(endpoint("web"), streamed=False, reads=[Read(1, (data,))], headers_ns=1, end_ns=1)
        assert (reply.status, reply.error is not None, reply.text) == ("failed", True, "")


def test_a_record_without_reads_is_interrupted():
    reply = reply_from_reads(endpoint("web"), streamed=True, reads=[], headers_ns=None, end_ns=None)
    assert (reply.status, reply.text, reply.timing.e2e_s, reply.timing.ttft_s) == ("interrupted", "", None, None)


def test_events_of_an_abandoned_try_stay_out_of_the_reply():
    events = []
    first = ResponseReader(endpoint("web"), streamed=True, events=events)
    first.feed(opening("web")[0], 1)
    abandoned = len(events)
    second = ResponseReader(endpoint("web"), streamed=True, events=events)
    for chunk in sse_stream("web", "Hello"):
        second.feed(chunk, 1)
    second.end(2)
    assert abandoned > 0
    assert second.outcome(None).events == tuple(events[abandoned:])
    assert second.reply().text == "Hello"


def test_comments_alone_are_a_stream_that_broke_off():
    with pytest.raises(StreamInterrupted):
        read_chunks("web", (10, b": hello\n\n"))


@pytest.mark.parametrize("at_once", [True, False])
def test_what_follows_a_failure_is_not_read(at_once: bool):
    reader = ResponseReader(endpoint("chat"), streamed=True)
    events = [b'data: {"error": {"message": "the engine stopped"}}\n\n', b"data: 2DONE]\n\n"]
    for chunk in [b"".join(events)] if at_once else events[:1]:
        reader.feed(chunk, 1)
    assert reader.is_finished
    with pytest.raises(StreamError, match="the engine stopped"):
        reader.end(2)
