"""The client, or only the ledger, of a tool that was made without one."""

from __future__ import annotations

import importlib
from typing import Any

from famnb.client.client import BaseClient
from famnb.record import Ledger


def default_client() -> BaseClient:
    """Return the client that `famnb.connect()` has made last, or one that it makes now."""
    client: BaseClient = _api().default_client()
    return client


def connected_ledger() -> Ledger:
    """Return the ledger of the client that `famnb.connect()` has made last, or the default one.

    Who only looks at calls needs no service, so none is started.
    """
    # Not by `frame.filters.ledger_of`, which would load pandas for a form.
    client = _api().connected_client()
    ledger: Ledger = Ledger() if client is None else client.ledger
    return ledger


def _api() -> Any:
    # By its name, since `api` stands above the widgets, and on use: a tool that is given a client needs none of it.
    return importlib.import_module("famnb.api")
