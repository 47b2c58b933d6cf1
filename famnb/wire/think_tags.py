"""Thinking that a server writes into the answer as `<think>…</think>`, split from the text."""

from __future__ import annotations

_OPEN = "<think>"
_CLOSE = "</think>"
_MAX_HELD_CHARS = 64
"""Leading characters held back while a tag may still follow: more white space than a server puts before one."""


class ThinkTags:
    """Splits the content of one reply, cut anywhere, into thinking and text; only a tag at its very start counts.

    start ── "<think>" ── inside ── "</think>" ── after ── (anything but white space) ── settled
      └────────────────────────── anything else ─────────────────────────────────────────┘
    """

    __slots__ = ("_at_start", "_held", "_is_inside", "is_settled")

    def __init__(self) -> None:
        self.is_settled = False
        """Whether all further content is plain text."""
        self._is_inside = False
        self._at_start = False
        self._held = ""

    def split(self, piece: str) -> list[tuple[str, str]]:
        """The pieces, each with its kind, that are certain now."""
        if self.is_settled:
            return [("text", piece)] if piece else []
        piece, self._held = self._held + piece, ""
        if self._is_inside:
            return self._split_thinking(piece)
        if self._at_start:
            return self._split_after(piece)
        return self._split_start(piece)

    def end(self) -> list[tuple[str, str]]:
        """The piece that was held back, now that nothing follows."""
        held, self._held = self._held, ""
        kind = "thinking" if self._is_inside else "text"
        self.is_settled, self._is_inside = True, False
        return [(kind, held)] if held else []

    def _split_start(self, piece: str) -> list[tuple[str, str]]:
        text = piece.lstrip()
        if text.startswith(_OPEN):
            self._is_inside = self._at_start = True
            return self._split_thinking(text[len(_OPEN) :])
        if _OPEN.startswith(text) and len(piece) <= _MAX_HELD_CHARS:
            self._held = piece
            return []
        self.is_settled = True
        return [("text", piece)]

    def _split_thinking(self, piece: str) -> list[tuple[str, str]]:
        if self._at_start:
            piece = piece.lstrip()
        thinking, close_tag, rest = piece.partition(_CLOSE)
        if close_tag:
            self._is_inside, self._at_start = False, True
            return [*([("thinking", thinking)] if thinking else []), *self._split_after(rest)]
        # The end of the piece may be the beginning of the closing tag.
        tail = next((n for n in range(len(_CLOSE) - 1, 0, -1) if piece.endswith(_CLOSE[:n])), 0)
        thinking, self._held = piece[: len(piece) - tail], piece[len(piece) - tail :]
        self._at_start = self._at_start and not thinking
        return [("thinking", thinking)] if thinking else []

    def _split_after(self, piece: str) -> list[tuple[str, str]]:
        piece = piece.lstrip()
        self.is_settled = bool(piece)
        return [("text", piece)] if piece else []
