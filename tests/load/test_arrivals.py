"""When calls begin, and when those in flight grow without end."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from famnb.errors import InvalidRequest
from famnb.load.arrivals import draw_arrivals, draw_lengths, is_growing, parse_duration, read_trace


@pytest.mark.parametrize("rate", [0.5, 8, 300])
def test_gaps_of_poisson_arrivals_are_exponential(rate: float):
    """A Kolmogorov–Smirnov test of 2,000 seconds of arrivals does not tell them from the law."""
    times = draw_arrivals(rate, 2000, "poisson", np.random.default_rng(1))
    assert times.max() < 2000
    assert stats.kstest(np.diff(times), stats.expon(scale=1 / rate).cdf).pvalue > 0.01
    # A count over the time is Poisson: 4 standard deviations.
    assert abs(len(times) - 2000 * rate) < 4 * np.sqrt(2000 * rate)


def test_constant_arrivals_are_even():
    assert draw_arrivals(4, 1.5, "constant", np.random.default_rng(1)).tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("2min", 120), ("1.5 h", 5400), ("250ms", 0.25), (7, 7)])
def test_durations_are_read(text: str | float, seconds: float):
    assert parse_duration("duration", text) == seconds


@pytest.mark.parametrize("text", ["", "30", "s", "-3s", 0, True])
def test_what_is_no_duration_is_refused(text: object):
    with pytest.raises(InvalidRequest, match="duration: expected a duration above 0"):
        parse_duration("duration", text)


def test_lengths_follow_their_distribution():
    law = stats.lognorm(0.5, scale=200)
    lengths = draw_lengths("input_tokens", law, 20_000, np.random.default_rng(1))
    assert stats.kstest(lengths + np.random.default_rng(2).uniform(-0.5, 0.5, 20_000), law.cdf).pvalue > 0.01
    table = {"distribution": "lognorm", "s": 0.5, "scale": 200}
    assert (draw_lengths("input_tokens", table, 20_000, np.random.default_rng(1)) == lengths).all()
    sizes = draw_lengths("output_tokens", [5, 50], 1000, np.random.default_rng(1))
    assert set(sizes.tolist()) == {5, 50}
    assert abs((sizes == 5).mean() - 0.5) < 0.1


@pytest.mark.parametrize("source", [0, [10, -1], [], "many", {"distribution": "no such"}, {"mean": 5}, float("nan")])
def test_what_gives_no_lengths_is_refused(source: object):
    with pytest.raises(InvalidRequest, match="input_tokens: expected numbers of at least 1, or a distribution"):
        draw_lengths("input_tokens", source, 5, np.random.default_rng(1))


def queue_times(rate: float, servers: int, mean_s: float, seconds: float) -> tuple[Any, Any]:
    """When the calls of a simulated M/M/c queue begin, and when they end."""
    rng = np.random.default_rng(2)
    begun = draw_arrivals(rate, seconds, "poisson", rng)
    free = np.zeros(servers)
    ended = []
    for at in begun:
        server = int(free.argmin())
        free[server] = max(free[server], at) + rng.exponential(mean_s)
        ended.append(free[server])
    return begun, np.sort(ended)


@pytest.mark.parametrize(("load", "grows"), [(0.5, False), (0.9, False), (1.5, True), (3, True)])
def test_a_backlog_that_grows_is_told_from_a_busy_service(load: float, *, grows: bool):
    begun, ended = queue_times(load * 40, 4, 0.1, 60)
    looks = [now for now in np.arange(0.25, 60, 0.25) if is_growing(begun[begun < now], ended[ended < now], now)]
    assert bool(looks) == grows
    if grows:
        assert looks[0] < 25


def test_long_answers_are_waited_for_before_anything_is_said():
    begun = np.arange(0, 60, 0.1)
    ended = begun + 10
    assert not any(is_growing(begun[begun < now], ended[ended < now], now) for now in np.arange(1, 60, 0.25))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trace.csv", "timestamp,input_tokens,output_tokens\n10.5,7,3\n10,5,2\n"),
        ("trace.jsonl", '{"timestamp_ms": 10500, "input_length": 7, "output_length": 3}\n'
         '{"timestamp_ms": 10000, "input_length": 5, "output_length": 2}\n'),
        ("epoch.jsonl", '{"timestamp_ms": 1780000000500, "input_length": 7, "output_length": 3}\n'
         '{"timestamp_ms": 1780000000000, "input_length": 5, "output_length": 2}\n'),
        ("azure.csv", "timestamp,ContextTokens,GeneratedTokens\n2024-05-10 00:00:10.5+00:00,7,3\n"
         "2024-05-10 00:00:10+00:00,5,2\n"),
    ],
)  # fmt: skip
def test_traces_are_read_as_they_are_published(tmp_path: Path, name: str, text: str):
    file = tmp_path / name
    file.write_text(text)
    trace = read_trace(file)
    assert trace.times.tolist() == [0, 0.5]
    assert trace.input_tokens is not None
    assert trace.output_tokens is not None
    assert (trace.input_tokens.tolist(), trace.output_tokens.tolist()) == ([5, 7], [2, 3])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"when": [1]}), "expected a column of times"),
        (pd.DataFrame({"timestamp": []}, dtype=float), "at least one call"),
        (pd.DataFrame({"timestamp": [1], "output_tokens": [0]}), "numbers of at least 1 in 'output_tokens'"),
        ("nowhere.csv", "there is no file"),
    ],
)
def test_what_is_no_trace_is_refused(frame: object, words: str):
    with pytest.raises(InvalidRequest, match=words):
        read_trace(frame)  # type: ignore[arg-type]
