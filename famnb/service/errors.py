"""`ServiceError`, which the service answers with an error status, and whose format it has at a path."""

from __future__ import annotations

import math
from collections.abc import Mapping

from famnb.endpoints import ENDPOINTS, FALLBACK, Endpoint
from famnb.events import Fault


class ServiceError(Exception):
    """Raised inside the service to answer a request with an error status.

    Not to be confused with `famnb.errors.ServerError`, which the client raises when a server answered 5xx.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        """`retry_after` is in seconds."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        """The request field at fault."""
        self.headers = dict(headers or {})
        """Headers of the error response, such as `retry-after`."""
        if retry_after is not None:
            # `retry-after` knows whole seconds only and is rounded up; `retry-after-ms` is what vendors' SDKs prefer.
            self.headers["retry-after"] = str(math.ceil(retry_after))
            self.headers["retry-after-ms"] = str(math.ceil(retry_after * 1000))

    def to_fault(self, endpoint: Endpoint) -> Fault:
        """Return the error with the type and code that the endpoint has for it."""
        type_ = endpoint.conventions.error_type(self.status)
        return Fault(self.message, type_, self.code or _CODES.get(self.status, type_), self.param)


_CODES = {
    401: "invalid_api_key",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
"""The code of a status where the error has none of its own; for other statuses the code is the type."""


def endpoint_for_path(path: str) -> Endpoint:
    """Return the endpoint whose error format is used at a path: `FALLBACK` if the path belongs to none."""
    for endpoint in ENDPOINTS.values():
        if path == endpoint.path or path.startswith(f"{endpoint.path}/"):
            return endpoint
    return FALLBACK
