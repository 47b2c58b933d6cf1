"""Fingerprints: equal for scorers that score alike, in every process, and other for those that do not."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb import scorers
from famnb.reply import Reply

LIMIT = 5


def key(call: Callable[..., Any]) -> str:
    return scorers.function(call, name="f").key


@given(text=st.text(max_size=50), pattern=st.sampled_from(["a", "b+", "^$", r"\d"]))
def test_two_scorers_have_one_key_exactly_when_they_score_alike(text: str, pattern: str):
    keys = [scorers.exact(text), scorers.exact(text), scorers.exact(text + "!"), scorers.exact(text, casefold=True)]
    assert len({scorer.key for scorer in keys}) == 3
    assert scorers.regex(pattern).key == scorers.regex(pattern).key != scorers.regex(pattern, flags=2).key
    assert scorers.exact(text, name="same").key != scorers.contains(text or "x", name="same").key


def test_the_key_of_a_function_is_the_same_in_another_process(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from famnb.experiment import scorers\n"
        "kept = frozenset({'a', 'b', 'c', 'd'})\n"
        "one = scorers.function(lambda reply: reply.text in kept or reply.text in {'e', 'f', 'g'}, name='f')\n"
        "print(one.key)\n"
    )
    printed = subprocess.check_output([sys.executable, str(tmp_path / "mine.py")], text=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert printed.strip() == __import__("mine").one.key


def longer_than(limit: int) -> Callable[[Reply], bool]:
    return lambda reply: len(reply.text) > limit


def is_long(reply: Reply) -> bool:
    return len(reply.text) > LIMIT


def calls_is_long(reply: Reply) -> bool:
    return is_long(reply)


def test_a_function_has_another_key_when_its_source_or_what_it_reads_changes(monkeypatch: pytest.MonkeyPatch):
    assert key(longer_than(5)) == key(longer_than(5)) != key(longer_than(6))
    assert key(partial(longer_than(5), LIMIT)) != key(partial(longer_than(5), 6))
    first = key(lambda reply: reply.text == "a")
    assert first != key(lambda reply: reply.text == "b")
    before = key(is_long), key(calls_is_long)
    monkeypatch.setattr("tests.experiment.test_fingerprint.LIMIT", 6)
    assert key(is_long) != before[0]
    monkeypatch.setattr("tests.experiment.test_fingerprint.is_long", longer_than(7))
    assert key(calls_is_long) != before[1]
