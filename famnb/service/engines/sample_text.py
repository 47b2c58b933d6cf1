"""The texts of the simulated engine, in chunks: answers in Markdown about the request itself, and thoughts.

An answer is one of: a count ("count to 500"), a text of a given length ("write 200 words"), one sentence, some eight
lines that describe how the request was understood, or a page of that ("in detail").
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator

from famnb.formatting import format_count, shorten
from famnb.service.prompt import GenerationPrompt

MAX_AMOUNT = 100_000
"""The maximum of words, lines or numbers that are written on demand."""
# Longer questions quote a document, before or after the demand; the patterns need not look through megabytes.
_SEARCHED = 4_000
"""The characters at each end of a question in which a demand is searched."""

_COUNT_DEMAND = re.compile(r"\bcount\b[^.?!\n]{0,30}?\bto\s+(\d[\d,]*)", re.IGNORECASE)
_LENGTH_DEMAND = re.compile(
    r"\b(?:write|give|generate|produce|print|output|tell|say|in)\b[^.?!\n]{0,40}?"
    r"\b(\d[\d,]*)[\s-]+(word|sentence)s?\b",
    re.IGNORECASE,
)
_BRIEF_DEMAND = re.compile(r"\b(?:one|a single|1)[\s-](?:sentence|line)\b|\bbriefly\b|\bin short\b", re.IGNORECASE)
_DETAIL_DEMAND = re.compile(r"\b(?:in detail|detailed|at length|step by step)\b", re.IGNORECASE)

_TITLES = ("A simulated answer", "What the service understood")
_OPENINGS = (
    "This text is **simulated**: no language model was asked. It describes the request instead, as it arrived.",
    "No model wrote this. The local service answers with a **simulated** text that says what it was asked.",
)
_BRIEF_ANSWERS = (
    "This is a simulated answer: no language model was asked.",
    "The simulated engine greets you; no language model was asked.",
    "A simulated engine wrote this sentence in place of a model.",
)
_POINTS = (
    "the **time to first token** is drawn anew for every call",
    "each event of the stream carries *one* token",
    "the same request gives the same text, on every endpoint",
    "tokens are counted by the engine's own small tokenizer",
    "thinking and reasoning count as output",
    "stopping the stream stops the engine",
    "a lower cap ends the text early, with the reason `length`",
    "larger models are simulated as slower ones",
)
_LINES_OF_CODE = ("client.send(request).usage", "famnb.calls().tail(1)", "famnb.plot.timeline(client.last)")
_SENTENCES = (
    "A stream arrives in small pieces, and every piece has its moment.",
    "The first token takes the longest, because the whole prompt is read before it.",
    "After that the pieces follow each other at an even pace, give or take.",
    "Whoever measures them should note the time at once and think about it later.",
    "A number without its sample size is a rumour with a decimal point.",
    "The median says what is usual, and the tail says what will be remembered.",
)
_UNSET = ("default", "none", "off")
"""The values of facts that the request leaves open."""
_DISCLOSURE = "None of this was written by a model; it is simulated text."
_THOUGHTS = (
    "Let me see what is being asked here.",
    "I should say plainly that this answer is simulated.",
    "First the facts of the request, then a list, then a little code.",
    "A table would show the settings at a glance.",
    "The settings are within their limits, so nothing needs a warning.",
    "That should do; now to write it down.",
)


def answer(prompt: GenerationPrompt, *, prompt_tokens: int, rng: random.Random) -> Iterator[str]:
    """Yield the visible answer: as long as the prompt demands, else a page about the request."""
    question = _last_question(prompt)
    if len(question) > 2 * _SEARCHED:
        question = f"{question[:_SEARCHED]}\n{question[-_SEARCHED:]}"
    if match := _COUNT_DEMAND.search(question):
        end = _parse_amount(match[1])
        yield from (f"{number}, " if number % 10 else f"{number},\n" for number in range(1, end))
        yield str(end)
    elif match := _LENGTH_DEMAND.search(question):
        sentences = itertools.chain([_DISCLOSURE], _shuffle_forever(_SENTENCES, rng))
        is_words = match[2].lower() == "word"
        parts = itertools.chain.from_iterable(map(str.split, sentences)) if is_words else sentences
        for number, part in enumerate(itertools.islice(parts, _parse_amount(match[1]))):
            yield f" {part}" if number else part
    elif prompt.verbosity == "low" or _BRIEF_DEMAND.search(question):
        yield rng.choice(_BRIEF_ANSWERS)
    else:
        is_long = prompt.verbosity == "high" or bool(_DETAIL_DEMAND.search(question))
        yield from _describe(prompt, prompt_tokens, rng, is_long=is_long)


def thoughts(prompt: GenerationPrompt, *, rng: random.Random) -> Iterator[str]:
    """Yield thoughts without end, to be cut where the budget ends."""
    question = _last_question(prompt)
    if question:
        yield f"The user asks: “{_quote_line(question, 80)}” "
    for sentence in _shuffle_forever(_THOUGHTS, rng):
        yield f"{sentence} "


def _quote_line(text: str, limit: int) -> str:
    """Return the beginning of a text as one line of at most `limit` characters."""
    # Cut before it is split, since it may hold megabytes; eight times the limit leaves room for white space.
    return shorten(" ".join(text[: 8 * limit].split()), limit)


def _last_question(prompt: GenerationPrompt) -> str:
    return next((turn.text for turn in reversed(prompt.turns) if turn.role == "user"), "")


def _parse_amount(digits: str) -> int:
    # Nine digits are beyond the maximum anyway, and `int` raises for more than 4,300.
    return min(int(digits.replace(",", "")[:9] or 0), MAX_AMOUNT)


def _shuffle_forever(choices: tuple[str, ...], rng: random.Random) -> Iterator[str]:
    """Yield the choices again and again, in a new order each time."""
    while True:
        yield from rng.sample(choices, len(choices))


def _describe(prompt: GenerationPrompt, prompt_tokens: int, rng: random.Random, *, is_long: bool) -> Iterator[str]:
    """Yield how the request was understood, each kind of Markdown once; by default what fits on a screen."""
    yield f"## {rng.choice(_TITLES)}\n\n{rng.choice(_OPENINGS)}\n\n"
    if is_long and (question := _last_question(prompt)):
        yield f"> {_quote_line(question, 160)}\n\n"
    # What came before the last question, so that a conversation shows that it is one.
    if prompt.turns and prompt.turns[-1].role == "tool":
        yield f"The tool returned: {_quote_line(prompt.turns[-1].text, 160)}\n\n"
    if earlier := [turn.text for turn in prompt.turns if turn.role == "user"][:-1]:
        yield "### Earlier you said\n\n"
        for number, text in list(enumerate(earlier, start=1))[-5:]:
            yield f"{number}. “{_quote_line(text, 80)}”\n"
        yield "\n"
    yield "| Fact | Value |\n|:--|:--|\n"
    for name, value in _facts(prompt, prompt_tokens):
        if is_long or name == "Token cap" or value not in _UNSET:
            yield f"| {name} | {value.replace('|', chr(92) + '|')} |\n"  # Python 3.11 has no \ inside an f-string
    yield "\n"
    for point in rng.sample(_POINTS, 6 if is_long else 2):
        yield f"- {point}\n"
    yield f"\n```python\n{rng.choice(_LINES_OF_CODE)}\n```"


def _facts(prompt: GenerationPrompt, prompt_tokens: int) -> Iterator[tuple[str, str]]:
    """Yield names and values of how the request was understood, the same on every endpoint."""

    def format_setting(name: str, value: float | None) -> str:
        # The endpoints' defaults differ, the answers must not.
        return "default" if name not in prompt.explicit or value is None else f"{value:,}"

    yield "Model", f"`{prompt.model}`"
    yield "Prompt", f"{prompt_tokens:,} tokens, {format_count(len(prompt.turns), 'turn')}"
    yield "System text", f"“{_quote_line(prompt.system, 60)}”" if prompt.system else "none"
    yield "Token cap", format_setting("cap", prompt.cap)
    yield "Temperature", format_setting("temperature", prompt.temperature)
    if "top_p" in prompt.explicit:
        yield "Top p", format_setting("top_p", prompt.top_p)
    if prompt.thinking is not None:
        yield "Thinking", f"up to {prompt.thinking:,} tokens"
    else:
        yield "Thinking", "off" if prompt.effort in (None, "none") else f"{prompt.effort} effort"
    if image_count := sum(len(turn.images) for turn in prompt.turns):
        yield "Images", f"{image_count}, counted but not opened"
    if prompt.tools:
        yield "Tools", ", ".join(f"`{tool.name}`" for tool in prompt.tools)
