"""Latencies as vLLM, GuideLLM and AIPerf define them, from the same recorded bytes; for `calls(definition=…)`.

                vllm                            guidellm                        aiperf
    ttft_s      first chunk, its text may be    first non-empty piece of        first non-empty text
                empty (a role chunk counts)     any kind                        or thinking
    itl_s       mean gap between chunks         (last − first) / (tokens − 1)   (e2e − ttft) / (tokens − 1)
    tpot_s      (e2e − ttft) / (tokens − 1)     last / tokens, ttft included    not defined
    e2e_s       last chunk, usage apart         the stream's close              last non-empty text or thinking
    tokens      as reported                     as reported, else pieces        as reported

A chunk is an event with non-empty `choices`, on dialects without `choices` one that brings a piece of a block. What a
tool would count as 0.0 is missing here. A call that failed, was stopped or was cut off is in none of these tools'
figures, so it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, assert_never

from famnb.endpoints import Endpoint
from famnb.frame.deltas import WireEvent, read_wire_events
from famnb.timing import Read

Definition: TypeAlias = Literal["famnb", "vllm", "guidellm", "aiperf"]
Peer: TypeAlias = Literal["vllm", "guidellm", "aiperf"]


class Latencies(NamedTuple):
    """One call's latencies by a tool's definition, in seconds; None where that tool has no value."""

    ttft_s: float | None = None
    itl_s: float | None = None
    itl_n: int | None = None
    """The weight of `itl_s` in the tool's own mean over calls."""
    tpot_s: float | None = None
    e2e_s: float | None = None


def latencies(
    definition: Peer, endpoint: Endpoint, reads: Sequence[Read], *, end_ns: int | None, tokens: int | None
) -> Latencies:
    """Return a stream's latencies as a tool defines them; `tokens` is the output count, None if it was not reported."""
    has_time = _HAS_TIME[definition]
    stamps = [event.read.t_ns for event in read_wire_events(endpoint, reads) if has_time(event)]
    closed_s = (reads[-1].t_ns if end_ns is None else end_ns) / 1e9 if definition == "guidellm" else None
    if not stamps:
        return Latencies(e2e_s=closed_s)
    first_s, last_s, gaps = stamps[0] / 1e9, stamps[-1] / 1e9, len(stamps) - 1
    span_s, later_tokens = last_s - first_s, 0 if tokens is None else max(tokens - 1, 0)
    match definition:
        case "vllm":
            tpot_s = span_s / later_tokens if later_tokens else None
            return Latencies(first_s, span_s / gaps if gaps else None, gaps or None, tpot_s, last_s)
        case "guidellm":
            count = len(stamps) if tokens is None else tokens
            itl_s = span_s / (count - 1) if count > 1 else None
            return Latencies(
                first_s, itl_s, count - 1 if count > 1 else None, last_s / count if count else None, closed_s
            )
        case "aiperf":
            itl_s = span_s / later_tokens if later_tokens else None
            return Latencies(first_s, itl_s, 1 if later_tokens else None, None, last_s)
        case _:
            assert_never(definition)


def _is_chunk(event: WireEvent) -> bool:
    if isinstance(event.body, dict) and "choices" in event.body:
        return bool(event.body["choices"])  # empty in the chunk that only has the usage
    return bool(event.deltas)


_HAS_TIME: Mapping[Peer, Callable[[WireEvent], bool]] = {
    "vllm": _is_chunk,
    "guidellm": lambda event: any(delta.text and delta.kind != "signature" for delta in event.deltas),
    "aiperf": lambda event: any(delta.text and delta.kind not in ("signature", "tool_call") for delta in event.deltas),
}
"""The events whose times a tool goes by."""
