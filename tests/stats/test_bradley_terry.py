"""Bradley–Terry: a published example, ties, separation, and intervals by simulation."""

from typing import Any

import numpy as np
import pytest

from famnb import stats
from famnb.stats.bradley_terry import Vote

TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
WINS = (
    (0, 7, 9, 7, 7, 9, 11),
    (6, 0, 7, 5, 11, 9, 9),
    (4, 6, 0, 7, 7, 8, 12),
    (6, 8, 6, 0, 6, 7, 10),
    (6, 2, 6, 7, 0, 7, 12),
    (4, 4, 5, 6, 6, 0, 6),
    (2, 4, 1, 3, 1, 7, 0),
)
"""Agresti, Categorical Data Analysis: the American League's eastern division of 1987, wins of rows over columns."""
PUBLISHED = (1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0.0)
"""Agresti's strengths, Baltimore's put at 0."""


def baseball() -> list[Vote]:
    return [
        (TEAMS[row], TEAMS[column], TEAMS[row])
        for row, line in enumerate(WINS)
        for column, won in enumerate(line)
        for _ in range(won)
    ]


def test_a_published_example_is_met() -> None:
    found = stats.bradley_terry(baseball())
    strength = found.frame["strength"]
    assert [strength[team] - strength["Baltimore"] for team in TEAMS] == pytest.approx(PUBLISHED, abs=0.006)
    assert found.bounded
    assert list(found.frame.index) == list(TEAMS)


def test_two_alone_have_the_interval_of_a_logit() -> None:
    found = stats.bradley_terry([("a", "b", "a")] * 30 + [("a", "b", "b")] * 10)
    error = np.sqrt(1 / 30 + 1 / 10)
    assert found.frame["strength"]["a"] == pytest.approx(np.log(3) / 2)
    assert found.frame["high"]["a"] - found.frame["low"]["a"] == pytest.approx(1.959964 * error, rel=1e-4)


def test_ties_are_davidsons() -> None:
    """Of two alone the model is saturated: shares of wins, losses and ties are as they came, the gap their log odds."""
    found = stats.bradley_terry([("a", "b", "a")] * 24 + [("a", "b", "b")] * 6 + [("b", "a", None)] * 10)
    assert found.gap("a", "b").value == pytest.approx(np.log(24 / 6))
    assert found.ties == pytest.approx(10 / np.sqrt(24 * 6))
    assert found.frame.loc["a", ["wins", "ties", "votes"]].tolist() == [24, 10, 40]
    even = stats.bradley_terry([("a", "b", None)] * 6 + [("a", "b", "a"), ("b", "a", "b")])
    assert even.frame["strength"].tolist() == pytest.approx([0, 0], abs=1e-6)


def test_ties_are_those_of_a_published_model() -> None:
    """The likelihood that Davidson (1970) gives has its maximum where the fit is: no step raises it."""
    rng = np.random.default_rng(1)
    votes = [(a, b, str(rng.choice([a, b, ""])) or None) for a, b in [("a", "b"), ("b", "c"), ("c", "a")] * 40]
    found = stats.bradley_terry(votes)

    def likelihood(strength: dict[str, float], log_ties: float) -> float:
        worth = {name: np.exp(value) for name, value in strength.items()}
        total = 0.0
        for a, b, winner in votes:
            tie = np.exp(log_ties) * np.sqrt(worth[a] * worth[b])
            total += np.log((tie if winner is None else worth[winner]) / (worth[a] + worth[b] + tie))
        return float(total)

    strength, log_ties = found.frame["strength"].to_dict(), float(np.log(found.ties))
    best = likelihood(strength, log_ties)
    for step in (-1e-3, 1e-3):
        assert all(likelihood(strength | {name: strength[name] + step}, log_ties) < best for name in strength)
        assert likelihood(strength, log_ties + step) < best


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        ([("a", "b", "a"), ("a", "b", None)], "one never lost or never won"),
        ([("a", "b", "a"), ("b", "c", None), ("c", "a", None), ("b", "c", "b")], "one never lost or never won"),
        ([("a", "b", None), ("b", "c", None)], "there are only ties"),
        ([("a", "b", "a")] * 5 + [("b", "c", "b"), ("b", "c", "c"), ("a", "c", "a")], "half a win both ways"),
    ],
)
def test_no_strength_is_bounded_without_a_circle_of_wins(votes: list[Vote], words: str) -> None:
    """Rarer ties and wider gaps would make such votes ever more certain; half a win both ways ends that."""
    for clusters in (None, range(len(votes))):
        found = stats.bradley_terry(votes, clusters=clusters)
        assert not found.bounded
        assert words in str(found)
        assert found.frame.index[0] == "a"
        assert np.isfinite(found.frame[["low", "high"]].to_numpy()).all()
        assert (found.frame["high"] - found.frame["low"] > 1).all()


def test_votes_on_one_prompt_go_together() -> None:
    """Five voters of one mind on each of 12 prompts are as sure as one of them, and not as sixty votes."""
    winners = list("aaabaabaabaa")
    single = stats.bradley_terry([("a", "b", winner) for winner in winners], clusters=range(12))
    votes, prompts = [("a", "b", winner) for winner in winners for _ in range(5)], np.repeat(np.arange(12), 5)
    five, apart = stats.bradley_terry(votes, clusters=prompts), stats.bradley_terry(votes)
    assert five.gap("a", "b").low == pytest.approx(single.gap("a", "b").low)
    assert five.p_value("a", "b") == pytest.approx(single.p_value("a", "b"))
    assert five.p_value("a", "b") > 0.05 > apart.p_value("a", "b")
    assert "n = 60 votes on 12 prompts" in str(five)


@pytest.mark.parametrize("prompts", [1, 2, 5])
def test_few_prompts_tell_little(prompts: int) -> None:
    """However many votes there are on them: every prompt counts as one, and the ranking says so."""
    votes, clusters = [("a", "b", "a")] * 90 + [("a", "b", "b")] * 10, [index % prompts for index in range(100)]
    found = stats.bradley_terry(votes, clusters=clusters)
    assert found.gap("a", "b").low < 0 < found.gap("a", "b").high
    assert "every prompt counts as one vote, since fewer than 6 do not tell how prompts differ" in str(found)


def test_one_who_wins_everything_is_no_surer_for_repeats() -> None:
    once, ten = (stats.bradley_terry([("a", "b", "a")] * 12 * r, clusters=[*range(12)] * r) for r in (1, 10))
    width = [found.gap("a", "b").high - found.gap("a", "b").low for found in (once, ten)]
    assert width[1] > 0.8 * width[0]
    assert not ten.bounded


def test_groups_that_never_met_are_named() -> None:
    with pytest.raises(ValueError, match=r"never compared with one another: a, b \| c, d"):
        stats.bradley_terry([("a", "b", "a"), ("c", "d", "c")])


def test_a_ranking_shows_itself_as_a_table() -> None:
    shown = repr(stats.bradley_terry([("a", "b", "a"), ("a", "b", "b"), ("a", "b", None)]))
    assert [line.split() for line in shown.splitlines()] == [
        ["strength", "low", "high", "better", "wins", "ties", "votes"],
        ["a", "0.00", "-1.39", "1.39", "0.50", "1", "1", "3"],
        ["b", "0.00", "-1.39", "1.39", "0.50", "1", "1", "3"],
        ["n", "=", "3", "votes"],
    ]


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        ([], "no votes yet"),
        ([("a", "b", "c")], "one of them"),
        ([("a", "a", "a")], "two that differ"),
        ([("a", "b")], "a vote is"),
        ([("a", "b", float("nan"))], "a vote is"),
        (["abc"], "a vote is"),
    ],
)
def test_votes_that_make_no_sense_are_refused(votes: list[Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        stats.bradley_terry(votes)
