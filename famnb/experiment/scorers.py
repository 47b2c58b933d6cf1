r"""Scorers, as `famnb.scorers` has them: functions that make one, and the protocol that any object can follow.

A scorer is any object with a `name` and a `score(reply, prompt)`; those made here are small values:

    famnb.scorers.exact()                   the answer is the prompt's `expected`
    famnb.scorers.regex(r"\b42\b")          the answer holds a match
    famnb.scorers.schema(Invoice)           the answer is JSON of that form
    famnb.scorers.function(my_function)     the result of a Python function of the answer
    famnb.scorers.judge("fam-2-5-pro")      a model grades it, or compares two
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import jsonschema_rs

from famnb.errors import InvalidRequest
from famnb.experiment.judge import Judge, judge
from famnb.experiment.prompts import EXPECTED_SLOT, Prompt
from famnb.experiment.score import (
    ExactScorer,
    FunctionScorer,
    JsonSchemaScorer,
    RegexScorer,
    Score,
    TypeScorer,
    to_score,
)
from famnb.experiment.votes import VOTES_SCORE
from famnb.reply import Reply
from famnb.request import structured_output
from famnb.validation import check_text

__all__ = ["Judge", "Score", "Scorer", "exact", "function", "judge", "regex", "schema"]


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


def exact(
    expected: str | None = None,
    *,
    slot: str = EXPECTED_SLOT,
    strip: bool = True,
    casefold: bool = False,
    name: str = "exact",
) -> Scorer:
    """Score 1 for an answer that is the expected text, else 0: `expected`, or the prompt's own value of `slot`.

    `strip` leaves white space at both ends out of account, `casefold` upper and lower case. A prompt without that
    value has no score.
    """
    return ExactScorer(name, expected, slot, strip, casefold)


def regex(pattern: str | re.Pattern[str], *, flags: int = 0, name: str = "regex") -> Scorer:
    """Score 1 for an answer that holds a match of a regular expression, else 0; InvalidRequest for one that is none."""
    try:
        compiled = re.compile(pattern, flags)
    except (re.error, ValueError, TypeError) as error:
        raise InvalidRequest(f"regex: {pattern!r:.80} is no regular expression: {error}") from None
    return RegexScorer(name, compiled)


def schema(kind: Any, *, name: str = "schema") -> Scorer:
    """Score 1 for an answer that is, as a whole, JSON of this form, else 0.

    `kind` is a JSON Schema as a mapping, or a type such as a pydantic model; InvalidRequest for what is neither.
    """
    if not isinstance(kind, Mapping):
        structured_output.json_format(kind)
        return TypeScorer(name, kind)
    try:
        validator = jsonschema_rs.validator_for(dict(kind), retriever=_refuse_to_fetch)
    except ValueError as error:
        message = getattr(error, "message", str(error))
        raise InvalidRequest(f"schema: this is no JSON Schema: {message:.200}") from None
    return JsonSchemaScorer(name, json.dumps(kind, sort_keys=True), validator)


def _refuse_to_fetch(address: str) -> Any:
    # By default jsonschema_rs (0.30) fetches a `$ref` from the network: from a schema somebody else wrote, any address.
    raise ValueError(f"what {address} refers to is not fetched from the network; give a schema that is whole")


def function(call: Callable[..., Any], *, name: str | None = None) -> Scorer:
    """Score by a Python function of the `famnb.Reply`, or of the reply and the prompt.

    It returns a number, a bool, a `Score`, or None for no score. Its exception is no score, with the error as detail.
    It scores anew when its code changes, or a constant or function that it uses; when a list or an object does that it
    reads, give another `name`.
    """
    if not callable(call):
        raise InvalidRequest(f"function: expected a function of the reply, got {call!r:.80}")
    column = name or str(getattr(call, "__name__", ""))
    # The name of a lambda is "<lambda>".
    if name is None and not column.isidentifier():
        raise InvalidRequest(f"function: {call!r:.80} has no name for the column of its scores; give name=")
    return FunctionScorer(column, call, _takes_prompt(call))


def parse_scorers(given: Iterable[Any]) -> tuple[Scorer | Judge, ...]:
    """Return the scorers of an experiment, a plain function made one.

    Raises InvalidRequest for what is no scorer, and for a name that occurs twice.
    """
    is_list = isinstance(given, Iterable) and not isinstance(given, str | Scorer | Judge) and not callable(given)
    scorers = tuple(map(_to_scorer, given if is_list else [given]))
    names = [
        check_text("scorers", scorer.name, expected="scorers with names, for the columns of their scores")
        for scorer in scorers
    ]
    if VOTES_SCORE in names:
        raise InvalidRequest(
            f"scorers: the name {VOTES_SCORE!r} is that of people's votes; give this one another name="
        )
    if duplicates := {name for name in names if names.count(name) > 1}:
        raise InvalidRequest(f"scorers: the name {min(duplicates)!r} occurs twice; give each its own name=")
    return scorers


def _to_scorer(item: Any) -> Scorer | Judge:
    if any(item is factory for factory in (exact, function, judge, regex, schema)):
        raise InvalidRequest(f"scorers: {item.__name__} makes a scorer; call it: famnb.scorers.{item.__name__}(…)")
    match item:
        case Scorer() | Judge():
            return item
        case _ if callable(item):
            return function(item)
        case _:
            raise InvalidRequest(
                f"scorers: expected one of famnb.scorers, a function, or an object with `name` and `score`; "
                f"got {item!r:.80}"
            )


def apply_scorer(scorer: Scorer, reply: Reply, prompt: Prompt) -> Score:
    """Return a scorer's score of a reply; its exception or a result of another type is a missing score, with why."""
    try:
        result: Any = scorer.score(reply, prompt)  # Any, since an object of the user's may return what it likes
    except Exception as error:  # one reply on which a user's function fails must not end the scoring of all others
        return Score(None, f"{type(error).__name__}: {error}"[:1000])
    return to_score(result)


def _takes_prompt(call: Callable[..., Any]) -> bool:
    """Whether a function has a second required parameter, for the prompt."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = [parameter for parameter in positional if parameter.default is parameter.empty]
    return len(required) > 1 or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
