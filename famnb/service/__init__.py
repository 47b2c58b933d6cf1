"""The local service: all four endpoints, answered by a simulated engine or an upstream; `serve` starts it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from famnb.service.process import Server, serve

if TYPE_CHECKING:
    from famnb.service.server import run as run

__all__ = ["Server", "run", "serve"]


def __getattr__(name: str) -> Any:
    # A process that only starts the service should not have to load a web server.
    if name != "run":
        raise AttributeError(f"famnb.service has no {name!r}; it has {', '.join(__all__)}")
    return importlib.import_module("famnb.service.server").run
