"""How far a judge agrees with people who voted on the same pairs of answers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from famnb import stats
from famnb.experiment import votes
from famnb.experiment.plan import Cell
from famnb.experiment.votes import Duel
from famnb.formatting import format_count, format_level, format_number, format_percent
from famnb.stats import Interval


@dataclasses.dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How far a judge agrees with people's votes."""

    judge: str
    votes: int
    """People's votes on pairs of which the judge has a verdict; a tie is a verdict."""
    rate: Interval
    """The share of them in which the judge says the same, for new prompts."""
    kappa: Interval
    """Cohen's kappa, which is 0 where they agree as often as chance has it."""

    def __str__(self) -> str:
        n = f"n = {format_count(self.votes, 'vote')} on {format_count(self.rate.clusters, 'prompt')}"
        rate = f"{format_percent(self.rate.value)}{_ends(self.rate, percent=True)}"
        is_known = not math.isnan(self.kappa.value)
        kappa = f"{format_number(self.kappa.value)}{_ends(self.kappa)}" if is_known else "not known"
        return f"{self.judge}: agrees with {rate} of people's votes, Cohen's kappa {kappa}, {n}"


def _ends(interval: Interval, *, percent: bool = False) -> str:
    """The interval in words, empty where n carries none."""
    if not interval.known:
        return ""
    low, high = map(format_percent if percent else format_number, (interval.low, interval.high))
    return f" ({format_level(interval.level)} interval {low} to {high})"


def agree_with_people(
    judge: str, verdicts: Mapping[frozenset[str], float], duels: Iterable[Duel], *, level: float = 0.95
) -> JudgeAgreement:
    """Return how far a judge's verdicts agree with people's duels.

    `verdicts` has, by the keys of two cells, how much better the one whose variant comes first by name is: above 0 it
    is better, below 0 the other, at 0 neither.
    """
    own, people, prompts = [], [], []
    for duel in duels:
        verdict = verdicts.get(frozenset((duel.first.key, duel.second.key)))
        if verdict is None:
            continue
        ahead, _ = _in_order(duel.first, duel.second)
        own.append((verdict > 0) - (verdict < 0))
        people.append(0 if duel.winner is None else 1 if duel.winner.key == ahead.key else -1)
        prompts.append(duel.first.prompt.id)
    found = stats.agreement(own, people, clusters=prompts, level=level)
    return JudgeAgreement(judge, len(own), found.rate, found.kappa)


def verdicts_of_duels(duels: Iterable[Duel]) -> dict[frozenset[str], float]:
    """What a judge of pairs says of each, as `agree_with_people` takes it."""
    verdicts: dict[frozenset[str], float] = {}
    for duel in duels:
        ahead, _ = _in_order(duel.first, duel.second)
        value = 0.0 if duel.winner is None else 1.0 if duel.winner.key == ahead.key else -1.0
        verdicts[frozenset((duel.first.key, duel.second.key))] = value
    return verdicts


def verdicts_of_grades(grades: Mapping[str, float], cells: Sequence[Cell]) -> dict[frozenset[str], float]:
    """What grades by cell say of each two answers to a prompt: the higher one is better."""
    verdicts: dict[frozenset[str], float] = {}
    for first, second in votes.pairs(cells):
        ahead, behind = _in_order(first, second)
        if ahead.key in grades and behind.key in grades:
            verdicts[frozenset((ahead.key, behind.key))] = grades[ahead.key] - grades[behind.key]
    return verdicts


def _in_order(first: Cell, second: Cell) -> tuple[Cell, Cell]:
    """Two cells by the names of their variants, so that a preference for one variant counts as agreement by chance."""
    return (first, second) if first.variant.label <= second.variant.label else (second, first)
