"""From a body's bytes to a valid request, or to a Refusal that names the field; what follows is left to others.

MERGED: Work on large requests beside the event loop, so that other callers are served meanwhile; what work is the
caller's.

What takes long with a body of many megabytes is Python code for each message, and that lets the event loop in every
few milliseconds. Half of the 3.8 s that 550,000 messages took went to the garbage collector, which looked through all
of the growing request again and again, and held everything up for up to 0.3 s each time; hence `collect_rarely`.
MERGED: Reading a request: no larger than allowed, no slower than allowed; what it says is left to validation.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
import pydantic
from starlette.requests import Request as HTTPRequest

from famnb.endpoints import Endpoint
from famnb.request import Request
from famnb.request.base import expected, where
from famnb.service.errors import ServiceError

DEEPEST = 100
"""How many levels of lists and objects a body may have."""


def parsed(endpoint: Endpoint, body: bytes, *, strict: bool = False) -> Request:
    """The request that a body holds; unknown fields are ignored unless `strict`. Raises Refusal."""
    value = _decoded(body)
    try:
        return endpoint.request.model_validate(value, extra="forbid" if strict else "ignore")
    except pydantic.ValidationError as error:
        raise _refused(error) from None


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = "the body is empty" if not body.strip() else f"the body is not valid JSON ({error})"
        raise ServiceError(400, f"{said}; send one JSON object", code="invalid_json") from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(value, dict):
        kind = {type(None): "null", bool: "a boolean", str: "a string", list: "an array"}.get(type(value), "a number")
        raise ServiceError(400, f"the body is {kind}; send one JSON object", code="invalid_json")
    # Counting brackets is cheap, and settles it for all but large bodies.
    if body.count(b"[") + body.count(b"{") > DEEPEST and _deeper(value, DEEPEST):
        raise _too_deep()
    return value


def _too_deep() -> ServiceError:
    return ServiceError(400, f"the body is nested more than {DEEPEST} levels deep; flatten it", code="invalid_json")


def _deeper(value: dict[str, Any], limit: int) -> bool:
    """Whether lists and objects are nested more than `limit` levels, without recursion."""
    level: list[Any] = [value]
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def _refused(error: pydantic.ValidationError) -> ServiceError:
    """The refusal for what is wrong with a body: it names the first field at fault and says all faults."""
    faults = error.errors(include_url=False)
    places = [where(fault["loc"]) for fault in faults]
    said = dict.fromkeys(
        f"{place or 'the body'}: {expected(fault)}" for place, fault in zip(places, faults, strict=True)
    )
    shown = list(said)[:10]
    more = f"; and {len(said) - len(shown)} more" if len(said) > len(shown) else ""
    # Places hold the caller's own keys, which may be as long as the body.
    return ServiceError(400, "; ".join(shown)[:2000] + more, code=_code(faults[0]), param=places[0][:200] or None)


def _code(fault: Any) -> str:
    if fault["type"] == "missing":
        return "missing_required_parameter"
    if fault["loc"] == ("model",) and isinstance(fault["input"], str):
        return "model_not_found"
    return "invalid_value"


LARGE = 256_000
"""Bytes, or characters, from which a request is large; a smaller one takes a few milliseconds at most."""
_THRESHOLDS = (50_000, 50, 20)
"""New objects until the collector looks at these, such rounds until it looks at survivors, and those until at all."""

_Made = TypeVar("_Made")
# One thread: more would take the interpreter from the event loop for longer, and have no more of it among them.
_worker = ThreadPoolExecutor(1, thread_name_prefix="famnb-large")


async def beside(work: Callable[[], _Made], *, size: int) -> _Made:
    """What some work makes: at once for a small size, else in a thread while the event loop goes on."""
    if size < LARGE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_worker, work)


@contextlib.contextmanager
def collect_rarely() -> Iterator[None]:
    """Have the garbage collector leave alone what is there now, and look at new objects seldom."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


HEAD_LIMIT = 65_536
"""How many bytes of a request's address and headers are kept."""
HEAD_TOO_LARGE = "head_too_large"
"""Where the state of a request says that some of its head was not kept."""


def check_head(request: HTTPRequest) -> None:
    """Raise Refusal 431 for a request whose head is too large to be kept; to be asked once its key is known."""
    if getattr(request.state, HEAD_TOO_LARGE, False):
        raise head_too_large()


def head_too_large() -> ServiceError:
    """The answer to a head beyond the limit."""
    said = f"the address and headers are larger than {HEAD_LIMIT:,} bytes; send fewer or shorter ones"
    return ServiceError(431, said, headers={"connection": "close"})


async def body_of(request: HTTPRequest, *, limit: int, within: float) -> bytes:
    """The whole body; raises Refusal 400 if it is compressed, 413 beyond `limit` bytes, 408 after `within` seconds.

    What a refused caller goes on sending is dropped by the server as it comes, so that it lives to read the answer.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        said = f"content-encoding: expected a body as it is, got one in {encoding[:40]!r}; send plain JSON"
        raise ServiceError(400, said, code="invalid_json", param="content-encoding")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(within):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
    except TimeoutError:
        raise ServiceError(
            408,
            f"the body did not arrive within {within:g} s ({size:,} bytes did); send it faster or smaller",
            headers={"connection": "close"},
        ) from None
    return b"".join(chunks)


def _too_large(limit: int) -> ServiceError:
    return ServiceError(413, f"the body is larger than {limit:,} bytes; send less")
