"""The clients, blocking and awaited: what users hold; starting and awaiting a call is the caller's.

MERGED: What both clients have in common: how a call is started, shown and awaited; carrying it is the engine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from famnb import endpoints
from famnb.client import ask
from famnb.client import ask as asking
from famnb.client.ask import MOST_ROUNDS, Approve, GivenTools, Send, adriven, driven
from famnb.client.auth import Credential
from famnb.client.batch import FanOut, Gates
from famnb.client.config import Addresses, Deadlines
from famnb.client.conversation import AsyncConversation, Conversation
from famnb.client.engine import CallEngine
from famnb.client.exchange import Exchange, Recorder, labelled
from famnb.client.live_call import LiveCall
from famnb.client.replay import Replays
from famnb.client.retry import Retries
from famnb.client.stream import Stream
from famnb.client.transport import origin_of
from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidRequest
from famnb.reply import Reply
from famnb.request import Request
from famnb.validation import check_integer

Labels = Mapping[str, str]
Viewer = Callable[[Stream], contextlib.AbstractContextManager[object]]
CONNECTIONS = 100
CONCURRENCY = 16


class BaseClient:
    """What the clients have in common: how a call is started, and every way to await one."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        alt_base_url: str | None = None,
        api_key: str | Credential | None = None,
        recorder: Recorder | None = None,
        retries: Retries | None = None,
        deadlines: Deadlines | None = None,
        connections: int = CONNECTIONS,
        replays: Replays | None = None,
        viewer: Viewer | None = None,
    ) -> None:
        """Addresses and key default to FAM_BASE_URL, FAM_ALT_BASE_URL and FAM_API_KEY.

        `connections` is how many connections to one service may be in use at once; further calls wait for one.
        `replays` answers what it can from recorded calls, `viewer` shows a stream while `ask` waits for it.
        """
        api_key = Credential.from_argument(api_key)
        api_key.check()
        self.connections = check_integer("connections", connections, minimum=1)
        """How many connections to one service may be in use at once."""
        self.viewer = viewer
        """Shows a stream while `ask` waits for it; may be set at any time."""
        self._addresses = Addresses.found(base_url, alt_base_url)
        self._engine = CallEngine(
            credential=api_key,
            recorder=recorder,
            retries=retries or Retries(),
            deadlines=deadlines or Deadlines(),
            connections=connections,
            replays=replays,
        )
        # At the end of the process the I/O thread closes what is open.
        weakref.finalize(self, self._engine.retire).atexit = False

    @property
    def last(self) -> Reply | None:
        """The outcome of this client's call that ended last, whatever it was; None before the first."""
        return self._engine.last

    @property
    def in_use(self) -> int:
        """Connections that carry a call just now."""
        return self._engine.in_use

    @property
    def replays(self) -> bool:
        """Whether it answers what it can from recorded calls."""
        return self._engine.replays

    def settings(self) -> dict[str, Any]:
        """The arguments that make a caller like this one in another process; without key, recorder and replays."""
        return {
            "base_url": self._addresses.base_url,
            "alt_base_url": self._addresses.alt_base_url,
            "retries": self._engine.retries,
            "deadlines": self._engine.deadlines,
            "connections": self.connections,
        }

    def base_url(self, endpoint: str) -> str:
        """The address of the service that an endpoint's requests go to, without the endpoint's own path."""
        at = endpoints.endpoint(endpoint)
        return self._addresses.url(at).removesuffix(at.path)

    def exchange(self, request: Request, *, labels: Labels | None = None) -> Exchange:
        """A call that is about to be made, as it is recorded: where to, its labels, and how its secrets are hidden."""
        endpoint = ENDPOINTS[request.endpoint]
        return Exchange(
            request=request,
            endpoint=endpoint,
            url=self._addresses.url(endpoint),
            labels=labelled(labels or {}),
            mask=self._engine.mask,
        )

    def start(self, request: Request, *, labels: Labels | None = None, gates: Gates | None = None) -> Stream:
        """Send a request as it is, whole or streamed, and return at once with a handle on the call.

        `gates` are those of a fan-out that it belongs to: then it waits for its turn, longer while a service throttles.
        """
        return self._start(request, labels, gates)

    def stream(self, request: Request, *, labels: Labels | None = None) -> Stream:
        """Send a request as a stream; a context manager, sync and async, that stops the call when it is left early."""
        _expect(request)
        return self._start(request if request.streams else request.replace(stream=True), labels, None)

    async def asend(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """Send a request and await its reply, on any event loop; a cancelled await stops the call."""
        return await _awaited(self.start(request, labels=labels))

    async def aask(
        self,
        prompt: str,
        *,
        model: str | None = None,
        endpoint: str | None = None,
        schema: Any = None,
        tools: GivenTools = None,
        auto: bool = False,
        approve: Approve | None = None,
        max_rounds: int = MOST_ROUNDS,
        stream: bool = True,
        labels: Labels | None = None,
        **fields: Any,
    ) -> Reply:
        """`ask`, awaited; `approve` and the tools may be coroutine functions."""
        options = {"auto": auto, "approve": approve, "max_rounds": max_rounds}
        steps = ask.ask(
            prompt,
            model=model,
            endpoint=endpoint,
            schema=schema,
            tools=tools,
            options=options,
            labels=labels,
            stream=stream,
            **fields,
        )
        return await adriven(steps, self._asent)

    async def asend_many(
        self,
        requests: Iterable[Request],
        *,
        concurrency: int = CONCURRENCY,
        labels: Labels | None = None,
        progress: bool | None = None,
    ) -> list[Reply]:
        """`send_many`, awaited."""
        return await self._fan_out(requests, concurrency, labels, progress).gathered()

    def aconversation(self, endpoint: str | None = None, **settings: Any) -> AsyncConversation:
        """A conversation whose turns are awaited; `settings` are those of `aask`, and hold for every turn."""
        return AsyncConversation(lambda steps: adriven(steps, self._asent), endpoint, **settings)

    async def aclose(self) -> None:
        """Stop what is running, wait until it is recorded, and close every connection."""
        await asyncio.wrap_future(self._engine.shut())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        addresses = dict.fromkeys((self._addresses.base_url, self._addresses.alt_base_url))
        return f"<{type(self).__name__} {' '.join(addresses)}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a client holds a key and open connections and cannot be pickled or copied: make a new one")

    def _start(self, request: Request, labels: Labels | None, gates: Gates | None) -> Stream:
        _expect(request)
        exchange = self.exchange(request, labels=labels)
        gate = None if gates is None else gates[origin_of(exchange.url)]
        return self._engine.start(LiveCall(exchange=exchange, body=request.body_json(), gate=gate))

    def _fan_out(
        self, requests: Iterable[Request], concurrency: int, labels: Labels | None, progress: bool | None
    ) -> FanOut:
        gates, requests = Gates(concurrency), list(requests)
        for request in requests:
            _expect(request)
        return FanOut([self._start(request, labels, gates) for request in requests], progress=progress)

    async def _asent(self, step: Send) -> Reply:
        call = self.start(step.request, labels=step.labels)
        with self._shown(call):
            return await _awaited(call)

    def _shown(self, call: Stream) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self.viewer is None else self.viewer(call)


async def _awaited(call: Stream) -> Reply:
    try:
        return await call
    except asyncio.CancelledError:
        call.stop()
        raise


def _expect(request: object) -> None:
    if not isinstance(request, Request):
        *names, last = (endpoint.request.__name__ for endpoint in ENDPOINTS.values())
        raise InvalidRequest(
            f"request: expected a {', '.join(names)} or {last} (famnb.compose() makes one from a prompt), "
            f"got {request!r:.80}"
        )


class BlockingClient(BaseClient):
    """A client for programs and notebooks; `send`, `ask` and `send_many` block, their `a…` twins are awaited."""

    def send(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """Send a request and wait for its reply; raises the call's error, with what had come on its `.reply`."""
        return self.start(request, labels=labels).result()

    def ask(
        self,
        prompt: str,
        *,
        model: str | None = None,
        endpoint: str | None = None,
        system: str | None = None,
        max_tokens: int | None = None,
        thinking: int | None = None,
        schema: Any = None,
        tools: GivenTools = None,
        auto: bool = False,
        approve: Approve | None = None,
        max_rounds: int = MOST_ROUNDS,
        stream: bool = True,
        labels: Labels | None = None,
        **fields: Any,
    ) -> Reply:
        """Compose a prompt for an endpoint and send it; what that endpoint cannot carry is a warning.

        `thinking` is a budget in tokens. Without an `endpoint`, the model's own; with neither, `messages`, or the one
        that can carry `tools` or `schema`.
        `schema` is a type, such as a pydantic model: `reply.parsed` is its instance, and ParseError is raised where the
        answer is none. `tools` may hold Python functions (see `famnb.tool`). They run with `auto=True`, or when
        `approve(call)` returns True, for at most `max_rounds` rounds, and their results are sent back until the model
        answers; `reply.rounds` has them. Otherwise the reply is returned with its `tool_calls`.
        """
        options = {"auto": auto, "approve": approve, "max_rounds": max_rounds}
        steps = asking.ask(
            prompt,
            model=model,
            endpoint=endpoint,
            system=system,
            max_tokens=max_tokens,
            thinking=thinking,
            schema=schema,
            tools=tools,
            options=options,
            labels=labels,
            stream=stream,
            **fields,
        )
        return driven(steps, self._sent)

    def conversation(self, endpoint: str | None = None, **settings: Any) -> Conversation:
        """A conversation, turn by turn; `settings` are those of `ask`, and hold for every turn.

        Without an `endpoint`, `responses`, or the one that the model or the tools need.
        """
        return Conversation(lambda steps: driven(steps, self._sent), endpoint, **settings)

    def send_many(
        self,
        requests: Iterable[Request],
        *,
        concurrency: int = CONCURRENCY,
        labels: Labels | None = None,
        progress: bool | None = None,
    ) -> list[Reply]:
        """Send requests, `concurrency` at a time to each service, fewer while it is throttling.

        Replies come in the order of the requests, each with its own `error`, which is not raised.
        `progress` shows a bar; by default when there are more than a few requests and somebody is looking.
        """
        return self._fan_out(requests, concurrency, labels, progress).replies()

    def close(self) -> None:
        """Stop what is running, wait until it is recorded, and close every connection."""
        self._engine.shut().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sent(self, step: Send) -> Reply:
        call = self.start(step.request, labels=step.labels)
        with self._shown(call):
            return call.result()
