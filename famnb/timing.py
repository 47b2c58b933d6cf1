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

from collections.abc import Sequence
from itertools import pairwise

import msgspec


# `array_like`: there is one for nearly every event, so field names are not repeated where reads are stored.
class Read(msgspec.Struct, frozen=True, array_like=True):
    """One read from the socket that completed at least one event; its index among the reads is the batch number."""

    t_ns: int
    """Monotonic nanoseconds since the request was sent."""
    data: tuple[bytes, ...]
    """The `data` of each event completed by this read, undecoded; a whole reply is one body."""


class Timing(msgspec.Struct, frozen=True):
    """Latencies of one call, in seconds from sending the request that was answered; None where not observed."""

    ttfb_s: float | None = None
    """To the response headers."""
    ttft_s: float | None = None
    """To the first generated content of any kind; for a whole reply, to its body."""
    ttfa_s: float | None = None
    """To the first visible answer text; equals `ttft_s` without thinking."""
    think_s: float | None = None
    """`ttfa_s - ttft_s`, when thinking came first in a stream."""
    thinking_latency_ms: int | None = None
    """The service's own measure of thinking, in milliseconds."""
    e2e_s: float | None = None
    """To the terminal event; if none came, to the moment at which reading stopped."""
    icl_p50_s: float | None = None
    """Median inter-chunk latency: the gap between reads that brought content. A chunk may hold several tokens."""
    icl_p95_s: float | None = None
    """95th percentile of the same gaps; None below 20 gaps."""
    icl_max_s: float | None = None
    """The longest of the same gaps."""
    tpot_s: float | None = None
    """(last content - first content) / (output tokens - 1), the count covering what the window covers."""
    output_tps: float | None = None
    """Output tokens / `e2e_s`."""


class Stopwatch:
    """Notes for each read which kinds of content it brought, and computes a Timing from these notes.

    Once a read rather than once an event: events of one read share its time, and the zero gaps between them would only
    say how the network cut the stream.
    """

    def __init__(self) -> None:
        self.headers_ns: int | None = None
        self.answer_ns: int | None = None
        self.thinking_first = False
        self.has_thinking = False
        self.end_ns: int | None = None
        self._content_ns: list[int] = []

    def note_content(self, t_ns: int, *, answer: bool, thinking: bool) -> None:
        """A read at `t_ns` brought content; `answer` and `thinking` say which kinds."""
        if not self._content_ns:
            # `think_s` is a wait for the answer; thinking that follows an answer is none.
            self.thinking_first = thinking
        self.has_thinking = self.has_thinking or thinking
        if answer and self.answer_ns is None:
            self.answer_ns = t_ns
        self._content_ns.append(t_ns)

    def timing(
        self,
        *,
        streamed: bool,
        output_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        thinking_latency_ms: int | None = None,
    ) -> Timing:
        """Return the latencies so far; `output_tokens` includes `reasoning_tokens`, `tpot_s` if thinking came too."""
        content, answer = self._content_ns, self.answer_ns
        first = content[0] if content else None
        # A whole reply comes in one read, so nothing can be said about gaps or thinking.
        gaps = [later - earlier for earlier, later in pairwise(content)] if streamed else []
        think_s = None
        if streamed and self.thinking_first and first is not None and answer is not None:
            think_s = (answer - first) / 1e9
        return Timing(
            ttfb_s=_seconds(self.headers_ns),
            ttft_s=_seconds(first),
            ttfa_s=_seconds(answer),
            think_s=think_s,
            thinking_latency_ms=thinking_latency_ms,
            e2e_s=_seconds(self.end_ns),
            icl_p50_s=_quantile_s(gaps, 0.5),
            icl_p95_s=_quantile_s(gaps, 0.95),
            icl_max_s=max(gaps) / 1e9 if gaps else None,
            tpot_s=self._tpot_s(gaps, output_tokens, reasoning_tokens),
            output_tps=None if output_tokens is None or not self.end_ns else output_tokens / (self.end_ns / 1e9),
        )

    def _tpot_s(self, gaps: Sequence[int], output_tokens: int | None, reasoning_tokens: int | None) -> float | None:
        """The time from first to last content, divided by the tokens in it; None if either is not known."""
        if output_tokens is None:
            return None
        # Reasoning that was not streamed took its time before the first content, so its tokens are left out too:
        # dividing by them would report a fraction of the true time per token.
        covered = output_tokens if self.has_thinking else output_tokens - (reasoning_tokens or 0)
        window = sum(gaps)
        # The first token opens the window, so its generation is not in it.
        return window / (covered - 1) / 1e9 if covered > 1 and window > 0 else None


def _seconds(t_ns: int | None) -> float | None:
    return None if t_ns is None else t_ns / 1e9


def _quantile_s(gaps: Sequence[int], p: float) -> float | None:
    """The p-quantile of gaps, interpolated linearly, in seconds; None when n < 1/(1-p)."""
    # Fewer values than that, and the quantile is the maximum under another name. 1/(1-p) is inexact in floats.
    if len(gaps) < 1 / (1 - p) - 1e-9:
        return None
    ranked = sorted(gaps)
    position = (len(ranked) - 1) * p
    low = int(position)
    high = min(low + 1, len(ranked) - 1)
    return (ranked[low] + (ranked[high] - ranked[low]) * (position - low)) / 1e9
