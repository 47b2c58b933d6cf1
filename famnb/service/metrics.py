"""What became of each request (`RequestRecord`), and what the service counts of them, as Prometheus reads it."""

from __future__ import annotations

import dataclasses
import functools

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from famnb.events import Usage
from famnb.service.errors import endpoint_for_path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# From what a cached first token takes to what a caller of a large model still waits for.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600)
"""The upper ends of the histograms' buckets, in seconds."""
_LEFT = 499
"""The status of a request whose caller left, as nginx has it."""

RECORD = "record"
"""The name of a request's `RequestRecord` in the state of its ASGI scope."""
DISCONNECTED = "disconnected"
"""The error of a request whose caller left."""


@dataclasses.dataclass(slots=True)
class RequestRecord:
    """One request while it is answered; times are in seconds by one clock."""

    endpoint: str
    """The endpoint's name, or that of another path."""
    started: float
    status: int | None = None
    """None if the caller left before there was one."""
    key: str = ""
    """The API key; empty if it was none of the service's."""
    streams: bool = False
    first_token: float | None = None
    ended: float = 0.0
    usage: Usage = dataclasses.field(default_factory=Usage)
    ignored: tuple[str, ...] = ()
    """The paths of its fields that have no effect."""
    error: str | None = None
    """The code of the error that ended it, `DISCONNECTED` if its caller left."""


_PATH_NAMES = {"/health": "health", "/metrics": "metrics", "/openapi.json": "openapi"}


def name_path(path: str) -> str:
    """Return what a path is called in the metrics: the endpoint's name, or one of a few others."""
    endpoint = endpoint_for_path(path)
    if path.startswith(endpoint.path):
        return endpoint.name
    return "models" if path.startswith("/v1/models") else _PATH_NAMES.get(path, "other")


class Metrics:
    """The counts of the service."""

    # No label holds anything of the caller's, so their number is bounded.
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = functools.partial(Counter, registry=self._registry)
        gauge = functools.partial(Gauge, registry=self._registry)
        histogram = functools.partial(Histogram, buckets=_BUCKETS, registry=self._registry)
        text = "Requests answered, by endpoint and status; 499 if the caller left before there was one."
        self._requests = counter("famnb_requests", text, ["endpoint", "status"])
        text = "Streams that failed, or whose caller left, after they had begun."
        self._broken = counter("famnb_broken_streams", text, ["endpoint"])
        text = "Tokens of answered requests by their reported usage; output includes reasoning."
        self._tokens = counter("famnb_tokens", text, ["endpoint", "kind"])
        text = "Seconds from a request's head to the first token sent."
        self._ttft = histogram("famnb_time_to_first_token_seconds", text, ["endpoint"])
        text = "Seconds from a request's head to the end of its answer."
        self._duration = histogram("famnb_request_duration_seconds", text, ["endpoint"])
        self._in_flight = gauge("famnb_requests_in_flight", "Requests that are being answered.", ["endpoint"])
        text = "1 for the state that the upstream is in: up, unauthorized or down."
        self._upstream = gauge("famnb_upstream_state", text, ["state"])

    def begin(self, record: RequestRecord) -> None:
        """Count a request as one that is being answered."""
        self._in_flight.labels(record.endpoint).inc()

    def end(self, record: RequestRecord) -> None:
        """Count a request as answered, or left by its caller."""
        endpoint = record.endpoint
        self._in_flight.labels(endpoint).dec()
        self._requests.labels(endpoint, record.status or _LEFT).inc()
        if record.error is not None and record.status == 200:
            self._broken.labels(endpoint).inc()
        for kind in ("input", "output", "reasoning", "cached"):
            if count := getattr(record.usage, f"{kind}_tokens"):
                self._tokens.labels(endpoint, kind).inc(count)
        self._duration.labels(endpoint).observe(record.ended - record.started)
        if record.first_token is not None:
            self._ttft.labels(endpoint).observe(record.first_token - record.started)

    def render(self, upstream_state: str | None = None) -> bytes:
        """Return all samples as Prometheus reads them; with the state of the upstream if there is one."""
        for state in ("up", "unauthorized", "down") if upstream_state is not None else ():
            self._upstream.labels(state).set(state == upstream_state)
        return generate_latest(self._registry)
