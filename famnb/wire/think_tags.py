"""Splits thinking that a server writes into the answer as `<think>…</think>` from the text.

Servers of open models that are not told the model's thinking format pass its tags through as content.
"""

from __future__ import annotations

_OPEN = "<think>"
_CLOSE = "</think>"
# More white space than a server puts before a tag, and few enough that the first text of a reply is not held back long.
_MAX_HELD_CHARS = 64
"""The most leading characters that are held back while a tag may still follow."""


class ThinkTags:
    """Splits the content of one reply, cut anywhere, into thinking and text.

    start ── "<think>" ── inside ── "</think>" ── after ── (anything but white space) ── settled
      └────────────────────────── anything else ─────────────────────────────────────────┘
    """

    # Only a tag at the very start of the content counts: later it is more likely a word of an answer about tags.
    # White space around the tags is dropped, since servers put line ends there that belong to neither text.

    __slots__ = ("_at_start", "_held", "_is_inside", "is_settled")

    def __init__(self) -> None:
        self.is_settled = False
        """Whether all further content is plain text."""
        self._is_inside = False
        """Whether the opening tag was seen, and the closing one not yet."""
        self._at_start = False
        """Whether nothing but white space followed the last tag so far."""
        self._held = ""
        """The end of the content so far, as long as it may belong to a tag."""

    def split(self, piece: str) -> list[tuple[str, str]]:
        """Return the pieces whose kind is certain now, as pairs of kind (`thinking` or `text`) and text."""
        if self.is_settled:
            return [("text", piece)] if piece else []
        piece, self._held = self._held + piece, ""
        if self._is_inside:
            return self._split_thinking(piece)
        if self._at_start:
            return self._split_after(piece)
        return self._split_start(piece)

    def end(self) -> list[tuple[str, str]]:
        """Return the piece that was held back; no more content follows."""
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
