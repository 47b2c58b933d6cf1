"""Votes between two answers to the same prompt: the pairs there are, the results, and how far judges agree with people.

A person's vote counts as it was given. A model judges each pair both ways round: where the two verdicts differ, the
pair counts as a tie and is inconsistent.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from scipy.special import expit, stdtrit

from famnb import stats
from famnb.experiment.plan import Cell
from famnb.formatting import format_count, format_level, format_percent
from famnb.record.ratings import RecordedVote

JUDGE_PREFIX = "judge:"
"""The beginning of the voter's name if a model votes."""
VOTES_SCORE = "votes"
"""The name of the score that people's votes make: the column `score_votes`."""
GRADE_SCORE = "grade"
"""The name of the score that people give by hand, and the scorer that it is kept under."""
EQUAL = "the answers are equal"
"""The detail of a tie between equal answers: it was neither shown to anybody nor paid for."""
_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("voter", "prompt_id", "repeat", "left", "right", "winner", "better", "detail"), "string"),
    "at": "datetime64[us, UTC]",
    **dict.fromkeys(("left_cell", "right_cell", "judge_call_id"), "string"),
    "repeat": "Int64",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Duel:
    """A voter's verdict on two answers."""

    first: Cell
    """That of the variant whose label is first, so that a preference for one variant counts as agreement by chance."""
    second: Cell
    winner: Cell | None
    """The better of the two; None for a tie."""
    consistent: bool = True
    """False if a judge's verdict changed with the position of the answers."""
    voter: str = ""
    equal: bool = False
    """Whether it is a tie since the answers are equal."""

    @property
    def outcome(self) -> int:
        """1 if the first is better, -1 if the second is, 0 for a tie."""
        return 0 if self.winner is None else 1 if self.winner is self.first else -1


@dataclasses.dataclass(frozen=True, slots=True)
class Consistency:
    """How far a judge's choices depend on the position of the answers."""

    judge: str
    pairs: int
    """Pairs with a verdict both ways round."""
    inconsistent: stats.Interval
    """The share of them in which the two verdicts differ, with its 95 % interval."""
    first_wins: int
    """Verdicts for the answer shown first, as A."""
    second_wins: int
    unformed: int
    """Verdicts that could not be read."""

    def __str__(self) -> str:
        value = _format_share(self.inconsistent) if self.pairs else "not known"
        unread = f"; {self.unformed:,} verdicts could not be read" if self.unformed else ""
        return (
            f"{self.judge}: verdicts that change with the position: {value}, n = {self.pairs:,} pairs; the answer "
            f"shown first won {self.first_wins:,} times, the second {self.second_wins:,} times{unread}"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class CorrectedShare:
    """The share of pairs that a variant won by a judge, corrected by people's votes on some of them."""

    first: str
    second: str
    judged: float
    """The share, a tie being half, that the judge gives `first` over `second`, on all prompts that it judged."""
    corrected: stats.Interval
    """The same with what people say otherwise, prompt by prompt (prediction-powered inference); NaN if too few were
    voted on."""

    def __str__(self) -> str:
        judged = f"{self.first} over {self.second}: {format_percent(self.judged)} by the judge"
        prompts = format_count(self.corrected.clusters, "prompt")
        if math.isnan(self.corrected.value):
            fewest = stats.min_values(self.corrected.level)
            return f"{judged}, not corrected: people voted on {prompts} of these; {fewest} are the fewest"
        return f"{judged}, {_format_share(self.corrected)} corrected by people's votes on {prompts}"


@dataclasses.dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How far a judge agrees with people's votes, and what it says once it is corrected by them."""

    judge: str
    votes: int
    """People's votes on pairs of which the judge has a verdict; a tie is one, unless the answers are equal."""
    rate: stats.Interval
    """The share of them in which the judge says the same, for new prompts."""
    shares: tuple[CorrectedShare, ...] = ()
    """What the judge says of each two variants, corrected."""

    def __str__(self) -> str:
        n = f"n = {format_count(self.votes, 'vote')} on {format_count(self.rate.clusters, 'prompt')}"
        agreement = f"{self.judge}: agrees with {_format_share(self.rate)} of people's votes, {n}"
        return "; ".join([agreement, *map(str, self.shares)])


def pairs(cells: Iterable[Cell]) -> list[tuple[Cell, Cell]]:
    """Every two answers to the same prompt, of the same repeat and different variants."""
    groups: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        if not cell.warmup:
            groups[cell.prompt.id, cell.repeat].append(cell)
    return [
        (first, second)
        for group in groups.values()
        for first, second in itertools.combinations(sorted(group, key=lambda cell: cell.variant.label), 2)
    ]


def shuffle_pairs(cells: Iterable[Cell], *, seed: int) -> list[tuple[Cell, Cell]]:
    """Return all pairs, their order and which answer stands left decided by the seed alone."""
    # Sorted first, so that the order of the plan has no say.
    ordered = sorted(pairs(cells), key=lambda pair: (pair[0].key, pair[1].key))
    rng = random.Random(f"{seed}/ballot")  # noqa: S311 - an order, no secret
    rng.shuffle(ordered)
    return [pair if rng.random() < 0.5 else (pair[1], pair[0]) for pair in ordered]


def duels(votes: Iterable[RecordedVote], cells: Iterable[Cell], *, voter: str | None = None) -> list[Duel]:
    """The verdicts of one voter, or of all people; votes on cells that are no longer planned do not count."""
    by_key = {cell.key: cell for cell in cells}
    of_judge = voter is not None and voter.startswith(JUDGE_PREFIX)
    groups: dict[Any, list[RecordedVote]] = defaultdict(list)
    for number, vote in enumerate(votes):
        is_wanted = not vote.voter.startswith(JUDGE_PREFIX) if voter is None else vote.voter == voter
        if is_wanted and vote.winner != "skip" and {vote.left_cell, vote.right_cell} <= by_key.keys():
            # A judge's votes on a pair, one each way round, are one verdict; a person's vote is one by itself.
            groups[frozenset((vote.left_cell, vote.right_cell)) if of_judge else number].append(vote)
    verdicts = []
    for group in groups.values():
        # A pair that was judged one way round only tells nothing: the verdict may be the position's.
        if of_judge and len(group) < 2:
            continue
        vote = group[0]
        first, second = sorted((by_key[vote.left_cell], by_key[vote.right_cell]), key=lambda cell: cell.variant.label)
        there, back = (_winning_cell(of_pair, by_key) for of_pair in (vote, group[-1]))
        winner = there if there is back else None
        verdicts.append(Duel(first, second, winner, there is back, vote.voter, vote.detail == EQUAL))
    return verdicts


def ranking(verdicts: Sequence[Duel], *, level: float = 0.95) -> stats.Ranking:
    """Bradley–Terry strengths of the variants, for new prompts. Raises ValueError if the votes do not suffice."""
    cast = [
        (duel.first.variant.label, duel.second.variant.label, duel.winner.variant.label if duel.winner else None)
        for duel in verdicts
    ]
    ranked = stats.bradley_terry(cast, clusters=[duel.first.prompt.id for duel in verdicts], level=level)
    voters = {duel.voter for duel in verdicts}
    if len(voters) < 2:
        return ranked
    note = f"votes of {len(voters)} voters: the intervals are of new prompts judged by the same voters"
    return dataclasses.replace(ranked, notes=(*ranked.notes, note))


def ranking_sentences(result: stats.Ranking) -> list[str]:
    """Compare the first of a ranking with each other variant, a sentence each, with its interval.

    The intervals are each comparison's own; a difference is claimed only if Holm's adjustment for all comparisons
    leaves it clear, and only from so many prompts that a sign test over them could show one.
    """
    first, *others = map(str, result.frame.index)
    adjusted = stats.holm([result.p_value(first, name) for name in others])
    fewest = stats.min_values(result.level)
    too_few = 0 < result.clusters < fewest
    sentences = []
    for name, p_value in zip(others, adjusted, strict=True):
        gap = result.gap(first, name)
        share, low, high = (format_percent(float(expit(odds))) for odds in (gap.value, gap.low, gap.high))
        between = f"{format_level(result.level)} interval {low} to {high}"
        if p_value < 1 - result.level and not too_few:
            decided = " that chose one of the two" if result.ties else ""
            sentences.append(f"{first} is chosen over {name} in {share} of cases{decided} ({between}).")
            continue
        reason = ""
        if too_few:
            reason = f", from {format_count(result.clusters, 'prompt')}; {fewest} are the fewest that could"
        elif gap.low > 0:
            reason = f", not enough for one of {len(others)} comparisons"
        sentences.append(f"The votes do not tell {first} and {name} apart ({share}, {between}{reason}).")
    return sentences


def shares(verdicts: Iterable[Duel]) -> dict[str, float]:
    """The share of its pairs that each cell won, a tie being half, by the key of every cell that was voted on."""
    points: dict[str, list[float]] = defaultdict(list)
    for duel in verdicts:
        for cell in (duel.first, duel.second):
            points[cell.key].append(0.5 if duel.winner is None else float(duel.winner is cell))
    return {key: sum(cell_points) / len(cell_points) for key, cell_points in points.items()}


def consistency(votes: Sequence[RecordedVote], cells: Sequence[Cell], *, voter: str) -> Consistency:
    """How far a judge's choices depend on the position."""
    judge_votes, keys = [vote for vote in votes if vote.voter == voter], {cell.key for cell in cells}
    judge_votes = [vote for vote in judge_votes if {vote.left_cell, vote.right_cell} <= keys and vote.detail != EQUAL]
    verdicts = duels(judge_votes, cells, voter=voter)
    return Consistency(
        judge=voter.removeprefix(JUDGE_PREFIX).partition("#")[0],
        pairs=len(verdicts),
        inconsistent=stats.proportion(sum(not duel.consistent for duel in verdicts), len(verdicts)),
        first_wins=sum(vote.winner == "left" for vote in judge_votes),
        second_wins=sum(vote.winner == "right" for vote in judge_votes),
        unformed=sum(vote.winner == "skip" for vote in judge_votes),
    )


def table(votes: Iterable[RecordedVote], cells: Iterable[Cell]) -> pd.DataFrame:
    """One row a vote on cells that are planned, oldest first; see `BaseExperiment.votes` for the columns."""
    by_key = {cell.key: cell for cell in cells}
    rows: list[dict[str, Any]] = []
    for vote in votes:
        if not {vote.left_cell, vote.right_cell} <= by_key.keys():
            continue
        left, right = by_key[vote.left_cell], by_key[vote.right_cell]
        better = _winning_cell(vote, by_key)
        rows.append(
            {
                **dataclasses.asdict(vote),
                "prompt_id": left.prompt.id,
                "repeat": left.repeat,
                "left": left.variant.label,
                "right": right.variant.label,
                "better": better and better.variant.label,
            }
        )
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(dict(_COLUMNS))


def _winning_cell(vote: RecordedVote, by_key: Mapping[str, Cell]) -> Cell | None:
    return by_key.get({"left": vote.left_cell, "right": vote.right_cell}.get(vote.winner, ""))


def agree_with_people(
    judge: str, verdicts: Iterable[Duel], people: Iterable[Duel], *, level: float = 0.95
) -> JudgeAgreement:
    """Return how far a judge's verdicts agree with people's on the same pairs, and its shares corrected by these."""
    verdicts, people = list(verdicts), list(people)
    outcomes = {(duel.first.key, duel.second.key): duel.outcome for duel in verdicts}
    # On equal answers all agree, which says nothing of the judge.
    shared = [duel for duel in people if (duel.first.key, duel.second.key) in outcomes and not duel.equal]
    rate = stats.share(
        [outcomes[duel.first.key, duel.second.key] == duel.outcome for duel in shared],
        clusters=[duel.first.prompt.id for duel in shared],
        level=level,
    )
    compared = dict.fromkeys((duel.first.variant.label, duel.second.variant.label) for duel in verdicts)
    shares = tuple(_correct_share(names, verdicts, people, level=level) for names in compared) if shared else ()
    return JudgeAgreement(judge, len(shared), rate, shares)


def _correct_share(
    names: tuple[str, str], verdicts: Iterable[Duel], people: Iterable[Duel], *, level: float
) -> CorrectedShare:
    """Correct the share that a judge gives the first of two variants by the votes of people there are.

    Of each prompt that people voted on it is known by how much the judge differs from them. The mean of that, over
    these prompts, is added to the judge's mean over all prompts; both vary with the prompts (Angelopoulos and others,
    Prediction-powered inference, Science 2023, for means).
    """

    def mean_points(duels: Iterable[Duel]) -> pd.Series[float]:
        """The points of the first variant in each pair of answers, by the prompt and the answers' keys."""
        rows = [
            (duel.first.prompt.id, duel.first.key, duel.second.key, (duel.outcome + 1) / 2)
            for duel in duels
            if (duel.first.variant.label, duel.second.variant.label) == names
        ]
        table = pd.DataFrame(rows, columns=["prompt", "first", "second", "points"]).astype({"points": float})
        return table.groupby(["prompt", "first", "second"])["points"].mean()

    judged = mean_points(verdicts)
    gaps = (mean_points(people) - judged).dropna()
    judge_means, gap_means = (points.groupby(level="prompt").mean() for points in (judged, gaps))
    share, n, all_prompts = float(judge_means.mean()), len(gap_means), len(judge_means)
    unknown = stats.Interval(math.nan, math.nan, math.nan, level=level, n=len(gaps), clusters=n)
    if n < stats.min_values(level):
        return CorrectedShare(*names, share, unknown)
    # The prompts that people voted on are among those that the judge's mean is of.
    covariance = float(judge_means[gap_means.index].cov(gap_means))
    variance = float(gap_means.var()) / n + (2 * covariance + float(judge_means.var())) / all_prompts
    margin = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(max(variance, 0.0))
    if not gap_means.any():
        # Where the judge never differed from people it may still do so, on as many prompts as n would not have shown.
        margin += 1 - (1 - level) ** (1 / n)
    value = min(max(share + float(gap_means.mean()), 0.0), 1.0)
    corrected = dataclasses.replace(unknown, value=value, low=max(value - margin, 0.0), high=min(value + margin, 1.0))
    return CorrectedShare(*names, share, corrected)


def duels_of_grades(grades: Mapping[str, float], cells: Sequence[Cell]) -> list[Duel]:
    """What grades, by the cell's key, say of each two answers to a prompt: the higher one is better."""
    verdicts = []
    for first, second in pairs(cells):
        if first.key in grades and second.key in grades:
            gap = grades[first.key] - grades[second.key]
            verdicts.append(Duel(first, second, first if gap > 0 else second if gap < 0 else None))
    return verdicts


def _format_share(share: stats.Interval) -> str:
    """A share with its interval, if n carries one."""
    value, low, high = map(format_percent, (share.value, share.low, share.high))
    return f"{value} ({format_level(share.level)} interval {low} to {high})" if share.known else value
