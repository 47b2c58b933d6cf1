"""What an engine is, and `StopMatcher`: whatever generates the events of a reply, and where a stop text ends one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any, Protocol

from famnb.events import Event
from famnb.service.prompt import GenerationPrompt


class Engine(Protocol):
    """Generates replies to prompts, knowing nothing of endpoints."""

    name: str
    """The value of the header `x-famnb-engine` on every response: `sim`, `upstream`."""

    takes_any_model: bool
    """Whether it may know models that the document does not have."""

    def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        """Yield the events of one reply, from a `Started` once the prompt is accepted to `Ended`, `Usage`, `Done`.

        A ServiceError raised before `Started` becomes the error response; any exception after it, the stream's
        failure. Thinking is yielded only if `prompt.shows_thinking`. The reply's id is filled in by the caller.
        """

    async def state(self) -> dict[str, Any]:
        """Return what `/health` reports of the engine beside its name; nothing secret, for it needs no key."""
        return {}

    async def models(self) -> tuple[str, ...]:
        """Return the ids of its models beside the document's."""
        return ()

    async def aclose(self) -> None:
        """Close what the engine holds, once the service has shut down."""


class StopMatcher:
    """Looks for stop texts, also where they are spread over pieces; what may be the start of one is held back."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""
        self.stop = ""
        """The stop text that was met; empty before."""

    def feed(self, piece: str) -> str:
        """Return what can be passed on of the text so far: all before a stop text, and all that begins none."""
        if not self._stops:
            return piece
        text = self._held + piece
        matches = [(text.index(stop), stop) for stop in self._stops if stop in text]
        if matches:
            length, self.stop = min(matches)
            self._held = ""
        else:
            # At the end of the text may be the start of a stop text.
            starts = [stop[:size] for stop in self._stops for size in range(1, len(stop))]
            length = len(text) - max((len(start) for start in starts if text.endswith(start)), default=0)
            self._held = text[length:]
        return text[:length]

    def end(self) -> str:
        """Return what was held back, once no more can follow."""
        rest, self._held = self._held, ""
        return rest

    def cut(self, pieces: Iterable[str]) -> Iterator[str]:
        """Yield the pieces of a whole text up to a stop text."""
        for piece in pieces:
            if text := self.feed(piece):
                yield text
            if self.stop:
                return
        if rest := self.end():
            yield rest
