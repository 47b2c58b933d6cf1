"""A request that cannot be answered, and the words each endpoint has for it; where it is raised is left to others."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from famnb.endpoints import ENDPOINTS, FALLBACK, Endpoint
from famnb.events import Fault
from famnb.wire import lenient_json


class ServiceError(Exception):
    """Ends a request with an error status; `fault` says it in an endpoint's own words."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        """The request field at fault."""
        self.headers = dict(headers or {})
        """Headers of the error response, such as `retry-after`."""

    def fault(self, endpoint: Endpoint) -> Fault:
        """The error as that endpoint names it."""
        type_ = endpoint.conventions.error_type(self.status)
        return Fault(self.message, type_, self.code or _CODES.get(self.status, type_), self.param)


_CODES = {
    401: "invalid_api_key",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "request_too_large",
    429: "rate_limit_exceeded",
    431: "headers_too_large",
}
"""The code of a status, where the refusal names none; for other statuses it is the type."""


def endpoint_for_path(path: str) -> Endpoint:
    """The endpoint whose error shape answers at a path; `FALLBACK` for a path that belongs to none."""
    for endpoint in ENDPOINTS.values():
        if path == endpoint.path or path.startswith(f"{endpoint.path}/"):
            return endpoint
    return FALLBACK


def encode_error(path: str, refusal: ServiceError) -> bytes:
    """The error body for a refusal at a path."""
    endpoint = endpoint_for_path(path)
    return lenient_json.encode(endpoint.dialect.fault(refusal.fault(endpoint)))


def new_request_id() -> bytes:
    """What tells an answer from all others, for the header `x-request-id`."""
    return f"req_{uuid.uuid4().hex}".encode()
