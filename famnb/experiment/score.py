"""A score: a number about one answer, or none, and in a few words why.

MERGED: The values behind the scorers that need no call: each with its name, its key, and what it says of an answer.
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
    """What a scorer says of one answer."""

    value: float | None
    """The score, in the scorer's own unit, more being better; None where there is none."""
    detail: str = ""
    """In words: what was found, or why there is no score."""


Span: TypeAlias = tuple[float, float]
"""The lowest and the highest score there can be."""
YES_NO: Span = (0.0, 1.0)
HEAD = 80
"""Characters of a text that a detail shows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Exact:
    """Whether the answer is the expected text."""

    span: ClassVar = YES_NO
    name: str
    expected: str | None
    slot: str
    strip: bool
    casefold: bool

    @property
    def key(self) -> str:
        """What identifies it and how it scores."""
        return f"{self.name}#{fingerprint(self.expected, self.slot, self.strip, self.casefold)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """1 if it is, else 0."""
        if self.expected is None and self.slot not in prompt.slots:
            return Score(None, f"the prompt has no {self.slot!r}")
        expected = str(prompt.slots[self.slot]) if self.expected is None else self.expected
        alike = self._plain(reply.text) == self._plain(expected)
        return Score(float(alike), "" if alike else f"expected {expected:.{HEAD}}")

    def _plain(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text


@dataclasses.dataclass(frozen=True, slots=True)
class Regex:
    """Whether the answer holds a match."""

    span: ClassVar = YES_NO
    name: str
    pattern: re.Pattern[str]

    @property
    def key(self) -> str:
        """What identifies it and how it scores."""
        return f"{self.name}#{fingerprint(self.pattern.pattern, self.pattern.flags)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """1 if it does, else 0."""
        found = self.pattern.search(reply.text)
        return Score(float(found is not None), f"found {found[0]:.{HEAD}}" if found else "no match")


@dataclasses.dataclass(frozen=True, slots=True)
class Typed:
    """Whether the answer is JSON of a type."""

    span: ClassVar = YES_NO
    name: str
    kind: Any

    @property
    def key(self) -> str:
        """What identifies it and how it scores."""
        form = json.dumps(structured_output.answer_format(self.kind)["schema"], sort_keys=True)
        return f"{self.name}#{fingerprint(form)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """1 if it is, else 0."""
        try:
            structured_output.read(reply.text, self.kind)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            return Score(0.0, ": ".join(words for words in (place, first["msg"]) if words))
        return Score(1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Valid:
    """Whether the answer is JSON that a JSON Schema allows."""

    span: ClassVar = YES_NO
    name: str
    schema: str
    """As canonical JSON."""
    validator: Any = dataclasses.field(repr=False, compare=False)

    @property
    def key(self) -> str:
        """What identifies it and how it scores."""
        return f"{self.name}#{fingerprint(self.schema)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """1 if it is, else 0."""
        try:
            value = json.loads(reply.text)
        except ValueError as error:
            return Score(0.0, f"no JSON: {error}")
        fault = next(iter(self.validator.iter_errors(value)), None)
        if fault is None:
            return Score(1.0)
        return Score(0.0, f"{'.'.join(map(str, ('$', *fault.instance_path)))}: {fault.message:.200}")


@dataclasses.dataclass(frozen=True, slots=True)
class Function:
    """Whatever a Python function makes of the answer."""

    name: str
    call: Callable[..., Any]
    takes_prompt: bool

    @property
    def key(self) -> str:
        """What identifies it and how it scores: its code and its constants too, so that a changed one scores anew."""
        return f"{self.name}#{fingerprint(self.call)}"

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """What it returns."""
        return as_score(self.call(reply, prompt) if self.takes_prompt else self.call(reply))


def as_score(value: Any) -> Score:
    """What a function returned, as a score."""
    match value:
        case Score():
            return value
        case None:
            return Score(None, "no score was given")
        case _:
            try:
                number = float(value)
            except (TypeError, ValueError):
                return Score(None, f"expected a number, got {value!r:.{HEAD}}")
            return Score(number) if math.isfinite(number) else Score(None, f"expected a finite number, got {number}")
