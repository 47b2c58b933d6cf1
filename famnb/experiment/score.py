"""A score: a number about one answer, or none, and in a few words why."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """What a scorer says of one answer."""

    value: float | None
    """The score, in the scorer's own unit, more being better; None where there is none."""
    detail: str = ""
    """In words: what was found, or why there is no score."""
