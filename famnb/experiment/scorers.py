r"""Scorers, as `famnb.scorers` has them: functions that make one, and the protocol that any object can follow.

A scorer is any object with a `name` and a `score(reply, prompt)`; those made here are small values:

    famnb.scorers.exact()                   the answer is the prompt's `expected`
    famnb.scorers.contains("Paris")         the answer contains a text, or each of several
    famnb.scorers.numeric(tolerance=0.5)    the last number of the answer is `expected`
    famnb.scorers.regex(r"\b42\b")          the answer holds a match
    famnb.scorers.schema(Invoice)           the answer is JSON of that form
    famnb.scorers.function(my_function)     the result of a Python function of the answer
    famnb.scorers.judge("fam-2-5-pro")      a model grades it, or compares two

`Experiment(…, scorers=[…])` takes them. Each score is stored in the ledger at once and computed once: again only if the
function or the prompt's `expected` has changed. `exp.score(budget_usd=1)` asks the judges; all others score whenever
the frame is read: `exp.frame()["score_exact"]`. `judge(…, pairwise=True, name="duel")` sees each pair in both orders: a
choice that changes with the order is a tie, and `exp.score()` says how many do. It also says how far a judge agrees
with people who voted on the same pairs. `exp.ranking("duel")` has strengths, `exp.judge_cost()` what it cost; a judge's
calls carry the tag `judge`, and are in none of the experiment's figures. Limits of time and cost need no scorer:
`exp.summary(slo={"e2e_s": 2, "cost_usd": 0.001})` has the share of calls that keep them.

To add a scorer: a function here that returns a `LocalScorer`, its name in `__all__`, in `_FACTORIES` and above.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import jsonschema_rs
import pydantic

from famnb.endpoints import ENDPOINTS, Endpoints
from famnb.errors import InvalidRequest
from famnb.experiment.fingerprint import identify_function
from famnb.experiment.judge import Judge, judge
from famnb.experiment.prompts import Prompt
from famnb.experiment.score import (
    DETAIL_CHARS,
    NUMBER,
    ROUNDING,
    LocalScorer,
    NoScore,
    Score,
    expected_value,
    to_score,
)
from famnb.experiment.votes import VOTES_SCORE
from famnb.reply import Reply
from famnb.request import structured_output
from famnb.validation import check_number, check_text

__all__ = [
    "Judge",
    "Score",
    "Scorer",
    "contains",
    "exact",
    "function",
    "judge",
    "numeric",
    "regex",
    "schema",
]


@runtime_checkable
class Scorer(Protocol):
    """An object that can score an answer; one of your own needs no more than this.

    A score is kept with the call and not made again. What makes two scorers different is their `key`, where they have
    one, else their name: give yours another name when it scores differently from then on. A `span`, where they have
    one, is the lowest and the highest score there can be: no interval reaches beyond it.
    """

    @property
    def name(self) -> str:
        """Unique in the experiment: its scores are the column `score_<name>` of the frame."""

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return the score of a complete reply; an exception makes a missing score, with its message as detail."""


def exact(expected: str | None = None, *, casefold: bool = False, name: str = "exact") -> Scorer:
    """Score 1 for an answer that is the expected text, else 0: `expected`, or the prompt's own.

    White space at both ends is left out of account, with `casefold` upper and lower case too. A prompt that expects
    nothing has no score.
    """

    def score(reply: Reply, prompt: Prompt) -> Score:
        wanted = str(expected_value(expected, prompt))
        texts = [text.strip() for text in (reply.text, wanted)]
        is_equal = len({text.casefold() if casefold else text for text in texts}) == 1
        return Score(float(is_equal), "" if is_equal else f"expected {wanted:.{DETAIL_CHARS}}")

    return LocalScorer(name, ("exact", expected, casefold), score)


def contains(
    expected: str | Sequence[str] | None = None,
    *,
    need: Literal["all", "any"] = "all",
    casefold: bool = False,
    name: str = "contains",
) -> Scorer:
    """Score 1 for an answer that contains the expected text, else 0: `expected`, or the prompt's own.

    Of several texts, in a list, it must contain all, or with `need="any"` one. `casefold` leaves upper and lower case
    out of account. A prompt that expects nothing has no score.
    """
    if need not in ("all", "any"):
        raise InvalidRequest(f"need: expected 'all' or 'any' of the texts, got {need!r:.80}")
    texts = [expected] if isinstance(expected, str) else expected
    if texts is not None and not (
        isinstance(texts, list | tuple) and texts and all(isinstance(text, str) and text for text in texts)
    ):
        raise InvalidRequest(f"contains: expected a text or a list of texts, got {expected!r:.80}")

    def score(reply: Reply, prompt: Prompt) -> Score:
        value = expected_value(texts, prompt)
        wanted = list(map(str, value)) if isinstance(value, list | tuple) else [str(value)]
        answer = reply.text.casefold() if casefold else reply.text
        absent = [text for text in wanted if (text.casefold() if casefold else text) not in answer]
        if not absent or (need == "any" and len(absent) < len(wanted)):
            return Score(1.0)
        return Score(0.0, f"not in the answer: {', '.join(map(repr, absent))}"[:DETAIL_CHARS])

    return LocalScorer(name, ("contains", None if texts is None else list(texts), need, casefold), score)


def numeric(
    expected: float | None = None,
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
    name: str = "numeric",
) -> Scorer:
    """Score 1 if the last number of the answer is the expected one, else 0: `expected`, or the prompt's own.

    The last, since a model that thinks aloud ends with its result. It may be off by `tolerance`, or by `relative` as a
    share of the expected number, whichever is more. Numbers are read as written in English: "1,234.5" is one. A prompt
    without a number to expect has no score.
    """
    for setting, value in {"tolerance": tolerance, "relative": relative}.items():
        check_number(setting, value, minimum=0, expected="a number of 0 or more")
    if expected is not None:
        check_number("expected", expected, expected="a number, or None for the prompt's own")

    def score(reply: Reply, prompt: Prompt) -> Score:
        value = expected_value(expected, prompt)
        try:
            wanted = math.nan if isinstance(value, bool) else float(str(value).strip().replace(",", ""))
        except ValueError:
            wanted = math.nan
        if not math.isfinite(wanted):
            raise NoScore(f"expected is not a number: {value!r:.{DETAIL_CHARS}}")
        numbers = [float(number.replace(",", "").replace("\u2212", "-")) for number in NUMBER.findall(reply.text)]
        if not numbers:
            return Score(0.0, f"no number in the answer; expected {wanted:g}")
        number = numbers[-1]
        # 0.3 and 0.1 + 0.2 are the same number to whoever writes them.
        margin = max(tolerance, relative * abs(wanted), ROUNDING * abs(wanted))
        return Score(float(abs(number - wanted) <= margin), f"{number:.15g}, expected {wanted:.15g}")

    return LocalScorer(name, ("numeric", expected, tolerance, relative), score)


def regex(
    pattern: str | re.Pattern[str] | None = None,
    *,
    flags: int = 0,
    group: int | str | None = None,
    name: str = "regex",
) -> Scorer:
    r"""Score 1 for an answer that holds a match of a regular expression, else 0.

    Without a `pattern`, what the prompt expects is one. With a `group`, such as 1 of r"Answer: (\w+)", the text of that
    group in the last match must be what the prompt expects. A prompt that expects nothing has no score. Raises
    InvalidRequest unless it is a regular expression with such a group.
    """
    if pattern is None and group is not None:
        raise InvalidRequest("regex: group= is of a pattern; give one, such as r'Answer: (\\w+)'")
    try:
        compiled = None if pattern is None else re.compile(pattern, flags)
    except (re.error, ValueError, TypeError) as error:
        raise InvalidRequest(f"regex: {pattern!r:.80} is not a regular expression: {error}") from None
    if compiled and group is not None and group not in (*range(compiled.groups + 1), *compiled.groupindex):
        raise InvalidRequest(f"group: {compiled.pattern!r:.80} has no group {group!r}; groups are what stands in (…)")

    def score(reply: Reply, prompt: Prompt) -> Score:
        wanted = "" if compiled and group is None else str(expected_value(None, prompt))
        try:
            matches = list((compiled or re.compile(wanted, flags)).finditer(reply.text))
        except re.error as error:
            raise NoScore(f"{wanted!r:.{DETAIL_CHARS}} is not a regular expression: {error}") from None
        if not matches:
            return Score(0.0, "no match")
        if group is None:
            return Score(1.0, f"found {matches[0][0]:.{DETAIL_CHARS}}")
        # The last match, since a model that thinks aloud ends with its answer.
        text, wanted = (matches[-1][group] or "").strip(), wanted.strip()
        return Score(float(text == wanted), f"found {text:.{DETAIL_CHARS}}, expected {wanted:.{DETAIL_CHARS}}")

    settings = "regex", compiled and (compiled.pattern, compiled.flags), flags, group
    return LocalScorer(name, settings, score)


def schema(kind: Any, *, name: str = "schema") -> Scorer:
    """Score 1 for an answer that is, as a whole, JSON of this form, else 0.

    `kind` is a JSON Schema as a mapping, or a type such as a pydantic model. Raises InvalidRequest for anything else.
    """
    if isinstance(kind, Mapping):
        form, validator = dict(kind), _make_validator(kind)
    else:
        form, validator = structured_output.json_format(kind)["schema"], None

    def score(reply: Reply, _: Prompt) -> Score:
        value: Any = None
        try:
            if validator is None:
                structured_output.parse(reply.text, kind)
            else:
                value = json.loads(reply.text)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            return Score(0.0, ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]])))
        except ValueError as error:
            return Score(0.0, f"not JSON: {error}")
        if validator is not None and (fault := next(iter(validator.iter_errors(value)), None)):
            return Score(0.0, f"{'.'.join(map(str, ('$', *fault.instance_path)))}: {fault.message:.200}")
        return Score(1.0)

    return LocalScorer(name, ("schema", json.dumps(form, sort_keys=True)), score)


def _make_validator(schema: Mapping[str, Any]) -> Any:
    """Return what finds the faults of a value by a JSON Schema. Raises InvalidRequest if the schema is invalid."""
    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse_to_fetch)
    except ValueError as error:
        message = getattr(error, "message", str(error))
        raise InvalidRequest(f"schema: expected a JSON Schema: {message:.200}") from None


def _refuse_to_fetch(address: str) -> Any:
    # By default jsonschema_rs (0.30) fetches a `$ref` from the network: from a schema somebody else wrote, any address.
    raise ValueError(f"what {address} refers to is not fetched from the network; give a schema that is whole")


def function(call: Callable[..., Any], *, name: str | None = None) -> Scorer:
    """Score by a Python function of the `famnb.Reply`, or of the reply and the prompt.

    It returns a number, a bool, a `Score`, or None for no score. Its exception is no score, with the error as detail.
    It scores anew when its source changes, or a constant or a function of the same module that it uses. When anything
    else changes, such as a list that it reads, and for a function without source, give another `name`.
    """
    if not callable(call):
        raise InvalidRequest(f"function: expected a function of the reply, got {call!r:.80}")
    column = name or str(getattr(call, "__name__", ""))
    # The name of a lambda is "<lambda>".
    if name is None and not column.isidentifier():
        raise InvalidRequest(f"function: {call!r:.80} has no name for the column of its scores; give name=")
    takes_prompt = False
    try:
        inspect.signature(call).bind(None)
    except TypeError:
        takes_prompt = True
    except ValueError:  # some built-in functions have no signature
        pass

    def score(reply: Reply, prompt: Prompt) -> Any:
        return call(reply, prompt) if takes_prompt else call(reply)

    return LocalScorer(column, ("function", identify_function(call)), score, span=None)


def parse_scorers(items: Iterable[Any], *, endpoints: Endpoints = ENDPOINTS) -> tuple[Scorer | Judge, ...]:
    """Return the scorers of an experiment; a plain function becomes one.

    `endpoints` are those of the experiment's client, which judges without one of their own ask.
    Raises InvalidRequest for anything else, and for a name that occurs twice.
    """
    is_list = isinstance(items, Iterable) and not isinstance(items, str | Scorer | Judge) and not callable(items)
    scorers = tuple(map(_to_scorer, items if is_list else [items]))
    scorers = tuple(
        scorer.bind(endpoints) if isinstance(scorer, Judge) and scorer.client is None else scorer for scorer in scorers
    )
    for scorer in scorers:
        check_text("scorers", scorer.name, expected="scorers with names, for the columns of their scores")
    names = [scorer.name for scorer in scorers]
    if VOTES_SCORE in names:
        raise InvalidRequest(
            f"scorers: the name {VOTES_SCORE!r} is that of people's votes; give this one another name="
        )
    if duplicates := {name for name in names if names.count(name) > 1}:
        raise InvalidRequest(f"scorers: the name {min(duplicates)!r} occurs twice; give each its own name=")
    return scorers


_FACTORIES = (contains, exact, function, judge, numeric, regex, schema)


def _to_scorer(item: Any) -> Scorer | Judge:
    if any(item is factory for factory in _FACTORIES):
        raise InvalidRequest(f"scorers: {item.__name__} makes a scorer; call it: famnb.scorers.{item.__name__}(…)")
    if isinstance(item, Scorer | Judge):
        return item
    if callable(item):
        return function(item)
    raise InvalidRequest(
        f"scorers: expected one of famnb.scorers, a function, or an object with `name` and `score`; got {item!r:.80}"
    )


def apply_scorer(scorer: Scorer, reply: Reply, prompt: Prompt) -> Score:
    """Return a scorer's score of a reply; its exception or a result of another type is a missing score, with why."""
    try:
        result: Any = scorer.score(reply, prompt)  # Any, since an object of the user's may return what it likes
    except Exception as error:  # one reply on which a user's function fails must not end the scoring of all others
        return Score(None, f"{type(error).__name__}: {error}"[:1000])
    return to_score(result)
