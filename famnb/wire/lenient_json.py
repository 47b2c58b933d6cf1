"""JSON both ways, lenient where servers are sloppy, and questions to JSON of unknown shape that never fail."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from famnb.errors import ResponseFormatError, StreamDecodeError

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes) -> Any:
    """The JSON value in `data`; invalid UTF-8, lone surrogates, NaN and raw control characters are tolerated.

    Raises ValueError when it is not JSON.
    """
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # the strict decoder is the fast one; the lenient one decides
    try:
        return json.loads(data.decode("utf-8-sig", "replace"), strict=False)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def decode_event(data: bytes) -> Any:
    """The JSON value of one stream event; raises StreamDecodeError when it is not JSON."""
    try:  # the fast path of `decode`, repeated to spare every event a call
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return decode(data)
    except ValueError as error:
        raise StreamDecodeError(
            f"an event of the stream is not JSON ({error}): {excerpt(data)}; expected a JSON object or [DONE]"
        ) from None


def encode(value: Any) -> bytes:
    """`value` as compact JSON; lone surrogates are written as escapes."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def excerpt(value: Any, limit: int = 200) -> str:
    """A body, decoded or not, as one line of at most `limit` characters for an error message."""
    data = value if isinstance(value, bytes) else encode(value)
    text = " ".join(data[: 8 * limit].decode(errors="replace").split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def not_a_reply_error(body: Any, expected: str) -> ResponseFormatError:
    """The error for a success status whose body is not a reply."""
    return ResponseFormatError(f"the body is not a reply: expected {expected}; got {excerpt(body)}")


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def scalar_text(value: Any) -> str:
    """A scalar as text: text as it is, a number as its digits, anything else empty."""
    match value:
        case str():
            return value
        case bool() | None:
            return ""
        case int() | float():
            return str(value)
        case _:
            return ""


def integer(value: Any) -> int | None:
    """A count, index or Unix time, also when it comes as text or as a float; None for anything else."""
    match value:
        case bool():
            return None
        case int():
            return value if value >= 0 else None
        case float():
            return int(value) if math.isfinite(value) and value >= 0 else None
        case str():
            try:
                return integer(float(value)) if not value.isdecimal() else int(value)
            except ValueError:
                return None
        case _:
            return None


def find_text(value: Any) -> str:
    """The text in a value of any shape: a text, a part, or a list of parts."""
    match value:
        case str():
            return value
        case list():
            return "".join(map(find_text, value))
        case dict():
            for name in ("text", "content", "thinking", "summary", "refusal"):
                if inner := find_text(value.get(name)):
                    return inner
            return ""
        case _:
            return ""


def arguments_json(value: Any) -> str:
    """A tool call's arguments as JSON text, also when they come as an object."""
    return value if isinstance(value, str) else "" if value is None else encode(value).decode()
