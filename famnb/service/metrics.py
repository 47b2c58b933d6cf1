"""What the service counts, in the text format that Prometheus reads.

The format is a few lines of text; the client library of Prometheus would be a dependency of every notebook for them.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from famnb.service.request_log import RequestRecord

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_REQUESTS = "famnb_requests_total"
_BROKEN = "famnb_broken_streams_total"
_TOKENS = "famnb_tokens_total"
_TTFT = "famnb_time_to_first_token_seconds"
_DURATION = "famnb_request_duration_seconds"
_IN_FLIGHT = "famnb_requests_in_flight"
_UPSTREAM = "famnb_upstream_state"
_FAMILIES = {
    _REQUESTS: ("counter", "Requests answered, by endpoint and status; 499 if the caller left before there was one."),
    _BROKEN: ("counter", "Streams that failed, or whose caller left, after they had begun."),
    _TOKENS: ("counter", "Tokens of answered requests by their reported usage; output includes reasoning."),
    _TTFT: ("histogram", "Seconds from a request's head to the first token sent."),
    _DURATION: ("histogram", "Seconds from a request's head to the end of its answer."),
    _IN_FLIGHT: ("gauge", "Requests that are being answered."),
    _UPSTREAM: ("gauge", "1 for the state that the upstream is in: up, unauthorized or down."),
}
"""The type of each family of samples, and what it measures."""
# From what a cached first token takes to what a caller of a large model still waits for.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600, math.inf)
"""The upper ends of the histograms' buckets, in seconds."""
_LEFT = 499
"""The status of a request whose caller left, as nginx has it."""


class Metrics:
    """The counts of the service."""

    def __init__(self) -> None:
        self._values: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Counters and gauges by family and labels."""
        self._histograms: defaultdict[str, defaultdict[str, _Histogram]] = defaultdict(lambda: defaultdict(_Histogram))
        """By family and labels."""

    def begin(self, record: RequestRecord) -> None:
        """Count a request as one that is being answered."""
        self._values[_IN_FLIGHT][_labels(endpoint=record.endpoint)] += 1

    def end(self, record: RequestRecord) -> None:
        """Count a request as answered, or left by its caller."""
        endpoint = record.endpoint
        labels = _labels(endpoint=endpoint)
        self._values[_IN_FLIGHT][labels] -= 1
        self._values[_REQUESTS][_labels(endpoint=endpoint, status=str(record.status or _LEFT))] += 1
        if record.error is not None and record.status == 200:
            self._values[_BROKEN][labels] += 1
        for kind in ("input", "output", "reasoning", "cached"):
            if count := getattr(record.usage, f"{kind}_tokens"):
                self._values[_TOKENS][_labels(endpoint=endpoint, kind=kind)] += count
        self._histograms[_DURATION][labels].add(record.duration_s)
        if record.ttft_s is not None:
            self._histograms[_TTFT][labels].add(record.ttft_s)

    def render(self, upstream_state: str | None = None) -> bytes:
        """Return all samples as Prometheus reads them; with the state of the upstream if there is one."""
        lines: list[str] = []
        if upstream_state is not None:
            for state in ("up", "unauthorized", "down"):
                self._values[_UPSTREAM][_labels(state=state)] = int(state == upstream_state)
        for family, (kind, description) in _FAMILIES.items():
            values, histograms = self._values[family], self._histograms[family]
            if values or histograms:
                lines += [f"# HELP {family} {description}", f"# TYPE {family} {kind}"]
                lines += [f"{family}{{{labels}}} {value}" for labels, value in sorted(values.items())]
            for labels, histogram in sorted(histograms.items()):
                lines += histogram.render(family, labels)
        return "".join(f"{line}\n" for line in lines).encode()


class _Histogram:
    """Numbers of values by size."""

    def __init__(self) -> None:
        self._counts = [0] * len(_BUCKETS)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect.bisect_left(_BUCKETS, seconds)] += 1
        self._sum += seconds

    def render(self, family: str, labels: str) -> Iterator[str]:
        for end, count in zip(_BUCKETS, itertools.accumulate(self._counts), strict=True):
            yield f'{family}_bucket{{{labels},le="{"+Inf" if end == math.inf else f"{end:g}"}"}} {count}'
        yield f"{family}_count{{{labels}}} {sum(self._counts)}"
        yield f"{family}_sum{{{labels}}} {self._sum:.17g}"


def _labels(**labels: str) -> str:
    # No label holds anything of the caller's, so none has to be escaped, and their number is bounded.
    return ",".join(f'{label}="{value}"' for label, value in labels.items())
