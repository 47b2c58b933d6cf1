"""Scorers: what each says of an answer, that it is said once, and that no scorer can end a run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import famnb
from famnb import scorers
from famnb.errors import Interrupted, InvalidRequest
from famnb.experiment import Prompt
from famnb.experiment.scorers import Score, Scorer, apply_scorer
from famnb.record import Ledger, ratings
from famnb.record.ratings import Scored
from famnb.reply import Block, Reply
from tests.support.fault_server import FaultServer
from tests.support.scripted_models import experiment, service


class Invoice(pydantic.BaseModel):
    total: int
    currency: Literal["USD", "EUR"]


FORM = {
    "type": "object",
    "properties": {"total": {"type": "integer", "minimum": 0}},
    "required": ["total"],
    "additionalProperties": False,
}


def said(text: str) -> Reply:
    """A reply of this text."""
    return Reply(blocks=(Block(at=(0, 0), kind="text", text=text),), status="completed")


def value(scorer: Scorer, text: str, **slots: Any) -> float | None:
    """What a scorer makes of a text."""
    return apply_scorer(scorer, said(text), Prompt("p1", "?", slots)).value


@pytest.mark.parametrize(
    ("scorer", "text", "expected"),
    [
        (scorers.exact(), " 42\n", 1),
        (scorers.exact(), "43", 0),
        (scorers.exact(strip=False), " 42\n", 0),
        (scorers.exact("Paris"), "paris", 0),
        (scorers.exact("STRASSE", casefold=True), "straße", 1),
        (scorers.exact(slot="other"), "42", None),
        (scorers.regex(r"\b4\d\b"), "it is 42.", 1),
        (scorers.regex(r"\b4\d\b"), "it is 420.", 0),
        (scorers.schema(FORM), '{"total": 3}', 1),
        (scorers.schema(FORM), '{"total": -1}', 0),
        (scorers.schema(FORM), 'Here you are: {"total": 3}', 0),
        (scorers.schema(Invoice), '{"total": 3, "currency": "USD"}', 1),
        (scorers.schema(Invoice), '{"total": 3, "currency": "GBP"}', 0),
        (scorers.schema(Invoice), "", 0),
        (scorers.function(lambda reply: len(reply.text), name="length"), "four", 4),
        (scorers.function(lambda reply, prompt: prompt.slots["expected"] in reply.text, name="in"), "a 42", 1),
        (scorers.function(lambda _: None, name="none"), "", None),
        (scorers.function(lambda _: float("nan"), name="nan"), "", None),
        (scorers.function(lambda _: "high", name="word"), "", None),
        (scorers.function(lambda _: Score(0.5, "half"), name="own"), "", 0.5),
    ],
)
def test_what_a_scorer_says(scorer: Scorer, text: str, expected: float | None) -> None:
    """1 and 0 for right and wrong, a function's own number, and none where nothing can be said."""
    assert value(scorer, text, expected="42") == expected


def test_what_a_score_comes_from_is_said_in_words() -> None:
    """The detail names what was expected, the fault, or the exception."""
    prompt = Prompt("p1", "?", {"expected": "42"})
    details = [
        apply_scorer(one, said('{"total": "x"}'), prompt).detail
        for one in (
            scorers.exact(),
            scorers.schema(FORM),
            scorers.schema(Invoice),
            scorers.function(lambda _: 1 / 0, name="broken"),
        )
    ]
    assert details[0] == "expected 42"
    assert details[1] == '$.total: "x" is not of type "integer"'
    assert details[2].startswith("total: Input should be a valid integer")
    assert details[3] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: scorers.regex("("), "is no regular expression"),
        (lambda: scorers.schema({"type": "nothing"}), "is no JSON Schema"),
        (lambda: scorers.schema({"$ref": "http://127.0.0.1:1/schema.json"}), "not fetched"),
        (lambda: scorers.schema(int), "expected a type whose JSON is an object"),
        (lambda: scorers.function(lambda _: 1), "give name="),
        (lambda: scorers.judge("fam-mini", scale=(5, 1)), "worst and the best grade"),
        (lambda: scorers.function(5, name="five"), "expected a function of the reply, got 5"),
        (lambda: scorers.judge("fam-mini", scale=5), "worst and the best grade, such as .1, 5.; got 5"),
        (lambda: scorers.judge("fam-mini", scale=(1, 2, 3)), "worst and the best grade"),
        (lambda: scorers.judge("fam-mini", criteria=" "), "what the judge is to look at"),
        (lambda: scorers.judge("fam-2-5-pro", endpoint="nowhere"), "no endpoint 'nowhere'"),
    ],
)
def test_a_scorer_that_cannot_be_is_refused_at_once(make: Callable[[], object], words: str) -> None:
    """Before any call, with what to give instead."""
    with pytest.raises(InvalidRequest, match=words):
        make()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([scorers.exact(), scorers.exact("a")], "the name 'exact' occurs twice"),
        ([3], "expected one of famnb.scorers, a function, or an object with `name` and `score`; got 3"),
        (None, "expected one of famnb.scorers.*got None"),
        ("exact", "expected one of famnb.scorers.*got 'exact'"),
        ([scorers.exact], r"exact makes a scorer; call it: famnb.scorers.exact\(…\)"),
        ([scorers.exact(name="votes")], "the name 'votes' is that of people's votes"),
        ([scorers.exact(name="")], "expected scorers with names.*got ''"),
    ],
)
def test_an_experiment_refuses_what_is_no_scorer_and_a_name_twice(client: famnb.Client, given, words) -> None:
    """The names are columns of its frame."""
    with pytest.raises(InvalidRequest, match=words):
        famnb.Experiment("?", name="x", client=client, scorers=given)


@given(text=st.text(max_size=50), pattern=st.sampled_from(["a", "b+", "^$", r"\d"]))
def test_two_scorers_are_alike_exactly_when_they_score_alike(text: str, pattern: str) -> None:
    """What identifies a scorer follows from what it does, so that old scores are never taken for new ones."""
    keys = [scorers.exact(text), scorers.exact(text), scorers.exact(text + "!"), scorers.exact(text, strip=False)]
    assert len({one.key for one in keys}) == 3
    assert scorers.regex(pattern).key == scorers.regex(pattern).key != scorers.regex(pattern, flags=2).key


def test_a_function_is_the_same_in_another_process_and_another_when_it_changes() -> None:
    """Its code tells, wherever it is written and however that process orders its sets."""
    source = "scorers.function(lambda r: r.text in {'a', 'b', 'c', 'd'} or (lambda: r)(), name='f').key"
    code = f"from famnb.experiment import scorers; print({source})"
    there = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert there == eval(source) != scorers.function(lambda r: r.text in {"a"}, name="f").key


def longer_than(limit: int) -> Callable[[Reply], bool]:
    """A function whose limit is no part of its code."""
    return lambda reply: len(reply.text) > limit


def test_a_function_is_another_when_what_it_uses_changes() -> None:
    """A limit it closes over, an argument bound to it, a function it calls; not what it changes itself as it scores."""
    seen: list[str] = []
    count = 0

    def counting(reply: Reply) -> int:
        nonlocal count
        seen.append(reply.text)
        count += 1
        return count

    def key(call: Callable[..., Any]) -> str:
        return scorers.function(call, name="f").key

    assert key(longer_than(5)) == key(longer_than(5)) != key(longer_than(6))
    assert key(partial(value, text="a")) == key(partial(value, text="a")) != key(partial(value, text="b"))
    before = key(counting)
    assert (counting(said("a")), seen, key(counting)) == (1, ["a"], before)


# In an experiment


@pytest.fixture
def spelling() -> Iterator[FaultServer]:
    """`loud` answers in capitals, `quiet` does not."""
    with service(lambda system, asked: asked.upper() if system == "loud" else asked) as running:
        yield running


@pytest.fixture
def talker(spelling: FaultServer, tmp_path: Path) -> Iterator[famnb.Client]:
    with famnb.Client(base_url=spelling.url, api_key="k" * 20, ledger=tmp_path / "spoken.sqlite") as made:
        yield made


PROMPTS = [{"prompt": "one", "expected": "ONE"}, {"prompt": "two", "expected": "two"}]


def test_scores_stand_in_the_frame(talker: famnb.Client) -> None:
    """A column a scorer, missing where there is no call yet or the scorer failed; warm-up calls have none."""
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


def test_a_score_is_made_once_and_a_changed_scorer_scores_anew(talker: famnb.Client) -> None:
    """Also in another experiment object; `again` tries only what came to nothing."""
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


def test_an_expected_answer_that_is_corrected_scores_anew(talker: famnb.Client) -> None:
    """The call is the same, and what it is compared with is not; nothing is sent for it."""
    before = experiment(talker, PROMPTS, "loud", scorers=[scorers.exact()]).frame()
    corrected = [PROMPTS[0], {"prompt": "two", "expected": "TWO"}]
    after = experiment(talker, corrected, "loud", scorers=[scorers.exact()]).frame()
    assert (list(before["call_id"]), set(before["score_exact"])) == (list(after["call_id"]), {1, 0})
    assert set(after["score_exact"]) == {1}


def test_an_interrupt_keeps_the_scores_that_were_made(talker: famnb.Client) -> None:
    """A slow scorer goes on where it was stopped."""
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


def test_an_object_of_ones_own_is_a_scorer(talker: famnb.Client) -> None:
    """A name and a method are enough."""

    class Shouting:
        name = "shouting"

        def score(self, reply: Reply, prompt: Prompt) -> Score:
            return Score(float(reply.text.isupper()), prompt.id)

    frame = experiment(talker, PROMPTS, "loud", "quiet", scorers=[Shouting()]).frame()
    assert frame.groupby("variant", observed=True)["score_shouting"].mean().to_dict() == {"loud": 1, "quiet": 0}


# In the ledger


def test_scores_and_votes_leave_and_come_back_with_their_ledger(talker: famnb.Client, tmp_path: Path) -> None:
    """Exported and loaded they are the same; pruning takes the scores of the calls it deletes."""
    exp = experiment(talker, PROMPTS, "loud", "quiet", scorers=[scorers.exact()])
    exp.frame()
    exp.vote().vote("tie")
    ids = [answer.call_id for answer in exp.answers()]
    talker.ledger.export(tmp_path / "x.parquet")
    with Ledger(tmp_path / "copy.sqlite") as copy:
        for _ in range(2):
            copy.load(tmp_path / "x.parquet")
            assert sorted(ratings.scores(copy, ids), key=str) == sorted(ratings.scores(talker.ledger, ids), key=str)
            assert ratings.votes(copy, "spoken") == ratings.votes(talker.ledger, "spoken")
        assert len(famnb.calls(tmp_path / "x.parquet")) == 4
        copy.prune(older_than=timedelta(0))
        assert list(ratings.scores(copy, ids)) == []
        assert len(ratings.votes(copy, "spoken")) == 1


def test_two_processes_score_into_one_ledger(tmp_path: Path) -> None:
    """Every score arrives, and the later one of two on the same call stands."""
    path = tmp_path / "shared.sqlite"
    code = """
import sys
from famnb.record import Ledger, ratings
with Ledger(sys.argv[1]) as ledger:
    for place in range(50):
        ratings.keep(ledger, [ratings.Scored(call_id=f"{sys.argv[2]}{place}", scorer="s", value=1.0)])
"""
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [each.wait(60) for each in started] == [0, 0]
    with Ledger(path) as ledger:
        ratings.keep(ledger, [Scored(call_id="a0", scorer="s", value=2.0, detail="later")])
        found = list(ratings.scores(ledger, [f"{name}{place}" for name in "ab" for place in range(50)]))
    assert len(found) == 100
    assert sorted(mark.value for mark in found)[-2:] == [1.0, 2.0]
