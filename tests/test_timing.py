"""Latencies: what follows from when the bytes came, and what does not."""

import itertools
import re
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.timing import Read, Stopwatch, Timing

S = 1_000_000_000
MS = 1_000_000


def watched(*contents: tuple[float, str], headers: float | None = 0.5, end: float | None = 10.0) -> Stopwatch:
    """A stopwatch that noted reads at these seconds: of `t`hinking, `a`nswer, both, or other content."""
    stopwatch = Stopwatch()
    stopwatch.headers_ns = None if headers is None else round(headers * S)
    for seconds, kinds in contents:
        stopwatch.note_content(round(seconds * S), answer="a" in kinds, thinking="t" in kinds)
    stopwatch.end_ns = None if end is None else round(end * S)
    return stopwatch


def test_a_stream_with_thinking():
    timing = watched((1, "t"), (2, "t"), (4, "a"), (8, "a")).timing(
        streamed=True, output_tokens=15, reasoning_tokens=6, thinking_latency_ms=2900
    )
    assert (timing.ttfb_s, timing.ttft_s, timing.ttfa_s, timing.think_s, timing.e2e_s) == (0.5, 1, 4, 3, 10)
    assert (timing.icl_p50_s, timing.icl_p95_s, timing.icl_max_s) == (2, None, 4)
    assert (timing.tpot_s, timing.output_tps, timing.thinking_latency_ms) == (7 / 14, 1.5, 2900)


@pytest.mark.parametrize(
    ("contents", "latencies"),
    [
        ([(1, "a"), (3, "a")], (1, 1, None)),
        ([(1, "a"), (2, "t")], (1, 1, None)),
        ([(1, "t")], (1, None, None)),
        ([(1, "ta")], (1, 1, 0)),
        ([(1, ""), (2, "")], (1, None, None)),
    ],
    ids=["no thinking", "thinking after the answer", "no answer", "both at once", "tool calls"],
)
def test_only_thinking_before_an_answer_is_a_wait_for_it(contents: list[tuple[float, str]], latencies: tuple):
    timing = watched(*contents).timing(streamed=True)
    assert (timing.ttft_s, timing.ttfa_s, timing.think_s) == latencies


def test_tokens_that_were_not_streamed_are_not_in_the_window():
    hidden = watched((1, "a"), (5, "a")).timing(streamed=True, output_tokens=15, reasoning_tokens=10)
    assert hidden.tpot_s == pytest.approx(4 / (15 - 10 - 1))
    shown = watched((1, "t"), (5, "a")).timing(streamed=True, output_tokens=15, reasoning_tokens=10)
    assert shown.tpot_s == pytest.approx(4 / (15 - 1))


def test_a_whole_reply_has_no_chunks():
    timing = watched((9, "ta")).timing(streamed=False, output_tokens=20)
    assert (timing.ttft_s, timing.ttfa_s, timing.output_tps) == (9, 9, 2)
    assert (timing.think_s, timing.icl_p50_s, timing.icl_max_s, timing.tpot_s) == (None, None, None, None)


@pytest.mark.parametrize(
    ("last", "tokens", "reasoning", "tpot_s"),
    [(2, None, None, None), (2, 1, None, None), (2, 0, 0, None), (2, 5, 5, None), (4, 2, None, 3), (1, 50, None, None)],
)
def test_a_rate_needs_tokens_and_time_between_them(last, tokens, reasoning, tpot_s):
    stopwatch = watched((1, "a"), (last, "a"))
    assert stopwatch.timing(streamed=True, output_tokens=tokens, reasoning_tokens=reasoning).tpot_s == tpot_s


def test_nothing_observed_is_nothing_known():
    assert watched(headers=None, end=None).timing(streamed=True, output_tokens=5) == Timing()


def test_a_percentile_needs_enough_gaps():
    def stream(gaps: int) -> Timing:
        return watched(*((n, "a") for n in range(gaps + 1))).timing(streamed=True)

    assert (stream(1).icl_p50_s, stream(1).icl_max_s, stream(2).icl_p50_s) == (None, 1, 1)
    assert (stream(19).icl_p95_s, stream(20).icl_p95_s) == (None, 1)


@given(st.lists(st.integers(0, 10**12), min_size=1).map(sorted), st.booleans())
def test_latencies_are_in_order(times: list[int], thinking: bool):
    stopwatch = Stopwatch()
    for n, t_ns in enumerate(times):
        stopwatch.note_content(t_ns, answer=not thinking or n > 0, thinking=thinking and n == 0)
    stopwatch.end_ns = times[-1]
    timing = stopwatch.timing(streamed=True, output_tokens=100)
    known = [value for value in (timing.ttft_s, timing.ttfa_s, timing.e2e_s) if value is not None]
    assert known == sorted(known)
    assert min(known) >= 0


def kernel_read(t_s: float, *, events: int = 1, late_ms: int = 2, blurred: bool = False) -> Read:
    """A read of so many events that share the kernel's stamp."""
    return Read(round(t_s * S), (b"{}",) * events, late_ns=late_ms * MS, blurred=blurred)


def stream_of(*groups: int) -> Stopwatch:
    """A stopwatch that noted a read each second with so many chunks of content each; the last of a read is exact."""
    stopwatch = Stopwatch()
    for t_s, chunks in enumerate(groups, 1):
        low_ns = None if chunks == 1 else (t_s - 1) * S
        stopwatch.note_content(t_s * S, low_ns, chunks=chunks, answer=True, thinking=False)
    return stopwatch


def test_the_users_clock_has_no_bounds():
    stopwatch = stream_of(3, 1, 2)
    stopwatch.note_end(4 * S, 3 * S)
    timing = stopwatch.timing([Read(1 * S, (b"{}",) * 3)], streamed=True)
    assert (timing.clock, timing.ttft_low_s, timing.e2e_low_s, timing.exact_share) == ("user", None, None, None)
    assert (timing.late_p50_ms, timing.late_max_ms, timing.icl_n, timing.icl_max_s) == (None, None, 2, 1)


def test_the_share_of_exact_times_and_lateness_are_those_of_events():
    reads = [kernel_read(1), kernel_read(2, events=2), kernel_read(3, blurred=True), Read(4 * S, (b"{}",) * 2)]
    timing = Stopwatch().timing(reads, streamed=True)
    assert (timing.clock, timing.exact_share) == ("kernel", 1 / 6)
    reads = [kernel_read(1, late_ms=1), kernel_read(2, events=3, late_ms=40), kernel_read(3, late_ms=90)]
    timing = Stopwatch().timing(reads, streamed=True)
    assert (timing.late_p50_ms, timing.late_max_ms) == (40, 90)


def test_gaps_are_between_exact_times():
    timing = stream_of(*[1] * 9, 2, *[1] * 10).timing([kernel_read(1)], streamed=True)
    assert (timing.icl_n, timing.icl_p50_s) == (21 - 1 - 2, 1)


def test_a_blurred_end_takes_its_gap_along():
    stopwatch = stream_of(*[1] * 9)
    stopwatch.note_content(10 * S, 9 * S, is_end_exact=False, answer=True, thinking=False)
    for t_s in range(11, 21):
        stopwatch.note_content(t_s * S, answer=True, thinking=False)
    assert stopwatch.timing([kernel_read(1)], streamed=True).icl_n == 20 - 1 - 2


def test_a_figure_that_the_unknown_could_change_is_missing():
    stopwatch = stream_of(*[1] * 15)
    stopwatch.note_content(17 * S, 15 * S, chunks=2, answer=True, thinking=False)
    for t_s in range(18, 34):
        stopwatch.note_content(t_s * S, answer=True, thinking=False)
    timing = stopwatch.timing([kernel_read(1)], streamed=True)
    assert (timing.icl_n, timing.icl_p50_s, timing.icl_p95_s, timing.icl_max_s) == (30, 1, 1, None)


def test_the_longest_gap_may_be_known_without_the_others():
    stopwatch = stream_of(*[1] * 5, *[2] * 3)
    stopwatch.note_content(20 * S, answer=True, thinking=False)
    timing = stopwatch.timing([kernel_read(1)], streamed=True)
    assert (timing.icl_n, timing.icl_max_s) == (5, None)
    for t_s in (21, 22, 23):
        stopwatch.note_content(t_s * S, answer=True, thinking=False)
    timing = stopwatch.timing([kernel_read(1)], streamed=True)
    assert (timing.icl_n, timing.icl_max_s) == (8, 12)


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from([True] * 9 + [False])), min_size=2, max_size=200))
def test_figures_of_gaps_are_the_true_ones_or_none(chunks: list[tuple[int, bool]]):
    times = list(itertools.accumulate(gap * MS for gap, _ in chunks))
    stopwatch, before_ns, begin = Stopwatch(), 0, 0
    for end in range(1, len(times) + 1):
        if end == len(times) or chunks[end - 1][1]:
            low_ns = None if end - begin == 1 else before_ns
            stopwatch.note_content(times[end - 1], low_ns, chunks=end - begin, answer=True, thinking=False)
            before_ns, begin = times[end - 1], end
    timing = stopwatch.timing([kernel_read(1)], streamed=True)
    gaps = [(later - earlier) / S for earlier, later in itertools.pairwise(times)]
    assert timing.icl_max_s is None or timing.icl_max_s == pytest.approx(max(gaps), rel=0.05)
    assert timing.icl_p50_s is None or timing.icl_p50_s == pytest.approx(statistics.median(gaps), rel=0.05)
    if timing.icl_p95_s is not None:
        assert timing.icl_p95_s == pytest.approx(statistics.quantiles(gaps, n=20, method="inclusive")[-1], rel=0.05)


def test_a_whole_reply_has_bounds_but_no_gaps():
    stopwatch = stream_of(1)
    stopwatch.note_end(1 * S)
    timing = stopwatch.timing([kernel_read(1)], streamed=False)
    assert (timing.clock, timing.ttft_low_s, timing.e2e_low_s, timing.icl_n) == ("kernel", 1, 1, None)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=60))
def test_bounds_and_counts_hold_for_any_merging(groups: list[int]):
    stopwatch, end = stream_of(*groups), len(groups)
    stopwatch.note_end(end * S, None if groups[-1] == 1 else (end - 1) * S)
    reads = [kernel_read(t_s, events=events) for t_s, events in enumerate(groups, 1)]
    timing = stopwatch.timing(reads, streamed=True)
    assert (timing.ttft_low_s, timing.ttft_s) == (1 if groups[0] == 1 else 0, 1)
    assert (timing.e2e_low_s, timing.e2e_s) == (end if groups[-1] == 1 else end - 1, end)
    assert timing.icl_n <= sum(groups) - 1
    assert timing.exact_share == groups.count(1) / sum(groups)


def test_a_timing_reads_as_one_line_and_shows_what_was_observed():
    timing = Timing(ttft_s=0.0512, e2e_s=1.23456, output_tps=60.25)
    assert repr(timing) == "<Timing ttft_s=0.0512, e2e_s=1.23, output_tps=60.2>"
    assert repr(Timing()) == "<Timing nothing observed>"
    cells = re.findall(r"<td[^>]*>([^<]*)", timing._repr_html_())
    assert cells[:6] == ["ttft_s", "51 ms", "to the first token, thinking or text", "e2e_s", "1.23 s", "to the end"]
