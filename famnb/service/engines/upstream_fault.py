"""What goes wrong with an upstream, as a Refusal: the caller's own mistakes are 400, too many 429, all else 500."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from famnb.errors import APIStatusError, ConnectError, FamnbError, StreamError, StreamInterrupted
from famnb.service.engines.upstream_request import invalid
from famnb.service.refusal import Refusal

_CONTEXT = re.compile(r"context.?(length|window|size)|maximum context|(prompt|input) is too long|too many tokens", re.I)
"""How servers say that a prompt does not fit."""
_TRACE = re.compile(r"\n\s*\n|\s*Traceback|\s*File \"")
"""Where the inside of a server begins to show in its words."""
_WORD = re.compile(r"[a-z][a-z_]*")
"""What an error code looks like; servers also send numbers and sentences."""


def refusal(error: FamnbError, *, hide: Callable[[str], str]) -> Refusal:
    """The refusal for a failed call; `hide` takes the upstream's key and address out of its words."""
    match error:
        case APIStatusError(status=int() as status):
            return _by_status(error, status, hide(_TRACE.split(error.args[0])[0].strip()))
        case ConnectError():
            return Refusal(500, "the engine behind this service does not answer; try again later")
        case StreamError() if too_long(error):
            return Refusal(400, hide(str(error)), code="context_length_exceeded")
        case StreamError():
            return Refusal(500, f"the engine behind this service failed: {hide(str(error))}")
        case StreamInterrupted():
            return Refusal(500, "the engine behind this service broke off; what was sent so far is incomplete")
        case _:
            return Refusal(500, "the engine behind this service sent something that is no chat completion")


def too_long(error: APIStatusError | StreamError) -> bool:
    """Whether an error says that the prompt does not fit into the model's context."""
    return bool(_CONTEXT.search(f"{error.type} {error.code} {error.args[0]}"))


def _by_status(error: APIStatusError, status: int, words: str) -> Refusal:
    wait = error.retry_after
    headers = (
        {} if wait is None else {"retry-after": str(math.ceil(wait)), "retry-after-ms": str(math.ceil(wait * 1000))}
    )
    match status:
        case _ if invalid(error) and too_long(error):
            return Refusal(400, words, code="context_length_exceeded")
        case _ if invalid(error):
            return Refusal(400, words, code=error.code if error.code and _WORD.fullmatch(error.code) else None)
        case 429:
            return Refusal(
                429, "the engine behind this service has too many requests; try again later", headers=headers
            )
        case 401 | 403:
            return Refusal(500, "the engine behind this service refuses the service's own key; its operator can set it")
        case 404:
            said = f"the engine behind this service does not know the model, or has no chat completions: {words}"
            return Refusal(500, said)
        case _:
            return Refusal(500, f"the engine behind this service failed ({status}): {words}", headers=headers)
