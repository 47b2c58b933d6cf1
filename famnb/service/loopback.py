"""Which addresses are this machine's own, and which names a caller may know it by.

A page on the internet may point a name of its own at 127.0.0.1 (DNS rebinding): the browser then lets the page talk to
a service that only this machine can reach. Its requests still carry the page's name in the header `Host`.
"""

from __future__ import annotations

import functools
import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a service that listens at `host` can be reached from this machine only."""
    name = host.lower().rstrip(".")
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


# Callers say the same with every request; few, since a header may have tens of thousands of letters.
@functools.lru_cache(64)
def names_this_machine(host_header: str) -> bool:
    """Whether the value of a `Host` header can only mean this machine, or one on its own network."""
    name = host_header.strip()
    host = name.partition("]")[0] + "]" if name.startswith("[") else name.rpartition(":")[0] or name
    # No name without a dot can be a page's: there is no such domain on the internet. Containers know each other so.
    return is_loopback(host) or not set(host) & {".", ":"}
