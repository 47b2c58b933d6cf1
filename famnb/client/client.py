"""BaseClient, what all clients have in common, and BlockingClient; the public Client and AsyncClient are in `api`."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from famnb import endpoints
from famnb.client import ask
from famnb.client.ask import MAX_ROUNDS, Approve, Send, ToolsArgument, arun_steps, run_steps
from famnb.client.auth import Credential
from famnb.client.batch import Batch, ServiceLimiters
from famnb.client.config import Addresses, Clock, Deadlines
from famnb.client.conversation import AsyncConversation, Conversation
from famnb.client.engine import CallEngine
from famnb.client.exchange import Exchange, Recorder, normalize_labels
from famnb.client.live_call import Stream
from famnb.client.replay import Replays
from famnb.client.retry import Retries
from famnb.client.transport import MAX_CONNECTIONS, check_transport, origin_of
from famnb.endpoints import EndpointName, Endpoints, ModelName
from famnb.errors import InvalidRequest
from famnb.profiles import check_profile
from famnb.profiles.profile import Profile
from famnb.reply import Reply
from famnb.request import Request
from famnb.validation import check_integer

if TYPE_CHECKING:
    import httpx

Labels = Mapping[str, str]
"""Names of a call in the ledger, such as `{"tag": "first"}`."""
Viewer = Callable[[Stream], contextlib.AbstractContextManager[object]]
"""Shows a stream while the body of its context manager runs."""
# Well below MAX_CONNECTIONS, so that other calls of the client find a connection; a service that takes less says so.
CONCURRENCY = 16
"""How many calls of `send_many` run at once by default."""


class BaseClient:
    """What the clients have in common: how a call is started, and every way to await one.

    It needs no ledger: `recorder` keeps its calls, if there is one.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        alt_base_url: str | None = None,
        api_key: str | Credential | None = None,
        recorder: Recorder | None = None,
        retries: Retries | None = None,
        deadlines: Deadlines | None = None,
        connections: int = MAX_CONNECTIONS,
        replays: Replays | None = None,
        viewer: Viewer | None = None,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        profile: str | Profile = "fam",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        verify: ssl.SSLContext | str | bool = True,
    ) -> None:
        """Addresses and key default to what the profile's variables hold: FAM_BASE_URL, FAM_API_KEY and so on.

        `connections` is how many connections to one service may be in use at once; further calls wait for one.
        `replays` answers what it can from recorded calls, `viewer` shows a stream while `ask` waits for it.
        `transport` carries the requests, on the I/O thread's event loop, and is closed with the client.
        `clock` is for tests.
        """
        # In this order, and before anything else can fail: the frames of an error must not hold the key as text.
        self.profile = check_profile(profile)
        """The API that its service has."""
        api_key = Credential.from_argument(api_key, self.profile, headers, query)
        headers = query = None
        api_key.check()
        self.connections = check_integer("connections", connections, minimum=1)
        """How many connections to one service may be in use at once."""
        if transport is not None:
            check_transport(transport)
        self.viewer = viewer
        """Shows a stream while `ask` waits for it; may be set at any time."""
        self._addresses = Addresses.from_arguments(base_url, alt_base_url, self.profile)
        # Here, once: every call looks its address up.
        self._urls = {name: self._addresses.url(endpoint) for name, endpoint in self.profile.endpoints.items()}
        self._engine = CallEngine(
            credential=api_key,
            recorder=recorder,
            retries=retries or Retries(),
            deadlines=deadlines or Deadlines(),
            connections=connections,
            clock=clock or Clock(),
            replays=replays,
            transport=transport,
            tls=_tls_context(verify),
            headers=self.profile.headers,
            query=self.profile.query,
        )
        # Not at the end of the process: then the I/O thread closes what is open, in its own order.
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

    @property
    def has_more_secrets(self) -> bool:
        """Whether its headers or its query hold secrets besides the key, which other processes cannot have."""
        return self._engine.credential.has_more_secrets

    def settings(self) -> dict[str, Any]:
        """The arguments that make a client like this one in another process; without secrets, recorder and replays."""
        return {
            "base_url": self._addresses.base_url,
            "alt_base_url": self._addresses.alt_base_url,
            "retries": self._engine.retries,
            "deadlines": self._engine.deadlines,
            "connections": self.connections,
            "profile": self.profile.name,
            "headers": self._engine.credential.open_headers,
            "query": self._engine.credential.open_query,
        }

    @property
    def endpoints(self) -> Endpoints:
        """The endpoints of its service by name, the default one first."""
        return self.profile.endpoints

    def base_url(self, endpoint: str | None = None) -> str:
        """The address of the service that an endpoint's requests go to, without the endpoint's own path."""
        target = endpoints.endpoint(endpoint or next(iter(self.endpoints)), self.endpoints)
        return self._urls[target.name].removesuffix(target.path)

    def compose(self, endpoint: str, prompt: str, **fields: Any) -> Request:
        """Return a prompt as a request of one of its endpoints; see `famnb.compose`."""
        return endpoints.compose(endpoint, prompt, endpoints=self.endpoints, **fields)

    def exchange(self, request: Request, *, labels: Labels | None = None) -> Exchange:
        """The record of a call that is about to be made: its address, its labels, and how its secrets are masked."""
        target = endpoints.endpoint(request.endpoint, self.endpoints)
        # One of another profile, such as the document's, is read as this one's, which checks it.
        if type(request) is not target.request:
            request = target.request.from_body(request.body()).with_losses(request.losses)
        return Exchange(
            request=request,
            endpoint=target,
            profile=self.profile.name,
            url=self._urls[request.endpoint],
            labels=normalize_labels(labels) if labels else {},
            mask=self._engine.mask,
        )

    def start(
        self,
        request: Request,
        *,
        labels: Labels | None = None,
        limiters: ServiceLimiters | None = None,
        retries: Retries | None = None,
    ) -> Stream:
        """Send a request as it is, whole or streamed, and return at once with a handle on the call.

        With `limiters`, those of a batch, the call waits for its turn, longer while its service is throttling.
        `retries` are the client's unless given.
        """
        return _start_call(self, request, labels, limiters, retries)

    def batch_limit(self, endpoint: str) -> int | None:
        """How many calls of a batch an endpoint's service takes at once; None unless it has asked for less."""
        return self._engine.batch_limit(self._urls[endpoint])

    @property
    def retries(self) -> Retries:
        """How often it sends a call again, and how long a wait the service may ask for."""
        return self._engine.retries

    def stream(self, request: Request, *, labels: Labels | None = None) -> Stream:
        """Send a request as a stream; a context manager, sync and async, that stops the call when it is left early."""
        _check_request(request)
        return self.start(request if request.streams else request.replace(stream=True), labels=labels)

    async def asend(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """Send a request and await its reply, on any event loop; a cancelled await stops the call."""
        return await _await_or_stop(self.start(request, labels=labels))

    async def aask(
        self,
        prompt: str,
        *,
        model: ModelName | None = None,
        endpoint: EndpointName | None = None,
        schema: Any = None,
        tools: ToolsArgument = None,
        auto: bool = False,
        approve: Approve | None = None,
        max_rounds: int = MAX_ROUNDS,
        stream: bool = True,
        labels: Labels | None = None,
        **fields: Any,
    ) -> Reply:
        """`ask` for an event loop; `approve` and the tools may be coroutine functions."""
        options = {"auto": auto, "approve": approve, "max_rounds": max_rounds}
        steps = ask.ask(
            prompt,
            model=model,
            endpoint=endpoint,
            schema=schema,
            tools=tools,
            options=options,
            labels=labels,
            endpoints=self.endpoints,
            stream=stream,
            **fields,
        )
        return await arun_steps(steps, self._arun_send)

    async def asend_many(
        self,
        requests: Iterable[Request],
        *,
        concurrency: int = CONCURRENCY,
        labels: Labels | None = None,
        progress: bool | None = None,
    ) -> list[Reply]:
        """`send_many` for an event loop."""
        return await self._start_batch(requests, concurrency, labels, progress).areplies()

    def aconversation(self, endpoint: EndpointName | None = None, **settings: Any) -> AsyncConversation:
        """A conversation whose turns are awaited; `settings` are those of `aask`, and hold for every turn."""
        return AsyncConversation(
            lambda steps: arun_steps(steps, self._arun_send), endpoint, endpoints=self.endpoints, **settings
        )

    async def aclose(self) -> None:
        """Stop what is running, wait until it is recorded, and close every connection."""
        await asyncio.wrap_future(self._engine.shut_down())

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

    def _start_batch(
        self, requests: Iterable[Request], concurrency: int, labels: Labels | None, progress: bool | None
    ) -> Batch:
        limiters, requests = ServiceLimiters(concurrency), list(requests)
        # All of them before the first is sent: a mistake in the last one should cost nothing.
        for request in requests:
            _check_request(request)
        streams = [self.start(request, labels=labels, limiters=limiters) for request in requests]
        return Batch(streams, progress=progress)

    async def _arun_send(self, step: Send) -> Reply:
        stream = self.start(step.request, labels=step.labels)
        with self._view(stream):
            return await _await_or_stop(stream)

    def _view(self, stream: Stream) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self.viewer is None else self.viewer(stream)


def _start_call(
    client: BaseClient,
    request: Request,
    labels: Labels | None,
    limiters: ServiceLimiters | None = None,
    retries: Retries | None = None,
) -> Stream:
    """Hand a request to the engine: what every way to send one comes down to."""
    # A function rather than a method: editors and type checkers follow it from `send` to the engine, where a method
    # could be a subclass's.
    _check_request(request)
    exchange = client.exchange(request, labels=labels)
    limiter = None if limiters is None else limiters[origin_of(exchange.url)]
    return client._engine.start(exchange, limiter, retries=retries)


async def _await_or_stop(stream: Stream) -> Reply:
    try:
        return await stream
    except asyncio.CancelledError:
        stream.stop()
        raise


def _tls_context(verify: object) -> ssl.SSLContext | None:
    """The context of a client's `verify`; None for the default. Raises InvalidRequest for a value of another type."""
    match verify:
        case True:
            return None
        case False:
            # Only when asked for: a proxy that looks into the traffic, or a certificate that nobody has signed.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        case ssl.SSLContext():
            context = verify
        case str():
            try:
                context = ssl.create_default_context(cafile=verify)
            except OSError as error:
                raise InvalidRequest(f"verify: no certificates can be read from {verify!r}: {error}") from None
        case _:
            raise InvalidRequest(
                f"verify: expected True, False, a file of certificates or an ssl.SSLContext; got {verify!r:.80}"
            )
    return context


def _check_request(request: object) -> None:
    if not isinstance(request, Request):
        *names, last = (endpoint.request.__name__ for endpoint in endpoints.ENDPOINTS.values())
        raise InvalidRequest(
            f"request: expected a {', '.join(names)} or {last} (famnb.compose() makes one from a prompt), "
            f"got {request!r:.80}"
        )


class BlockingClient(BaseClient):
    """A client for programs and notebooks; `send`, `ask` and `send_many` block, their `a…` twins are awaited."""

    def send(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """Send a request and wait for its reply; raises the call's error, with what had come on its `.reply`."""
        return _start_call(self, request, labels).result()

    def ask(
        self,
        prompt: str,
        *,
        model: ModelName | None = None,
        endpoint: EndpointName | None = None,
        system: str | None = None,
        max_tokens: int | None = None,
        thinking: int | None = None,
        schema: Any = None,
        tools: ToolsArgument = None,
        auto: bool = False,
        approve: Approve | None = None,
        max_rounds: int = MAX_ROUNDS,
        stream: bool = True,
        labels: Labels | None = None,
        **fields: Any,
    ) -> Reply:
        """Compose a prompt for an endpoint and send it; what that endpoint cannot carry is a warning.

        `thinking` is a budget in tokens. Without an `endpoint`, the model's own; with neither, `messages`, or the one
        that can carry `tools` or `schema`.
        `schema` is a type, such as a pydantic model: `reply.parsed` is its instance, and ParseError is raised where the
        answer is none. It is sent as `text.format` on responses, as a `response_format` of type `json_schema` on chat
        and web; not every service knows that one, and a `response_format={"type": "json"}` beside it is sent instead.
        While a stream runs, `stream.partial` is the JSON so far, as a value. `tools` may hold Python functions (see
        `famnb.tool`). They run with `auto=True`, or when `approve(call)` returns True, for at most `max_rounds` rounds,
        and their results are sent back until the model answers; `reply.rounds` has them, and each round is a call of
        its own in the ledger. An error in a tool, wrong arguments included, is sent to the model as the result.
        Otherwise no tool runs, and the reply is returned with its `tool_calls`.
        """
        options = {"auto": auto, "approve": approve, "max_rounds": max_rounds}
        steps = ask.ask(
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
            endpoints=self.endpoints,
            stream=stream,
            **fields,
        )
        return run_steps(steps, self._run_send)

    def conversation(self, endpoint: EndpointName | None = None, **settings: Any) -> Conversation:
        """A conversation, turn by turn; `settings` are those of `ask`, and hold for every turn.

            talk = client.conversation("responses", model="fam-2-5-pro", system="Be brief.")
            talk.say("My name is Ada.")
            talk.edit(0, "My name is Grace.")     # another branch; also regenerate(), fork(), switch(i)
            talk.turns, talk.branches, talk.failures

        It goes on by `previous_response_id` where the service stores responses, else by sending the earlier turns
        again, with the thinking on messages. A turn that fails leaves the conversation where it was.
        Without an `endpoint`, `responses`, or the one that the model or the tools need.
        """
        return Conversation(
            lambda steps: run_steps(steps, self._run_send), endpoint, endpoints=self.endpoints, **settings
        )

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
        return self._start_batch(requests, concurrency, labels, progress).replies()

    def close(self) -> None:
        """Stop what is running, wait until it is recorded, and close every connection."""
        self._engine.shut_down().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run_send(self, step: Send) -> Reply:
        stream = self.start(step.request, labels=step.labels)
        with self._view(stream):
            return stream.result()
