"""What the readers of all dialects share: the terminator, and events that are no JSON object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from famnb.events import Done, Event, Other
from famnb.wire import codec, sse


class StreamReader(ABC):
    """Reads one stream up to its end; what an event means is the dialect's own matter."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = False
        """Whether the stream said that it is over; what follows is ignored."""

    def read(self, data: bytes, /) -> list[Event]:
        if self._done:
            return []
        if data[:1] != b"{" and data.strip() == sse.DONE:
            self._done = True
            return [*self.end(), Done()]
        event = codec.event(data)
        return self._read(event) if type(event) is dict else [Other()]

    def end(self) -> list[Event]:
        return []

    @abstractmethod
    def _read(self, event: dict[str, Any]) -> list[Event]:
        """The events that one JSON object of the stream says."""
