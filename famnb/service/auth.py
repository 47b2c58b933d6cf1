"""Authentication by API key, and the rate limits of each key."""

from __future__ import annotations

import collections
import contextlib
import hmac
import time
from collections.abc import Callable, Iterator, Sequence

from starlette.datastructures import Headers

from famnb.service.errors import ServiceError

# A minute's wait in 10,000 steps adds up to a little less than one: each sum of floats is rounded.
_ROUNDING = 1e-6
"""How far below 1, in requests, an allowance still counts as one."""


def authenticate(headers: Headers, keys: Sequence[str], *, key_header: str | None = None) -> str:
    """Return the key that a request carries. Raises ServiceError 401 unless it is one of `keys`.

    `key_header` is another header that may hold the key, if there is no `Authorization`.
    """
    values = headers.getlist("authorization")
    if not values and key_header is not None:
        values = [f"Bearer {key}" for key in headers.getlist(key_header)]
    if not values:
        raise _unauthorized_error("no API key: send the header `Authorization: Bearer <API_KEY>`")
    if len(values) > 1:
        raise _unauthorized_error("the API key is given more than once: send one `Authorization` header")
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise _unauthorized_error("the header `Authorization` holds no key: send `Authorization: Bearer <API_KEY>`")
    # starlette decodes headers as latin-1; encoding back gives the bytes that were sent.
    token_bytes = token.strip().encode("latin-1")
    # Every key is compared, each in constant time, so that the time taken does not tell which one came close.
    matches = [key for key in keys if hmac.compare_digest(token_bytes, key.encode())]
    if not matches:
        raise _unauthorized_error("the API key is not valid for this service")
    return matches[0]


def _unauthorized_error(message: str) -> ServiceError:
    return ServiceError(401, message, headers={"www-authenticate": "Bearer"})


class RateLimiter:
    """Keeps the limits of each key: a token bucket, and how many of its requests may run at once."""

    def __init__(
        self,
        *,
        requests_per_minute: float | None = None,
        burst: int | None = None,
        concurrency: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`burst` is a whole minute's requests by default; `clock` returns seconds."""
        self._requests_per_minute = requests_per_minute
        self._burst = burst or max(1, int(requests_per_minute or 0))
        self._concurrency = concurrency
        self._clock = clock
        # Neither of these grows without end: only the keys of the service get here, never a caller's invention.
        self._buckets: dict[str, tuple[float, float]] = {}
        """For each API key the requests that it has left, and when that was computed, in seconds."""
        self._running: collections.Counter[str] = collections.Counter()
        """For each API key the number of its requests that are being answered."""

    @contextlib.contextmanager
    def admit(self, key: str) -> Iterator[None]:
        """Count a request as running in the `with` block. ServiceError 429, with `retry-after`, beyond a limit."""
        running = self._running[key]
        if self._concurrency is not None and running >= self._concurrency:
            # When a running request ends is unknown; a second is long enough not to be a busy loop.
            message = f"{running} requests of this key are running, the most allowed; wait for one to end"
            raise ServiceError(429, message, retry_after=1.0)
        if self._requests_per_minute:
            self._take(key, self._requests_per_minute / 60)
        self._running[key] += 1
        try:
            yield
        finally:
            self._running[key] -= 1

    def _take(self, key: str, per_second: float) -> None:
        """Take one request from a key's bucket, which fills steadily up to the burst. Raises ServiceError 429."""
        now = self._clock()
        level, since = self._buckets.get(key, (float(self._burst), now))
        level = min(level + (now - since) * per_second, float(self._burst))
        # A caller who waited exactly as long as `retry-after` demands must not be refused for a rounded sum.
        if level < 1 - _ROUNDING:
            wait = (1 - level) / per_second
            allowance = f"{per_second * 60:g} a minute, {self._burst} of them at once"
            message = f"too many requests with this key ({allowance}); try again in {wait:.1f} s"
            raise ServiceError(429, message, retry_after=wait)
        self._buckets[key] = level - 1, now
