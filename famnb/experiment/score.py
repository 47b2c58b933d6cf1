"""Scores, and the classes of the scorers that need no call; `scorers.py` has the functions that make them.

A scorer's `key` identifies it and how it scores: a score is kept under it and made again when it changes.

To add a scorer: a frozen dataclass here with `score`, whose fields are its settings; the function that makes it in
`scorers.py`, with its name in `__all__` and in that module's docstring.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeAlias

from famnb.experiment.fingerprint import fingerprint
from famnb.experiment.prompts import Prompt
from famnb.formatting import format_duration
from famnb.record import prices
from famnb.reply import Reply


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
Which: TypeAlias = Literal["first", "last"]
DETAIL_CHARS = 80
"""Characters of a text that a detail shows: about a line."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """What an answer is compared with: a value for all prompts, or each prompt's own value of a slot."""

    value: Any
    """None for the prompt's own."""
    slot: str

    def of(self, prompt: Prompt) -> Any:
        """Return the value for a prompt. Raises LookupError, saying why, if it has none."""
        if self.value is not None:
            return self.value
        if self.slot not in prompt.slots:
            raise LookupError(f"the prompt has no {self.slot!r}")
        return prompt.slots[self.slot]


@dataclasses.dataclass(frozen=True, slots=True)
class Normalization:
    """What is left out of account when two texts are compared."""

    strip: bool
    """White space at both ends."""
    casefold: bool
    """Upper and lower case."""

    def __call__(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text


@dataclasses.dataclass(frozen=True, slots=True)
class BaseScorer:
    """A scorer that its fields make what it is."""

    span: ClassVar[Span | None] = YES_NO
    name: str

    @property
    def key(self) -> str:
        """Its name, and a digest of how it scores."""
        fields = [field.name for field in dataclasses.fields(self) if field.compare and field.name != "name"]
        return f"{self.name}#{fingerprint(*(getattr(self, name) for name in fields))}"


@dataclasses.dataclass(frozen=True, slots=True)
class ExactScorer(BaseScorer):
    """Scores whether the answer is the expected text."""

    expected: Expected
    normalize: Normalization

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return 1 if it is, else 0."""
        try:
            expected = str(self.expected.of(prompt))
        except LookupError as error:
            return missing_score(error)
        is_equal = self.normalize(reply.text) == self.normalize(expected)
        return Score(float(is_equal), "" if is_equal else f"expected {expected:.{DETAIL_CHARS}}")


@dataclasses.dataclass(frozen=True, slots=True)
class ContainsScorer(BaseScorer):
    """Scores whether the answer contains the expected texts."""

    expected: Expected
    normalize: Normalization
    need_all: bool
    """Whether each of several texts must be there; else one of them must."""

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return 1 if it does, else 0."""
        try:
            expected = self.expected.of(prompt)
        except LookupError as error:
            return missing_score(error)
        texts = list(map(str, expected)) if isinstance(expected, list | tuple) else [str(expected)]
        answer = self.normalize(reply.text)
        absent = [text for text in texts if self.normalize(text) not in answer]
        is_found = not absent if self.need_all else len(absent) < len(texts)
        if is_found:
            return Score(1.0)
        return Score(0.0, f"not in the answer: {', '.join(map(repr, absent))}"[:DETAIL_CHARS])


@dataclasses.dataclass(frozen=True, slots=True)
class NumericScorer(BaseScorer):
    """Scores whether a number in the answer is the expected one, within a tolerance."""

    expected: Expected
    tolerance: float
    relative: float
    """The tolerance as a share of the expected number; the wider of the two holds."""
    which: Which
    """The number of the answer that counts."""

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return 1 if it is, else 0."""
        try:
            expected = expected_number(self.expected.of(prompt))
        except LookupError as error:
            return missing_score(error)
        numbers = find_numbers(reply.text)
        if not numbers:
            return Score(0.0, f"no number in the answer; expected {expected:g}")
        number = numbers[0 if self.which == "first" else -1]
        # 0.3 and 0.1 + 0.2 are the same number to whoever writes them.
        tolerance = max(self.tolerance, self.relative * abs(expected), _ROUNDING * abs(expected))
        return Score(float(abs(number - expected) <= tolerance), f"{number:.15g}, expected {expected:.15g}")


_ROUNDING = 1e-9
"""Share of a number by which two that are equal may differ as floats."""
_NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")
"""A number as it is written in English: sign, thousands between commas, decimals after a point, an exponent."""


def find_numbers(text: str) -> list[float]:
    """Return the numbers in a text, in order; "1,234.5" is one of them, "1,5" is two."""
    return [float(match.replace(",", "").replace("\u2212", "-")) for match in _NUMBER.findall(text)]


def expected_number(value: Any) -> float:
    """Return a number that is expected, given as one or as a text. Raises LookupError for anything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(str(value).strip().replace(",", ""))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise LookupError(f"expected is not a number: {value!r:.{DETAIL_CHARS}}")
    return number


@dataclasses.dataclass(frozen=True, slots=True)
class RegexScorer(BaseScorer):
    """Scores whether the answer holds a match of a regular expression, or the expected text in a group of one."""

    pattern: re.Pattern[str] | None
    """None for the prompt's own, in its slot."""
    flags: int
    group: int | str | None
    """The group whose text must be the prompt's value of the slot; None where a match is enough."""
    slot: str

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return 1 if it does, else 0."""
        try:
            pattern = self.pattern or self._pattern_of(prompt)
            expected = None if self.group is None else str(Expected(None, self.slot).of(prompt)).strip()
        except LookupError as error:
            return missing_score(error)
        matches = list(pattern.finditer(reply.text))
        if not matches:
            return Score(0.0, "no match")
        if self.group is None:
            return Score(1.0, f"found {matches[0][0]:.{DETAIL_CHARS}}")
        # The last match, since a model that thinks aloud ends with its answer.
        text = (matches[-1][self.group] or "").strip()
        return Score(float(text == expected), f"found {text:.{DETAIL_CHARS}}, expected {expected:.{DETAIL_CHARS}}")

    def _pattern_of(self, prompt: Prompt) -> re.Pattern[str]:
        text = str(Expected(None, self.slot).of(prompt))
        try:
            return re.compile(text, self.flags)
        except re.error as error:
            raise LookupError(f"{text!r:.{DETAIL_CHARS}} is not a regular expression: {error}") from None


@dataclasses.dataclass(frozen=True, slots=True)
class RefusalScorer(BaseScorer):
    """Scores whether the model declined to answer."""

    pattern: re.Pattern[str]
    """Finds a refusal at the beginning of a text."""
    wanted: bool

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """Return 1 if it did, else 0; the other way round unless refusals are wanted."""
        reason = self._find_refusal(reply)
        return Score(float((reason is not None) == self.wanted), reason or "no refusal")

    def _find_refusal(self, reply: Reply) -> str | None:
        """What shows that the model refused; None if nothing does."""
        if text := "".join(block.text for block in reply.blocks if block.kind == "refusal"):
            return f"the service says so: {text:.{DETAIL_CHARS}}"
        if reply.finish_reason == "content_filter":
            return "the answer was filtered"
        match = self.pattern.search(reply.text.replace("\u2019", "'")[:REFUSAL_CHARS])
        return None if match is None else f"found {match[0]:.{DETAIL_CHARS}}"


REFUSAL_CHARS = 300
"""Characters of an answer in which a refusal is looked for: later on, the words are about something else."""
_DECLINED = (
    "help|assist|provide|comply|fulfil|answer|respond|reply|do that|do this|share|create|write|generate|produce"
    "|support|engage|discuss|give|offer|participate|complete|continue|proceed|process|advise|tell|say|show|be able"
)
REFUSALS = (
    rf"\bI (?:can't|cannot|can not|won't|will not|'m unable to|am unable to|'m not able to|am not able to)"
    rf"(?: \w+ly)? (?:{_DECLINED})",
    r"\bI(?:'m| am) (?:unable|not able|not allowed|not permitted|not going|not comfortable)\b",
    r"\bI(?:'m| am) (?:\w+ )?(?:sorry|afraid),? (?:but )?(?:that )?I (?:can't|cannot|can not|won't|will not)\b",
    r"\bI (?:must|have to|need to) (?:\w+ )?(?:decline|refuse)\b",
    r"\bas an AI\b.{0,60}\b(?:can't|cannot|can not|unable|not able|not allowed)\b",
    r"\bagainst my (?:guidelines|programming|policy|policies)\b",
)
"""Regular expressions of how models decline in English."""


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyScorer(BaseScorer):
    """Scores whether a call was as quick as it has to be."""

    max_s: float
    metric: str

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """Return 1 if it was, else 0."""
        seconds = getattr(reply.timing, self.metric)
        if seconds is None:
            return Score(None, f"{self.metric} was not observed")
        return Score(float(seconds <= self.max_s), f"{self.metric} {format_duration(seconds)}")


@dataclasses.dataclass(frozen=True, slots=True)
class CostScorer(BaseScorer):
    """Scores whether a call cost no more than it may."""

    max_usd: Decimal

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """Return 1 if it did, else 0; no score where that is not known, since its cost may lie on either side."""
        cost = reply.cost
        if cost is None and reply.request is not None:
            # The price may have been set since the call was made.
            cost = prices.cost(reply.request.model, reply.usage, service=reply.profile)
        if cost is None:
            return Score(None, "the cost is not known: there is no price for the model, or no token count")
        if cost.low <= self.max_usd < cost.high:
            return Score(None, f"{cost}: the limit is between")
        return Score(float(cost.high <= self.max_usd), str(cost))


@dataclasses.dataclass(frozen=True, slots=True)
class SchemaScorer(BaseScorer):
    """Scores whether the answer is JSON of a form."""

    schema: str
    """The form, as a JSON Schema with sorted keys."""
    find_fault: Callable[[str], str | None] = dataclasses.field(repr=False, compare=False)
    """Returns what is wrong with a text; None if it has the form."""

    def score(self, reply: Reply, prompt: Prompt) -> Score:  # noqa: ARG002 - as every scorer
        """Return 1 if it is, else 0."""
        fault = self.find_fault(reply.text)
        return Score(float(fault is None), fault or "")


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionScorer(BaseScorer):
    """Scores by a Python function of the answer."""

    span = None
    call: Callable[..., Any]
    takes_prompt: bool

    def score(self, reply: Reply, prompt: Prompt) -> Score:
        """Return the function's result as a score."""
        return to_score(self.call(reply, prompt) if self.takes_prompt else self.call(reply))


def missing_score(error: Exception) -> Score:
    """Return no score, with an error's message as the reason."""
    return Score(None, str(error.args[0]))


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
