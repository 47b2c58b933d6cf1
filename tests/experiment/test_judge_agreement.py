"""Agreement of judges with people's votes: of pairs, of grades and of rubrics, shown where both exist."""

from __future__ import annotations

import json

import pytest

from famnb import scorers
from famnb.experiment import votes
from famnb.record import ratings
from famnb.record.ratings import RecordedVote
from tests.support.judging import Serve, answer, longer
from tests.support.scripted_models import experiment

PROMPTS = list("abcdefgh")


def judge_all(asked: dict[str, str]) -> str:
    """A judge that likes the longer answer, whatever it is asked for."""
    if "answer A" in asked:
        return longer(asked)
    grade = {"reason": "so", "grade": len(asked["answer"])}
    return json.dumps({**grade, "right": grade})


def vote(exp, winners) -> None:
    """Let a person choose the longer or the shorter answer to each prompt, or neither."""
    pairs = sorted(votes.pairs(one.cell for one in exp.answers()), key=lambda pair: pair[0].prompt.id)
    ratings.save(
        exp.ledger,
        [
            RecordedVote(
                experiment=exp.name,
                voter="ann",
                left_cell=first.key,
                right_cell=second.key,
                winner={"longer": "right", "shorter": "left", "tie": "tie"}[winner],
            )
            for (first, second), winner in zip(pairs, winners, strict=True)
        ],
    )


@pytest.mark.parametrize(
    "judge",
    [
        scorers.judge("fam-mini", pairwise=True, name="it"),
        scorers.judge("fam-mini", scale=(0, 5), name="it"),
        scorers.rubric("fam-mini", {"right": "Is it right?"}, scale=(0, 5), name="it"),
    ],
    ids=["pairs", "grades", "rubric"],
)
def test_a_judge_is_compared_with_people_who_voted(serve: Serve, judge: scorers.Judge) -> None:
    """The rate and Cohen's kappa, in the report of a round and in the summary, with n."""
    client, _ = serve(answer, judge_all)
    exp = experiment(client, PROMPTS, "x", "xx", scorers=[judge])
    assert exp.score().agreement == {}
    vote(exp, ["longer"] * 6 + ["shorter", "tie"])
    report = exp.score()
    found = report.agreement["it"]
    assert (found.votes, found.rate.value, found.rate.clusters) == (8, 0.75, 8)
    assert found.kappa.value == 0
    line = "it: agrees with 75% (95% interval 41% to 93%) of people's votes, Cohen's kappa 0"
    assert line in str(report)
    (sentence,) = [sentence for sentence in exp.summary().findings if "agrees with" in sentence]
    assert sentence.startswith(f"Judge {line}")
    assert sentence.endswith("n = 8 votes on 8 prompts.")


def test_without_people_or_judges_nothing_is_said(serve: Serve) -> None:
    """A ledger of votes alone has no judge to compare, one of verdicts alone no person."""
    client, _ = serve(answer, judge_all)
    exp = experiment(client, PROMPTS, "x", "xx", scorers=[scorers.exact("a")])
    vote(exp, ["longer"] * 8)
    assert exp.score().agreement == {}
    assert not any("agrees with" in line for line in exp.summary().findings)
