r"""What can be said of one answer: scorers that need no call; judging by a model is added from `judge`.

A scorer is any object with a `name` and a `score(reply, prompt)`; those made here are small values:

    famnb.scorers.exact()                   the answer is the prompt's `expected`
    famnb.scorers.regex(r"\b42\b")          the answer holds a match
    famnb.scorers.schema(Invoice)           the answer is JSON of that form
    famnb.scorers.function(my_function)     whatever a Python function makes of it
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
from famnb.experiment.prompts import KEPT, Prompt
from famnb.experiment.score import Exact, Function, Regex, Score, Typed, Valid, as_score
from famnb.experiment.votes import PEOPLE
from famnb.reply import Reply
from famnb.request import structured_output
from famnb.validation import check_text

__all__ = ["Judge", "Score", "Scorer", "exact", "function", "judge", "regex", "schema"]


@runtime_checkable
class Scorer(Protocol):
    """What can score an answer; an object of your own needs no more than this.

    A score is kept with the call and not made again. What makes two scorers different is their `key`, where they have
    one, else their name: give yours another name when it scores differently from then on. A `span`, where they have
    one, is the lowest and the highest score there can be: no interval reaches beyond it.
    """

    @property
    def name(self) -> str:
        """Its name, unique in the experiment: the scores are the column `score_<name>` of the frame."""

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """The score of a reply that ended in order; an exception is a score that is missing, with its words."""


def exact(
    expected: str | None = None,
    *,
    slot: str = KEPT,
    strip: bool = True,
    casefold: bool = False,
    name: str = "exact",
) -> Scorer:
    """Score 1 for an answer that is the expected text, else 0: `expected`, or the prompt's own value of `slot`.

    `strip` leaves white space at both ends out of account, `casefold` upper and lower case. A prompt without that
    value has no score.
    """
    return Exact(name, expected, slot, strip, casefold)


def regex(pattern: str | re.Pattern[str], *, flags: int = 0, name: str = "regex") -> Scorer:
    """Score 1 for an answer that holds a match of a regular expression, else 0; InvalidRequest for one that is none."""
    try:
        compiled = re.compile(pattern, flags)
    except (re.error, ValueError, TypeError) as error:
        raise InvalidRequest(f"regex: {pattern!r:.80} is no regular expression: {error}") from None
    return Regex(name, compiled)


def schema(kind: Any, *, name: str = "schema") -> Scorer:
    """Score 1 for an answer that is, as a whole, JSON of this form, else 0.

    `kind` is a JSON Schema as a mapping, or a type such as a pydantic model; InvalidRequest for what is neither.
    """
    if not isinstance(kind, Mapping):
        structured_output.answer_format(kind)
        return Typed(name, kind)
    try:
        validator = jsonschema_rs.validator_for(dict(kind), retriever=_not_fetched)
    except ValueError as error:
        said = getattr(error, "message", str(error))
        raise InvalidRequest(f"schema: this is no JSON Schema: {said:.200}") from None
    return Valid(name, json.dumps(kind, sort_keys=True), validator)


def _not_fetched(address: str) -> Any:
    raise ValueError(f"what {address} refers to is not fetched from the network; give a schema that is whole")


def function(call: Callable[..., Any], *, name: str | None = None) -> Scorer:
    """Score by a Python function of the `famnb.Reply`, or of the reply and the prompt.

    It returns a number, a bool, a `Score`, or None for no score. Its exception is no score, with the error as detail.
    It scores anew when its code changes, or a constant or function that it uses; when a list or an object does that it
    reads, give another `name`.
    """
    if not callable(call):
        raise InvalidRequest(f"function: expected a function of the reply, got {call!r:.80}")
    chosen = name or str(getattr(call, "__name__", ""))
    if name is None and not chosen.isidentifier():
        raise InvalidRequest(f"function: {call!r:.80} has no name for the column of its scores; give name=")
    return Function(chosen, call, _takes_prompt(call))


def scorers_of(given: Iterable[Any]) -> tuple[Scorer | Judge, ...]:
    """The scorers of an experiment, plain functions made scorers; InvalidRequest for what is none, or a name twice."""
    several = isinstance(given, Iterable) and not isinstance(given, str | Scorer | Judge) and not callable(given)
    made = tuple(map(_scorer, given if several else [given]))
    names = [
        check_text("scorers", one.name, expected="scorers with names, for the columns of their scores") for one in made
    ]
    if PEOPLE in names:
        raise InvalidRequest(f"scorers: the name {PEOPLE!r} is that of people's votes; give this one another name=")
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidRequest(f"scorers: the name {min(twice)!r} occurs twice; give each its own name=")
    return made


def _scorer(one: Any) -> Scorer | Judge:
    """One scorer, a plain function made one."""
    if any(one is maker for maker in (exact, function, judge, regex, schema)):
        raise InvalidRequest(f"scorers: {one.__name__} makes a scorer; call it: famnb.scorers.{one.__name__}(…)")
    match one:
        case Scorer() | Judge():
            return one
        case _ if callable(one):
            return function(one)
        case _:
            raise InvalidRequest(
                f"scorers: expected one of famnb.scorers, a function, or an object with `name` and `score`; "
                f"got {one!r:.80}"
            )


def scored(scorer: Scorer, reply: Reply, prompt: Prompt) -> Score:
    """What a scorer says of a reply; whatever it does wrong is a score that is missing, and says so."""
    try:
        found: Any = scorer.score(reply, prompt)  # whatever it promises
    except Exception as error:  # a scorer is foreign code, and one that fails must not end a run
        return Score(None, f"{type(error).__name__}: {error}"[:1000])
    return as_score(found)


def _takes_prompt(call: Callable[..., Any]) -> bool:
    """Whether a function wants the prompt too."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a built-in that does not tell
        return False
    given = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in given if one.default is one.empty]
    return len(required) > 1 or any(one.kind is one.VAR_POSITIONAL for one in parameters)
