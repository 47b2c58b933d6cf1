"""Fingerprints: equal for scorers that score alike, in every process, and other for those that do not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from famnb import scorers
from famnb.experiment.prompts import Prompt
from famnb.experiment.scorers import Scorer, apply_scorer
from famnb.reply import Block, Reply


def make_reply(text: str) -> Reply:
    """A reply of this text."""
    return Reply(blocks=(Block(at=(0, 0), kind="text", text=text),), status="completed")


def value(scorer: Scorer, text: str, **slots: Any) -> float | None:
    """What a scorer makes of a text."""
    return apply_scorer(scorer, make_reply(text), Prompt("p1", "?", slots)).value


@given(text=st.text(max_size=50), pattern=st.sampled_from(["a", "b+", "^$", r"\d"]))
def test_two_scorers_are_alike_exactly_when_they_score_alike(text: str, pattern: str) -> None:
    """What identifies a scorer follows from what it does, so that old scores are never taken for new ones."""
    keys = [scorers.exact(text), scorers.exact(text), scorers.exact(text + "!"), scorers.exact(text, strip=False)]
    assert len({one.key for one in keys}) == 3
    assert scorers.regex(pattern).key == scorers.regex(pattern).key != scorers.regex(pattern, flags=2).key


def test_a_function_is_the_same_in_another_process_and_another_when_it_changes() -> None:
    """Its code tells, wherever it is written and however that process orders its sets."""
    source = "scorers.function(lambda r: r.text in {'a', 'b', 'c', 'd'} or (lambda: r)(), name='f').key"
    code = f"from famnb.experiment import scorers; print({source})"
    there = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert there == eval(source) != scorers.function(lambda r: r.text in {"a"}, name="f").key


def longer_than(limit: int) -> Callable[[Reply], bool]:
    """A function whose limit is no part of its code."""
    return lambda reply: len(reply.text) > limit


def test_a_function_is_another_when_what_it_uses_changes() -> None:
    """A limit it closes over, an argument bound to it, a function it calls; not what it changes itself as it scores."""
    seen: list[str] = []
    count = 0

    def counting(reply: Reply) -> int:
        nonlocal count
        seen.append(reply.text)
        count += 1
        return count

    def key(call: Callable[..., Any]) -> str:
        return scorers.function(call, name="f").key

    assert key(longer_than(5)) == key(longer_than(5)) != key(longer_than(6))
    assert key(partial(value, text="a")) == key(partial(value, text="a")) != key(partial(value, text="b"))
    before = key(counting)
    assert (counting(make_reply("a")), seen, key(counting)) == (1, ["a"], before)
