"""The interface of a dialect: the functions that its module has, its reader and writer of streams, its conventions.

The functions at the end read what servers of every dialect send in the same places.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from famnb.events import Address, Billing, Closed, Delta, Done, Event, Fault, Opened, Other, Started, Usage
from famnb.reply import Reply
from famnb.wire import lenient_json, sse
from famnb.wire.lenient_json import amount, as_list, as_object, first_integer, integer, scalar_text


class EventWriter(Protocol):
    """Writes one stream; leaves out what the dialect cannot carry."""

    def write(self, event: Event, /) -> list[bytes]:
        """Return the SSE blocks (`data: …` and a blank line) for this event; each is sent by a write of its own."""


class Dialect(Protocol):
    """How one family of endpoints writes replies; each dialect is a module with these functions.

    A protocol that modules satisfy rather than a base class, since a dialect has no state outside its streams.
    """

    @property
    def CONVENTIONS(self) -> Conventions:  # noqa: N802 - a constant of the module
        """What belongs to it besides the shape of its replies."""

    def read(self, body: Any, /) -> list[Event]:
        """Return the events of a whole reply. Raises ResponseFormatError if the body is not one."""

    def reader(self) -> StreamReader:
        """A reader for one stream."""

    def write(self, reply: Reply, /) -> dict[str, Any]:
        """Return the body of a whole reply."""

    def writer(self, *, include_usage: bool = False, named: bool = False) -> EventWriter:
        """A writer for one stream; `include_usage` adds the usage chunk, `named` what the vendor's SDK wants."""

    def fault(self, fault: Fault, /, *, named: bool = False) -> dict[str, Any]:
        """Return the body of an error response; `named` adds what the vendor's SDK looks for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """How the vendor's Python SDK sends a request of a dialect; used to generate code that repeats a call."""

    package: str
    """The package to import; also the name of the kind of code cell that uses it, and of its vendor's profile."""
    client: str
    """The class of its client."""
    path: str
    """The end of the endpoint's path, which the SDK itself appends to `base_url`."""
    method: str
    """The attribute of the client that has the method `create`."""
    extra_fields: tuple[str, ...] = ()
    """Fields of the document or its vendor that the method has no parameter for; they are passed as `extra_body`."""
    wants_cap: bool = False
    """Whether the method requires a token cap."""
    answer: str
    """The expression that shows the answer of a whole `reply`."""
    print_event: str
    """The lines that print the text that an `event` of a stream adds to the answer."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """What belongs to a dialect besides the shape of its replies."""

    new_id: Callable[[], str]
    """Returns a new id for a reply."""
    error_types: Mapping[int, str]
    """The `type` of errors with these statuses; any other status below 500 has `invalid_request_error`."""
    server_error: str = "server_error"
    """The `type` of errors with a status of 500 or more."""
    key_header: str | None = None
    """The header that may hold the key instead of `Authorization`."""
    names_events: str | None = None
    """The header whose presence asks for `event:` lines: the vendor's SDK sends it, and needs them to read a stream."""
    request_id_header: str | None = None
    """The header in which that SDK looks for the id of its request."""
    sdk: Sdk

    def error_type(self, status: int) -> str:
        """Return the `type` of an error with this status."""
        return self.error_types.get(status, self.server_error if status >= 500 else "invalid_request_error")


class StreamReader(ABC):
    """Reads one stream up to its end; a subclass reads the JSON objects in it."""

    def __init__(self) -> None:
        self._done = False
        """Whether the terminator came; anything after it is ignored."""

    def read(self, data: bytes, /) -> list[Event]:
        """Return the events in one SSE `data`. Raises StreamDecodeError if it is neither `[DONE]` nor JSON."""
        if self._done:
            return []
        if data.strip() == sse.DONE:
            self._done = True
            return [*self.end(), Done()]
        event = lenient_json.decode_event(data)
        return self._read(event) if type(event) is dict else [Other()]

    def end(self) -> list[Event]:
        """Return the events held back until the end of the stream was known."""
        return []

    @abstractmethod
    def _read(self, event: dict[str, Any]) -> list[Event]:
        """Return the events in one JSON object of the stream."""


def read_identity(body: dict[str, Any], created: str = "") -> list[Started]:
    """Return the identity of a reply, if it has one; `created` is the name of the field with its time."""
    started = Started(scalar_text(body.get("id")), scalar_text(body.get("model")), integer(body.get(created)))
    return [] if started == Started() else [started]


def read_attached(at: Address, kind: str, values: Any) -> list[Event]:
    """Return values that say something about the text, each as a delta of their block."""
    return [Delta(at, kind, lenient_json.encode(value).decode()) for value in as_list(values)]


def read_foreign(at: Address, kind: str, fields: dict[str, Any]) -> list[Event]:
    """Return a block of a kind that famnb has no word for: its JSON is its text."""
    id_ = scalar_text(fields.get("call_id")) or scalar_text(fields.get("id")) or scalar_text(fields.get("tool_use_id"))
    return [
        Opened(at, kind, id_, scalar_text(fields.get("name"))),
        Delta(at, kind, lenient_json.encode(fields).decode()),
        Closed(at),
    ]


_WHOLE_FIELDS = ("type", "id", "index", "format", "name", "role", "signature")
"""Fields of a piece that say what it is a piece of, or come in one."""


def join_pieces(pieces: Sequence[Any]) -> Any:
    """Return the value of which a stream sent these pieces: texts are joined, the items of lists by their `index`."""
    values = [piece for piece in pieces if piece is not None]
    if len(values) < 2:
        return values[0] if values else None
    if all(isinstance(value, str) for value in values):
        return "".join(values)
    if all(isinstance(value, dict) for value in values):
        names = dict.fromkeys(name for value in values for name in value)
        columns = {name: [value[name] for value in values if value.get(name) is not None] for name in names}
        return {
            name: column[-1] if column and name in _WHOLE_FIELDS else join_pieces(column)
            for name, column in columns.items()
        }
    if all(isinstance(value, list) for value in values):
        items: dict[object, list[Any]] = {}
        for item in (item for value in values for item in value):
            fields = as_object(item)
            key = (fields["index"], fields.get("type")) if "index" in fields else len(items)
            items.setdefault(repr(key), []).append(item)
        return [join_pieces(group) for group in items.values()]
    return values[-1]


def read_usage(
    usage: dict[str, Any],
    counts: tuple[str, str],
    *,
    details: tuple[str, str],
    cached: tuple[str, ...] = (),
    total: str = "",
    tier: Any = None,
    unpriced: Sequence[str] = (),
) -> Usage:
    """Return the counts of a usage object, as servers of every dialect write it.

    `counts` are its fields for the tokens of input and of output, `details` those with details of either, `cached` and
    `total` those for the tokens that came from a cache, where no detail says so, and for the sum. `tier` is the
    capacity that answered, `unpriced` what else is billed.
    """
    input_details, output_details = (as_object(usage.get(name)) for name in details)
    lifetimes = {
        lifetime: integer(as_object(usage.get("cache_creation")).get(f"ephemeral_{lifetime}_input_tokens"))
        for lifetime in ("5m", "1h")
    }
    cache_writes = first_integer(
        input_details.get("cache_write_tokens"),
        input_details.get("cache_creation_tokens"),
        usage.get("cache_write_tokens"),
        usage.get("cache_creation_input_tokens"),
    )
    if cache_writes is None:
        # Zeros alone are what a stream writes that does not know its counts yet.
        cache_writes = sum(filter(None, lifetimes.values())) or None
    return Usage(
        input_tokens=integer(usage.get(counts[0])),
        output_tokens=integer(usage.get(counts[1])),
        reasoning_tokens=first_integer(
            output_details.get("reasoning_tokens"),
            output_details.get("thinking_tokens"),
            usage.get("reasoning_tokens"),
            usage.get("thinking_tokens"),
        ),
        cached_tokens=first_integer(input_details.get("cached_tokens"), *map(usage.get, cached)),
        cache_write_tokens=cache_writes,
        total_tokens=integer(usage.get(total)),
        cost_usd=_read_cost(usage),
        cache_write_5m_tokens=lifetimes["5m"],
        cache_write_1h_tokens=lifetimes["1h"],
        billing=Billing(
            tier="" if tier in _ORDINARY_TIERS else scalar_text(tier),
            cache_write_1h_tokens=lifetimes["1h"] or 0,
            audio_input_tokens=integer(input_details.get("audio_tokens")) or 0,
            audio_output_tokens=integer(output_details.get("audio_tokens")) or 0,
            image_output_tokens=integer(output_details.get("image_tokens")) or 0,
            searches=integer(as_object(usage.get("server_tool_use")).get("web_search_requests")) or 0,
            unpriced=tuple(dict.fromkeys(unpriced)),
        ),
    )


def write_usage(usage: Usage, input_name: str, output_name: str) -> dict[str, Any] | None:
    """Return the usage object in which the counts of input and output have these names; None if no count is known."""
    counts = {input_name: usage.input_tokens, output_name: usage.output_tokens, "total": usage.total_tokens}
    fields: dict[str, Any] = {f"{name}_tokens": count for name, count in counts.items()}
    if usage.reasoning_tokens is not None:
        fields[f"{output_name}_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    if usage.cached_tokens is not None:
        fields[f"{input_name}_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return None if all(value is None for value in fields.values()) else fields


_ORDINARY_TIERS = ("default", "standard", "auto", "on_demand")
"""What vendors call the capacity whose prices are those of their lists."""


def _read_cost(usage: dict[str, Any]) -> float | None:
    """Return what the service says that the call costs, in USD: `cost`, a number or an object with the `total_cost`."""
    if ticks := amount(usage.get("cost_in_usd_ticks")):
        return ticks / 10_000_000_000
    cost = usage.get("cost")
    if isinstance(cost, dict):
        return amount(cost.get("total_cost"))
    total = amount(cost)
    # With the user's own key at the vendor, `cost` is the broker's fee alone.
    upstream = as_object(usage.get("cost_details")).get("upstream_inference_cost")
    if total is not None and usage.get("is_byok") is True:
        return total + (amount(upstream) or 0)
    return total
