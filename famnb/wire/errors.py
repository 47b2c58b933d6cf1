"""Error bodies and retry hints of any shape, read into famnb's errors; whether to retry is the client's matter."""

from __future__ import annotations

import http
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from famnb.errors import APIStatusError, status_error
from famnb.events import Ended, Fault
from famnb.wire import lenient_json

_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_LIMIT = 500
"""The longest message, in characters."""
_READ = 100_000
"""As much of a body that is not JSON is looked at, in bytes."""


def read(status: int, headers: Mapping[str, str], body: bytes) -> APIStatusError:
    """The error that a response of an error status means, with the best message its body offers."""
    try:
        decoded: Any = lenient_json.decode(body)
    except ValueError:
        decoded = body[:_READ].decode(errors="replace")
    found = fault(decoded)
    fields = {name.lower(): value for name, value in headers.items()}
    return status_error(status)(
        found.message or _phrase(status),
        status=status,
        type=found.type,
        code=found.code,
        param=found.param,
        request_id=fields.get("x-request-id") or fields.get("request-id"),
        retry_after=retry_after(fields),
        body=decoded,
    )


def fault(value: Any) -> Fault:
    """The fault in a decoded error body of any shape; its message is empty where the body says nothing.

    Read: `{error: {…}}`, `{error: {type: "error", error: {…}}}`, `{type: "error", error: {…}}`, `{error: "…"}`,
    `{detail: …}`, `{message: …}`, a list of errors, plain text and HTML.
    """
    match value:
        case {"error": {} | [_, *_] as inner}:
            return fault(inner)
        case {"error": str(words)} if words:
            return _fault({**value, "message": words})
        case {"errors": [_, *_] as inner}:
            return fault(inner)
        case dict():
            return _fault(value)
        case [first, *_]:
            return fault(first)
        case str():
            return Fault(_shortened(_without_tags(value)))
        case _:
            return Fault("")


def is_failure(value: dict[str, Any]) -> bool:
    """Whether a JSON object of a stream or a whole body reports a failure."""
    return bool(value.get("error")) or value.get("type") == "error" or value.get("object") == "error"


def ended(value: Any) -> Ended:
    """The end of a reply that such an object reports."""
    found = fault(value)
    if not found.message:
        found = Fault(
            f"the service reported a failure: {lenient_json.shown(value)}", found.type, found.code, found.param
        )
    return Ended(finish_reason="error", status="failed", fault=found)


def _fault(value: dict[str, Any]) -> Fault:
    words = next((said for name in ("message", "detail", "msg", "title") if (said := _said(value.get(name)))), "")
    kind = lenient_json.word(value.get("type"))
    return Fault(
        _shortened(words),
        kind if kind and kind != "error" else None,
        lenient_json.word(value.get("code")) or None,
        lenient_json.word(value.get("param")) or None,
    )


def _said(value: Any) -> str:
    """What a message or a validation report says."""
    match value:
        case str():
            return value.strip()
        case list():
            return "; ".join(said for said in map(_said, value) if said)
        case {"msg": str(words), "loc": [*place]}:
            return f"{'.'.join(map(str, place))}: {words}"
        case dict():
            return fault(value).message
        case _:
            return ""


def _without_tags(text: str) -> str:
    title = _TITLE.search(text)
    return " ".join((title.group(1) if title else _TAGS.sub(" ", text)).split())


def _shortened(words: str) -> str:
    return words if len(words) <= _LIMIT else words[: _LIMIT - 1] + "…"


def _phrase(status: int) -> str:
    try:
        return f"{http.HTTPStatus(status).phrase} (the response says no more)"
    except ValueError:
        return "the response says no more"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms`, then `Retry-After` in seconds, then as a date against the response's `Date`.

    A value that is not finite and positive counts as none.
    """
    fields = {name.lower(): value for name, value in headers.items()}
    hint = fields.get("retry-after", "")
    for seconds in (
        _number(fields.get("retry-after-ms", ""), 1000),
        _number(hint, 1),
        _until(hint, fields.get("date")),
    ):
        if seconds is not None:
            return seconds
    return None


def _number(value: str, divisor: int) -> float | None:
    """A positive number; a header sent twice arrives as `2, 5`, and the longer wait satisfies both."""
    try:
        seconds = max(float(each) for each in value.split(",")) / divisor
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _until(value: str, date: str | None) -> float | None:
    try:
        seconds = (_moment(value) - _moment(date or "")).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def _moment(value: str) -> datetime:
    """A date of HTTP, the forms of old included, which name no zone and are UTC all the same."""
    moment = parsedate_to_datetime(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
