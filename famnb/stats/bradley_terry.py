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
from scipy import sparse, special

from famnb.errors import InvalidRequest
from famnb.stats.intervals import MIN_CLUSTERS, NEW_PROMPTS, Interval, Values, check_share

# The usual half count: as little as one tie would say, and enough to keep every strength finite.
MAX_STEPS = 200
"""Steps of Newton's method; some ten suffice."""
MAX_STEP = 2.0
"""The longest step, in log odds."""
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

    def probability(self, first: str, second: str) -> float:
        """Return the probability that the first is chosen over the second, if one of the two is."""
        strength = self.frame["strength"]
        return float(special.expit(strength[first] - strength[second]))

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
    names = list(dict.fromkeys(name for first, second, _ in checked_votes for name in (first, second)))
    if not checked_votes:
        raise InvalidRequest("there are no votes yet: vote on some pairs first")
    codes = _cluster_codes(clusters, len(checked_votes))
    groups = 0 if clusters is None else int(codes.max()) + 1
    tally = _Tally.count(checked_votes, {name: index for index, name in enumerate(names)}, codes)
    wins, ties = tally.tables()
    _check_connected(wins + ties, names)
    bounded = _is_bounded(wins, ties)
    counted = tally if bounded else tally.with_prior()
    fit = _Fit.of(counted)
    if not groups:
        covariance = fit.model_covariance(counted)
    elif bounded and groups >= MIN_CLUSTERS:
        covariance = fit.cluster_covariance(counted)
    else:
        single = tally.one_vote_a_cluster()
        covariance = fit.model_covariance(single if bounded else single.with_prior())
    margin = _quantile(level, groups) * np.sqrt(np.diag(covariance))
    frame = pd.DataFrame(
        {
            "strength": fit.strength,
            "low": fit.strength - margin,
            "high": fit.strength + margin,
            "better": special.expit(fit.strength),
            "wins": wins.sum(axis=1).astype(int),
            "ties": ties.sum(axis=1).astype(int),
            "votes": (wins + wins.T + ties).sum(axis=1).astype(int),
        },
        index=pd.Index(names),
    )
    order = np.argsort(-fit.strength, kind="stable")
    return Ranking(
        frame.iloc[order],
        len(checked_votes),
        level,
        bounded,
        covariance[np.ix_(order, order)],
        groups,
        fit.ties,
        tuple(_notes(groups, bounded=bounded, decided=bool(wins.any()))),
    )


def _notes(groups: int, *, bounded: bool, decided: bool) -> Iterable[str]:
    if not bounded:
        why = "one never lost or never won" if decided else "there are only ties"
        yield f"{why}: half a win both ways was added to each pair"
    if groups and (groups < MIN_CLUSTERS or not bounded):
        yield "intervals: every prompt counts as one vote" + (
            f", since fewer than {MIN_CLUSTERS} do not tell how prompts differ" if groups < MIN_CLUSTERS else ""
        )


def _quantile(level: float, clusters: int) -> float:
    """How many standard errors an interval reaches to either side."""
    tail = (1 + level) / 2
    return float(special.stdtrit(clusters - 1, tail) if clusters > 1 else special.ndtri(tail))


def _check_vote(vote: Any) -> Vote:
    """Return the vote. Raises ValueError if it is none."""
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


def _cluster_codes(clusters: Iterable[Any] | None, votes: int) -> npt.NDArray[np.intp]:
    """The cluster of each vote as a number from 0."""
    if clusters is None:
        return np.zeros(votes, dtype=np.intp)
    names = pd.Series(list(clusters))
    if len(names) != votes:
        raise InvalidRequest(f"clusters: expected the prompt of each of {votes} votes; got {len(names)}")
    if names.isna().any():
        raise InvalidRequest(f"clusters: expected the prompt of each vote; {int(names.isna().sum())} have none")
    return pd.factorize(names)[0]


@dataclasses.dataclass(frozen=True, slots=True)
class _Tally:
    """How often each two met and how it ended, a row for each two of a cluster."""

    size: int
    """How many are voted on."""
    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    cluster: npt.NDArray[np.intp]
    """−1: no cluster's, but the prior's."""
    won: Values
    lost: Values
    tied: Values

    @classmethod
    def count(cls, votes: list[Vote], indices: dict[str, int], codes: npt.NDArray[np.intp]) -> _Tally:
        sides = np.array([(indices[first], indices[second]) for first, second, _ in votes])
        winners = np.array([-1 if winner is None else indices[winner] for _, _, winner in votes])
        first, second = sides.min(axis=1), sides.max(axis=1)
        # Numbers, since pandas takes ten times as long to group some thousand rows of Python objects.
        shape = len(indices), len(indices), int(codes.max()) + 1
        rows, keys = pd.factorize(np.ravel_multi_index((first, second, codes), shape))
        a, b, cluster = np.unravel_index(keys, shape)
        outcomes = (winners == first, winners == second, winners < 0)
        won, lost, tied = (np.bincount(rows, outcome).astype(float) for outcome in outcomes)
        return cls(len(indices), a, b, cluster, won, lost, tied)

    @property
    def met(self) -> Values:
        return self.won + self.lost + self.tied

    def tables(self) -> tuple[Values, Values]:
        """How often each (row) won against each other (column), and how often they tied."""
        wins, ties = np.zeros((2, self.size, self.size))
        np.add.at(wins, (self.first, self.second), self.won)
        np.add.at(wins, (self.second, self.first), self.lost)
        np.add.at(ties, (self.first, self.second), self.tied)
        return wins, ties + ties.T

    def with_prior(self) -> _Tally:
        """The tally with half a win both ways for each two that met."""
        a, b = np.unique(np.column_stack([self.first, self.second]), axis=0).T
        half, none = np.full(len(a), PRIOR), np.zeros(len(a))
        added = (a, b, np.full(len(a), -1), half, half, none)
        columns = (self.first, self.second, self.cluster, self.won, self.lost, self.tied)
        return _Tally(self.size, *(np.concatenate(pair) for pair in zip(columns, added, strict=True)))

    def one_vote_a_cluster(self) -> _Tally:
        """The tally in which the votes of a cluster on two count as one."""
        met = self.met
        return dataclasses.replace(self, won=self.won / met, lost=self.lost / met, tied=self.tied / met)


@dataclasses.dataclass(frozen=True, slots=True)
class _Fit:
    """The strengths that make a tally most likely, and the covariances of them."""

    parameters: Values
    """The strength of each but the first, which is 0, and the logarithm of `ties` if there are any."""
    size: int

    @classmethod
    def of(cls, tally: _Tally) -> _Fit:
        """Fit by Newton's method: the log-likelihood is concave, and its maximum finite."""
        fit = cls(np.zeros(tally.size - 1 + bool(tally.tied.any())), tally.size)
        for _ in range(MAX_STEPS):
            scores, information = fit.derivatives(tally)
            step = np.linalg.solve(information.sum(axis=0), scores.sum(axis=0))
            # Far from the maximum a full step can overshoot it without end.
            step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-300))
            fit = cls(fit.parameters + step, tally.size)
            if np.abs(step).max() < 1e-10:
                break
        return fit

    @property
    def strength(self) -> Values:
        """Around a mean of 0."""
        strength = np.concatenate([[0.0], self.parameters[: self.size - 1]])
        return np.asarray(strength - strength.mean())

    @property
    def ties(self) -> float:
        return float(np.exp(self.parameters[self.size - 1])) if len(self.parameters) == self.size else 0.0

    def derivatives(self, tally: _Tally) -> tuple[Values, Values]:
        """The score and the information of each row of the tally."""
        has_ties = len(self.parameters) == self.size
        strength = np.concatenate([[0.0], self.parameters[: self.size - 1]])
        half = (strength[tally.first] - strength[tally.second]) / 2
        weights = np.stack([half, -half, np.full(len(half), self.parameters[-1] if has_ties else -np.inf)])
        win, _, tie = special.softmax(weights, axis=0)
        # An exponential family: the observed less the expected of two counts, and their variances.
        share, met = win + tie / 2, tally.met
        rows = np.arange(len(half))
        design = np.zeros((len(half), len(self.parameters), 2))
        for side, sign in ((tally.first, 1.0), (tally.second, -1.0)):
            is_free = side > 0
            design[rows[is_free], side[is_free] - 1, 0] = sign
        design[:, self.size - 1 :, 1] = 1.0
        counts = np.stack([tally.won + tally.tied / 2 - met * share, tally.tied - met * tie], axis=1)
        across = tie / 2 - share * tie
        spread = np.stack([win + tie / 4 - share**2, across, across, tie * (1 - tie)], axis=1).reshape(-1, 2, 2)
        scores = (design @ counts[:, :, None])[:, :, 0]
        return scores, design @ (met[:, None, None] * spread) @ design.transpose(0, 2, 1)

    def model_covariance(self, tally: _Tally) -> Values:
        """Of the strengths, if all votes are independent."""
        _, information = self.derivatives(tally)
        return self._of_strengths(np.linalg.inv(information.sum(axis=0)))

    def cluster_covariance(self, tally: _Tally) -> Values:
        """Of the strengths, by leaving out one cluster after the other, each in one step of Newton's method."""
        scores, information = self.derivatives(tally)
        groups, total = int(tally.cluster.max()) + 1, information.sum(axis=0)
        own_scores = np.zeros((groups, scores.shape[1]))
        own_information = np.zeros((groups, *total.shape))
        np.add.at(own_scores, tally.cluster, scores)
        np.add.at(own_information, tally.cluster, information)
        # Where the others alone do not bound a strength the pseudo-inverse leaves it where it is.
        moves = (np.linalg.pinv(total - own_information, hermitian=True) @ own_scores[:, :, None])[:, :, 0]
        jackknife = (groups - 1) / groups * moves.T @ moves
        return self._of_strengths(_at_least(jackknife, np.linalg.inv(total)))

    def _of_strengths(self, covariance: Values) -> Values:
        """The covariance of the strengths around their mean."""
        free = self.size - 1
        whole = np.zeros((self.size, self.size))
        whole[1:, 1:] = covariance[:free, :free]
        centring = np.eye(self.size) - 1 / self.size
        return np.asarray(centring @ whole @ centring)


def _at_least(covariance: Values, floor: Values) -> Values:
    """The covariance, in no direction smaller than the floor."""
    root = np.linalg.cholesky(floor)
    inverse = np.linalg.inv(root)
    values, vectors = np.linalg.eigh(inverse @ covariance @ inverse.T)
    return np.asarray(root @ (vectors * np.maximum(values, 1.0)) @ vectors.T @ root.T)


def _components(table: npt.NDArray[Any], *, strong: bool) -> tuple[int, npt.NDArray[Any]]:
    count, labels = sparse.csgraph.connected_components(
        sparse.csr_array(table), directed=True, connection="strong" if strong else "weak"
    )
    return int(count), labels


def _is_bounded(wins: Values, ties: Values) -> bool:
    """Whether the likelihood has its maximum at finite strengths and a finite share of ties."""
    # Someone who never lost or tied would have an infinite strength (Ford, 1957). With ties, a circle of wins as well:
    # without one, all votes become certain as ties grow rarer and gaps wider in step.
    is_connected = _components(wins + ties, strong=True)[0] == 1
    return is_connected and (not ties.any() or _components(wins, strong=True)[0] < len(wins))


def _check_connected(met: npt.NDArray[Any], names: list[str]) -> None:
    """Raise ValueError if there are groups between which nothing was compared: no strength relates them."""
    count, labels = _components(met, strong=False)
    if count > 1:
        groups = [
            ", ".join(name for name, label in zip(names, labels, strict=True) if label == group)
            for group in range(count)
        ]
        raise InvalidRequest(
            f"these were never compared with one another: {' | '.join(groups)}; vote on pairs across them"
        )
