"""Where the endpoints are: the two base addresses, checked before anything is sent there."""

from __future__ import annotations

import dataclasses
import os
from typing import Self
from urllib.parse import urlsplit

from famnb.endpoints import Endpoint
from famnb.errors import InvalidRequest

BASE = "FAM_BASE_URL"
ALT = "FAM_ALT_BASE_URL"


@dataclasses.dataclass(frozen=True, slots=True)
class Addresses:
    """The two base addresses of the API."""

    base_url: str
    alt_base_url: str

    @classmethod
    def found(cls, base_url: str | None, alt_base_url: str | None) -> Self:
        """The given addresses, or the environment's; one alone serves for both.

        With a given `base_url` the environment's second address does not count: the two belong together.
        """
        if base_url is None:
            base_url = os.getenv(BASE) or None
            alt_base_url = alt_base_url or os.getenv(ALT) or None
        base, alt = base_url or alt_base_url, alt_base_url or base_url
        if base is None or alt is None:
            raise InvalidRequest(f"base_url: unset; pass base_url= (and alt_base_url=) or set {BASE} (and {ALT})")
        return cls(checked("base_url", base), checked("alt_base_url", alt))

    def url(self, endpoint: Endpoint) -> str:
        """Where an endpoint's requests go."""
        return (self.alt_base_url if endpoint.alt else self.base_url) + endpoint.path


def checked(name: str, address: str) -> str:
    """An address without its `/v1`; raises InvalidRequest, naming the setting it came from."""
    parts = urlsplit(address)
    try:
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if parts.username or parts.password:
        raise InvalidRequest(f"{name}: an address holds no user name or password; pass the key as api_key=")
    if not sound or parts.query or parts.fragment or any(map(str.isspace, address)):
        raise InvalidRequest(f"{name}: expected an address such as https://api.example.com, got {address!r}")
    # The endpoints' paths begin with /v1, which many services' own examples count as part of the address.
    return address.rstrip("/").removesuffix("/v1").rstrip("/")
