"""The settings of a client: the two base addresses, deadlines, and the clock."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import ipaddress
import math
import os
import random
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

from famnb.endpoints import Endpoint
from famnb.errors import InvalidArgument, InvalidRequest
from famnb.profiles.profile import Profile
from famnb.validation import check_number

ALT_VARIABLE = "FAM_ALT_BASE_URL"


@dataclasses.dataclass(frozen=True, slots=True)
class Addresses:
    """The two base addresses of the API."""

    base_url: str
    alt_base_url: str

    @classmethod
    def from_arguments(cls, base_url: str | None, alt_base_url: str | None, profile: Profile) -> Self:
        """The given addresses, the environment's, or the profile's; one alone serves for both.

        With a given `base_url` the environment's second address does not count: the two belong together.
        """
        serves_alt = any(endpoint.alt for endpoint in profile.endpoints.values())
        if alt_base_url is not None and not serves_alt:
            raise InvalidRequest(f"alt_base_url: {profile.name} has one address; pass it as base_url")
        if base_url is None:
            addresses = (_read_address(variable, profile.default_port) for variable in profile.url_variables)
            base_url = next(filter(None, addresses), profile.base_url)
            if serves_alt:
                alt_base_url = alt_base_url or os.getenv(ALT_VARIABLE) or None
        base, alt = base_url or alt_base_url, alt_base_url or base_url
        if base is None or alt is None:
            arguments = "base_url= (and alt_base_url=)" if serves_alt else "base_url="
            variables = [*profile.url_variables[:1], *([f"(and {ALT_VARIABLE})"] if serves_alt else [])]
            setting = f" or set {' '.join(variables)}" if variables else ""
            raise InvalidRequest(f"base_url: unset; pass {arguments}{setting}")
        return cls(check_address("base_url", base), check_address("alt_base_url", alt))

    def url(self, endpoint: Endpoint) -> str:
        """Where an endpoint's requests go."""
        base = self.alt_base_url if endpoint.alt else self.base_url
        # A vendor's own examples may count the beginning of the path as part of the address.
        shared = base[base.rfind("/") :]
        if endpoint.path.startswith(f"{shared}/"):
            return base.removesuffix(shared) + endpoint.path
        return base + (endpoint.path.removeprefix("/v1") if _COMPLETE.search(base) else endpoint.path)


# Such as https://api.z.ai/api/paas/v4, and those of Google.
_COMPLETE = re.compile(r"/(v\d+\w*|v\d+\w+/openai|endpoints/openapi)$")
"""The end of an address after which the document's /v1 would be one version too many."""


def strip_path(url: str, endpoint: Endpoint) -> str:
    """Return the base address in the address of an endpoint's requests."""
    return url.removesuffix(endpoint.path).removesuffix(endpoint.path.removeprefix("/v1"))


def _read_address(variable: str, default_port: int | None) -> str | None:
    """The address in a variable of the environment; some hold one without its scheme, its host or its port."""
    address = (os.getenv(variable) or "").strip(" \"'")
    if not address or "://" in address:
        return address or None
    if default_port is None:
        return f"http://{address}"
    server, slash, path = address.partition("/")
    match = re.fullmatch(r"(\[.*\]|[^:]*)(?::(\d*))?", server)
    # What does not match is an IPv6 address without its brackets.
    host, port = (match[1], match[2]) if match else (f"[{server}]", "")
    return f"http://{host or '127.0.0.1'}:{port or default_port}{slash}{path}"


def check_address(name: str, address: object) -> str:
    """Return an address without its `/v1`. Raises InvalidRequest, naming the setting, if it is not an address."""
    if not isinstance(address, str):
        # `client.base_url` is a method, since an endpoint decides which of two addresses it is.
        description = "a method; call it, as in client.base_url('chat')" if callable(address) else f"{address!r:.80}"
        raise InvalidArgument(f"{name}: expected an address such as https://api.example.com, got {description}")
    parts = urlsplit(address)
    try:
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # `port` raises it if it is not a number, or beyond 65535
        is_complete = False
    # First, and without the address in its message, which would show the password.
    if parts.username or parts.password:
        raise InvalidRequest(f"{name}: an address holds no user name or password; pass the key as api_key=")
    if not is_complete or parts.query or parts.fragment or any(map(str.isspace, address)):
        raise InvalidRequest(f"{name}: expected an address such as https://api.example.com, got {address!r}")
    # The endpoints' paths begin with /v1, which many services' own examples count as part of the address.
    return address.rstrip("/").removesuffix("/v1").rstrip("/")


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine itself."""
    name = host.strip("[]").lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name in ("localhost", "localhost.localdomain") or name.endswith(".localhost")
    # `::ffff:127.0.0.1` and `0.0.0.0` lead to this machine too, which `is_loopback` alone does not say.
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


@dataclasses.dataclass(frozen=True, slots=True)
class Deadlines:
    """Limits in seconds on the monotonic clock; `math.inf` waits for ever.

        famnb.Client(deadlines=famnb.Deadlines(connect=5, first_event=120, idle=60, total=600))

    `connect` is to open a connection, `pool` to get one of the client's while all are in use, `first_event` from
    sending to the first event of a stream, `idle` between two events, `total` the whole call with every attempt and
    pause. Each has an error of its own, a DeadlineError, whose `reply` is what had arrived.
    """

    connect: float = 5.0
    """To open a connection, name look-up and TLS included; then it is tried again, see Retries."""
    # No limit of its own: of 130 long calls at once, 30 wait for others to end, as they should.
    pool: float = math.inf
    """To get one of the client's connections while all are in use; the wait counts against `total` in any case."""
    first_event: float = 120.0
    """From sending to the first event of a stream; a whole reply has no events and is under `total` alone."""
    idle: float = 60.0
    """Between two events of a stream; a comment counts as a sign of life, a part of an event does not."""
    total: float = 600.0
    """The whole call: waiting for a connection, every attempt and every pause between attempts."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name, seconds = f"deadlines: {field.name}", getattr(self, field.name)
            check_number(name, seconds, above=0, finite=False, expected="a number of seconds above 0")

    def finite(self, name: str) -> float | None:
        """A limit as httpx takes it, where None is no limit."""
        seconds = float(getattr(self, name))
        return seconds if math.isfinite(seconds) else None


NO_DEADLINES = Deadlines(math.inf, math.inf, math.inf, math.inf, math.inf)
"""No limit at all: for a replay and for waiting in a batch, which only the caller ends."""


_utc_now = functools.partial(datetime.now, UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance as a client uses them; tests replace them."""

    # Not `monotonic_ns`, which on Windows ticks every 15.6 ms before Python 3.13; on Linux both are the same clock.
    monotonic_ns: Callable[[], int] = time.perf_counter_ns
    """Nanoseconds, for what is measured."""
    now: Callable[[], datetime] = _utc_now
    """When a call starts."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Pauses between attempts, in seconds."""
    uniform: Callable[[float, float], float] = random.uniform
    """A number between two, which spreads the pauses of many clients."""
