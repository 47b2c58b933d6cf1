"""The client, or only the ledger, of a tool that was made without one."""

from __future__ import annotations

import importlib
from typing import Any

from famnb.client.client import BlockingClient
from famnb.frame.filters import ledger_of
from famnb.record import Ledger


def default_client() -> BlockingClient:
    """Return the client that `famnb.connect()` has made last, or one that it makes now."""
    client: BlockingClient = _api().default_client()
    return client


def connected_ledger() -> Ledger:
    """Return the ledger of the client that `famnb.connect()` has made last, or the default one.

    Who only looks at calls needs no service, so none is started.
    """
    return ledger_of(_api().connected_client())


def _api() -> Any:
    # By its name, since `api` stands above the widgets, and on use: a tool that is given a client needs none of it.
    return importlib.import_module("famnb.api")
