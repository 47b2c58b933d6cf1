"""The simulated latency: lifelike, the distribution that the model promises, and the same for the same requests."""

import asyncio
import random
import statistics
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import stats

from famnb.endpoints import compose
from famnb.events import Delta, Usage
from famnb.request import Request
from famnb.service.engines.latency_model import OTHER_PROFILE, PROFILES, LogNormal, TokenPacer, latency_profile
from famnb.service.engines.simulated import SimulatedEngine
from famnb.service.prompt import build_prompt


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
def test_the_pace_is_lifelike(model: str):
    first, *gaps = waits(model, 1.0)
    assert 0.1 < first < 1
    assert 40 <= 1 / statistics.fmean(gaps) <= 85
    assert statistics.stdev(gaps) > statistics.fmean(gaps) / 4


def test_the_time_scale_scales():
    assert sum(waits("fam-mini", 0.5)) == pytest.approx(sum(waits("fam-mini", 1.0)) / 2)
    assert set(waits("fam-mini", 0.0)) == {0.0}


def test_being_late_once_does_not_slow_what_follows():
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


REPLIES = 2_000
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def moments(requests: Iterable[Request], *, seed: int = 0) -> list[list[float]]:
    """When each delta of each reply is due, in seconds after its request, on a clock that only waiting moves."""
    now = [0.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    async def generate_all() -> list[list[float]]:
        engine = SimulatedEngine(seed=seed, clock=lambda: now[0], sleep=sleep)
        replies = []
        for request in requests:
            began = now[0]
            replies.append(
                [now[0] - began async for event in engine.generate(build_prompt(request)) if type(event) is Delta]
            )
        return replies

    return asyncio.run(generate_all())


def count_prompt_tokens(request: Request) -> int:
    """The tokens of a request's prompt."""

    async def count() -> int:
        usages = [
            event
            async for event in SimulatedEngine(time_scale=0).generate(build_prompt(request))
            if type(event) is Usage
        ]
        return usages[0].input_tokens or 0

    return asyncio.run(count())


def questions(endpoint: str, count: int = REPLIES, **fields: object) -> list[Request]:
    """Requests that differ, and have equally many tokens."""
    return [compose(endpoint, f"Question {number:04}: why is it so?", **fields) for number in range(count)]


def follows(draws: np.ndarray, truth: LogNormal) -> bool:
    """Whether draws have the quantiles of a distribution within sampling error, four standard deviations each way.

    Below the true quantile of `p` lie `Binomial(n, p)` of n draws; scipy knows the distribution by itself.
    """
    expected = stats.lognorm(s=truth.sigma, scale=truth.median)
    below = np.array([(draws < expected.ppf(level)).sum() for level in LEVELS])
    levels = np.array(LEVELS)
    error = 4 * np.sqrt(len(draws) * levels * (1 - levels))
    return (
        bool((np.abs(below - len(draws) * levels) <= error).all()) and stats.kstest(draws, expected.cdf).pvalue > 1e-4
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("endpoint_", "fields", "effort"),
    [
        ("responses", {"model": "fam-2-5-pro"}, None),
        ("web", {"model": "fam-2-5-mini", "reasoning": {"effort": "high"}}, "high"),
        ("chat", {"model": "fam-mini", "reasoning": {"effort": "low"}}, "low"),
        ("messages", {"model": "fam-2-5-pro", "thinking": 1024}, None),
        ("chat", {"model": "some/model"}, None),
    ],
)
def test_the_waits_follow_the_profile(endpoint_: str, fields: dict[str, object], effort: str | None):
    requests = questions(endpoint_, max_tokens=256, **fields)
    truth = latency_profile(str(fields["model"]), effort, prompt_tokens=count_prompt_tokens(requests[0]))
    replies = moments(requests)
    assert follows(np.array([first for first, *_ in replies]), truth.ttft)
    assert follows(np.concatenate([np.diff(reply) for reply in replies[:200]]), truth.gap)


def test_the_check_would_see_a_wrong_profile():
    """A median 5 % off, or a spread a tenth off, is not taken for the true one."""
    requests = questions("responses", max_tokens=16)
    truth = latency_profile("fam-2-5-pro", prompt_tokens=count_prompt_tokens(requests[0])).ttft
    draws = np.array([first for first, *_ in moments(requests)])
    assert follows(draws, truth)
    assert not follows(draws, LogNormal(truth.median * 1.05, truth.sigma))
    assert not follows(draws, LogNormal(truth.median, truth.sigma * 1.1))


@pytest.mark.parametrize("known", [*PROFILES.values(), OTHER_PROFILE])
@pytest.mark.parametrize("name", ["ttft", "gap"])
def test_a_distribution_knows_its_truths(known: object, name: str):
    distribution: LogNormal = getattr(known, name)
    expected = stats.lognorm(s=distribution.sigma, scale=distribution.median)
    assert distribution.median == pytest.approx(expected.median())
    assert distribution.mean == pytest.approx(expected.mean())
    assert [distribution.quantile(level) for level in LEVELS] == pytest.approx(expected.ppf(LEVELS).tolist())


def test_more_effort_means_a_later_first_token():
    efforts = [None, "minimal", "low", "medium", "high", "xhigh"]
    medians = [latency_profile("fam-2-5-pro", effort).ttft.median for effort in efforts]
    assert medians == sorted(set(medians))
    assert latency_profile("fam-2-5-pro", "none") == latency_profile("fam-2-5-pro")
    assert latency_profile("fam-2-5-pro", "high", cap=10).ttft.median == pytest.approx(0.45 + 9 * 0.021)
    assert latency_profile("fam-2-5-pro", "xhigh").gap == latency_profile("fam-2-5-pro").gap
    assert latency_profile("fam-2-5-pro", prompt_tokens=100_000).ttft.median == pytest.approx(0.45 + 2.0)


def test_a_larger_budget_means_a_later_answer():
    small, large = (moments(questions("messages", 50, thinking=budget, max_tokens=4096)) for budget in (64, 2048))
    first = [float(np.median([reply[0] for reply in replies])) for replies in (small, large)]
    end = [float(np.median([reply[-1] for reply in replies])) for replies in (small, large)]
    assert first[0] == pytest.approx(first[1], rel=0.3)
    assert end[1] > end[0] + 1


def test_the_waits_repeat_with_the_request_and_the_seed():
    first_request, other_request = questions("web", 2, max_tokens=20)
    first = moments([first_request, first_request, other_request])
    assert first[0] != first[1]
    again = moments([other_request, first_request, first_request])
    assert [again[1], again[2], again[0]] == [pytest.approx(reply) for reply in first]
    assert moments([first_request], seed=1)[0] != first[0]
    assert moments([first_request.replace(model="fam-2-5-mini")])[0] != first[0]
