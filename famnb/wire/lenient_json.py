"""JSON of sloppy servers: lenient decoding, encoding, and reads of fields of any shape that never fail."""

from __future__ import annotations

import codecs
import json
import math
from typing import Any

import msgspec

from famnb.errors import ResponseFormatError, StreamDecodeError
from famnb.formatting import shorten

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes) -> Any:
    """Return the JSON value in `data`; tolerates invalid UTF-8, lone surrogates, NaN, control characters and a BOM.

    Raises ValueError if it is not JSON.
    """
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # the strict decoder is the fast one; the lenient one decides
    # Engines that decode token by token send halves of characters: invalid UTF-8, or escapes of single surrogates.
    try:
        # Not the codec "utf-8-sig": Python imports it at its first use, which fails where no file can be opened.
        return json.loads(data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace"), strict=False)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def decode_event(data: bytes) -> Any:
    """Return the JSON value of one stream event. Raises StreamDecodeError if it is not JSON."""
    try:
        return decode(data)
    except ValueError as error:
        raise StreamDecodeError(
            f"an event of the stream is not JSON ({error}): {excerpt(data)}; expected a JSON object or [DONE]"
        ) from None


def encode(value: Any) -> bytes:
    """Return `value` as compact JSON; lone surrogates are written as escapes."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def excerpt(value: Any) -> str:
    """Return a body, decoded or not, as one line of at most 200 characters for an error message."""
    data = value if isinstance(value, bytes) else encode(value)
    # Cut before it is decoded, as a body may have megabytes; 8 bytes a character leave room for UTF-8 and white space.
    return shorten(" ".join(data[: 8 * 200].decode(errors="replace").split()), 200)


def not_a_reply_error(body: Any, expected: str) -> ResponseFormatError:
    """Return the error for a response with a success status whose body is not a reply."""
    return ResponseFormatError(f"the body is not a reply: expected {expected}; got {excerpt(body)}")


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def scalar_text(value: Any) -> str:
    """Return a text as it is, a number as its digits, and an empty text for anything else.

    Servers send ids and error codes as numbers as well as texts.
    """
    if isinstance(value, str):
        return value
    return str(value) if type(value) in (int, float) else ""


def integer(value: Any) -> int | None:
    """Return a count, index or Unix time, also if it is sent as text or as a float; None for anything else."""
    if isinstance(value, str):
        try:
            # Digits are not read as a float, which is exact only up to 2^53.
            value = int(value) if value.isdecimal() else float(value)
        except ValueError:
            return None
    # By its exact type, since `bool` is a subclass of `int`.
    return int(value) if type(value) in (int, float) and 0 <= value < math.inf else None


def first_integer(*values: Any) -> int | None:
    """Return the first of some fields that is a count, since servers have several names for one."""
    return next((number for value in values if (number := integer(value)) is not None), None)


def amount(value: Any) -> float | None:
    """Return an amount of money of 0 or more, also if it is sent as text; None for anything else."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def find_text(value: Any) -> str:
    """Return the text in a value of any shape: a text, a part, or a list of parts."""
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
    """Return a tool call's arguments as JSON text, also if they are sent as an object."""
    return value if isinstance(value, str) else "" if value is None else encode(value).decode()
