"""What became of each request: `RequestRecord`."""

from __future__ import annotations

import dataclasses

from famnb.events import Usage
from famnb.service.errors import endpoint_for_path

RECORD = "record"
"""The name of a request's `RequestRecord` in the state of its ASGI scope."""
DISCONNECTED = "disconnected"
"""The error of a request whose caller left."""


@dataclasses.dataclass(slots=True)
class RequestRecord:
    """One request while it is answered; times are in seconds by one clock."""

    endpoint: str
    """The endpoint's name, or that of another path."""
    started: float
    status: int | None = None
    """None if the caller left before there was one."""
    key: str = ""
    """The API key; empty if it was none of the service's."""
    streams: bool = False
    first_token: float | None = None
    ended: float = 0.0
    usage: Usage = dataclasses.field(default_factory=Usage)
    ignored: tuple[str, ...] = ()
    """The paths of its fields that have no effect."""
    error: str | None = None
    """The code of the error that ended it, `DISCONNECTED` if its caller left."""


_PATH_NAMES = {"/health": "health", "/metrics": "metrics", "/openapi.json": "openapi"}


def name_path(path: str) -> str:
    """Return what a path is called in the metrics: the endpoint's name, or one of a few others."""
    endpoint = endpoint_for_path(path)
    if path.startswith(endpoint.path):
        return endpoint.name
    return "models" if path.startswith("/v1/models") else _PATH_NAMES.get(path, "other")
