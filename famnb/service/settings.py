"""The options of the service, declared once for `run`, `serve` and the command line."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from famnb.errors import CredentialError, InvalidRequest
from famnb.validation import check_number

PROFILES = ("", "openresponses")
"""Specifications that the service can follow beyond the API document; empty for none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the service runs."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 0
    """Port to listen on; 0 takes a free one."""
    alt_port: int | None = None
    """Port of the document's alternative address, 0 for a free one; None serves all endpoints on one port."""
    key: str | Sequence[str] | None = dataclasses.field(default=None, repr=False)
    """The API key that callers must send, or several; a random one by default."""
    seed: int = 0
    """Of the simulated engine: another seed gives other answers."""
    time_scale: float = 1.0
    """The factor of all simulated waits: 1 is lifelike, 0 does not wait at all."""
    upstream: str = ""
    """The address of a server with `POST /v1/chat/completions` that answers in place of the simulated engine."""
    upstream_key: str = dataclasses.field(default="", repr=False)
    """The name of the environment variable that holds the upstream's key; empty for an upstream without one."""
    upstream_model: str | Sequence[str] = ()
    """The upstream's name of a model: `ours=theirs`, or `theirs` for all other models; one or several."""
    model: str | Path | Sequence[str | Path] = ()
    """Models on this machine that answer in place of the simulated engine: known names, or GGUF files."""
    ctx: int | None = None
    """How many tokens a call of these may have, prompt and answer together; None for 8,192, or what the model reads."""
    threads: int | None = None
    """How many threads each of these computes with; None for all cores but one."""
    parallel: int = 2
    """How many calls each of these answers at once; others wait."""
    strict: bool = False
    """Whether unknown fields are answered with 400 rather than ignored."""
    compat: bool | None = None
    """Whether the vendors' own fields and paths are understood; None understands them before an upstream only."""
    profile: str = ""
    """`openresponses` adds to the responses endpoint what the Open Responses specification wants; empty does not."""
    fault: str = ""
    """Faults of every generation, in the format of the `x-famnb-fault` header."""
    allow_faults: bool = False
    """Whether that header has an effect beyond loopback and before an upstream too."""
    store: Path | str = ""
    """The file that stores responses, created if there is none; empty stores them in memory."""
    requests_per_minute: float | None = None
    """How many requests a key may make each minute; None does not limit."""
    burst: int | None = None
    """How many of them a key may make at once; None allows a whole minute's."""
    concurrency: int | None = None
    """How many requests of a key may run at the same time; None does not limit."""
    body_limit: int = 20_000_000
    """The largest body that is read, in bytes; a larger one is answered with 413."""
    upload_timeout: float = 30.0
    """Seconds within which the body of a request must have arrived."""

    def __post_init__(self) -> None:
        for name in ("time_scale", "upload_timeout"):
            check_number(name, getattr(self, name), minimum=0, expected="a number of 0 or more")
        for name in ("requests_per_minute", "burst", "concurrency", "body_limit", "ctx", "threads", "parallel"):
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, above=0, expected="a number above 0")
        if self.burst is not None and self.requests_per_minute is None:
            raise InvalidRequest("burst: given without requests_per_minute, of which it is a part; set both or neither")
        if self.profile not in PROFILES:
            raise InvalidRequest(f"profile: expected one of {', '.join(map(repr, PROFILES))}, got {self.profile!r}")
        if not self.upstream and (self.upstream_key or self.upstream_model):
            raise InvalidRequest("upstream: unset, but its key or model is given; set its address")
        if self.upstream and self.models:
            raise InvalidRequest("model: given beside upstream, where only one of them can answer; leave one out")
        # The value is not shown: a key is easily given in place of its variable's name.
        if self.upstream_key and not os.getenv(self.upstream_key):
            raise CredentialError(
                "upstream_key: expected the name of an environment variable that holds the upstream's key; "
                "no variable has the given name, which is not shown here, in case it is the key itself"
            )
        for key in self.keys():
            if not key.isascii() or not key.isprintable() or " " in key or not key:
                raise CredentialError("the service's key must be one word of printable ASCII; it is not shown here")

    @property
    def is_compatible(self) -> bool:
        """Whether the vendors' own fields and paths are understood."""
        return not self.is_simulation if self.compat is None else self.compat

    @property
    def models(self) -> tuple[str | Path, ...]:
        """The models on this machine that answer; none if an upstream or the simulation does."""
        return (self.model,) if isinstance(self.model, str | Path) else tuple(self.model)

    @property
    def is_simulation(self) -> bool:
        """Whether the simulated engine answers."""
        return not self.upstream and not self.models

    @property
    def takes_faults(self) -> bool:
        """Whether a request may ask for a fault with a header."""
        return self.allow_faults or (is_loopback(self.host) and self.is_simulation)

    def keys(self) -> tuple[str, ...]:
        """Return the keys given, each once; none if a random one is to be generated."""
        return tuple(dict.fromkeys([self.key] if isinstance(self.key, str) else self.key or ()))


def new_key() -> str:
    """Return a fresh random key."""
    return f"famnb-{secrets.token_urlsafe(24)}"


def is_loopback(host: str) -> bool:
    """Whether a service that listens at `host` can be reached from this machine only."""
    name = host.lower().rstrip(".")
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
