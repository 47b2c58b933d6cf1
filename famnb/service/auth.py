"""Who may call, and how often: keys, and the rate limits of each key; what is called is left to others."""

from __future__ import annotations

import contextlib
import hmac
import math
import time
from collections.abc import Callable, Iterator, Sequence

from starlette.datastructures import Headers

from famnb.service.errors import ServiceError

_ROUNDING = 1e-6
"""The share of a request that is none: what sums of seconds are off by."""


def caller(headers: Headers, keys: Sequence[str], *, key_header: str | None = None) -> str:
    """The key a request carries; from `key_header` where there is no Authorization. Raises Refusal 401."""
    given = headers.getlist("authorization")
    if not given and key_header is not None:
        given = [f"Bearer {key}" for key in headers.getlist(key_header)]
    if not given:
        raise _unknown("no API key: send the header `Authorization: Bearer <API_KEY>`")
    if len(given) > 1:
        raise _unknown("the API key is given more than once: send one `Authorization` header")
    scheme, _, token = given[0].partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise _unknown("the header `Authorization` holds no key: send `Authorization: Bearer <API_KEY>`")
    offered = token.strip().encode("latin-1")
    # Every key is compared, so that the time taken does not tell which one came close.
    found = [key for key in keys if hmac.compare_digest(offered, key.encode())]
    if not found:
        raise _unknown("the API key is not valid for this service")
    return found[0]


def _unknown(message: str) -> ServiceError:
    return ServiceError(401, message, headers={"www-authenticate": "Bearer"})


class RateLimiter:
    """Requests a minute, burst and concurrency, each key by itself; the clock is injectable."""

    def __init__(
        self,
        *,
        requests_per_minute: float | None = None,
        burst: int | None = None,
        concurrency: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = requests_per_minute / 60 if requests_per_minute else None
        self._burst = burst or max(1, int(requests_per_minute or 1))
        self._concurrency = concurrency
        self._clock = clock
        self._allowances: dict[str, tuple[float, float]] = {}
        self._running: dict[str, int] = {}

    @contextlib.contextmanager
    def admitted(self, key: str) -> Iterator[None]:
        """Hold a place for one request of a key; raises Refusal 429 with a truthful `retry-after`."""
        running = self._running.get(key, 0)
        if self._concurrency is not None and running >= self._concurrency:
            raise _later(f"{running} requests of this key are running, the most allowed; wait for one to end", 1.0)
        self._spend(key)
        self._running[key] = running + 1
        try:
            yield
        finally:
            self._running[key] -= 1

    def _spend(self, key: str) -> None:
        """Take one request from the key's allowance, which grows steadily up to the burst."""
        if self._per_second is None:
            return
        now = self._clock()
        left, since = self._allowances.get(key, (float(self._burst), now))
        left = min(left + (now - since) * self._per_second, float(self._burst))
        # Whoever waited as long as was said must not be refused for the rounding of a sum.
        if left < 1 - _ROUNDING:
            wait = (1 - left) / self._per_second
            self._allowances[key] = left, now
            allowed = f"{self._per_second * 60:g} a minute, {self._burst} of them at once"
            raise _later(f"too many requests with this key ({allowed}); try again in {wait:.1f} s", wait)
        self._allowances[key] = left - 1, now


def _later(message: str, wait: float) -> ServiceError:
    headers = {"retry-after": str(math.ceil(wait)), "retry-after-ms": str(math.ceil(wait * 1000))}
    return ServiceError(429, message, headers=headers)
