"""Proxies: which one the environment names for an address, and how a tunnel through one is asked for."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
from typing import Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from famnb.client.config import is_this_machine
from famnb.errors import ConnectError


@dataclasses.dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy."""

    host: str
    port: int
    is_tls: bool
    """Whether the way to the proxy itself is encrypted."""
    headers: tuple[tuple[bytes, bytes], ...] = dataclasses.field(default=(), repr=False)
    """The headers that are for the proxy: its user name and password, if the address has them."""

    @classmethod
    def parse(cls, address: str) -> Self:
        """Return the proxy of an address, which without a scheme is an ordinary one. Raises ValueError."""
        # As other programs take it.
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError("expected an address such as http://proxy.example.com:3128")
        is_tls = parts.scheme == "https"
        headers: tuple[tuple[bytes, bytes], ...] = ()
        if parts.username is not None:
            credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers = ((b"Proxy-Authorization", b"Basic " + base64.b64encode(credentials.encode())),)
        return cls(parts.hostname, parts.port or (443 if is_tls else 80), is_tls, headers)


def proxy_for(origin: str) -> Proxy | None:
    """The proxy that the environment names for an origin; None for this machine itself, and where none is named.

    Raises ConnectError, which does not repeat the proxy's name and password, for one that cannot be used.
    """
    parts = urlsplit(origin)
    host = parts.hostname or ""
    # The second for an IPv6 address, which `no_proxy` may name without brackets.
    if is_this_machine(host) or proxy_bypass(parts.netloc) or proxy_bypass(host):
        return None
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address:
        return None
    with contextlib.suppress(ValueError):
        return Proxy.parse(address)
    # Outside a handler: a chained error would repeat the address.
    raise ConnectError(
        f"the environment's proxy for {host} cannot be used: expected an address such as "
        f"http://proxy.example.com:3128 in {parts.scheme}_proxy or all_proxy; or name the host in no_proxy"
    )
