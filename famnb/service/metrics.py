"""What the service counts, in the text format that Prometheus reads.

The samples are plain sums, so that those of several processes can be added; a bucket of a histogram is that of its own
values until it is written. The format is a few lines of text; the client library of Prometheus would be a dependency of
every notebook for them.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

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
    _TOKENS: ("counter", "Tokens of answered requests, as their usage says; output includes reasoning."),
    _TTFT: ("histogram", "Seconds from a request's head to the first token sent."),
    _DURATION: ("histogram", "Seconds from a request's head to the end of its answer."),
    _IN_FLIGHT: ("gauge", "Requests that are being answered."),
    _UPSTREAM: ("gauge", "1 for the state that the upstream is in: up, unauthorized or down."),
}
"""The type of each family of samples, and what it says."""
_TOKEN_KINDS = ("input", "output", "reasoning", "cached")
# From what a cached first token takes to what a caller of a large model still waits for.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600, math.inf)
"""The upper ends of the histograms' buckets, in seconds."""
_LEFT = 499
"""The status of a request whose caller left, as nginx has it."""
UPSTREAM_STATES = ("up", "unauthorized", "down")

Samples = Mapping[str, float]
"""Values by name and labels, such as `famnb_tokens_total{endpoint="chat",kind="input"}`."""


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self.samples: defaultdict[str, float] = defaultdict(float)

    async def collect(self) -> list[Samples]:
        """Return the counts of all processes of the service."""
        return [self.samples]

    def begin(self, record: RequestRecord) -> None:
        """Count a request as one that is being answered."""
        self.samples[_sample(_IN_FLIGHT, endpoint=record.endpoint)] += 1

    def end(self, record: RequestRecord) -> None:
        """Count a request as answered, or left by its caller."""
        samples, endpoint = self.samples, record.endpoint
        samples[_sample(_IN_FLIGHT, endpoint=endpoint)] -= 1
        samples[_sample(_REQUESTS, endpoint=endpoint, status=str(record.status or _LEFT))] += 1
        if record.error is not None and record.status == 200:
            samples[_sample(_BROKEN, endpoint=endpoint)] += 1
        for kind in _TOKEN_KINDS:
            if count := getattr(record.usage, f"{kind}_tokens"):
                samples[_sample(_TOKENS, endpoint=endpoint, kind=kind)] += count
        self._observe(_DURATION, endpoint, record.duration_s)
        if record.ttft_s is not None:
            self._observe(_TTFT, endpoint, record.ttft_s)

    def _observe(self, family: str, endpoint: str, seconds: float) -> None:
        samples, end = self.samples, _BUCKETS[bisect.bisect_left(_BUCKETS, seconds)]
        # In its own bucket alone; `render` adds those below, once a scrape instead of with every request.
        samples[_bucket(family, endpoint, end)] += 1
        samples[_sample(f"{family}_count", endpoint=endpoint)] += 1
        samples[_sample(f"{family}_sum", endpoint=endpoint)] += seconds


def without_gauges(samples: Samples) -> Samples:
    """Return what still counts of a process that has ended."""
    return {name: value for name, value in samples.items() if not name.startswith((_IN_FLIGHT, _UPSTREAM))}


def upstream_samples(state: str | None) -> Samples:
    """Return the samples for the state of an upstream; none without one."""
    return {} if state is None else {_sample(_UPSTREAM, state=name): name == state for name in UPSTREAM_STATES}


def render(processes: Iterable[Samples]) -> bytes:
    """Return the sums of all samples as Prometheus reads them."""
    total: defaultdict[str, float] = defaultdict(float)
    for samples in processes:
        for name, value in samples.items():
            total[name] += value
    _fill_buckets(total)
    by_family = itertools.groupby(sorted(total, key=_position), key=_family)
    lines: list[str] = []
    for family, names in by_family:
        kind, description = _FAMILIES[family]
        lines += [f"# HELP {family} {description}", f"# TYPE {family} {kind}"]
        lines += [f"{name} {float(total[name]):.17g}" for name in names]
    return "".join(f"{line}\n" for line in lines).encode()


def _fill_buckets(samples: dict[str, float]) -> None:
    """Have each bucket of a histogram hold what is below its end, as Prometheus wants it, and none missing."""
    for name in [name for name in samples if name.partition("{")[0].endswith("_count")]:
        family, endpoint = name.partition("_count{")[0], name.split('"')[1]
        below = 0.0
        for end in _BUCKETS:
            below += samples.get(_bucket(family, endpoint, end), 0.0)
            samples[_bucket(family, endpoint, end)] = below


@functools.cache
def _bucket(family: str, endpoint: str, end: float) -> str:
    return _sample(f"{family}_bucket", endpoint=endpoint, le="+Inf" if end == math.inf else f"{end:g}")


@functools.cache
def _sample(name: str, **labels: str) -> str:
    # No label holds anything of the caller's, so none has to be escaped, and their number is bounded.
    pairs = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{pairs}}}"


def _family(sample: str) -> str:
    name = sample.partition("{")[0]
    return name if name in _FAMILIES else name.rpartition("_")[0]


def _position(sample: str) -> tuple[int, str, str, float, str]:
    """Return where a sample stands: by family, then labels, then the end of its bucket."""
    name, _, labels = sample.partition("{")
    rest, _, end = labels.partition('le="')
    bound = float(end.rstrip('"}')) if end else 0.0
    return list(_FAMILIES).index(_family(sample)), rest.rstrip(",}"), name, bound, sample
