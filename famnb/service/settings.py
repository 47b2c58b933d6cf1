"""The options of the service, declared once for `run`, `serve` and the command line, and which hosts are this machine.

A page on the internet may point a name of its own at 127.0.0.1 (DNS rebinding): the browser then lets the page talk to
a service that only this machine can reach. Its requests still carry the page's name in the header `Host`, by which
`names_this_machine` tells them.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from famnb.errors import CredentialError, InvalidRequest
from famnb.validation import check_number

PROFILES = ("", "openresponses")
"""Specifications that the service can follow beyond the API document; empty for none."""
LOG_FORMATS = ("text", "json")
"""`text` has warnings alone, `json` a line for each request as well."""
# 16 letters and digits are some 80 bits, which nobody guesses over a network.
SAFE_KEY_LENGTH = 16
"""How many characters a key should have where others can reach the service."""


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
    """The API key that callers must send, or several; a random one if neither this nor `keys_file` has one."""
    keys_file: Path | str = ""
    """A file with further keys, one a line; empty lines and those that begin with `#` are ignored."""
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
    allow_host: str | Sequence[str] = ()
    """Names beside this machine's own that callers of a service on loopback may use, such as a proxy's."""
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
    log_format: str = "text"
    """How standard error is written: one of `LOG_FORMATS`."""
    metrics_open: bool = False
    """Whether `/metrics` can be read without a key."""

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
        if self.log_format not in LOG_FORMATS:
            raise InvalidRequest(f"log_format: expected one of {', '.join(LOG_FORMATS)}, got {self.log_format!r}")
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
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def takes_faults(self) -> bool:
        """Whether a request may ask for a fault with a header."""
        return self.allow_faults or (self.is_local and self.is_simulation)

    @property
    def host_names(self) -> frozenset[str]:
        """The names of `allow_host`, in lower case."""
        names = [self.allow_host] if isinstance(self.allow_host, str) else self.allow_host
        return frozenset(name.lower() for name in names)

    def keys(self) -> tuple[str, ...]:
        """Return the keys given, each once; none if a random one is to be generated.

        Raises InvalidRequest if the file of keys cannot be read, or holds none.
        """
        keys = () if self.key is None else (self.key,) if isinstance(self.key, str) else tuple(self.key)
        return tuple(dict.fromkeys((*keys, *(_read_keys(Path(self.keys_file)) if self.keys_file else ()))))

    def warnings(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return what is dangerous about a service with these keys that others can reach, a sentence each."""
        if self.is_local:
            return ()
        short = sum(len(key) < SAFE_KEY_LENGTH for key in keys)
        dangers = {
            f"{self.host} can be reached from other machines, over plain HTTP: keys and texts can be read on the way; "
            "put a proxy with TLS in front, or listen at 127.0.0.1": True,
            f"{short} of {len(keys)} keys are shorter than {SAFE_KEY_LENGTH} characters and can be guessed; "
            "use longer ones": bool(short),
            "every caller may ask for faults with a header (--allow-faults)": self.allow_faults,
        }
        return tuple(danger for danger, applies in dangers.items() if applies)


def _read_keys(path: Path) -> tuple[str, ...]:
    """Return the keys in a file. Raises InvalidRequest."""
    try:
        lines = [line.strip() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InvalidRequest(f"keys_file: {path} cannot be read ({reason}); name a text with a key a line") from None
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise InvalidRequest(f"keys_file: {path} holds no key; write one a line, or leave the option out")
    return keys


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


# A caller sends the same header with every request; few, since one may have tens of thousands of letters.
@functools.lru_cache(64)
def names_this_machine(host_header: str) -> bool:
    """Whether the value of a `Host` header can only mean this machine, or one on its own network."""
    name = host_header.strip()
    host = name.partition("]")[0] + "]" if name.startswith("[") else name.rpartition(":")[0] or name
    # No name without a dot can be a page's: there is no such domain on the internet. Containers know each other so.
    return is_loopback(host) or not set(host) & {".", ":"}
