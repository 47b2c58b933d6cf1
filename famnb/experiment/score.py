"""Scores, and the classes of the scorers that need no call; `scorers.py` has the functions that make them.

A scorer's `key` identifies it and how it scores: a score is kept under it and made again when it changes.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import pydantic

from famnb.experiment.fingerprint import fingerprint
from famnb.experiment.prompts import Prompt
from famnb.reply import Reply
from famnb.request import structured_output


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """The score of one answer, and why."""

    value: float | None
    """The score, in the scorer's own unit, more being better; None where there is none."""
    detail: str = ""
    """In words: what the score comes from, or why there is none."""


Span: TypeAlias = tuple[float, float]
"""The lowest and the highest score there can be."""
YES_NO: Span = (0.0, 1.0)
DETAIL_CHARS = 80
"""Characters of a text that a detail shows: about a line."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExactScorer:
    """Scores whether the answer is the expected text."""

    span: ClassVar = YES_NO
    name: str
    expected: str | None
    slot: str
    strip: bool
    casefold: bool

    @property
    def key(self) -> str:
        return f"{self.name}#{fingerprint(self.expected, self.slot, self.strip, self.casefold)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return 1 if it is, else 0."""
        if self.expected is None and self.slot not in prompt.slots:
            return Score(None, f"the prompt has no {self.slot!r}")
        expected = str(prompt.slots[self.slot]) if self.expected is None else self.expected
        is_equal = self._normalize(reply.text) == self._normalize(expected)
        return Score(float(is_equal), "" if is_equal else f"expected {expected:.{DETAIL_CHARS}}")

    def _normalize(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text


@dataclasses.dataclass(frozen=True, slots=True)
class RegexScorer:
    """Scores whether the answer holds a match of a regular expression."""

    span: ClassVar = YES_NO
    name: str
    pattern: re.Pattern[str]

    @property
    def key(self) -> str:
        return f"{self.name}#{fingerprint(self.pattern.pattern, self.pattern.flags)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """Return 1 if it does, else 0."""
        match = self.pattern.search(reply.text)
        return Score(float(match is not None), f"found {match[0]:.{DETAIL_CHARS}}" if match else "no match")


@dataclasses.dataclass(frozen=True, slots=True)
class TypeScorer:
    """Scores whether the answer is JSON of a Python type."""

    span: ClassVar = YES_NO
    name: str
    type: Any

    @property
    def key(self) -> str:
        schema = json.dumps(structured_output.json_format(self.type)["schema"], sort_keys=True)
        return f"{self.name}#{fingerprint(schema)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """Return 1 if it is, else 0."""
        try:
            structured_output.parse(reply.text, self.type)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            location = ".".join(map(str, first["loc"]))
            return Score(0.0, ": ".join(part for part in (location, first["msg"]) if part))
        return Score(1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class JsonSchemaScorer:
    """Scores whether the answer is JSON that a JSON Schema allows."""

    span: ClassVar = YES_NO
    name: str
    schema: str
    """As JSON with sorted keys, which `key` digests."""
    validator: Any = dataclasses.field(repr=False, compare=False)

    @property
    def key(self) -> str:
        return f"{self.name}#{fingerprint(self.schema)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """Return 1 if it is, else 0."""
        try:
            value = json.loads(reply.text)
        except ValueError as error:
            return Score(0.0, f"no JSON: {error}")
        fault = next(iter(self.validator.iter_errors(value)), None)
        if fault is None:
            return Score(1.0)
        return Score(0.0, f"{'.'.join(map(str, ('$', *fault.instance_path)))}: {fault.message:.200}")


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionScorer:
    """Scores by a Python function of the answer."""

    name: str
    call: Callable[..., Any]
    takes_prompt: bool

    @property
    def key(self) -> str:
        """Its name, and a digest of its code and constants, so that a changed function scores anew."""
        return f"{self.name}#{fingerprint(self.call)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return the function's result as a score."""
        return to_score(self.call(reply, prompt) if self.takes_prompt else self.call(reply))


def to_score(value: Any) -> Score:
    """Return what a function returned as a score; what is no finite number is no score."""
    match value:
        case Score():
            return value
        case None:
            return Score(None, "no score was given")
        case _:
            try:
                number = float(value)
            except (TypeError, ValueError):
                return Score(None, f"expected a number, got {value!r:.{DETAIL_CHARS}}")
            return Score(number) if math.isfinite(number) else Score(None, f"expected a finite number, got {number}")
