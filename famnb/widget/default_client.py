"""The client of a tool that was made without one."""

from __future__ import annotations

import importlib

from famnb.client.client import BlockingClient


def default_client() -> BlockingClient:
    """Return the client that `famnb.connect()` has made last, or one that it makes now."""
    # By its name, since `api` stands above the widgets, and on use: a tool that is given a client needs no service.
    client: BlockingClient = importlib.import_module("famnb.api").default_client()
    return client
