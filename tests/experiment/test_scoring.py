"""Scoring: each answer once, kept in the ledger, and made again where the scorer or the question changed."""

from datetime import timedelta
from pathlib import Path

import pytest

import famnb
from famnb import scorers
from famnb.errors import Interrupted
from famnb.experiment.prompts import Prompt
from famnb.experiment.scorers import Score
from famnb.record import Ledger, ratings
from famnb.reply import Reply
from tests.experiment.scripted_models import Serve, experiment


@pytest.fixture
def talker(serve: Serve) -> famnb.Client:
    """A client of a service that answers `loud` in capitals, `quiet` does not."""
    return serve(lambda system, prompt: prompt.upper() if system == "loud" else prompt)[0]


PROMPTS = [{"prompt": "one", "expected": "ONE"}, {"prompt": "two", "expected": "two"}]


def test_scores_stand_in_the_frame(talker: famnb.Client):
    some = [scorers.exact(), scorers.function(lambda reply: 1 / (reply.text != "ONE"), name="shaky")]
    exp = experiment(talker, PROMPTS, "loud", "quiet", scorers=some, warmup=1)
    frame = exp.frame()
    scores = frame[~frame["warmup"]].set_index(["prompt_id", "variant"])[["score_exact", "score_shaky"]]
    assert scores["score_exact"].to_dict() == {
        **{("p1", "loud"): 1, ("p1", "quiet"): 0},
        **{("p2", "loud"): 0, ("p2", "quiet"): 1},
    }
    assert scores["score_shaky"].isna().to_dict()["p1", "loud"]
    assert scores["score_shaky"].sum() == 3
    assert frame[frame["warmup"]][["score_exact", "score_shaky"]].isna().all(axis=None)
    fresh = famnb.Experiment("never asked", name="fresh", client=talker, scorers=some)
    assert fresh.frame()["score_exact"].isna().all()


def test_a_score_is_made_once_and_a_changed_scorer_scores_anew(talker: famnb.Client):
    seen: list[str] = []

    def counting(reply: Reply) -> float | None:
        seen.append(reply.text)
        return None if reply.text == "one" else 1.0

    exp = experiment(talker, PROMPTS, "loud", "quiet", scorers=[counting])
    assert exp.score().scored == {"counting": 4}
    exp.frame()
    same = experiment(talker, PROMPTS, "loud", "quiet", scorers=[counting])
    assert same.score().scored == {"counting": 0}
    assert len(seen) == 4
    report = same.score(again=True)
    assert (report.scored, report.missing, seen[4:]) == ({"counting": 1}, {"counting": 1}, ["one"])
    changed = experiment(talker, PROMPTS, "loud", "quiet", scorers=[scorers.function(lambda _: 2, name="counting")])
    assert list(changed.frame()["score_counting"]) == [2.0] * 4


def test_an_expected_answer_that_is_corrected_scores_anew(talker: famnb.Client):
    before = experiment(talker, PROMPTS, "loud", scorers=[scorers.exact()]).frame()
    corrected = [PROMPTS[0], {"prompt": "two", "expected": "TWO"}]
    after = experiment(talker, corrected, "loud", scorers=[scorers.exact()]).frame()
    assert (list(before["call_id"]), set(before["score_exact"])) == (list(after["call_id"]), {1, 0})
    assert set(after["score_exact"]) == {1}


def test_an_interrupt_keeps_the_scores_that_were_made(talker: famnb.Client):
    seen: list[str] = []

    def slow(reply: Reply) -> float:
        seen.append(reply.text)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return 1

    exp = experiment(talker, PROMPTS, "loud", "quiet", scorers=[slow])
    with pytest.raises(Interrupted, match="2 scores were made and are kept"):
        exp.score()
    assert (exp.score().scored, len(seen)) == ({"slow": 2}, 5)


def test_an_object_of_ones_own_is_a_scorer(talker: famnb.Client):
    class Shouting:
        name = "shouting"

        def score(self, reply: Reply, prompt: Prompt) -> Score:
            return Score(float(reply.text.isupper()), prompt.id)

    frame = experiment(talker, PROMPTS, "loud", "quiet", scorers=[Shouting()]).frame()
    assert frame.groupby("variant", observed=True)["score_shouting"].mean().to_dict() == {"loud": 1, "quiet": 0}


def test_scores_and_votes_leave_and_come_back_with_their_ledger(talker: famnb.Client, tmp_path: Path):
    exp = experiment(talker, PROMPTS, "loud", "quiet", scorers=[scorers.exact()])
    exp.frame()
    exp.vote().vote("tie")
    ids = [answer.call_id for answer in exp.answers()]
    talker.ledger.export(tmp_path / "x.sqlite")
    with Ledger(tmp_path / "copy.sqlite") as copy:
        for _ in range(2):
            copy.load(tmp_path / "x.sqlite")
            assert sorted(ratings.read_scores(copy, ids), key=str) == sorted(
                ratings.read_scores(talker.ledger, ids), key=str
            )
            assert ratings.read_votes(copy, "spoken") == ratings.read_votes(talker.ledger, "spoken")
        assert len(famnb.calls(tmp_path / "x.sqlite")) == 4
        copy.prune(older_than=timedelta(0))
        assert list(ratings.read_scores(copy, ids)) == []
        assert len(ratings.read_votes(copy, "spoken")) == 1
