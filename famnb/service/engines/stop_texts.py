"""Ends a text that comes in pieces before the first of some stop texts: see `StopMatcher`."""

from __future__ import annotations


class StopMatcher:
    """Looks for stop texts, also where they are spread over pieces; what may be the start of one is held back."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""
        self.stop = ""
        """The stop text that was met; empty before."""

    def feed(self, piece: str) -> str:
        """Return what can be passed on of the text so far: all before a stop text, and all that begins none."""
        text = self._held + piece
        found = [(text.index(stop), stop) for stop in self._stops if stop in text]
        if found:
            length, self.stop = min(found)
            self._held = ""
        else:
            length = len(text) - max((_overlap(text, stop) for stop in self._stops), default=0)
            self._held = text[length:]
        return text[:length]

    def end(self) -> str:
        """Return what was held back, once no more can follow."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Return how many letters at the end of a text may be the start of a stop text."""
    return next(size for size in range(min(len(text), len(stop) - 1), -1, -1) if text.endswith(stop[:size]))
