"""Latencies: what follows from when the bytes came, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.timing import Stopwatch, Timing

S = 1_000_000_000


def watched(*contents: tuple[float, str], headers: float | None = 0.5, end: float | None = 10.0) -> Stopwatch:
    """A stopwatch that noted reads at these seconds: of `t`hinking, `a`nswer, both, or other content."""
    stopwatch = Stopwatch()
    stopwatch.headers_ns = None if headers is None else round(headers * S)
    for seconds, kinds in contents:
        stopwatch.note_content(round(seconds * S), answer="a" in kinds, thinking="t" in kinds)
    stopwatch.end_ns = None if end is None else round(end * S)
    return stopwatch


def test_a_stream_with_thinking():
    """First content, first answer, and the time between them."""
    timing = watched((1, "t"), (2, "t"), (4, "a"), (8, "a")).timing(
        streamed=True, output_tokens=15, reasoning_tokens=6, thinking_latency_ms=2900
    )
    assert (timing.ttfb_s, timing.ttft_s, timing.ttfa_s, timing.think_s, timing.e2e_s) == (0.5, 1, 4, 3, 10)
    assert (timing.icl_p50_s, timing.icl_p95_s, timing.icl_max_s) == (2, None, 4)
    assert (timing.tpot_s, timing.output_tps, timing.thinking_latency_ms) == (7 / 14, 1.5, 2900)


def test_a_stream_without_thinking():
    """The first content is the first answer."""
    timing = watched((1, "a"), (3, "a")).timing(streamed=True)
    assert (timing.ttft_s, timing.ttfa_s, timing.think_s) == (1, 1, None)


def test_tokens_that_were_not_streamed_are_not_in_the_window():
    """Reasoning counts in the time per output token only where its deltas were seen."""
    hidden = watched((1, "a"), (5, "a")).timing(streamed=True, output_tokens=15, reasoning_tokens=10)
    assert hidden.tpot_s == pytest.approx(4 / (15 - 10 - 1))
    shown = watched((1, "t"), (5, "a")).timing(streamed=True, output_tokens=15, reasoning_tokens=10)
    assert shown.tpot_s == pytest.approx(4 / (15 - 1))


def test_thinking_that_follows_the_answer_is_no_thinking_time():
    """Only thinking that came first is waited for."""
    assert watched((1, "a"), (2, "t")).timing(streamed=True).think_s is None
    assert watched((1, "t")).timing(streamed=True).think_s is None
    assert watched((1, "ta")).timing(streamed=True).think_s == 0


def test_tool_calls_are_content_but_no_answer():
    """They end the wait for the first token, not for the first visible text."""
    timing = watched((1, ""), (2, "")).timing(streamed=True)
    assert (timing.ttft_s, timing.ttfa_s) == (1, None)


def test_a_whole_reply_has_no_chunks():
    """Its body is its first content; there are no gaps, no thinking time and no time per token to speak of."""
    timing = watched((9, "ta")).timing(streamed=False, output_tokens=20)
    assert (timing.ttft_s, timing.ttfa_s, timing.output_tps) == (9, 9, 2)
    assert (timing.think_s, timing.icl_p50_s, timing.icl_max_s, timing.tpot_s) == (None, None, None, None)


@pytest.mark.parametrize(("tokens", "reasoning"), [(None, None), (1, None), (0, 0), (5, 5)])
def test_a_rate_needs_tokens(tokens: int | None, reasoning: int | None):
    """Missing is missing: no rate is made up for one token, none, or an unknown number."""
    assert (
        watched((1, "a"), (2, "a")).timing(streamed=True, output_tokens=tokens, reasoning_tokens=reasoning).tpot_s
        is None
    )


def test_two_tokens_have_one_gap_between_them():
    """The least that gives a time per output token."""
    assert watched((1, "a"), (4, "a")).timing(streamed=True, output_tokens=2).tpot_s == 3


def test_content_that_came_at_once_has_no_rate():
    """Many tokens in one read took no time that could be measured."""
    assert watched((1, "a"), (1, "a")).timing(streamed=True, output_tokens=50).tpot_s is None


def test_nothing_observed_is_nothing_known():
    """A call that never got an answer has no latencies."""
    assert watched(headers=None, end=None).timing(streamed=True, output_tokens=5) == Timing()


def test_a_percentile_needs_enough_gaps():
    """The median takes two gaps, the 95th percentile twenty."""

    def stream(gaps: int) -> Timing:
        return watched(*((n, "a") for n in range(gaps + 1))).timing(streamed=True)

    assert (stream(1).icl_p50_s, stream(1).icl_max_s, stream(2).icl_p50_s) == (None, 1, 1)
    assert (stream(19).icl_p95_s, stream(20).icl_p95_s) == (None, 1)


@given(st.lists(st.integers(0, 10**12), min_size=1).map(sorted), st.booleans())
def test_latencies_are_in_order(times: list[int], thinking: bool):
    """First content, first answer, the end: none before the other, none negative."""
    stopwatch = Stopwatch()
    for n, t_ns in enumerate(times):
        stopwatch.note_content(t_ns, answer=not thinking or n > 0, thinking=thinking and n == 0)
    stopwatch.end_ns = times[-1]
    timing = stopwatch.timing(streamed=True, output_tokens=100)
    known = [value for value in (timing.ttft_s, timing.ttfa_s, timing.e2e_s) if value is not None]
    assert known == sorted(known)
    assert min(known) >= 0
