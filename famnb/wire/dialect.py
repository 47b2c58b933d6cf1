"""What a dialect is: the four functions and two small machines that each dialect's file provides."""

from __future__ import annotations

from typing import Any, Protocol

from famnb.events import Event, Fault
from famnb.reply import Reply


class Reader(Protocol):
    """Reads one stream; keeps what must be remembered between its events."""

    def read(self, data: bytes, /) -> list[Event]:
        """The events that one SSE `data` says; raises StreamDecodeError when it is neither `[DONE]` nor JSON."""

    def end(self) -> list[Event]:
        """The events held back until the end of the stream was known."""


class Writer(Protocol):
    """Writes one stream; what the dialect cannot carry is left out."""

    def write(self, event: Event, /) -> list[bytes]:
        """The SSE blocks (each `data: …` with its blank line) that say this event; one block is one write."""


class Dialect(Protocol):
    """How one family of endpoints writes replies; each dialect is a module with these functions."""

    def read(self, body: Any, /) -> list[Event]:
        """The events of a whole reply; raises ResponseFormatError when the body is not one."""

    def reader(self) -> Reader:
        """A reader for one stream."""

    def write(self, reply: Reply, /) -> dict[str, Any]:
        """The body of a whole reply."""

    def writer(self, *, include_usage: bool = False, named: bool = False) -> Writer:
        """A writer for one stream; `include_usage` adds the usage chunk, `named` adds SSE `event:` lines."""

    def fault(self, fault: Fault, /) -> dict[str, Any]:
        """The body of an error response."""
