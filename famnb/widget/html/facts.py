"""A reply's facts in words: how it ended, what it cost and how long it took; only facts that are known."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, assert_never

from famnb.events import Count, Usage
from famnb.formatting import format_duration
from famnb.reply import Reply
from famnb.timing import Timing

Tone: TypeAlias = Literal["plain", "warn", "error"]


class Badge(NamedTuple):
    """One short remark on a reply, and how alarming it is."""

    text: str
    tone: Tone


def badges(reply: Reply) -> list[Badge]:
    """What must be said about a reply before it is believed; nothing for a complete one."""
    said = [Badge("simulated", "plain")] if reply.service == "sim" else []
    said += [Badge("replayed", "plain")] if reply.replayed else []
    match reply.status:
        case "running" | "completed":
            pass
        case "incomplete":
            said.append(Badge(_cut(reply), "warn"))
        case "cancelled":
            said.append(Badge("stopped", "warn"))
        case "interrupted":
            said.append(Badge("interrupted", "error"))
        case "failed":
            said.append(Badge("failed", "error"))
        case _:
            assert_never(reply.status)
    if reply.status == "completed" and reply.complete is None:
        said.append(Badge("perhaps incomplete", "warn"))
    return said


def _cut(reply: Reply) -> str:
    match reply.finish_reason:
        case "length":
            return "cut off at the token cap"
        case "content_filter":
            return "cut off by the content filter"
        case _:
            return "incomplete"


def failure(reply: Reply) -> str | None:
    """What went wrong, in the words of the error or of the service; None when nothing did."""
    if reply.error is not None and reply.status in ("failed", "interrupted"):
        return f"{type(reply.error).__name__}: {reply.error}"
    if reply.fault is not None:
        return ": ".join(word for word in (reply.fault.code or reply.fault.type, reply.fault.message) if word)
    return None


def describe_thinking(timing: Timing, usage: Usage, *, closed: bool) -> str:
    """What the thinking took, such as "thought for 2.3 s, 412 tokens"."""
    seconds = timing.think_s
    if seconds is None and timing.thinking_latency_ms is not None:
        seconds = timing.thinking_latency_ms / 1000
    tokens = _tokens(usage, "reasoning_tokens")
    facts = [
        f"for {format_duration(seconds, brief=True)}" if seconds is not None else "",
        f"{tokens} tokens" if tokens else "",
    ]
    known = ", ".join(fact for fact in facts if fact)
    return f"thought {known}" if known else "thought" if closed else "thinking, not finished"


def figures(reply: Reply) -> str:
    """Usage, timing and cost on one line."""
    timing = reply.timing
    facts = [_usage(reply.usage)]
    if timing.ttft_s is not None and reply.streamed:
        facts.append(f"first token {format_duration(timing.ttft_s, brief=True)}")
    if timing.think_s is not None and timing.ttfa_s is not None:
        facts.append(f"first word of the answer {format_duration(timing.ttfa_s, brief=True)}")
    if timing.e2e_s is not None:
        facts.append(f"{format_duration(timing.e2e_s, brief=True)} in all")
    if timing.output_tps is not None:
        facts.append(f"{timing.output_tps:.0f} tokens/s")
    if reply.status != "running":
        facts.append("cost unknown" if reply.cost is None else str(reply.cost))
    return " · ".join(fact for fact in facts if fact)


def _tokens(usage: Usage, count: Count) -> str:
    value = getattr(usage, count)
    mark = "≈" if usage.source(count) == "estimated" else ""
    return "" if value is None else f"{mark}{value:,}"


_SIDES: tuple[tuple[Count, str, tuple[tuple[Count, str], ...]], ...] = (
    ("input_tokens", "in", (("cached_tokens", "cached"), ("cache_write_tokens", "written to the cache"))),
    ("output_tokens", "out", (("reasoning_tokens", "thinking"),)),
)


def _usage(usage: Usage) -> str:
    sides = []
    for count, direction, details in _SIDES:
        tokens = _tokens(usage, count)
        inside = [f"{_tokens(usage, part)} {word}" for part, word in details if getattr(usage, part)]
        if tokens:
            sides.append(f"{tokens} tokens {direction}" + (f" ({', '.join(inside)})" if inside else ""))
    return " · ".join(sides) or "usage not reported"
