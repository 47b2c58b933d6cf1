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

from collections.abc import Sequence
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
    wire_events = list(read_wire_events(endpoint, reads))
    match definition:
        case "vllm":
            return _vllm([event.t_ns for event in wire_events if _is_chunk(event)], tokens)
        case "guidellm":
            stamps = [event.t_ns for event in wire_events if _has_text(event, but=("signature",))]
            return _guidellm(stamps, tokens, reads[-1].t_ns if end_ns is None else end_ns)
        case "aiperf":
            return _aiperf(
                [event.t_ns for event in wire_events if _has_text(event, but=("signature", "tool_call"))], tokens
            )
        case _:
            assert_never(definition)


def _vllm(stamps: list[int], tokens: int | None) -> Latencies:
    """By the times of all chunks."""
    if not stamps:
        return Latencies()
    first, last = stamps[0], stamps[-1]
    gaps = len(stamps) - 1
    return Latencies(
        ttft_s=first / 1e9,
        itl_s=(last - first) / gaps / 1e9 if gaps else None,
        itl_n=gaps or None,
        tpot_s=(last - first) / (tokens - 1) / 1e9 if tokens and tokens > 1 else None,
        e2e_s=last / 1e9,
    )


def _guidellm(stamps: list[int], tokens: int | None, end_ns: int) -> Latencies:
    """By the times of all events with text, tool calls included."""
    if not stamps:
        return Latencies(e2e_s=end_ns / 1e9)
    first, last = stamps[0], stamps[-1]
    count = len(stamps) if tokens is None else tokens
    return Latencies(
        ttft_s=first / 1e9,
        itl_s=(last - first) / (count - 1) / 1e9 if count > 1 else None,
        itl_n=count - 1 if count > 1 else None,
        tpot_s=last / count / 1e9 if count else None,
        e2e_s=end_ns / 1e9,
    )


def _aiperf(stamps: list[int], tokens: int | None) -> Latencies:
    """By the times of all events with answer or thinking."""
    if not stamps:
        return Latencies()
    first, last = stamps[0], stamps[-1]
    has_gaps = tokens is not None and tokens > 1
    return Latencies(
        ttft_s=first / 1e9,
        itl_s=(last - first) / (tokens - 1) / 1e9 if has_gaps and tokens is not None else None,
        itl_n=1 if has_gaps else None,
        e2e_s=last / 1e9,
    )


def _is_chunk(event: WireEvent) -> bool:
    if isinstance(event.body, dict) and "choices" in event.body:
        return bool(event.body["choices"])  # empty in the chunk that only has the usage
    return bool(event.deltas)


def _has_text(event: WireEvent, *, but: tuple[str, ...]) -> bool:
    """Whether an event brings text, of another kind of block than these."""
    return any(delta.text and delta.kind not in but for delta in event.deltas)
