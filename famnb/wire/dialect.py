"""The interface of a dialect: the functions, reader and writer that each dialect's module has, and its conventions."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from famnb.events import Done, Event, Fault, Other
from famnb.reply import Reply
from famnb.wire import lenient_json, sse


class EventReader(Protocol):
    """Reads one stream; keeps what must be remembered between its events."""

    def read(self, data: bytes, /) -> list[Event]:
        """Return the events that one SSE `data` says; raises StreamDecodeError if it is neither `[DONE]` nor JSON."""

    def end(self) -> list[Event]:
        """Return the events held back until the end of the stream was known."""


class EventWriter(Protocol):
    """Writes one stream; what the dialect cannot carry is left out."""

    def write(self, event: Event, /) -> list[bytes]:
        """Return the SSE blocks (each `data: …` with its blank line) that say this event; one block is one write."""


class Dialect(Protocol):
    """How one family of endpoints writes replies; each dialect is a module with these functions."""

    def read(self, body: Any, /) -> list[Event]:
        """Return the events of a whole reply; raises ResponseFormatError if the body is not one."""

    def reader(self) -> EventReader:
        """A reader for one stream."""

    def write(self, reply: Reply, /) -> dict[str, Any]:
        """Return the body of a whole reply."""

    def writer(self, *, include_usage: bool = False, named: bool = False) -> EventWriter:
        """A writer for one stream; `include_usage` adds the usage chunk, `named` adds SSE `event:` lines."""

    def fault(self, fault: Fault, /) -> dict[str, Any]:
        """Return the body of an error response."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """How the vendor's Python SDK sends a request of a dialect, for the code that repeats a call."""

    package: str
    """The package, and the kind of code cell that uses it."""
    client: str
    """The class of its client."""
    path: str
    """What the SDK itself adds to `base_url`: the end of the endpoint's path."""
    method: str
    """Where the client has its `create`."""
    extra_fields: tuple[str, ...] = ()
    """Fields of a request that the method does not know; they go along as `extra_body`."""
    wants_cap: bool = False
    """Whether the method insists on a token cap."""
    answer: str
    """The expression that shows the answer of a whole `reply`."""
    print_event: str
    """The lines that print what an `event` of a stream adds to the answer's text."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """What goes with a dialect beside the shape of its replies."""

    new_id: Callable[[], str]
    """Makes the id of a reply."""
    error_types: Mapping[int, str]
    """The `type` of an error of these statuses; of any other below 500 it is `invalid_request_error`."""
    server_error: str
    """The `type` of an error of a status from 500."""
    key_header: str | None
    """The header that may hold the key where there is no `Authorization`."""
    names_events: str | None
    """The header whose presence asks for `event:` lines, as that vendor's SDK wants them."""
    sdk: Sdk

    def error_type(self, status: int) -> str:
        """The `type` of an error of this status."""
        return self.error_types.get(status, self.server_error if status >= 500 else "invalid_request_error")


class StreamReader(ABC):
    """Reads one stream up to its end; subclasses read its JSON objects."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = False
        """Whether the stream said that it is over; what follows is ignored."""

    def read(self, data: bytes, /) -> list[Event]:
        if self._done:
            return []
        # A glance at the first byte spares nearly every event the comparison.
        if data[:1] != b"{" and data.strip() == sse.DONE:
            self._done = True
            return [*self.end(), Done()]
        event = lenient_json.decode_event(data)
        return self._read(event) if type(event) is dict else [Other()]

    def end(self) -> list[Event]:
        return []

    @abstractmethod
    def _read(self, event: dict[str, Any]) -> list[Event]:
        """The events that one JSON object of the stream says."""
