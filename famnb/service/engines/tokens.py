"""Text as token pieces: the simulated engine's own tokenizer, so that what it counts is exactly what it sends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PIECE = re.compile(
    r"[\u2e80-\u9fff\uac00-\ud7af]"  # scripts written without spaces: a character each
    r"| ?[^\W\d_]{1,8}| ?\d{1,3}| ?[^\w\s]{1,3}"
    r"|\n+|\s{1,8}|.",
    re.DOTALL,
)
"""One token: about four characters of English, with the space before it."""


def pieces(chunks: Iterable[str]) -> Iterator[str]:
    """The tokens of a text that comes in chunks, as they come; they do not depend on where it was cut."""
    held = ""
    for chunk in chunks:
        # The next chunk may go on with the last token; all others are final.
        *final, held = PIECE.findall(held + chunk) or [""]
        yield from final
    if held:
        yield held


def count(text: str) -> int:
    """How many tokens a text has; never builds the list, since a body may hold megabytes."""
    return sum(1 for _ in PIECE.finditer(text))
