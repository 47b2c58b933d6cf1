"""Reads error bodies and retry hints of any shape into famnb's errors. `client.retry` decides what is retried."""

from __future__ import annotations

import contextlib
import http
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from famnb.errors import APIStatusError, status_error
from famnb.events import Ended, Fault
from famnb.formatting import shorten
from famnb.wire import lenient_json
from famnb.wire.lenient_json import scalar_text

_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_LIMIT = re.compile(r"(?:x|anthropic)-ratelimit-(.+)")
"""The headers of the service's limits."""
# A body may be a whole page of HTML, and its message is shown in a traceback.
_MAX_MESSAGE = 500
"""The longest message, in characters."""
# The patterns above would take long for megabytes, and a page says what it has to say at its beginning.
_MAX_TEXT = 100_000
"""How much of a body that is not JSON is read, in bytes."""


def read(status: int, headers: Mapping[str, str], body: bytes) -> APIStatusError:
    """Return the error for a response with an error status, with the best message that its body offers."""
    try:
        decoded: Any = lenient_json.decode(body)
    except ValueError:
        decoded = body[:_MAX_TEXT].decode(errors="replace")
    fault = parse_fault(decoded)
    fields = {name.lower(): value for name, value in headers.items()}
    phrase = next((known.phrase for known in http.HTTPStatus if known == status), "")
    silence = f"{phrase} (the response says no more)" if phrase else "the response says no more"
    return status_error(status)(
        fault.message or silence,
        status=status,
        type=fault.type,
        code=fault.code,
        param=fault.param,
        # Vendors use the one name or the other.
        request_id=fields.get("x-request-id") or fields.get("request-id"),
        retry_after=parse_retry_after(fields),
        limits={match[1]: value for name, value in fields.items() if (match := _LIMIT.fullmatch(name))},
        body=decoded,
    )


def parse_fault(value: Any) -> Fault:
    """Return the fault in a decoded error body of any shape; its message is empty if the body has none.

    Reads `{error: {…}}`, `{error: {type: "error", error: {…}}}`, `{type: "error", error: {…}}`, `{error: "…"}`,
    `{detail: …}`, `{message: …}`, a list of errors, plain text and HTML.
    """
    match value:
        case {"error": str(message)} if message:
            return _read_fault({**value, "message": message})
        # The inner object is the error, the outer one only wraps it.
        case {"error": {} | [_, *_] as inner} | {"errors": [_, *_] as inner} | [inner, *_]:
            return parse_fault(inner)
        case dict():
            return _read_fault(value)
        case str():
            # The title of an HTML page holds what went wrong ("502 Bad Gateway"), the rest mostly the server's name.
            title = _TITLE.search(value)
            words = (title.group(1) if title else _TAGS.sub(" ", value)).split()
            return Fault(shorten(" ".join(words), _MAX_MESSAGE))
        case _:
            return Fault("")


def is_failure(value: dict[str, Any]) -> bool:
    """Whether a JSON object of a stream, or a whole body, reports a failure in spite of its success status."""
    return bool(value.get("error")) or value.get("type") == "error" or value.get("object") == "error"


def read_failure(value: Any) -> Ended:
    """Return the end of a reply that failed, from an object of which `is_failure` is true."""
    fault = parse_fault(value)
    if not fault.message:
        fault = Fault(
            f"the service reported a failure: {lenient_json.excerpt(value)}", fault.type, fault.code, fault.param
        )
    return Ended(finish_reason="error", status="failed", fault=fault)


def _read_fault(value: dict[str, Any]) -> Fault:
    # `detail` and `msg` are FastAPI's, `title` is that of problem details (RFC 9457).
    names = ("message", "detail", "msg", "title")
    message = next((text for name in names if (text := _message_text(value.get(name)))), "")
    # A router names the vendor behind it, and repeats what that said.
    match value.get("metadata"):
        case {"raw": cause, **metadata} if cause:
            if isinstance(cause, str):
                with contextlib.suppress(ValueError):  # else it is words
                    cause = lenient_json.decode(cause.encode())
            words = parse_fault(cause).message
            vendor = scalar_text(metadata.get("provider_name"))
            message = f"{message} ({f'{vendor}: ' if vendor else ''}{words})" if words else message
    type_ = scalar_text(value.get("type"))
    return Fault(
        shorten(message, _MAX_MESSAGE),
        # `error` only marks the object as an error; it is not a type of error.
        type_ if type_ and type_ != "error" else None,
        scalar_text(value.get("code")) or None,
        scalar_text(value.get("param")) or None,
    )


def _message_text(value: Any) -> str:
    """Return the text of a message, or of a report of validation errors."""
    match value:
        case str():
            return value.strip()
        case list():
            return "; ".join(text for text in map(_message_text, value) if text)
        case {"msg": str(message), "loc": [*location]}:
            return f"{'.'.join(map(str, location))}: {message}"
        case dict():
            return parse_fault(value).message
        case _:
            return ""


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait before a retry; None if no hint is finite and positive.

    Reads `retry-after-ms`, then `Retry-After` in seconds, then `Retry-After` as a date.
    """
    # Milliseconds first: where both are sent, they are the finer hint.
    fields = {name.lower(): value for name, value in headers.items()}
    hint = fields.get("retry-after", "")
    for value, divisor in ((fields.get("retry-after-ms", ""), 1000), (hint, 1)):
        with contextlib.suppress(ValueError):
            # A header that is sent twice arrives as `2, 5`; the longer wait satisfies both.
            seconds = max(map(float, value.split(","))) / divisor
            if 0 < seconds < math.inf:
                return seconds
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        # Against the response's own date, since the clock of this machine may be wrong.
        seconds = (_parse_date(hint) - _parse_date(fields.get("date", ""))).total_seconds()
        return seconds if seconds > 0 else None
    return None


def _parse_date(value: str) -> datetime:
    """Parse an HTTP date; those without a zone, as `asctime` writes them, are in UTC too (RFC 9110, 5.6.7)."""
    moment = parsedate_to_datetime(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
