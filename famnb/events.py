"""What a stream says, whatever the dialect: small values that `wire` reads and writes and `reply.fold` adds up.

They are msgspec structs rather than dataclasses because one is made for every event of every stream, and a
struct costs a seventh of a frozen dataclass.

    Started ── Opened ── Delta … ── Closed ── (next block) ── Ended ── Usage ── Done
               └ any of these may be missing; a Delta alone opens its block
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

FinishReason: TypeAlias = Literal[
    "stop", "length", "content_filter", "tool_calls", "stop_sequence", "error", "cancelled"
]
"""Why generation ended, normalised; a reason not listed here is passed through as the wire's own word."""

Status: TypeAlias = Literal["running", "completed", "incomplete", "cancelled", "failed", "interrupted"]
"""The state of a call."""

Address: TypeAlias = tuple[int, int]
"""A block's place in the reply: (output index, content index)."""

Count: TypeAlias = Literal[
    "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cache_write_tokens", "total_tokens"
]
COUNTS: tuple[Count, ...] = (
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "total_tokens",
)
Source: TypeAlias = Literal["reported", "derived", "estimated", "absent"]


class Started(msgspec.Struct, frozen=True):
    """The reply has an identity; a field is empty where the wire does not say."""

    id: str = ""
    model: str = ""
    created: int | None = None
    """Unix time in seconds, the service's clock."""


class Opened(msgspec.Struct, frozen=True):
    """A block begins, or tells more of its identity (a tool call's id and name may come apart)."""

    at: Address
    kind: str
    """`thinking`, `text`, `tool_call`, `refusal`; a kind of the wire not known here is passed through."""
    id: str = ""
    """A tool call's id."""
    name: str = ""
    """A tool call's function name."""


class Delta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a block; the text of a `tool_call` is its JSON arguments."""

    at: Address
    kind: str
    """The block's kind, or `signature`: a piece of the block's signature."""
    text: str


class Closed(msgspec.Struct, frozen=True):
    """A block is finished."""

    at: Address
    text: str | None = None
    """The whole text, where the wire repeats it; it wins over the deltas."""
    latency_ms: int | None = None
    """The service's own measure of a thinking block."""


class Usage(msgspec.Struct, frozen=True):
    """Token counts, normalised: input includes cached tokens, output includes reasoning; None is absent, never 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    total_tokens: int | None = None
    derived: tuple[Count, ...] = ()
    """Counts that were computed from reported ones."""
    estimated: tuple[Count, ...] = ()
    """Counts that were estimated from text lengths."""

    def source(self, count: Count) -> Source:
        """Where a count comes from."""
        if getattr(self, count) is None:
            return "absent"
        if count in self.estimated:
            return "estimated"
        return "derived" if count in self.derived else "reported"

    def merge(self, later: Usage) -> Usage:
        """This usage updated by a later report: the last value that is not None wins; nothing is ever summed."""
        newer = {count for count in COUNTS if getattr(later, count) is not None}
        values = {count: getattr(later if count in newer else self, count) for count in COUNTS}
        return Usage(
            **values,
            derived=_merge_marks(self.derived, later.derived, newer),
            estimated=_merge_marks(self.estimated, later.estimated, newer),
        )

    def with_total(self) -> Usage:
        """The same with `total_tokens` derived from input and output where the wire gives none."""
        if self.total_tokens is not None or self.input_tokens is None or self.output_tokens is None:
            return self
        return self.merge(Usage(total_tokens=self.input_tokens + self.output_tokens, derived=("total_tokens",)))


def _merge_marks(old: tuple[Count, ...], new: tuple[Count, ...], newer: set[Count]) -> tuple[Count, ...]:
    return tuple(count for count in COUNTS if (count in new if count in newer else count in old))


class Fault(msgspec.Struct, frozen=True):
    """An error in the service's words; the same for an error body and for a failure inside a stream."""

    message: str
    type: str | None = None
    code: str | None = None
    param: str | None = None
    """The request field at fault."""


class Ended(msgspec.Struct, frozen=True):
    """Evidence that generation ended: a finish reason, a stop reason, a terminal event or a failure."""

    finish_reason: str | None = None
    """Normalised, see FinishReason; None where the wire names no reason."""
    stop_reason: str | None = None
    """The wire's own word."""
    stop_sequence: str | None = None
    """The stop sequence that was met."""
    status: Status | None = None
    """The wire's own status where it has one; otherwise it follows from the reason."""
    fault: Fault | None = None


class Done(msgspec.Struct, frozen=True):
    """The terminator line `[DONE]`: the transport ended in order, which alone does not prove a complete reply."""


class Other(msgspec.Struct, frozen=True):
    """Something of the wire that has no meaning here; its bytes stay in the raw record."""

    type: str = ""


Event: TypeAlias = Started | Opened | Delta | Closed | Usage | Ended | Done | Other
