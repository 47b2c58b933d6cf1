"""The engine's tokenizer and its sense of time."""

from __future__ import annotations

import asyncio
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.service.engines import simulated
from famnb.service.engines.latency_model import PROFILES, TokenPacer


@given(st.lists(st.text(alphabet=st.one_of(st.sampled_from("ab1 .\n_好"), st.characters()), max_size=8)))
def test_the_pieces_are_the_text_however_it_is_cut(chunks: list[str]) -> None:
    """Nothing is lost or added, no piece is empty, and their number is the count of the whole text."""
    text = "".join(chunks)
    found = list(simulated.split_tokens(chunks))
    assert "".join(found) == text
    assert all(found)
    assert found == list(simulated.split_tokens([text]))
    assert len(found) == simulated.count_tokens(text)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Why is the sky blue?", ["Why", " is", " the", " sky", " blue", "?"]),
        ("unbelievable", ["unbeliev", "able"]),
        ("12345", ["123", "45"]),
        ("你好", ["你", "好"]),
        ("a\n\n\nb", ["a", "\n\n\n", "b"]),
        ("", []),
    ],
)
def test_a_piece_is_a_short_word_or_less(text: str, pieces: list[str]) -> None:
    """About as a real tokenizer cuts."""
    assert list(simulated.split_tokens([text])) == pieces


def waits(model: str, scale: float, count: int = 400) -> list[float]:
    """How long a reply of `count` tokens sleeps before each, on a clock that only sleeping moves."""
    now = [0.0]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    async def speak() -> None:
        pace = TokenPacer(scale=scale, rng=random.Random(1), clock=lambda: now[0], sleep=sleep)
        await pace.wait(PROFILES[model].ttft)
        for _ in range(count):
            await pace.wait(PROFILES[model].gap)

    asyncio.run(speak())
    return slept


@pytest.mark.parametrize("model", list(PROFILES))
def test_the_pace_is_lifelike(model: str) -> None:
    """The first token takes 0.1 to 1 s, and 40 to 85 follow each second, unevenly."""
    first, *gaps = waits(model, 1.0)
    assert 0.1 < first < 1
    assert 40 <= 1 / statistics.fmean(gaps) <= 85
    assert statistics.stdev(gaps) > statistics.fmean(gaps) / 4


def test_larger_models_are_slower() -> None:
    """The pro model waits longer than the mini, before the first token and between tokens."""
    pro, mini = waits("fam-2-5-pro", 1.0), waits("fam-2-5-mini", 1.0)
    assert pro[0] > mini[0]
    assert statistics.median(pro[1:]) > statistics.median(mini[1:])


def test_the_time_scale_scales() -> None:
    """Half the scale, half the time; none, no waiting at all."""
    assert sum(waits("fam-mini", 0.5)) == pytest.approx(sum(waits("fam-mini", 1.0)) / 2)
    assert set(waits("fam-mini", 0.0)) == {0.0}


def test_being_late_once_does_not_slow_what_follows() -> None:
    """The waits keep to a timetable: time lost is made up for."""
    now = [0.0]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds + (5.0 if len(slept) == 1 else 0.0)

    async def speak() -> None:
        pace = TokenPacer(scale=1, rng=random.Random(1), clock=lambda: now[0], sleep=sleep)
        for _ in range(10):
            await pace.wait(PROFILES["fam-mini"].gap)

    asyncio.run(speak())
    assert slept[1:] == [0.0] * 9
