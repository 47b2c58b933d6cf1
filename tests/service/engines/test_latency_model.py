"""The simulated latency: lifelike, the distribution that the model promises."""

import asyncio
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import stats

from famnb.endpoints import compose
from famnb.events import Delta
from famnb.request import Request
from famnb.service.engines.latency_model import OTHER_PROFILE, PROFILES, LogNormal, latency_profile
from famnb.service.engines.simulated import SimulatedEngine, count_prompt_tokens
from famnb.service.prompt import build_prompt

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
    prompt_tokens, _ = count_prompt_tokens(build_prompt(requests[0]))
    truth = latency_profile(str(fields["model"]), effort, prompt_tokens=prompt_tokens)
    replies = moments(requests)
    assert follows(np.array([first for first, *_ in replies]), truth.ttft)
    assert follows(np.concatenate([np.diff(reply) for reply in replies[:200]]), truth.gap)


@pytest.mark.parametrize("known", [*PROFILES.values(), OTHER_PROFILE])
@pytest.mark.parametrize("name", ["ttft", "gap"])
def test_a_distribution_knows_its_truths(known: object, name: str):
    distribution: LogNormal = getattr(known, name)
    expected = stats.lognorm(s=distribution.sigma, scale=distribution.median)
    assert distribution.median == pytest.approx(expected.median())
    assert [distribution.quantile(level) for level in LEVELS] == pytest.approx(expected.ppf(LEVELS).tolist())


def test_more_effort_means_a_later_first_token():
    efforts = [None, "minimal", "low", "medium", "high", "xhigh"]
    medians = [latency_profile("fam-2-5-pro", effort).ttft.median for effort in efforts]
    assert medians == sorted(set(medians))
    assert latency_profile("fam-2-5-pro", "none") == latency_profile("fam-2-5-pro")
    assert latency_profile("fam-2-5-pro", "high", cap=10).ttft.median == pytest.approx(0.45 + 9 * 0.021)
    assert latency_profile("fam-2-5-pro", "xhigh").gap == latency_profile("fam-2-5-pro").gap
    assert latency_profile("fam-2-5-pro", prompt_tokens=100_000).ttft.median == pytest.approx(0.45 + 2.0)
