"""Thinking that a server writes into the answer as `<think>…</think>`, split from the text."""

from __future__ import annotations

_OPEN = "<think>"
_CLOSE = "</think>"
_MAX_HELD = 64
"""Leading characters held back while a tag may still follow: more white space than a server puts before one."""


class ThinkTags:
    """Splits the content of one reply, cut anywhere, into thinking and text; only a tag at its very start counts.

    start ── "<think>" ── inside ── "</think>" ── after ── (anything but white space) ── settled
      └────────────────────────── anything else ─────────────────────────────────────────┘
    """

    __slots__ = ("_fresh", "_held", "_inside", "settled")

    def __init__(self) -> None:
        self.settled = False
        """Whether all further content is plain text."""
        self._inside = False
        self._fresh = False
        self._held = ""

    def split(self, piece: str) -> list[tuple[str, str]]:
        """The pieces, each with its kind, that are certain now."""
        if self.settled:
            return [("text", piece)] if piece else []
        piece, self._held = self._held + piece, ""
        if self._inside:
            return self._thinking(piece)
        if self._fresh:
            return self._after(piece)
        return self._start(piece)

    def end(self) -> list[tuple[str, str]]:
        """The piece that was held back, now that nothing follows."""
        held, self._held = self._held, ""
        kind = "thinking" if self._inside else "text"
        self.settled, self._inside = True, False
        return [(kind, held)] if held else []

    def _start(self, piece: str) -> list[tuple[str, str]]:
        text = piece.lstrip()
        if text.startswith(_OPEN):
            self._inside = self._fresh = True
            return self._thinking(text[len(_OPEN) :])
        if _OPEN.startswith(text) and len(piece) <= _MAX_HELD:
            self._held = piece
            return []
        self.settled = True
        return [("text", piece)]

    def _thinking(self, piece: str) -> list[tuple[str, str]]:
        if self._fresh:
            piece = piece.lstrip()
        thought, closed, rest = piece.partition(_CLOSE)
        if closed:
            self._inside, self._fresh = False, True
            return [*([("thinking", thought)] if thought else []), *self._after(rest)]
        # The end of the piece may be the beginning of the closing tag.
        tail = next((n for n in range(len(_CLOSE) - 1, 0, -1) if piece.endswith(_CLOSE[:n])), 0)
        thought, self._held = piece[: len(piece) - tail], piece[len(piece) - tail :]
        self._fresh = self._fresh and not thought
        return [("thinking", thought)] if thought else []

    def _after(self, piece: str) -> list[tuple[str, str]]:
        piece = piece.lstrip()
        self.settled = bool(piece)
        return [("text", piece)] if piece else []
