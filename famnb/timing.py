"""Reads from the socket with their times of arrival, and the latencies that follow from them.

sent ──── headers ──── first content ──── first answer ──── last content ── end
  └ ttfb_s ┘
  └──────── ttft_s ─────────┘
  └──────────────── ttfa_s ──────────────────┘
                            └─── think_s ────┘
  └──────────────────────────────── e2e_s ──────────────────────────────────┘

Times are integer nanoseconds of the monotonic clock: a wall clock is stepped by NTP, and the difference of two floats
loses digits with the machine's uptime. Only the results are seconds.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import msgspec

from famnb.formatting import format_duration, format_number, html_table

# Which gaps are unknown is no accident: what came while a cell kept the interpreter is merged. So a figure is not taken
# from the others as if nothing were missing; it is given only where it would be the same, whatever they were.
MAX_DEVIATION = 0.05
"""The share by which a figure of the gaps between chunks may be off because some times are unknown."""
# Below it no figure could be that good; and a stream in bulk, thousands of chunks in a read, is not looked at further.
MIN_EXACT = 0.5
"""The share of all gaps between chunks that must be exact for there to be any figure of them."""


# `gc=False` here and below: there is one for nearly every event, and none can be part of a cycle.
class Arrival(msgspec.Struct, frozen=True, gc=False):
    """When bytes that came together came."""

    t_ns: int
    """Nanoseconds of the monotonic clock: when the kernel received the last of them, else when they were read."""
    late_ns: int | None
    """By how much later Python got round to them; None if the kernel did not say when they came."""
    blurred: bool = False
    """Whether they came at an unknown moment between the arrival before and this one."""
    merged: bool = False
    """Whether only the last of them is known to have come then: the kernel may have merged them from several pieces."""


# `array_like`: so that field names are not repeated where reads are stored.
class Read(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One read from the socket that completed at least one event; its index among the reads is the batch number."""

    t_ns: int
    """Monotonic nanoseconds since the request was sent."""
    data: tuple[bytes, ...]
    """The `data` of each event completed by this read, undecoded; a whole reply is one body."""
    late_ns: int | None = None
    """By how much later Python got round to it; None where `t_ns` is the time at which Python did."""
    blurred: bool = False
    """Whether the last event, too, may have come before `t_ns`; those before it always may. None came before the read
    before this one."""

    @property
    def is_exact(self) -> bool:
        """Whether its one event came at `t_ns`, by the kernel's clock."""
        return self.late_ns is not None and not self.blurred and len(self.data) == 1


class Timing(msgspec.Struct, frozen=True):
    """Latencies of one call, in seconds from sending the request that was answered; None where not observed."""

    connect_s: float | None = None
    """Before all that: name look-up, connection and TLS; None where a kept connection was used."""
    ttfb_s: float | None = None
    """To the response headers."""
    ttft_s: float | None = None
    """To the first generated content of any kind; for a whole reply, to its body."""
    ttft_low_s: float | None = None
    """The earliest that it can have come; equals `ttft_s` where that is exact. None where the clock is the user's."""
    ttfa_s: float | None = None
    """To the first visible answer text; equals `ttft_s` without thinking."""
    think_s: float | None = None
    """`ttfa_s - ttft_s`, when thinking came first in a stream."""
    thinking_latency_ms: int | None = None
    """The service's own measure of thinking, in milliseconds."""
    e2e_s: float | None = None
    """To the terminal event; if none came, to the moment at which reading stopped."""
    e2e_low_s: float | None = None
    """The earliest that it can have come; equals `e2e_s` where that is exact. None where the clock is the user's."""
    icl_p50_s: float | None = None
    """Median inter-chunk latency: the gap between reads that brought content. A chunk may hold several tokens.

    By the kernel's clock it is of gaps between exact times. Where others are unknown it is the middle of what is
    possible, and None where it might be wrong by more than MAX_DEVIATION; the two below likewise.
    """
    icl_p95_s: float | None = None
    """95th percentile of the same gaps; None below 20 gaps."""
    icl_max_s: float | None = None
    """The longest of the same gaps."""
    icl_n: int | None = None
    """How many exact gaps there are; by the user's clock, how many gaps."""
    tpot_s: float | None = None
    """(last content - first content) / (output tokens - 1), the count covering what the window covers."""
    output_tps: float | None = None
    """Output tokens / `e2e_s`."""
    clock: str | None = None
    """Who said when something came: `kernel`, or `user` for Python, which may have been kept from looking."""
    exact_share: float | None = None
    """The share of events whose time no other event has: they are exact. None where the clock is the user's."""
    late_p50_ms: float | None = None
    """The median, over events, of how much later Python got round to them; None where the clock is the user's."""
    late_max_ms: float | None = None
    """The most of the same."""

    def __repr__(self) -> str:
        observed = {name: getattr(self, name) for name in LATENCY_TITLES if getattr(self, name) is not None}
        return f"<Timing {', '.join(f'{name}={value:.3g}' for name, value in observed.items()) or 'nothing observed'}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, format_duration(value) if name.endswith("_s") else format_number(value), title)
            for name, title in LATENCY_TITLES.items()
            if (value := getattr(self, name)) is not None
        ]
        return html_table(("latency", "value", "from sending the request"), rows)


LATENCY_TITLES = {
    "ttfb_s": "to the response headers",
    "ttft_s": "to the first token, thinking or text",
    "ttfa_s": "to the first text of the answer",
    "think_s": "between the two: thinking",
    "e2e_s": "to the end",
    "icl_p50_s": "gap between chunks, the median",
    "icl_p95_s": "gap between chunks, 95th percentile",
    "tpot_s": "a token after the first",
    "output_tps": "tokens a second, over all of it",
}
"""The latencies that a Timing shows of itself, each with what it is; the others are for who asks for them."""


class Stopwatch:
    """Notes for each read which kinds of content it brought, and computes a Timing from these notes."""

    def __init__(self) -> None:
        self.connect_ns: int | None = None
        self.headers_ns: int | None = None
        self.answer_ns: int | None = None
        self.thinking_first = False
        self.has_thinking = False
        self.end_ns: int | None = None
        self._end_low_ns: int | None = None
        self._content_ns: list[int] = []
        """When each read came that brought content."""
        self._blurred: dict[int, tuple[int, int, bool]] = {}
        """Of those whose first content may have come earlier, by their place: what `note_content` was told of them."""

    def note_content(
        self,
        t_ns: int,
        low_ns: int | None = None,
        *,
        is_end_exact: bool = True,
        chunks: int = 1,
        answer: bool,
        thinking: bool,
    ) -> None:
        """A read at `t_ns` brought content; `answer` and `thinking` say which kinds.

        It was one chunk, which came then; or, with `low_ns`, `chunks` that came between then and `t_ns`, the last of
        them at `t_ns` if `is_end_exact`.
        """
        if not self._content_ns:
            # `think_s` is a wait for the answer; thinking that follows an answer is not.
            self.thinking_first = thinking
        self.has_thinking = self.has_thinking or thinking
        if answer and self.answer_ns is None:
            self.answer_ns = t_ns
        if low_ns is not None:
            self._blurred[len(self._content_ns)] = low_ns, chunks, is_end_exact
        self._content_ns.append(t_ns)

    def note_end(self, t_ns: int | None, low_ns: int | None = None) -> None:
        """The reply ended at `t_ns`, None if that is not known; if that is not exact, not before `low_ns`."""
        self.end_ns, self._end_low_ns = t_ns, low_ns

    def timing(
        self,
        reads: Sequence[Read] = (),
        *,
        streamed: bool,
        output_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        thinking_latency_ms: int | None = None,
    ) -> Timing:
        """Return the latencies so far; `reads` say how well they are known.

        `output_tokens` includes `reasoning_tokens`; `tpot_s` does if thinking came too.
        """
        content, answer = self._content_ns, self.answer_ns
        first = content[0] if content else None
        # A whole reply comes in one read, so nothing can be said about gaps or thinking.
        window = content[-1] - content[0] if streamed and content else 0
        clock = None
        if reads:
            clock = "user" if all(read.late_ns is None for read in reads) else "kernel"
        # The user's clock knows no exact time, and so none that is less exact than the others either.
        is_kernel = clock == "kernel"
        gaps = self._gaps(is_kernel=is_kernel) if streamed else _Gaps([])
        think_s = None
        if streamed and self.thinking_first and first is not None and answer is not None:
            think_s = (answer - first) / 1e9
        tpot_s = None
        if output_tokens is not None and window > 0:
            # Reasoning that was not streamed took its time before the first content, so its tokens are left out too:
            # dividing by them would report a fraction of the true time per token.
            covered = output_tokens if self.has_thinking else output_tokens - (reasoning_tokens or 0)
            # The first token opens the window, so its generation is not in it.
            tpot_s = window / (covered - 1) / 1e9 if covered > 1 else None
        exact_share, late_p50_ms, late_max_ms = _measure_lateness(reads)
        return Timing(
            connect_s=_seconds(self.connect_ns),
            ttfb_s=_seconds(self.headers_ns),
            ttft_s=_seconds(first),
            ttft_low_s=_seconds(self._blurred[0][0] if 0 in self._blurred else first) if is_kernel else None,
            ttfa_s=_seconds(answer),
            think_s=think_s,
            thinking_latency_ms=thinking_latency_ms,
            e2e_s=_seconds(self.end_ns),
            e2e_low_s=_seconds(self.end_ns if self._end_low_ns is None else self._end_low_ns) if is_kernel else None,
            icl_p50_s=gaps.quantile_s(0.5),
            icl_p95_s=gaps.quantile_s(0.95),
            icl_max_s=gaps.max_s(),
            icl_n=len(gaps.exact) if streamed and content else None,
            tpot_s=tpot_s,
            output_tps=None if output_tokens is None or not self.end_ns else output_tokens / (self.end_ns / 1e9),
            clock=clock,
            exact_share=exact_share,
            late_p50_ms=late_p50_ms,
            late_max_ms=late_max_ms,
        )

    def _gaps(self, *, is_kernel: bool) -> _Gaps:
        """The gaps between chunks with content; by the user's clock those between reads, since it knows no others."""
        content, gaps = self._content_ns, _Gaps([])
        if not is_kernel or not self._blurred:
            return _Gaps([later - earlier for earlier, later in pairwise(content)])
        # Between exact times lie chunks whose times are not known; how long all of their gaps are together is.
        since, is_exact, unknown = 0, False, 0
        for index, t_ns in enumerate(content):
            low_ns, chunks, is_end_exact = self._blurred.get(index, (t_ns, 1, True))
            if index == 0:
                since = low_ns
            unknown += chunks - is_end_exact
            if is_end_exact:
                gaps.add(t_ns - since, unknown + is_exact, is_sum_known=is_exact)
                since, is_exact, unknown = t_ns, True, 0
        gaps.add(content[-1] - since, unknown - (not is_exact), is_sum_known=False)
        return gaps


@dataclasses.dataclass(slots=True)
class _Gaps:
    """The gaps between the chunks of a stream, some of which are not known singly; nanoseconds."""

    exact: list[int]
    unknown: list[tuple[int, int, bool]] = dataclasses.field(default_factory=list)
    """Of the others, which are known some together: their sum, how many they are, and whether that is less at most."""

    def add(self, total: int, count: int, *, is_sum_known: bool) -> None:
        """Add `count` gaps that are `total` long together, or at most that if `is_sum_known` is False."""
        if count == 1 and is_sum_known:
            self.exact.append(total)
        elif count > 0:
            self.unknown.append((total, count, is_sum_known))

    def quantile_s(self, p: float) -> float | None:
        """The p-quantile in seconds; None when it is not known well enough, or of fewer than 1/(1-p) exact gaps."""
        # Fewer values than that, and the quantile is the maximum under another name. 1/(1-p) is inexact in floats.
        return self._figure_s(lambda gaps: _quantile(gaps, p)) if len(self.exact) >= 1 / (1 - p) - 1e-9 else None

    def max_s(self) -> float | None:
        """The longest in seconds; None when it is not known well enough."""
        return self._figure_s(max) if self.exact else None

    def _figure_s(self, figure: Callable[[Sequence[float]], float]) -> float | None:
        if len(self.exact) < MIN_EXACT * (len(self.exact) + sum(count for _, count, _ in self.unknown)):
            return None
        low = high = figure(self.exact)
        if self.unknown:
            # At least one is as long as their mean; at most n of them are longer than an n-th of their sum.
            lows: list[float] = [*self.exact]
            highs: list[float] = [*self.exact]
            for total, count, is_sum_known in self.unknown:
                lows += [total / count if is_sum_known else 0.0, *[0.0] * (count - 1)]
                highs += [total / part for part in range(1, count + 1)]
            low, high = figure(lows), figure(highs)
        return (low + high) / 2 / 1e9 if high - low <= 2 * MAX_DEVIATION * low else None


def _measure_lateness(reads: Sequence[Read]) -> tuple[float | None, float | None, float | None]:
    """The share of events with a time of their own, and the median and the most of how late Python was, in ms."""
    # By reads, of which a stream in bulk has few, and not by their events.
    ranked = sorted((read.late_ns, len(read.data)) for read in reads if read.late_ns is not None)
    if not ranked:
        return None, None, None
    count = sum(len(read.data) for read in reads)
    exact = sum(read.is_exact for read in reads)
    events_so_far = list(accumulate(events for _, events in ranked))
    median_ns, _ = ranked[bisect_right(events_so_far, events_so_far[-1] // 2)]
    return exact / count, median_ns / 1e6, ranked[-1][0] / 1e6


def _seconds(t_ns: int | None) -> float | None:
    return None if t_ns is None else t_ns / 1e9


def _quantile(values: Sequence[float], p: float) -> float:
    """The p-quantile, interpolated linearly."""
    ranked = sorted(values)
    position = (len(ranked) - 1) * p
    low = int(position)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (position - low)
