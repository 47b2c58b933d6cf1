"""Votes: which pairs are drawn, what votes come to, and what may be claimed of them."""

import functools
import json
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import famnb
from famnb import scorers, stats
from famnb.experiment import votes
from famnb.experiment.plan import Cell
from famnb.experiment.votes import JUDGE_PREFIX
from famnb.record import ratings
from famnb.record.ratings import RecordedVote
from tests.experiment.experiments import make_plan
from tests.experiment.scripted_models import Serve, answer, experiment, longer


@functools.cache
def cells_of(prompts: int, variants: int, repeats: int) -> tuple[Cell, ...]:
    """The cells of a plan."""
    settings = {f"v{index}": {"temperature": index / 10} for index in range(variants)}
    return make_plan([f"q{index}" for index in range(prompts)], settings, repeats=repeats, warmup=1)


def vote(left: Cell, right: Cell, winner: str, voter: str = "") -> RecordedVote:
    return RecordedVote(experiment="spoken", voter=voter, left_cell=left.key, right_cell=right.key, winner=winner)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 5))
def test_every_pair_is_drawn_once_and_the_seed_decides_all(prompts, variants, repeats, seed):
    """Two variants, one prompt, one repeat; never a warm-up; the same however the cells come."""
    cells = cells_of(prompts, variants, repeats)
    shuffle_pairs = votes.shuffle_pairs(cells, seed=seed)
    assert len(shuffle_pairs) == prompts * repeats * variants * (variants - 1) // 2
    assert len({frozenset((left.key, right.key)) for left, right in shuffle_pairs}) == len(shuffle_pairs)
    for left, right in shuffle_pairs:
        assert (left.prompt, left.repeat, left.warmup) == (right.prompt, right.repeat, right.warmup)
        assert left.variant is not right.variant
        assert not left.warmup
    assert votes.shuffle_pairs(cells[::-1], seed=seed) == shuffle_pairs


def test_no_side_and_no_order_is_favoured():
    """Over many pairs each variant stands left about half the time, and another seed gives another order."""
    cells = cells_of(100, 2, 2)
    left = Counter(pair[0].variant.label for pair in votes.shuffle_pairs(cells, seed=1))
    assert 70 < left["v0"] < 130
    assert votes.shuffle_pairs(cells, seed=1) != votes.shuffle_pairs(cells, seed=2)


def test_votes_of_people_count_as_given_and_skips_not_at_all():
    first, second, *rest = cells_of(2, 2, 1)[2:]
    ballots = [vote(first, second, "left"), vote(*rest, "tie"), vote(second, first, "skip", "ann")]
    ballots.append(RecordedVote(experiment="x", voter="", left_cell="gone", right_cell=first.key, winner="left"))
    found = votes.duels(ballots, (first, second, *rest))
    assert votes.shares(found) == {first.key: 1, second.key: 0, rest[0].key: 0.5, rest[1].key: 0.5}


@pytest.mark.parametrize(
    ("there", "back", "winner", "consistent"),
    [
        ("left", "right", 0, True),
        ("right", "left", 1, True),
        ("tie", "tie", None, True),
        ("left", "left", None, False),
        ("left", "tie", None, False),
    ],
)
def test_a_judges_two_verdicts_are_one(there: str, back: str, winner: int | None, consistent: bool):
    pair = cells_of(1, 2, 1)[2:]
    both = [vote(*pair, there, f"{JUDGE_PREFIX}j"), vote(*pair[::-1], back, f"{JUDGE_PREFIX}j")]
    (duel,) = votes.duels(both, pair, voter=f"{JUDGE_PREFIX}j")
    assert (duel.winner, duel.consistent) == (None if winner is None else pair[winner], consistent)
    assert votes.duels(both[:1], pair, voter=f"{JUDGE_PREFIX}j") == []
    assert votes.duels(both, pair) == []


def test_what_is_claimed_is_what_the_votes_carry():
    """Two votes tell nothing apart; a hundred with a clear majority do, with an interval around the share."""
    few = stats.bradley_terry([("a", "b", "a"), ("a", "b", "b")])
    assert votes.ranking_sentences(few) == ["The votes do not tell a and b apart (50%, 95% interval 6% to 94%)."]
    many = stats.bradley_terry([("a", "b", "a")] * 80 + [("a", "b", "b")] * 20)
    assert votes.ranking_sentences(many) == ["a is chosen over b in 80% of cases (95% interval 71% to 87%)."]


def test_what_is_clear_alone_is_not_claimed_as_the_best_of_many():
    """The first of a ranking is there by chance too; Holm's adjustment for all it is compared with leaves nothing."""
    ballots = [("a", name, winner) for name in "bcde" for winner in ["a"] * 21 + [name] * 9]
    ranking = stats.bradley_terry(ballots)
    found = votes.ranking_sentences(ranking)
    assert all("not enough for one of 4 comparisons" in line for line in found)
    two = stats.bradley_terry([vote for vote in ballots if "b" in vote])
    assert votes.ranking_sentences(two) == ["a is chosen over b in 70% of cases (95% interval 52% to 84%)."]


def test_votes_stand_in_frames_beside_cost_and_latency(serve: Serve):
    """One row a vote; a score a cell for the Pareto plot; a ranking of all people, or of one."""
    talker, _ = serve(lambda system, prompt: f"{system}: {prompt}")
    exp = experiment(talker, ["a", "b", "c"], "good", "bad")
    assert "score_votes" not in exp.frame()
    assert list(exp.votes().dtypes.astype(str).unique()) == ["string", "Int64", "datetime64[us, UTC]"]
    with pytest.raises(ValueError, match="there are no votes yet"):
        exp.ranking()
    cells = [answer.cell for answer in exp.answers()]
    for left, right in votes.shuffle_pairs(cells, seed=0):
        better = "left" if left.variant.label == "good" else "right"
        ratings.save(talker.ledger, [vote(left, right, better, "ann"), vote(left, right, "tie", "bob")])
    table = exp.votes()
    assert (len(table), set(table["voter"])) == (6, {"ann", "bob"})
    assert set(table.loc[table["voter"] == "ann", "better"]) == {"good"}
    assert table.loc[table["voter"] == "bob", "better"].isna().all()
    frame = exp.frame()
    assert frame.groupby("variant", observed=True)["score_votes"].mean().to_dict() == {"good": 0.75, "bad": 0.25}
    assert (exp.ranking().n, exp.ranking("ann").n) == (6, 3)
    with pytest.raises(ValueError, match="there are no votes of 'eve'; there are of 'ann', 'bob'"):
        exp.ranking("eve")
    alt = famnb.plot.pareto(frame, by="variant", score="score_votes").alt
    assert alt.startswith("Share of votes won against cost by variant")
    assert all(f"{name} (n=3)" in alt for name in ("good", "bad"))


def judge_all(fields: dict[str, str]) -> str:
    """A judge that likes the longer answer, whatever it is asked for."""
    if "answer A" in fields:
        return longer(fields)
    grade = {"reason": "so", "grade": len(fields["answer"])}
    return json.dumps({**grade, "right": grade})


def vote_by_length(exp, winners) -> None:
    """Let a person choose the longer or the shorter answer to each prompt, or neither."""
    pairs = sorted(votes.pairs(answer.cell for answer in exp.answers()), key=lambda pair: pair[0].prompt.id)
    sides = {"longer": "right", "shorter": "left", "tie": "tie"}
    cast = [vote(*pair, sides[winner], "ann") for pair, winner in zip(pairs, winners, strict=True)]
    ratings.save(exp.ledger, cast)


@pytest.mark.parametrize(
    "judge",
    [
        scorers.judge("fam-mini", pairwise=True, name="it"),
        scorers.judge("fam-mini", scale=(0, 5), name="it"),
    ],
    ids=["pairs", "grades"],
)
def test_a_judge_is_compared_with_people_who_voted(serve: Serve, judge: scorers.Judge):
    client, _ = serve(answer, judge_all)
    exp = experiment(client, list("abcdefgh"), "x", "xx", scorers=[judge])
    assert exp.score().agreement == {}
    vote_by_length(exp, ["longer"] * 6 + ["shorter", "tie"])
    report = exp.score()
    found = report.agreement["it"]
    assert (found.votes, found.rate.value, found.rate.clusters) == (8, 0.75, 8)
    line = "it: agrees with 75% (95% interval 41% to 93%) of people's votes, n = 8 votes on 8 prompts"
    assert line in str(report)
    (sentence,) = [sentence for sentence in exp.summary().findings if "agrees with" in sentence]
    assert sentence.startswith(f"Judge {line}")
    assert "; x over xx: 0% by the judge, 19% (95% interval" in sentence
    assert sentence.endswith("corrected by people's votes on 8 prompts.")


def test_without_people_or_judges_nothing_is_said(serve: Serve):
    client, _ = serve(answer, judge_all)
    exp = experiment(client, list("abcdefgh"), "x", "xx", scorers=[scorers.exact("a")])
    vote_by_length(exp, ["longer"] * 8)
    assert exp.score().agreement == {}
    assert not any("agrees with" in line for line in exp.summary().findings)


def judge_and_people(rng: random.Random, *, voted: int, prompts: int) -> tuple[list[votes.Duel], list[votes.Duel]]:
    """A judge that prefers the first variant where people see a tie, and people's votes on the first prompts."""
    pairs = votes.pairs(cells_of(prompts, 2, 1))
    truth = [rng.choice([first, second, None]) for first, second in pairs]
    judged = [first if winner is None else winner for (first, _), winner in zip(pairs, truth, strict=True)]
    return (
        [votes.Duel(*pair, winner) for pair, winner in zip(pairs, judged, strict=True)],
        [votes.Duel(*pair, winner) for pair, winner in zip(pairs[:voted], truth, strict=False)],
    )


@pytest.mark.full
def test_a_share_is_corrected_by_people_who_voted_on_some_of_its_pairs() -> None:
    """The judge says 67 %, the truth is 50 %, which the corrected interval holds in 95 of 100 samples."""
    hits = 0
    for seed in range(200):
        verdicts, people = judge_and_people(random.Random(seed), voted=30, prompts=90)
        (share,) = votes.agree_with_people("it", verdicts, people).shares
        hits += share.corrected.low <= 0.5 <= share.corrected.high
        assert abs(share.judged - 2 / 3) < 0.2
    assert 0.92 <= hits / 200 <= 0.99


def test_too_few_votes_correct_nothing_and_that_is_said() -> None:
    verdicts, people = judge_and_people(random.Random(1), voted=3, prompts=9)
    (share,) = votes.agree_with_people("it", verdicts, people).shares
    assert math.isnan(share.corrected.value)
    assert str(share).endswith("by the judge, not corrected: people voted on 3 prompts of these; 6 are the fewest")
