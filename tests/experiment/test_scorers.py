"""Scorers: what each says of an answer, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pydantic
import pytest

import famnb
from famnb import scorers
from famnb.errors import InvalidRequest
from famnb.experiment import Prompt
from famnb.experiment.scorers import Score, Scorer, apply_scorer
from famnb.reply import Block, Reply


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
