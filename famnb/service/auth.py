"""Authentication by API key, and the rate limits of each key."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hmac
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol, Self, TypeAlias

from starlette.datastructures import Headers

from famnb.service.errors import ServiceError
from famnb.service.settings import Options

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


Bucket: TypeAlias = tuple[float, float]
"""The requests that a key has left, and when that was computed, in seconds."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """The limits of each key: a token bucket, and how many of its requests may run at once."""

    requests_per_minute: float | None = None
    burst: int | None = None
    """A whole minute's requests by default."""
    concurrency: int | None = None

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return the limits that a service's options set."""
        return cls(
            requests_per_minute=options.requests_per_minute, burst=options.burst, concurrency=options.concurrency
        )

    @property
    def are_set(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.requests_per_minute or self.concurrency)

    def check_running(self, running: int) -> None:
        """Raise ServiceError 429 if as many requests of a key are running as may."""
        if self.concurrency is not None and running >= self.concurrency:
            # When a running request ends is unknown; a second is long enough not to be a busy loop.
            raise _too_many_requests(
                f"{running} requests of this key are running, the most allowed; wait for one to end", 1.0
            )

    def take(self, bucket: Bucket | None, now: float) -> Bucket | None:
        """Return a key's bucket without one request; it fills steadily up to the burst. A new key has None.

        Raises ServiceError 429 if it is empty, with a `retry-after` after which it is not.
        """
        if not self.requests_per_minute:
            return None
        per_second, burst = self.requests_per_minute / 60, self.burst or max(1, int(self.requests_per_minute))
        level, since = bucket or (float(burst), now)
        level = min(level + (now - since) * per_second, float(burst))
        # A caller who waited exactly as long as `retry-after` said must not be refused for a rounded sum.
        if level < 1 - _ROUNDING:
            wait = (1 - level) / per_second
            allowed = f"{self.requests_per_minute:g} a minute, {burst} of them at once"
            raise _too_many_requests(f"too many requests with this key ({allowed}); try again in {wait:.1f} s", wait)
        return level - 1, now


class Limiter(Protocol):
    """Keeps the limits of each key."""

    def admit(self, key: str, /) -> contextlib.AbstractAsyncContextManager[None]:
        """Count one request of a key as running inside the `async with` block.

        Raises ServiceError 429 beyond a limit, with a `retry-after` after which the request will be admitted.
        """


class RateLimiter:
    """The limiter of a service of one process."""

    def __init__(self, limits: RateLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds."""
        self._limits = limits
        self._clock = clock
        # Neither of these grows without end: only the keys of the service get here, never a caller's invention.
        self._buckets: dict[str, Bucket] = {}
        self._running: collections.Counter[str] = collections.Counter()
        """For each API key the number of its requests that are being answered."""

    @contextlib.asynccontextmanager
    async def admit(self, key: str, /) -> AsyncIterator[None]:
        self._limits.check_running(self._running[key])
        if bucket := self._limits.take(self._buckets.get(key), self._clock()):
            self._buckets[key] = bucket
        self._running[key] += 1
        try:
            yield
        finally:
            self._running[key] -= 1


def _too_many_requests(message: str, wait: float) -> ServiceError:
    # `retry-after` knows whole seconds only and is rounded up; `retry-after-ms` is what the vendors' SDKs prefer.
    headers = {"retry-after": str(math.ceil(wait)), "retry-after-ms": str(math.ceil(wait * 1000))}
    return ServiceError(429, message, headers=headers)
