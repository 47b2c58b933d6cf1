"""Strengths from pairwise votes: the Bradley–Terry model with Davidson's ties, by maximum likelihood.

Of two with strengths a and b (log odds) the first is chosen, the second, or neither, in proportion to
exp(a) : exp(b) : ties · exp((a + b) / 2). A tie so tells that two are close and draws no strength towards the mean.

Votes on one prompt go together: whoever answers it better is chosen by most voters, in most repeats. With `clusters`
the intervals are of new prompts: from how strengths move as one prompt after the other is left out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import linalg, sparse, special

from famnb.errors import InvalidRequest
from famnb.stats.intervals import MIN_CLUSTERS, NEW_PROMPTS, Interval, Values, check_share, clustered_floats

MAX_STEPS = 200
"""Steps of Newton's method; some ten suffice."""
MAX_STEP = 2.0
"""The longest step, in log odds."""
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
    `better`, the probability of being chosen over an average one if one of the two is."""
    n: int
    """Votes."""
    level: float
    bounded: bool
    """False where the votes alone bound no strength, as when one never lost: then each pair that met was given half a
    win both ways, and strengths are pulled together."""
    covariance: npt.NDArray[np.float64]
    """Of the strengths, in the order of the rows."""
    clusters: int = 0
    """Prompts behind the votes; 0 where every vote counts by itself."""
    ties: float = 0.0
    """Davidson's ν: of two alike, neither is chosen in ν / (2 + ν) of the votes."""
    notes: tuple[str, ...] = ()
    """What to know of the intervals, a clause each."""

    def gap(self, first: str, second: str) -> Interval:
        """Return how much stronger the first is than the second, in log odds, with its interval."""
        value, error = self._gap(first, second)
        margin = _quantile(self.level, self.clusters) * error
        population = NEW_PROMPTS if self.clusters else ""
        return Interval(value, value - margin, value + margin, self.n, self.level, population, self.clusters)

    def p_value(self, first: str, second: str) -> float:
        """Return the p-value of the test that the two are equally strong."""
        value, error = self._gap(first, second)
        if not error:
            return math.nan
        free = self.clusters - 1
        return float(2 * (special.stdtr(free, -abs(value) / error) if free > 0 else special.ndtr(-abs(value) / error)))

    def _gap(self, first: str, second: str) -> tuple[float, float]:
        """The difference of two strengths and its standard error."""
        a, b = (self.frame.index.get_loc(name) for name in (first, second))
        strength, covariance = self.frame["strength"].to_numpy(), self.covariance
        # Rounding can bring the variance of a difference below 0.
        variance = max(float(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]), 0.0)
        return float(strength[a] - strength[b]), math.sqrt(variance)

    def __str__(self) -> str:
        n = f"n = {self.n} votes" + (f" on {self.clusters} prompts" if self.clusters else "")
        # What rounds to 0 has no sign.
        return "\n".join([self.frame.to_string(float_format="{:z.2f}".format), n, *self.notes])

    __repr__ = __str__


def bradley_terry(votes: Iterable[Vote], *, clusters: Iterable[Any] | None = None, level: float = 0.95) -> Ranking:
    """Return the strength of everything voted on, from votes (first, second, winner or None for a tie).

    Ties are Davidson's (1970). `clusters` has the prompt of each vote: the intervals are then of new prompts, by the
    jackknife over them (Lipsitz, Laird and Harrington, 1990), never narrower than of independent votes, with Student's
    t for few prompts. With fewer than six of them, and where one never lost or never won, every prompt counts as one
    vote. Raises ValueError without votes, for a winner that did not take part, and for groups that were never compared.
    """
    check_share("level", level)
    checked_votes = list(map(_check_vote, votes))
    if not checked_votes:
        raise InvalidRequest("there are no votes yet: vote on some pairs first")
    _, codes = clustered_floats(np.zeros(len(checked_votes)), None if clusters is None else list(clusters))
    groups = 0 if codes is None else int(codes.max()) + 1
    names = list(dict.fromkeys(name for first, second, _ in checked_votes for name in (first, second)))
    index = {name: number for number, name in enumerate(names)}
    sides = np.array([(index[first], index[second]) for first, second, _ in checked_votes])
    outcomes = np.array([2 if winner is None else int(winner == second) for _, second, winner in checked_votes])
    size, rows = len(index), np.arange(len(sides))
    wins, ties = np.zeros((2, size, size))
    is_tie = outcomes == 2
    np.add.at(wins, (sides[rows, outcomes % 2][~is_tie], sides[rows, 1 - outcomes % 2][~is_tie]), 1)
    np.add.at(ties, tuple(sides[is_tie].T), 1)
    ties += ties.T
    groups_met, labels = _components(wins + ties, strong=False)
    if groups_met > 1:
        parts = (
            ", ".join(name for name, label in zip(names, labels, strict=True) if label == group)
            for group in range(groups_met)
        )
        raise InvalidRequest(
            f"these were never compared with one another: {' | '.join(parts)}; vote on pairs across them"
        )
    # Someone who never lost or tied would have an infinite strength (Ford, 1957). With ties, a circle of wins as well:
    # without one, all votes become certain as ties grow rarer and gaps wider in step.
    bounded = _components(wins + ties, strong=True)[0] == 1 and (
        not is_tie.any() or _components(wins, strong=True)[0] < size
    )
    counts = np.eye(3)[outcomes]
    if not bounded:
        prior = np.unique(np.sort(sides, axis=1), axis=0)
        sides = np.concatenate([sides, prior])
        counts = np.concatenate([counts, np.tile([PRIOR, PRIOR, 0.0], (len(prior), 1))])
    # What each outcome of each vote (first, second, tie) has of each parameter: the strength of each but the first,
    # which is 0, and the logarithm of ties. The outcomes of a vote are as likely as the exponentials of these sums are
    # to one another (a conditional logit).
    picks = np.eye(size)[sides]
    picks = np.concatenate([picks, picks.mean(axis=1, keepdims=True)], axis=1)
    tie = np.broadcast_to([[[0.0], [0.0], [1.0]]], (len(sides), 3, 1))
    features = np.concatenate([picks[:, :, 1:], tie], axis=2)
    if not is_tie.any():
        counts, features = counts[:, :2], features[:, :2, :-1]
    parameters = _fit(features, counts)
    strength = np.concatenate([[0.0], parameters[: size - 1]])
    strength -= strength.mean()
    if codes is not None and bounded and groups >= MIN_CLUSTERS:
        covariance = _jackknife(*_derivatives(parameters, features, counts), codes)
    else:
        if codes is not None:
            # The votes of a prompt on two count as one.
            met = np.column_stack([np.sort(sides[rows], axis=1), codes])
            _, same, sizes = np.unique(met, axis=0, return_inverse=True, return_counts=True)
            counts[rows] /= sizes[same.ravel()][:, None]
        covariance = np.linalg.inv(_derivatives(parameters, features, counts)[1].sum(axis=0))
    # Of the strengths around their mean; that of the first is fixed.
    centring = np.eye(size) - 1 / size
    covariance = centring @ np.pad(covariance[: size - 1, : size - 1], ((1, 0), (1, 0))) @ centring
    margin = _quantile(level, groups) * np.sqrt(np.diag(covariance))
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
    notes = []
    if not bounded:
        why = "one never lost or never won" if wins.any() else "there are only ties"
        notes.append(f"{why}: half a win both ways was added to each pair")
    if groups and (groups < MIN_CLUSTERS or not bounded):
        few = f", since fewer than {MIN_CLUSTERS} do not tell how prompts differ" if groups < MIN_CLUSTERS else ""
        notes.append(f"intervals: every prompt counts as one vote{few}")
    order = np.argsort(-strength, kind="stable")
    return Ranking(
        frame.iloc[order],
        len(checked_votes),
        level,
        bounded,
        covariance[np.ix_(order, order)],
        groups,
        float(np.exp(parameters[-1])) if is_tie.any() else 0.0,
        tuple(notes),
    )


def _quantile(level: float, clusters: int) -> float:
    """How many standard errors an interval reaches to either side."""
    tail = (1 + level) / 2
    return float(special.stdtrit(clusters - 1, tail) if clusters > 1 else special.ndtri(tail))


def _check_vote(vote: Any) -> Vote:
    """Return the vote. Raises ValueError if it is not a vote."""
    match vote:
        case (str(first), str(second), str() | None as winner):
            if first == second:
                raise InvalidRequest(f"a vote needs two that differ; got {first!r} twice")
            if winner not in (first, second, None):
                raise InvalidRequest(f"the winner of {first!r} and {second!r} is one of them, or None; got {winner!r}")
            return first, second, winner
        case _:
            raise InvalidRequest(
                f"a vote is (first, second, the winner of the two or None for a tie), names; got {vote!r}"
            )


def _derivatives(parameters: Values, features: Values, counts: Values) -> tuple[Values, Values]:
    """The score and the information of each vote."""
    shares = special.softmax(features @ parameters, axis=1)
    apart = features - np.einsum("vo,vop->vp", shares, features)[:, None]
    weights = counts.sum(axis=1, keepdims=True) * shares
    return np.einsum("vo,vop->vp", counts, apart), np.einsum("vop,voq->vpq", weights[:, :, None] * apart, apart)


def _fit(features: Values, counts: Values) -> Values:
    """The parameters that make the votes most likely, by Newton's method: the log-likelihood is concave."""
    parameters = np.zeros(features.shape[2])
    for _ in range(MAX_STEPS):
        scores, information = _derivatives(parameters, features, counts)
        step = np.linalg.solve(information.sum(axis=0), scores.sum(axis=0))
        # Far from the maximum a full step can overshoot it without end.
        step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-300))
        parameters += step
        if np.abs(step).max() < 1e-10:
            break
    return parameters


def _jackknife(scores: Values, information: Values, codes: npt.NDArray[np.intp]) -> Values:
    """The covariance by leaving out one cluster after the other, each in one step of Newton's method.

    In no direction it is smaller than that of independent votes.
    """
    groups, total = int(codes.max()) + 1, information.sum(axis=0)
    cluster_scores, cluster_information = np.zeros((groups, len(total))), np.zeros((groups, *total.shape))
    np.add.at(cluster_scores, codes, scores)
    np.add.at(cluster_information, codes, information)
    # Where the others alone do not bound a strength the pseudo-inverse leaves it where it is.
    moves = np.linalg.pinv(total - cluster_information, hermitian=True) @ cluster_scores[:, :, None]
    covariance = (groups - 1) / groups * moves[:, :, 0].T @ moves[:, :, 0]
    floor = np.linalg.inv(total)
    ratios, directions = linalg.eigh(covariance, floor)
    basis = floor @ directions
    return np.asarray((basis * np.maximum(ratios, 1.0)) @ basis.T)


def _components(table: npt.NDArray[Any], *, strong: bool) -> tuple[int, npt.NDArray[Any]]:
    count, labels = sparse.csgraph.connected_components(
        sparse.csr_array(table), directed=True, connection="strong" if strong else "weak"
    )
    return int(count), labels
