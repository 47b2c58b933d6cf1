"""The limiter of `send_many`: halved when a service throttles, grown with success, fair to those who wait."""

import asyncio

from famnb.client.concurrency import ConcurrencyLimiter


def test_the_limit_is_halved_once_a_round_trip_and_grows_with_success():
    limiter = ConcurrencyLimiter(16)
    for _ in range(10):
        limiter.on_throttled(sent_ns=100, now_ns=200)
    assert limiter.limit == 8
    limiter.on_throttled(sent_ns=150, now_ns=300)
    assert limiter.limit == 8
    limiter.on_throttled(sent_ns=250, now_ns=300)
    assert limiter.limit == 4
    for _ in range(4):
        limiter.on_success()
    assert 4.8 < limiter.limit <= 5
    for _ in range(1000):
        limiter.on_success()
    assert limiter.limit == 16


def test_what_is_in_is_halved_and_a_limiter_that_was_throttled_is_not_widened():
    async def fill(limiter: ConcurrencyLimiter) -> ConcurrencyLimiter:
        for _ in range(4):
            await limiter.enter()
        return limiter

    throttled, other = asyncio.run(fill(ConcurrencyLimiter(16))), ConcurrencyLimiter(16)
    throttled.on_throttled(sent_ns=100, now_ns=200)
    for limiter in (throttled, other):
        limiter.widen(32)
        limiter.widen(8)
    assert (throttled.limit, throttled.maximum, other.limit) == (2, 32, 32)


def test_a_limiter_admits_in_order_and_survives_those_who_give_up():
    async def queue() -> list[str]:
        limiter, admitted = ConcurrencyLimiter(1), []

        async def enter(name: str) -> None:
            await limiter.enter()
            admitted.append(name)
            await asyncio.sleep(0)
            limiter.leave()

        await limiter.enter()
        tasks = [asyncio.create_task(enter(name)) for name in "abcd"]
        await asyncio.sleep(0)
        tasks[0].cancel()
        limiter.leave()
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.running == 0
        return admitted

    assert asyncio.run(queue()) == ["c", "d"]
