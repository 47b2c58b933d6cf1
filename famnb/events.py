"""The typed events of a stream, the same for every dialect: `wire` reads and writes them, `reply.fold` adds them up.

    Started ── Opened ── Delta … ── Closed ── (next block) ── Ended ── Usage ── Done
               └ any of these may be missing; a Delta alone opens its block; Opaque and Noted may come anywhere

`Usage` and `Fault` are also the token counts and the error of a whole reply.
"""

# The events are msgspec structs rather than dataclasses because every event of every stream makes at least one, and a
# struct costs a seventh of a frozen dataclass.

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from famnb.formatting import format_count, html_table

FinishReason: TypeAlias = Literal[
    "stop", "length", "content_filter", "tool_calls", "stop_sequence", "error", "cancelled"
]
"""Why generation ended, normalised; a reason that is not listed here is passed through as the server wrote it."""

Status: TypeAlias = Literal["running", "completed", "incomplete", "cancelled", "failed", "interrupted"]
"""The state of a call."""

Address: TypeAlias = tuple[int, int]
"""A block's position in the reply: (output index, content index). Blocks are shown in the order of their addresses."""

Count: TypeAlias = Literal[
    "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cache_write_tokens", "total_tokens"
]
COUNTS: tuple[Count, ...] = get_args(Count)
"""The token counts of a call."""
Source: TypeAlias = Literal["reported", "derived", "estimated", "absent"]
"""Where a token count comes from."""

ATTACHED_KINDS = frozenset({"citations", "search_results", "annotations", "logprobs", "content_filter_results"})
"""Kinds of block that say something about a text and are no content: each delta is a JSON value, the block's text is
the JSON list of them."""


class Started(msgspec.Struct, frozen=True):
    """The reply's identity; a field is empty if the server does not send it."""

    id: str = ""
    model: str = ""
    created: int | None = None
    """Unix time in seconds, by the service's clock."""
    input_tokens: int | None = None
    """The tokens of the prompt, where they are known before the answer; the reply's usage has them in any case."""


class Opened(msgspec.Struct, frozen=True):
    """A block begins, or more of its identity is known: some servers send a tool call's id and name separately."""

    at: Address
    kind: str
    """`thinking`, `text`, `tool_call`, `refusal`, `image` or one of the ATTACHED_KINDS; any other kind, such as a
    server's call of its own tools, is passed through as the server wrote it, with its JSON as the text."""
    id: str = ""
    """A tool call's id, or that of a block of another kind that has one."""
    name: str = ""
    """A tool call's function name, or that of a block of another kind that has one."""


# By far the most frequent event. `gc=False`: it holds only text and integers, so it cannot be part of a cycle, and the
# garbage collector need not visit the deltas that a long stream keeps alive.
class Delta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a block.

    The text of a `tool_call` is its JSON arguments, that of an `image` its URL, and of the ATTACHED_KINDS a JSON value.
    """

    at: Address
    kind: str
    """The block's kind, or `signature`: a piece of the block's signature."""
    text: str


class Closed(msgspec.Struct, frozen=True):
    """A block is finished."""

    at: Address
    text: str | None = None
    """The whole text, if the server repeats it; it replaces the text of the deltas."""
    latency_ms: int | None = None
    """How long a thinking block took, in milliseconds, as the service measured it."""


class Opaque(msgspec.Struct, frozen=True):
    """What the service sent with a block, or with the whole answer, and wants back unchanged in the next request."""

    at: Address
    """The block that it belongs to, or where it stands between the blocks."""
    text: str
    """A JSON object: the block as the service wrote it, or the fields of it that no event says."""


class Iteration(msgspec.Struct, frozen=True):
    """One of the passes of a model that a call is billed for."""

    model: str
    """Empty for the model of the reply."""
    input_tokens: int
    """With those that were read from the cache or written to it."""
    output_tokens: int
    cached_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0


class Billing(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call is billed for besides its tokens, and which of them have a price of their own."""

    tier: str = ""
    """The capacity that answered, such as `flex`, `priority` or `batch`; empty for the ordinary one."""
    cache_write_1h_tokens: int = 0
    audio_input_tokens: int = 0
    audio_output_tokens: int = 0
    image_output_tokens: int = 0
    searches: int = 0
    """Searches of the web that the service made."""
    iterations: tuple[Iteration, ...] = ()
    """The passes that are billed, where they are not those of the counts."""
    unpriced: tuple[str, ...] = ()
    """What is billed and has no price per token, in the service's own words."""
    broken_tries: int = 0
    """Streams of this call that broke off before their first content, and were asked for again: each may be billed."""


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
    cache_write_5m_tokens: int | None = None
    """Of `cache_write_tokens`, those that are kept for five minutes."""
    cache_write_1h_tokens: int | None = None
    """Of `cache_write_tokens`, those that are kept for an hour."""
    cost_usd: float | None = None
    """What the service says that the call costs, in USD."""
    billing: Billing = Billing()

    def __repr__(self) -> str:
        known = [name for name in COUNTS if getattr(self, name) is not None]
        facts = [f"{name}{'≈' if name in self.estimated else '='}{getattr(self, name)}" for name in known]
        return f"<Usage {', '.join(facts) or 'unknown'}>"

    def _repr_html_(self) -> str:
        counts = {name: getattr(self, name) for name in COUNTS}
        rows = [(name, "–" if n is None else format_count(n), self.source(name)) for name, n in counts.items()]
        return html_table(("count", "tokens", "source"), rows)

    def source(self, count: Count) -> Source:
        """Where a count comes from."""
        if getattr(self, count) is None:
            return "absent"
        if count in self.estimated:
            return "estimated"
        return "derived" if count in self.derived else "reported"

    def merge(self, later: Usage) -> Usage:
        """Return this usage updated by a later report: of each count the last value that is not None."""
        if self == _NO_USAGE:
            return later
        # Servers send running totals, or the same report twice, so a sum would count tokens more than once.
        newer = {name for name in _FIGURES if getattr(later, name) is not None}
        figures = {name: getattr(later if name in newer else self, name) for name in _FIGURES}
        newer_items = {name: value for name, value in msgspec.structs.asdict(later.billing).items() if value}
        return Usage(
            **figures,
            billing=msgspec.structs.replace(self.billing, **newer_items),
            derived=_merge_sources(self.derived, later.derived, newer),
            estimated=_merge_sources(self.estimated, later.estimated, newer),
        )

    @property
    def is_contradictory(self) -> bool:
        """Whether the service reported a total that is not input and output together."""
        counts = self.input_tokens, self.output_tokens, self.total_tokens
        if None in counts or self.estimated or self.source("total_tokens") != "reported":
            return False
        # None of the three is None, which mypy does not see in a tuple.
        return self.input_tokens + self.output_tokens != self.total_tokens  # type: ignore[operator]

    def with_total(self) -> Usage:
        """Return this usage with `total_tokens` derived from input and output if the server sent no total."""
        if self.total_tokens is not None or self.input_tokens is None or self.output_tokens is None:
            return self
        return self.merge(Usage(total_tokens=self.input_tokens + self.output_tokens, derived=("total_tokens",)))


_NO_USAGE = Usage()
_FIGURES = (*COUNTS, "cache_write_5m_tokens", "cache_write_1h_tokens", "cost_usd")


def _merge_sources(old: tuple[Count, ...], new: tuple[Count, ...], newer: set[str]) -> tuple[Count, ...]:
    """The counts with a certain source, where those in `newer` take it from the later report."""
    return tuple(count for count in COUNTS if (count in new if count in newer else count in old))


class Fault(msgspec.Struct, frozen=True):
    """An error as the service worded it, from an error body or from inside a stream."""

    message: str
    type: str | None = None
    code: str | None = None
    param: str | None = None
    """The request field at fault."""


class Ended(msgspec.Struct, frozen=True):
    """Evidence that generation ended: a finish reason, a stop reason, a terminal event or a failure."""

    finish_reason: str | None = None
    """Normalised, see FinishReason; None if the server gives no reason."""
    stop_reason: str | None = None
    """The reason as the server wrote it."""
    stop_sequence: str | None = None
    """The stop sequence that ended the text."""
    status: Status | None = None
    """The server's own status, if the dialect has one; otherwise the status follows from the reason."""
    fault: Fault | None = None


class Done(msgspec.Struct, frozen=True):
    """The terminator line `[DONE]`: the transport ended in order, which alone does not prove a complete reply."""


class Noted(msgspec.Struct, frozen=True):
    """Something that whoever reads the reply should know: one of its `warnings`."""

    text: str


class Other(msgspec.Struct, frozen=True):
    """An event without meaning for the reply, such as a ping; its bytes stay in the record of the call."""

    type: str = ""


Event: TypeAlias = Started | Opened | Delta | Closed | Opaque | Usage | Ended | Done | Noted | Other
