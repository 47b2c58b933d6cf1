"""Strengths from pairwise votes, by the Bradley–Terry model and maximum likelihood; a tie is half a win for each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize, sparse, special, stats

from famnb.stats.intervals import check_share

# The usual half count: as little as one tie would say, and enough to keep every strength finite.
PRIOR = 0.5
"""Wins added both ways to every pair that met, if the votes alone leave a strength without bound."""

Vote = tuple[str, str, str | None]
"""First, second, and the winner of the two or None for a tie."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Ranking:
    """Strengths, with intervals, of what was voted on."""

    frame: pd.DataFrame
    """One row each, strongest first: strength, low, high (log odds around a mean of 0), wins, ties, votes, and
    `better`, the probability of being chosen over an average one."""
    n: int
    """Votes."""
    level: float
    bounded: bool
    """False where the votes alone bound no strength, as when one never lost: then each pair that met was given half a
    win both ways, and strengths are pulled together."""
    covariance: npt.NDArray[np.float64]
    """Of the strengths, in the order of the rows."""

    def probability(self, first: str, second: str) -> float:
        """Return the probability that the first is chosen over the second."""
        strength = self.frame["strength"]
        return float(special.expit(strength[first] - strength[second]))

    def __str__(self) -> str:
        note = "" if self.bounded else "\none never lost or never won: half a win both ways was added to each pair"
        return f"{self.frame.to_string(float_format=_format)}\nn = {self.n} votes{note}"

    __repr__ = __str__


def bradley_terry(votes: Iterable[Vote], *, level: float = 0.95) -> Ranking:
    """Return the strength of everything voted on, from votes (first, second, winner or None for a tie).

    Raises ValueError without votes, for a winner that did not take part, and for groups that were never compared.
    """
    check_share("level", level)
    checked_votes = list(map(_check_vote, votes))
    names = list(dict.fromkeys(name for first, second, _ in checked_votes for name in (first, second)))
    if not checked_votes:
        raise ValueError("there are no votes yet: vote on some pairs first")
    wins, ties = _count(checked_votes, {name: index for index, name in enumerate(names)})
    _check_connected(wins + ties, names)
    halves = wins + ties / 2
    bounded = _components(halves, strong=True)[0] == 1
    # Someone who never lost would have an infinite strength; strong connection of wins is when the maximum is finite.
    counts = halves if bounded else halves + PRIOR * ((halves + halves.T) > 0)
    strength = _fit(counts)
    # The pseudo-inverse, since only gaps are observed and the matrix has no inverse.
    covariance = np.linalg.pinv(_information(counts, strength))
    margin = float(stats.norm.ppf((1 + level) / 2)) * np.sqrt(np.diag(covariance))
    frame = pd.DataFrame(
        {
            "strength": strength,
            "low": strength - margin,
            "high": strength + margin,
            "better": special.expit(strength),
            "wins": wins.sum(axis=1).astype(int),
            "ties": ties.sum(axis=1).astype(int),
            "votes": (wins + wins.T + ties).sum(axis=1).astype(int),
        },
        index=pd.Index(names),
    )
    order = np.argsort(-strength, kind="stable")
    return Ranking(frame.iloc[order], len(checked_votes), level, bounded, covariance[np.ix_(order, order)])


def _format(value: float) -> str:
    """Two decimals; what rounds to 0 has no sign."""
    return f"{value:z.2f}"


def _check_vote(vote: Any) -> Vote:
    """Return the vote. Raises ValueError if it is none."""
    match vote:
        case (str(first), str(second), str() | None as winner):
            return first, second, winner
        case _:
            raise ValueError(f"a vote is (first, second, the winner of the two or None for a tie), names; got {vote!r}")


def _count(votes: list[Vote], indices: dict[str, int]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """How often each (row) won against each other (column), and how often they tied."""
    wins, ties = np.zeros((len(indices), len(indices))), np.zeros((len(indices), len(indices)))
    for first, second, winner in votes:
        a, b = indices[first], indices[second]
        if a == b:
            raise ValueError(f"a vote needs two that differ; got {first!r} twice")
        if winner is None:
            ties[a, b] += 1
            ties[b, a] += 1
        elif winner in (first, second):
            wins[(a, b) if winner == first else (b, a)] += 1
        else:
            raise ValueError(f"the winner of {first!r} and {second!r} is one of them, or None; got {winner!r}")
    return wins, ties


def _components(table: npt.NDArray[Any], *, strong: bool) -> tuple[int, npt.NDArray[Any]]:
    count, labels = sparse.csgraph.connected_components(
        sparse.csr_array(table), directed=True, connection="strong" if strong else "weak"
    )
    return int(count), labels


def _check_connected(met: npt.NDArray[Any], names: list[str]) -> None:
    """Raise ValueError if there are groups between which nothing was compared: no strength relates them."""
    count, labels = _components(met, strong=False)
    if count > 1:
        groups = [
            ", ".join(name for name, label in zip(names, labels, strict=True) if label == group)
            for group in range(count)
        ]
        raise ValueError(f"these were never compared with one another: {' | '.join(groups)}; vote on pairs across them")


def _fit(wins: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The strengths that make the votes most likely, around a mean of 0."""

    def loss(strength: npt.NDArray[Any]) -> tuple[float, npt.NDArray[Any]]:
        gaps = strength[:, None] - strength[None, :]
        expected = (wins + wins.T) * special.expit(gaps)
        return float(-(wins * special.log_expit(gaps)).sum()), expected.sum(axis=1) - wins.sum(axis=1)

    # The tolerance is of the gradient, which is a difference of votes and grows with their number.
    fit = optimize.minimize(
        loss, np.zeros(len(wins)), jac=True, method="BFGS", options={"gtol": 1e-9 * math.sqrt(wins.sum())}
    )
    return np.asarray(fit.x - fit.x.mean())


def _information(wins: npt.NDArray[Any], strength: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The Fisher information of the strengths; of rank n − 1, since only their gaps are observed."""
    chance = special.expit(strength[:, None] - strength[None, :])
    weight = (wins + wins.T) * chance * (1 - chance)
    return np.asarray(np.diag(weight.sum(axis=1)) - weight)
