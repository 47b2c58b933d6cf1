"""Scores, and the class of the scorers that need no call; `scorers.py` has the functions that make them."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from famnb.experiment.fingerprint import fingerprint
from famnb.experiment.prompts import EXPECTED_SLOT, Prompt
from famnb.reply import Reply


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """The score of one answer, and why."""

    value: float | None
    """The score, in the scorer's own unit, more being better; None where there is none."""
    detail: str = ""
    """In words: what the score comes from, or why there is none."""


class NoScore(Exception):
    """Why an answer has no score, in words."""


Span: TypeAlias = tuple[float, float]
"""The lowest and the highest score there can be."""
YES_NO: Span = (0.0, 1.0)
DETAIL_CHARS = 80
"""Characters of a text that a detail shows: about a line."""


@dataclasses.dataclass(frozen=True, slots=True)
class LocalScorer:
    """A scorer that needs no call."""

    name: str
    settings: tuple[Any, ...]
    """The kind of scorer and all on which its scores depend, as plain values."""
    call: Callable[[Reply, Prompt], Any] = dataclasses.field(repr=False, compare=False)
    """Returns the score of an answer; raises NoScore if there is none."""
    span: Span | None = YES_NO

    @property
    def key(self) -> str:
        """Its name, and a digest of how it scores: scores are kept under it, and made again when it changes."""
        return f"{self.name}#{fingerprint(*self.settings)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return the score of an answer."""
        try:
            return to_score(self.call(reply, prompt))
        except NoScore as error:
            return Score(None, str(error))


def to_score(value: Any) -> Score:
    """Return the value of a function as a score, which is missing unless the value is a finite number."""
    if isinstance(value, Score):
        return value
    if value is None:
        return Score(None, "no score was given")
    try:
        number = float(value)
    except (TypeError, ValueError):
        return Score(None, f"expected a number, got {value!r:.{DETAIL_CHARS}}")
    return Score(number) if math.isfinite(number) else Score(None, f"expected a finite number, got {number}")


def expected_value(expected: Any, prompt: Prompt) -> Any:
    """What an answer is compared with: `expected`, or if it is None the prompt's own. Raises NoScore without."""
    if expected is None and EXPECTED_SLOT not in prompt.slots:
        raise NoScore(f"the prompt has no {EXPECTED_SLOT!r}")
    return prompt.slots[EXPECTED_SLOT] if expected is None else expected


ROUNDING = 1e-9
"""Share of a number by which two that are equal may differ as floats."""
NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")
"""A number as it is written in English: sign, thousands between commas, decimals after a point, an exponent.

"1,234.5" is one of them, "1,5" is two.
"""
