"""The client that `famnb.connect` has made last, for tools that are made without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from famnb.errors import InvalidArgument

if TYPE_CHECKING:
    from famnb.client.client import BaseClient

client: BaseClient | None = None
"""The client that `connect` has made last in this process; None before the first."""
# It knows of services and ledgers, which stand above the client; `famnb.api` registers it.
connect: Callable[[], BaseClient] | None = None
"""What makes a client with the default settings; None where `famnb.api` is not loaded."""


def default_client() -> BaseClient:
    """Return the client that `connect` has made last, or one that it makes now."""
    if client is not None:
        return client
    if connect is None:
        raise InvalidArgument("client: no client is connected yet; give one, or call famnb.connect() first")
    return connect()
