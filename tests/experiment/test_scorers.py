"""Scorers: what each says of an answer, and which are refused."""

from collections.abc import Callable
from typing import Any, Literal

import pydantic
import pytest

import famnb
from famnb import scorers
from famnb.errors import InvalidRequest
from famnb.experiment.prompts import Prompt
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


def make_reply(text: str) -> Reply:
    """A reply of this text."""
    return Reply(blocks=(Block(at=(0, 0), kind="text", text=text),), status="completed")


def value(scorer: Scorer, text: str, **slots: Any) -> float | None:
    """What a scorer makes of a text."""
    return apply_scorer(scorer, make_reply(text), Prompt("p1", "?", slots)).value


@pytest.mark.parametrize(
    ("scorer", "text", "expected"),
    [
        (scorers.exact(), " 42\n", 1),
        (scorers.exact(), "43", 0),
        (scorers.exact("Paris"), "paris", 0),
        (scorers.exact("STRASSE", casefold=True), "straße", 1),
        (scorers.regex(r"\b4\d\b"), "it is 42.", 1),
        (scorers.regex(r"\b4\d\b"), "it is 420.", 0),
        (scorers.contains("4"), "it is 42", 1),
        (scorers.contains(), "It is 42.", 1),
        (scorers.contains(), "It is 43.", 0),
        (scorers.contains("PARIS"), "in Paris", 0),
        (scorers.contains("PARIS", casefold=True), "in Paris", 1),
        (scorers.contains(["Paris", "Rome"]), "Paris, then Rome", 1),
        (scorers.contains(["Paris", "Rome"]), "Paris", 0),
        (scorers.contains(["Paris", "Rome"], need="any"), "Paris", 1),
        (scorers.numeric(), "6 times 7 is 42.", 1),
        (scorers.numeric(), "42 is 6 times 7.", 0),
        (scorers.numeric(), "the answer is **42.0**", 1),
        (scorers.numeric(), "$4.2e1", 1),
        (scorers.numeric(1234.5), "about 1,234.5 km", 1),
        (scorers.numeric(-3), "it is \u22123", 1),
        (scorers.numeric(0.3), "0.30000000000000004", 1),
        (scorers.numeric(tolerance=0.5), "42.5", 1),
        (scorers.numeric(tolerance=0.5), "42.6", 0),
        (scorers.numeric(relative=0.1), "46", 1),
        (scorers.numeric(relative=0.1), "47", 0),
        (scorers.numeric(), "forty-two", 0),
        (scorers.regex(), "it is 42.", 1),
        (scorers.regex(), "it is 43.", 0),
        (scorers.regex(r"Answer: (\w+)", group=1), "Answer: 41. No. Answer: 42", 1),
        (scorers.regex(r"Answer: (?P<number>\d+)", group="number"), "Answer: 420", 0),
        (scorers.regex(r"Answer: (.+)", group=1), "42", 0),
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
def test_what_a_scorer_says(scorer: Scorer, text: str, expected: float | None):
    assert value(scorer, text, expected="42") == expected


@pytest.mark.parametrize(
    ("scorer", "expected", "value", "detail"),
    [
        (scorers.contains(), ["4", "2"], 1, ""),
        (scorers.contains(), ["4", "3"], 0, "not in the answer: '3'"),
        (scorers.numeric(), 42, 1, "42, expected 42"),
        (scorers.numeric(), "4,200", 0, "42, expected 4200"),
        (scorers.numeric(), "42 km", None, "expected is not a number: '42 km'"),
        (scorers.regex(), r"\d{2}", 1, "found 42"),
        (
            scorers.regex(),
            "(",
            None,
            "'(' is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
    ],
)
def test_what_a_prompt_may_expect(scorer: Scorer, expected: Any, value: float | None, detail: str):
    assert apply_scorer(scorer, make_reply("42"), Prompt("p1", "?", {"expected": expected})) == Score(value, detail)


@pytest.mark.parametrize("scorer", [scorers.exact(), scorers.contains(), scorers.numeric(), scorers.regex()])
def test_a_prompt_that_expects_nothing_has_no_score(scorer: Scorer):
    assert value(scorer, "42") is None


def test_what_a_score_comes_from_is_said_in_words():
    prompt = Prompt("p1", "?", {"expected": "42"})
    details = [
        apply_scorer(scorer, make_reply('{"total": "x"}'), prompt).detail
        for scorer in (
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
        (lambda: scorers.regex("("), "is not a regular expression"),
        (lambda: scorers.regex("a(b)", group=2), "has no group 2"),
        (lambda: scorers.regex(group=1), "group= is of a pattern"),
        (lambda: scorers.contains(4), "expected a text or a list of texts, got 4"),
        (lambda: scorers.contains([]), "expected a text or a list of texts"),
        (lambda: scorers.contains("a", need="most"), "expected 'all' or 'any'"),
        (lambda: scorers.numeric("42"), "expected a number, or None"),
        (lambda: scorers.numeric(tolerance=-1), "tolerance: expected a number of 0 or more"),
        (lambda: scorers.schema({"type": "nothing"}), "expected a JSON Schema"),
        (lambda: scorers.schema({"$ref": "http://127.0.0.1:1/schema.json"}), "not fetched"),
        (lambda: scorers.schema(int), "expected a type whose JSON is an object"),
        (lambda: scorers.function(lambda _: 1), "give name="),
        (lambda: scorers.judge("fam-mini", scale=(5, 1)), "worst and the best grade"),
        (lambda: scorers.function(5, name="five"), "expected a function of the reply, got 5"),
        (lambda: scorers.judge("fam-mini", scale=5), "worst and the best grade, such as .1, 5.; got 5"),
        (lambda: scorers.judge("fam-mini", scale=(1, 2, 3)), "worst and the best grade"),
        (lambda: scorers.judge("fam-mini", criteria=" "), "what the judge is to look at"),
        (lambda: scorers.judge("fam-mini", criteria={"right": "x"}), "what the judge is to look at"),
        (lambda: scorers.judge("fam-2-5-pro", endpoint="nowhere"), "no endpoint 'nowhere'"),
    ],
)
def test_a_scorer_that_cannot_be_is_refused_at_once(make: Callable[[], object], words: str):
    with pytest.raises(InvalidRequest, match=words):
        make()


@pytest.mark.parametrize(
    ("value", "words"),
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
def test_an_experiment_refuses_what_is_no_scorer_and_a_name_twice(client: famnb.Client, value, words):
    with pytest.raises(InvalidRequest, match=words):
        famnb.Experiment("?", name="x", client=client, scorers=value)
