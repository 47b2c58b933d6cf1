"""Votes between two answers to the same prompt: which pairs there are, and what votes on them come to.

A person's vote counts as it was given. A model judges each pair both ways round: where the two verdicts differ, the
pair counts as a tie and is inconsistent.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

from famnb import stats
from famnb.experiment.plan import Cell
from famnb.formatting import format_level, format_percent
from famnb.record.ratings import Voted

JUDGE = "judge:"
"""What the name of a voter begins with that is a model."""
PEOPLE = "votes"
"""The name under which people's votes are scores."""
_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("voter", "prompt_id", "repeat", "left", "right", "winner", "better", "detail"), "string"),
    "at": "datetime64[us, UTC]",
    **dict.fromkeys(("left_cell", "right_cell", "judge_call_id"), "string"),
    "repeat": "Int64",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Duel:
    """What a voter makes of two answers."""

    first: Cell
    second: Cell
    winner: Cell | None
    """The better of the two; None for a tie."""
    consistent: bool = True
    """Whether a judge said the same both ways round."""


@dataclasses.dataclass(frozen=True, slots=True)
class Consistency:
    """How far a judge's choices depend on the position of the answers."""

    judge: str
    pairs: int
    """Pairs with a verdict both ways round."""
    inconsistent: stats.Interval
    """The share of them in which the two verdicts differ, with its 95 % interval."""
    first_wins: int
    """Verdicts for the answer shown first."""
    second_wins: int
    unformed: int
    """Verdicts that could not be read."""

    def __str__(self) -> str:
        share = self.inconsistent
        words = format_percent(share.value)
        if share.known:
            words += (
                f" ({format_level(share.level)} interval {format_percent(share.low)} to {format_percent(share.high)})"
            )
        if not self.pairs:
            words = "not known"
        lost = f"; {self.unformed:,} verdicts could not be read" if self.unformed else ""
        return (
            f"{self.judge}: verdicts that change with the position: {words}, n = {self.pairs:,} pairs; the answer "
            f"shown first won {self.first_wins:,} times, the second {self.second_wins:,} times{lost}"
        )


def pairs(cells: Iterable[Cell]) -> list[tuple[Cell, Cell]]:
    """Every two answers to the same prompt, of the same repeat and different variants."""
    alike: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        if not cell.warmup:
            alike[cell.prompt.id, cell.repeat].append(cell)
    return [
        (first, second)
        for group in alike.values()
        for first, second in itertools.combinations(sorted(group, key=lambda cell: cell.variant.label), 2)
    ]


def drawn(cells: Iterable[Cell], *, seed: int) -> list[tuple[Cell, Cell]]:
    """The same pairs in an order, and each with its left and right, that the seed alone decides."""
    ordered = sorted(pairs(cells), key=lambda pair: (pair[0].key, pair[1].key))
    draw = random.Random(f"{seed}/ballot")  # noqa: S311 - an order, no secret
    draw.shuffle(ordered)
    return [pair if draw.random() < 0.5 else (pair[1], pair[0]) for pair in ordered]


def duels(votes: Iterable[Voted], cells: Iterable[Cell], *, voter: str | None = None) -> list[Duel]:
    """What the votes of one voter come to, or of all people; votes on cells that are planned no more do not count."""
    known = {cell.key: cell for cell in cells}
    both: dict[tuple[str, frozenset[str]], list[Voted]] = defaultdict(list)
    found = []
    for vote in votes:
        wanted = vote.voter == voter if voter is not None else not vote.voter.startswith(JUDGE)
        if not wanted or vote.winner == "skip" or not {vote.left_cell, vote.right_cell} <= known.keys():
            continue
        if vote.voter.startswith(JUDGE):
            both[vote.voter, frozenset((vote.left_cell, vote.right_cell))].append(vote)
        else:
            found.append(Duel(known[vote.left_cell], known[vote.right_cell], _better(vote, known)))
    for verdicts in both.values():
        if len(verdicts) == 2:
            first, second = (_better(vote, known) for vote in verdicts)
            cells_of = known[verdicts[0].left_cell], known[verdicts[0].right_cell]
            found.append(Duel(*cells_of, first if first is second else None, first is second))
    return found


def ranking(found: Sequence[Duel], *, level: float = 0.95) -> stats.Ranking:
    """Bradley–Terry strengths of the variants; ValueError where the votes do not suffice."""
    return stats.bradley_terry(
        [
            (
                each.first.variant.label,
                each.second.variant.label,
                None if each.winner is None else each.winner.variant.label,
            )
            for each in found
        ],
        level=level,
    )


def claims(found: stats.Ranking) -> list[str]:
    """What a ranking says of its first and each other, a sentence each, with its interval; no more than n carries.

    The intervals are each comparison's own; one is claimed where Holm's adjustment for all of them leaves it clear.
    """
    first, *others = found.frame.index
    strength, covariance = found.frame["strength"].to_numpy(), found.covariance
    gaps = strength[0] - strength[1:]
    errors = np.sqrt(np.maximum(covariance[0, 0] + np.diag(covariance)[1:] - 2 * covariance[0, 1:], 0))
    z = float(norm.ppf((1 + found.level) / 2))
    adjusted = stats.holm(2 * norm.sf(gaps / errors))
    said = []
    for name, gap, off, p_value in zip(others, gaps, z * errors, adjusted, strict=True):
        middle, low, high = (format_percent(float(expit(each))) for each in (gap, gap - off, gap + off))
        between = f"{format_level(found.level)} interval {low} to {high}"
        if p_value < 1 - found.level:
            said.append(f"{first} is chosen over {name} in {middle} of cases ({between}).")
        else:
            few = f", not enough for one of {len(others)} comparisons" if gap > off else ""
            said.append(f"The votes do not tell {first} and {name} apart ({middle}, {between}{few}).")
    return said


def shares(found: Iterable[Duel]) -> dict[str, float]:
    """For each cell that was voted on, the share of its pairs that it won, ties being half."""
    points: dict[str, list[float]] = defaultdict(list)
    for each in found:
        for cell in (each.first, each.second):
            points[cell.key].append(0.5 if each.winner is None else float(each.winner is cell))
    return {key: sum(won) / len(won) for key, won in points.items()}


def consistency(votes: Sequence[Voted], cells: Sequence[Cell], *, voter: str) -> Consistency:
    """How far a judge's choices depend on the position."""
    own, keys = [vote for vote in votes if vote.voter == voter], {cell.key for cell in cells}
    own = [vote for vote in own if {vote.left_cell, vote.right_cell} <= keys]
    found = duels(own, cells, voter=voter)
    return Consistency(
        judge=voter.removeprefix(JUDGE).partition("#")[0],
        pairs=len(found),
        inconsistent=stats.proportion(sum(not each.consistent for each in found), len(found)),
        first_wins=sum(vote.winner == "left" for vote in own),
        second_wins=sum(vote.winner == "right" for vote in own),
        unformed=sum(vote.winner == "skip" for vote in own),
    )


def table(votes: Iterable[Voted], cells: Iterable[Cell]) -> pd.DataFrame:
    """One row a vote on cells that are planned, oldest first."""
    known = {cell.key: cell for cell in cells}
    rows: list[dict[str, Any]] = []
    for vote in votes:
        if not {vote.left_cell, vote.right_cell} <= known.keys():
            continue
        left, right = known[vote.left_cell], known[vote.right_cell]
        better = _better(vote, known)
        rows.append(
            {
                "voter": vote.voter,
                "prompt_id": left.prompt.id,
                "repeat": left.repeat,
                "left": left.variant.label,
                "right": right.variant.label,
                "winner": vote.winner,
                "better": None if better is None else better.variant.label,
                "detail": vote.detail,
                "at": vote.at,
                **{name: getattr(vote, name) for name in ("left_cell", "right_cell", "judge_call_id")},
            }
        )
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(dict(_COLUMNS))


def _better(vote: Voted, known: Mapping[str, Cell]) -> Cell | None:
    match vote.winner:
        case "left":
            return known[vote.left_cell]
        case "right":
            return known[vote.right_cell]
        case _:
            return None
