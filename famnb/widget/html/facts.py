"""A call in short texts: what its request asks; how its reply ended, with usage, timing and cost.

What is not known is left out.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias, assert_never

from famnb.client.auth import VARIABLE
from famnb.errors import AuthenticationError
from famnb.events import Count, Usage
from famnb.formatting import format_duration
from famnb.reply import Reply
from famnb.request import Request
from famnb.request.neutral import PromptTurn
from famnb.timing import Timing


class MessageText(NamedTuple):
    """The text of one message of a request, images and tool calls included by name."""

    role: str
    text: str


def message_texts(request: Request | None) -> list[MessageText]:
    """Return the messages of a request, the system text first; an empty list without a request."""
    # `Reply.request` is typed Any: it may hold whatever a caller put there.
    if not isinstance(request, Request):
        return []
    system = [request.system_turn] if request.system_turn else []
    return [_message_text(turn) for turn in (*system, *request.turns())]


def system_text(request: Request) -> str:
    """Return what a request tells the model beside its conversation; empty if nothing."""
    return "\n\n".join(text for role, text in message_texts(request) if role in ("system", "developer"))


def _message_text(turn: PromptTurn) -> MessageText:
    # An image that was uploaded is a data URL of megabytes; 80 characters are enough to tell an address.
    lines = [turn.text, *(f"[image: {address[:80]}]" for address in turn.images)]
    lines += [f"[calls {call.name}({call.arguments})]" for call in turn.tool_calls]
    return MessageText(turn.role, "\n".join(line for line in lines if line))


Tone: TypeAlias = Literal["plain", "warn", "error"]
"""How alarming a badge is; the front end and `transcript` choose its colour by it."""


_CUT_REASONS = {"length": "cut off at the token cap", "content_filter": "cut off by the content filter"}


class Badge(NamedTuple):
    """One short remark on a reply, and how alarming it is."""

    text: str
    tone: Tone


def badges(reply: Reply) -> list[Badge]:
    """Return what a reader must know before believing a reply, such as "stopped"; a complete reply has none."""
    badges = [Badge("simulated", "plain")] if reply.service == "sim" else []
    badges += [Badge("replayed", "plain")] if reply.replayed else []
    match reply.status:
        case "running" | "completed":
            pass
        case "incomplete":
            badges.append(Badge(_CUT_REASONS.get(reply.finish_reason or "", "incomplete"), "warn"))
        case "cancelled":
            seconds = reply.timing.e2e_s
            after = "" if seconds is None else f" after {format_duration(seconds, brief=True)}"
            badges.append(Badge(f"stopped{after}", "warn"))
        case "interrupted" | "failed":
            badges.append(Badge(reply.status, "error"))
        case _:
            assert_never(reply.status)
    # Only `[DONE]` came, which is no evidence that the answer is whole.
    if reply.status == "completed" and reply.complete is None:
        badges.append(Badge("perhaps incomplete", "warn"))
    return badges


def failure(reply: Reply) -> str | None:
    """Return what went wrong, as the error or the service says it; None if nothing did."""
    # The error of a cancelled reply says that it was stopped, which its badge says already.
    if reply.error is not None and reply.status in ("failed", "interrupted"):
        what_to_do = ""
        if isinstance(reply.error, AuthenticationError):
            # A call that was recorded does not say.
            variable = reply.error.key_variable or f"{VARIABLE} (with a profile: from its vendor's variable)"
            what_to_do = f". The client reads the key from {variable}, or takes api_key="
        return f"{type(reply.error).__name__}: {reply.error}{what_to_do}"
    if reply.fault is not None:
        return ": ".join(text for text in (reply.fault.code or reply.fault.type, reply.fault.message) if text)
    return None


def describe_thinking(timing: Timing, usage: Usage, *, closed: bool) -> str:
    """Return what the thinking took: "thought for 2.3 s, 412 tokens", "thought", or "thinking, not finished"."""
    seconds = timing.think_s
    # Our own measurement comes first; a reply that did not stream has only the service's.
    if seconds is None and timing.thinking_latency_ms is not None:
        seconds = timing.thinking_latency_ms / 1000
    facts = [] if seconds is None else [f"for {format_duration(seconds, brief=True)}"]
    if tokens := _tokens(usage, "reasoning_tokens"):
        facts.append(f"{tokens} tokens")
    if facts:
        return f"thought {', '.join(facts)}"
    return "thought" if closed else "thinking, not finished"


def figures(reply: Reply) -> str:
    """Return usage, timing and cost on one line."""
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


def describe_clock(timing: Timing) -> str | None:
    """Return whose clock the times are by and how late Python was beside it; None if nothing came.

    "Times by the kernel's clock, 98 % of events with their own; read 0.1 ms later (median), 4.2 ms at most".
    """
    match timing.clock:
        case None:
            return None
        case "kernel" if (
            timing.exact_share is not None and timing.late_p50_ms is not None and timing.late_max_ms is not None
        ):
            share = f"{math.floor(timing.exact_share * 100)} % of events with their own"
            median, most = (format_duration(late_ms / 1e3) for late_ms in (timing.late_p50_ms, timing.late_max_ms))
            return f"Times by the kernel's clock, {share}; read {median} later (median), {most} at most"
        case _:
            return "Times by this program's clock, which is late whenever another cell computes"


def _tokens(usage: Usage, count: Count) -> str:
    """Return a count of tokens, marked if it is estimated; "" if it is not known."""
    value = getattr(usage, count)
    mark = "≈" if usage.source(count) == "estimated" else ""
    return "" if value is None else f"{mark}{value:,}"


_SIDES: tuple[tuple[Count, str, tuple[tuple[Count, str], ...]], ...] = (
    ("input_tokens", "in", (("cached_tokens", "cached"), ("cache_write_tokens", "written to the cache"))),
    ("output_tokens", "out", (("reasoning_tokens", "thinking"),)),
)
"""The two sides of a call: its count, its name, and the counts that are part of it."""


def _usage(usage: Usage) -> str:
    sides = []
    for count, direction, details in _SIDES:
        tokens = _tokens(usage, count)
        shares = [f"{_tokens(usage, part)} {name}" for part, name in details if getattr(usage, part)]
        if tokens:
            sides.append(f"{tokens} tokens {direction}" + (f" ({', '.join(shares)})" if shares else ""))
    return " · ".join(sides) or "usage not reported"
