"""What became of each request (`RequestRecord`), and how the log of the service is written.

    {"time": …, "level": "info", "message": "request", "id": …, "key": …, "method": …, "endpoint": …, "status": …, …}

Neither a key nor a text of a conversation is ever in it.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import logging
from typing import Any

from famnb.events import Usage
from famnb.service.errors import endpoint_for_path
from famnb.wire import lenient_json

RECORD = "record"
"""The name of a request's `RequestRecord` in the state of its ASGI scope."""
DISCONNECTED = "disconnected"
"""The error of a request whose caller left."""
_requests = logging.getLogger("famnb.service.requests")


@dataclasses.dataclass(slots=True)
class RequestRecord:
    """One request while it is answered; times are in seconds by one clock."""

    id: str
    """The value of `x-request-id`."""
    method: str
    endpoint: str
    """The endpoint's name, or that of another path."""
    started: float
    status: int | None = None
    """None if the caller left before there was one."""
    key: str = ""
    """The API key; empty if it was none of the service's."""
    model: str = ""
    streams: bool = False
    first_token: float | None = None
    ended: float = 0.0
    usage: Usage = dataclasses.field(default_factory=Usage)
    ignored: tuple[str, ...] = ()
    """The paths of its fields that have no effect."""
    error: str | None = None
    """The code of the error that ended it, `DISCONNECTED` if its caller left."""

    @property
    def ttft_s(self) -> float | None:
        """Seconds to the first token, as the service sent it; None of a request without one."""
        return None if self.first_token is None else self.first_token - self.started

    @property
    def duration_s(self) -> float:
        """Seconds to the end of the answer."""
        return self.ended - self.started

    def log(self) -> None:
        """Write one line about the request, if the log has such lines."""
        if not _requests.isEnabledFor(logging.INFO):
            return
        fields = {
            "id": self.id,
            "key": hash_key(self.key) if self.key else None,
            "method": self.method,
            "endpoint": self.endpoint,
            "model": self.model or None,
            "stream": self.streams,
            "status": self.status,
            "error": self.error,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "ttft_s": None if self.ttft_s is None else round(self.ttft_s, 6),
            "duration_s": round(self.duration_s, 6),
        }
        _requests.info("request", extra={"fields": fields})


_PATH_NAMES = {"/health": "health", "/metrics": "metrics", "/openapi.json": "openapi"}


@functools.lru_cache(1000)
def name_path(path: str) -> str:
    """Return what a path is called in log and metrics: the endpoint's name, or one of a few others."""
    endpoint = endpoint_for_path(path)
    if path.startswith(endpoint.path):
        return endpoint.name
    return "models" if path.startswith("/v1/models") else _PATH_NAMES.get(path, "other")


def hash_key(key: str) -> str:
    """Return what stands for a key in the log: the first 12 digits of its SHA-256, as `sha256sum` writes them."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]


class JSONFormatter(logging.Formatter):
    """Writes a record of the log as one JSON object, with its `fields` if it has some."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return lenient_json.encode(line).decode()


def configure_log(log_format: str) -> None:
    """Have all of the log written to standard error; as JSON with a line for each request, else warnings alone."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONFormatter() if log_format == "json" else logging.Formatter("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    _requests.setLevel(logging.INFO if log_format == "json" else logging.WARNING)
