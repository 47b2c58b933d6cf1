"""How API keys are recognised in a text: those of the environment, and well-known shapes. Imports nothing of famnb."""

from __future__ import annotations

import bisect
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]

MASK = "[key]"
# A shorter key may be a word of ordinary text.
MIN_KEY_LENGTH = 8
"""Keys of fewer characters are masked nowhere."""
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}

# Colours of a traceback stand inside a key as well as around it.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LINE_BREAK = re.compile(rf"{_ANSI.pattern}|[\r\n]+")
_SECRET_NAME = re.compile(r"(?:API_?KEY|SERVICE_KEY|_TOKEN|_SECRET)$")
_RANDOM = r"(?=[^\s\"'\\]{20}|[^\s\"'\\]*[0-9])"
"""What tells a key from a word that stands for one: it is long, or has a digit in it."""
_SHAPES = {
    "sk-…": r"\bsk-[A-Za-z0-9_-]{16,}",
    "famnb-…": r"\bfamnb-[A-Za-z0-9_-]{16,}",
    "AIza…": r"\bAIza[A-Za-z0-9_-]{35}",
    "AKIA…": r"\bAKIA[A-Z0-9]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})",
    "gsk_…": r"\bgsk_[A-Za-z0-9]{20,}",
    "hf_…": r"\bhf_[A-Za-z0-9]{30,}",
    "xox…": r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----",
    "Bearer": rf"(?i:\bBearer)\s+({_RANDOM}[A-Za-z0-9._~+/=-]{{8,}})",
    "x-api-key": rf"(?i:\bx-api-key)[\"'\\]*\s*[:=,]\s*[\"'\\]*({_RANDOM}[^\s\"',;)\]}}\\]{{8,}})",
    "api_key": rf"(?i:api[_-]?key)[\"'\\]*\s*[:=]\s*\\?[\"']({_RANDOM}[^\s\"'\\]{{8,}})",
    "environment": r"\b[A-Z_]*(?:API_KEY|TOKEN|SECRET)\s*=\s*((?=[\w-]*[0-9])[\w-]{12,})(?![\w(.\[-])",
}
"""Shapes of keys by the name they are reported under; where a shape has a group, that is the key."""


def _known_keys() -> dict[str, str]:
    """Return the variable of each key in the environment, by key: FAM_API_KEY, and all that are named like it."""
    keys: dict[str, str] = {}
    for name, value in sorted(os.environ.items()):
        if _SECRET_NAME.search(name.upper()):
            keys |= {key: name for key in value.split() if len(key) >= MIN_KEY_LENGTH}
    return keys


def find_keys(text: str) -> list[tuple[str, list[Span]]]:
    """Return every key in a text: its kind, and its spans there, several where line ends or colours cut it."""
    keys = _known_keys()
    results: list[tuple[str, list[Span]]] = []
    covered: set[int] = set()
    # A known key is recognised across line ends too, a shape only across colours.
    plain, joined = _CutText(text, _ANSI), _CutText(text, _LINE_BREAK)
    matches = [
        (keys[key], joined, match.span())
        # The longest first: one key may be the beginning of another.
        for key in sorted(keys, key=len, reverse=True)
        for match in re.finditer(key_pattern(key), joined.text)
    ]
    matches += [
        (name, plain, match.span(match.lastindex or 0))
        for name, shape in _SHAPES.items()
        # Compiled on first use, and kept by `re`: a client, which waits for this module, looks for no shapes.
        for match in re.finditer(shape, plain.text)
    ]
    for name, cut_text, span in matches:
        spans = cut_text.spans(*span)
        indices = {index for start, end in spans for index in range(start, end)}
        if indices.isdisjoint(covered) and text[spans[0][0] : spans[-1][1]] != MASK:
            covered |= indices
            results.append((name, spans))
    return results


def mask_keys(text: str) -> str:
    """Return a text with MASK in the place of every key of the environment, and of all that has the shape of one."""
    return mask_spans([text], [spans for _, spans in find_keys(text)])[0]


def mask_spans(texts: Sequence[str], keys: Iterable[Sequence[Span]], *, gap: int = 0, rest: str = "") -> list[str]:
    """Return texts with MASK where each key began; spans count from the first text, with `gap` between two.

    `rest` takes the place of what further texts have of a span that began in an earlier one.
    """
    edits = sorted((start, end, MASK if not n else "") for spans in keys for n, (start, end) in enumerate(spans))
    masked: list[str] = []
    offset = 0
    for text in texts:
        parts, position = [], 0
        for start, end, mask in edits:
            low, high = max(start - offset, 0), min(end - offset, len(text))
            if low < high:
                parts += [text[position:low], mask if start >= offset else rest]
                position = high
        masked.append("".join([*parts, text[position:]]))
        offset += len(text) + gap
    return masked


class _CutText:
    """A text without what `cut` matches; `spans` leads back to the places in the whole text."""

    def __init__(self, text: str, cut: re.Pattern[str]) -> None:
        # What is kept goes from the end of each match to the start of the next.
        ends = [0, *itertools.chain.from_iterable(match.span() for match in cut.finditer(text)), len(text)]
        self._kept = [(start, end) for start, end in zip(ends[::2], ends[1::2], strict=True) if start < end]
        self._starts = [0, *itertools.accumulate(end - start for start, end in self._kept)]
        self.text = "".join(text[start:end] for start, end in self._kept)

    def spans(self, start: int, end: int) -> list[Span]:
        """The spans of the whole text that one span of the cut text stands for."""
        spans: list[Span] = []
        number = bisect.bisect_right(self._starts, start) - 1
        while start < end:
            shift = self._kept[number][0] - self._starts[number]
            stop = min(end, self._starts[number + 1])
            spans.append((start + shift, stop + shift))
            start, number = stop, number + 1
        return spans


def key_pattern(key: str) -> str:
    """Return a pattern for a key, plain or with its punctuation escaped as in JSON, HTML or an address."""
    return "".join(map(_character_pattern, key))


def _character_pattern(character: str) -> str:
    """A pattern for one character; letters, digits and `-._~`, which nothing escapes, stand for themselves."""
    if character.isalnum() or character in "-._~":
        return re.escape(character)
    code, name = ord(character), _ENTITIES.get(character, "")
    named = f"|&{name};" if name else ""
    return rf"(?:\\*{re.escape(character)}|(?i:\\+u{code:04x}|%{code:02x}|&#x0*{code:x};|&#0*{code};{named}))"
