"""Which proxy, if any, stands before a host: the environment's, and none before this machine itself."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from famnb.errors import ConnectError


def proxy_for(origin: str) -> str | None:
    """The proxy the environment names for an origin; never one for this machine itself.

    Raises ConnectError, which does not repeat its name and password, for one that cannot be used.
    """
    url = httpx.URL(origin)
    if is_loopback(url.host) or proxy_bypass(url.netloc.decode()):
        return None
    proxies = getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named:
        return None
    # As other programs do, a proxy without a scheme is taken for an ordinary one.
    proxy = named if "://" in named else f"http://{named}"
    try:
        parts = urlsplit(proxy)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise ConnectError(
            f"the environment's proxy for {url.host} cannot be used: expected an address such as "
            f"http://proxy.example.com:3128 in {url.scheme}_proxy or all_proxy; or name the host in no_proxy"
        )
    return proxy


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    name = host.strip("[]").lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name in ("localhost", "localhost.localdomain") or name.endswith(".localhost") or _is_short_loopback(name)
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _is_short_loopback(name: str) -> bool:
    """Whether a name is one of the short forms of an address, such as 127.1, that connecting takes for loopback."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name)).is_loopback
    except (OSError, ValueError):
        return False
