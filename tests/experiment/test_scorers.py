"""Scorers: what each says of an answer, and which are refused."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pydantic
import pytest

import famnb
from famnb import scorers
from famnb.errors import InvalidRequest
from famnb.events import Usage
from famnb.experiment.prompts import Prompt
from famnb.experiment.scorers import Score, Scorer, apply_scorer
from famnb.record.price import Cost
from famnb.reply import Block, Reply
from famnb.timing import Timing


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
        (scorers.exact(strip=False), " 42\n", 0),
        (scorers.exact("Paris"), "paris", 0),
        (scorers.exact("STRASSE", casefold=True), "straße", 1),
        (scorers.exact(slot="other"), "42", None),
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
        (scorers.contains(slot="other"), "42", None),
        (scorers.numeric(), "6 times 7 is 42.", 1),
        (scorers.numeric(), "42 is 6 times 7.", 0),
        (scorers.numeric(which="first"), "42 is 6 times 7.", 1),
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
        (scorers.numeric(slot="other"), "42", None),
        (scorers.regex(), "it is 42.", 1),
        (scorers.regex(), "it is 43.", 0),
        (scorers.regex(slot="other"), "42", None),
        (scorers.regex(r"Answer: (\w+)", group=1), "Answer: 41. No. Answer: 42", 1),
        (scorers.regex(r"Answer: (?P<number>\d+)", group="number"), "Answer: 420", 0),
        (scorers.regex(r"Answer: (.+)", group=1), "42", 0),
        (scorers.refusal(), "I\u2019m sorry, but I can\u2019t help with that.", 1),
        (scorers.refusal(), "As an AI, I am unable to say.", 1),
        (scorers.refusal(), "I cannot stress enough: 42.", 0),
        (scorers.refusal(), "42. " * 100 + "I can't help with more.", 0),
        (scorers.refusal(wanted=False), "42", 1),
        (scorers.refusal(patterns=["je ne peux pas"]), "Je ne peux pas r\u00e9pondre.", 1),
        (scorers.refusal(patterns=["je ne peux pas"]), "I can't help with that.", 0),
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


def test_a_refusal_that_the_service_marks_is_one_whatever_its_words():
    marked = Reply(blocks=(Block(at=(0, 0), kind="refusal", text="No."),), status="completed")
    filtered = Reply(blocks=(), finish_reason="content_filter", status="incomplete")
    scores = [apply_scorer(scorers.refusal(), reply, Prompt("p1", "?")) for reply in (marked, filtered, make_reply(""))]
    assert [score.value for score in scores] == [1, 1, 0]


@pytest.mark.parametrize(
    ("seconds", "metric", "value"), [(2.0, "e2e_s", 1), (1.9, "e2e_s", 0), (0.5, "ttft_s", 1), (1, "think_s", None)]
)
def test_a_latency_scorer_knows_its_limit_and_its_metric(seconds: float, metric: str, value: float | None):
    reply = Reply(status="completed", timing=Timing(ttft_s=0.5, e2e_s=2.0))
    assert apply_scorer(scorers.latency(seconds, metric=metric), reply, Prompt("p1", "?")).value == value


@pytest.mark.parametrize(("limit", "value"), [("0.02", 1), ("0.015", None), ("0.005", 0), (0.01, None)])
def test_a_cost_scorer_says_nothing_of_a_limit_within_the_bounds_of_a_cost(limit: Any, value: float | None):
    reply = Reply(status="completed", cost=Cost(Decimal("0.012"), Decimal("0.01"), Decimal("0.02")))
    assert apply_scorer(scorers.cost(limit), reply, Prompt("p1", "?")).value == value


def test_a_cost_scorer_prices_a_call_whose_price_came_later(prices: None):
    request = famnb.compose("messages", "?", model="fam-2-5-pro")
    counted = Reply(status="completed", request=request, usage=Usage(input_tokens=1_000_000, output_tokens=0))
    uncounted = Reply(status="completed", request=request)
    scores = [apply_scorer(scorers.cost(2), reply, Prompt("p1", "?")).value for reply in (counted, uncounted)]
    assert scores == [1, None]


def test_what_a_score_comes_from_is_said_in_words():
    prompt = Prompt("p1", "?", {"expected": "42"})
    details = [
        apply_scorer(one, make_reply('{"total": "x"}'), prompt).detail
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
        (lambda: scorers.regex("("), "is not a regular expression"),
        (lambda: scorers.regex("a(b)", group=2), "has no group 2"),
        (lambda: scorers.regex(group=1), "group= is of a pattern"),
        (lambda: scorers.contains(4), "expected a text or a list of texts, got 4"),
        (lambda: scorers.contains([]), "expected a text or a list of texts"),
        (lambda: scorers.contains("a", need="most"), "expected 'all' or 'any'"),
        (lambda: scorers.numeric("42"), "expected a number, or None"),
        (lambda: scorers.numeric(tolerance=-1), "tolerance: expected a number of 0 or more"),
        (lambda: scorers.numeric(which="best"), "expected 'last' or 'first'"),
        (lambda: scorers.refusal(patterns=["("]), "is not a regular expression"),
        (lambda: scorers.refusal(patterns=[]), "at least one regular expression"),
        (lambda: scorers.latency(0), "max_s: expected a number of seconds above 0"),
        (lambda: scorers.latency(1, metric="speed"), "there is no 'speed'; expected one of connect_s, ttfb_s, ttft_s"),
        (lambda: scorers.cost(-1), "max_usd: expected an amount in USD"),
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
def test_an_experiment_refuses_what_is_no_scorer_and_a_name_twice(client: famnb.Client, given, words):
    with pytest.raises(InvalidRequest, match=words):
        famnb.Experiment("?", name="x", client=client, scorers=given)
