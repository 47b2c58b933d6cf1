"""Answers of servers with the usual chat completions, for a `FaultServer`, and a service in front of one."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from famnb.endpoints import ENDPOINTS
from famnb.reply import Reply, fold
from tests.support.fault_server import DONE, FaultServer, Received, Script, chunked, event, whole
from tests.support.service_requests import ServiceClient
from tests.support.strategies import read
from tests.support.thread_service import run_service

MODEL = "their-model"
COUNTS = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
THINKING = {"type": "enabled", "budget_tokens": 64}


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **fields: Any) -> bytes:
    """One chunk of a stream; without a delta, one with no choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return event(
        {"id": "cmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices, **fields}
    )


def stream_chunks(*pieces: str, usage: Any = COUNTS) -> list[bytes]:
    """A plain stream that says these pieces, as most servers write it."""
    content = [chunk({"content": piece}) for piece in pieces]
    tail = [] if usage is None else [chunk(None, usage=usage)]
    return [chunk({"role": "assistant", "content": ""}), *content, chunk({}, "stop"), *tail, DONE]


def completion(
    text: str | None = "Hello, world.", *, finish: Any = "stop", usage: Any = COUNTS, **message: Any
) -> dict[str, Any]:
    """A whole chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return {
        "id": "cmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [choice],
        "usage": usage,
    }


def answer_hello(request: Received) -> Script:
    """What a sound server answers: a stream where one is asked for, else one object."""
    return chunked(*stream_chunks("Hello", ", world.")) if decode_body(request)["stream"] else whole(completion())


def decode_body(request: Received) -> dict[str, Any]:
    """Return the JSON body of a request to the upstream."""
    body = json.loads(request.body)
    assert isinstance(body, dict)
    return body


@contextlib.contextmanager
def start_gateway(upstream: FaultServer | str, **options: Any) -> Iterator[ServiceClient]:
    """A service in front of an upstream, and a caller of it."""
    url = upstream if isinstance(upstream, str) else upstream.url
    fields = {"upstream": url, "upstream_model": MODEL, **options}
    with run_service(**fields) as service, ServiceClient(service) as caller:
        yield caller


def fetch_reply(api: ServiceClient, endpoint: str, prompt: str = "Say hello.", **fields: Any) -> Reply:
    """Return the reply to a request, which must succeed, read as the client reads it."""
    answer = api.ask(endpoint, prompt, **fields)
    assert answer.status_code == 200, answer.text
    dialect = ENDPOINTS[endpoint].dialect
    return fold(read(dialect, [answer.content]) if fields.get("stream") else dialect.read(answer.json()))


def answer_with(upstream: FaultServer, script: Script) -> None:
    """Have every request answered with this script."""
    upstream.choose = lambda _: script


HELLO = [chunk({"content": "Hello"}), chunk({"content": ", world."})]
