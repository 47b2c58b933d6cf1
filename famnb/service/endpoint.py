"""One endpoint as an ASGI application: from a request to the engine's reply, whole or streamed, come what may.

key (401) ── limits (429) ── body (408, 413) ── request (400) ── prompt ── engine ── events ── bytes
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HTTPRequest
from starlette.types import Receive, Scope, Send

from famnb.endpoints import Endpoint
from famnb.events import Done, Ended, Event, Started
from famnb.reply import ReplyBuilder
from famnb.request import Request
from famnb.service import fault_injection, request_body
from famnb.service.auth import RateLimiter, caller
from famnb.service.engines.base import Engine
from famnb.service.errors import ServiceError
from famnb.service.fault_injection import ConnectionCut, InjectedFaults
from famnb.service.openresponses import dialect_of
from famnb.service.prompt import GenerationPrompt, PriorConversation, build_prompt, conversation
from famnb.service.request_body import beside
from famnb.service.settings import Options
from famnb.service.shutdown import Shutdown
from famnb.service.stores.base import Store, StoredResponse, kept
from famnb.wire import lenient_json
from famnb.wire.dialect import Dialect, Writer

_log = logging.getLogger("famnb.service")
_STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """What the endpoints of one service share."""

    engine: Engine
    keys: tuple[str, ...]
    options: Options
    limits: RateLimiter
    store: Store
    ending: Shutdown
    faults: InjectedFaults
    """Committed on every generation that does not ask for its own."""


class EndpointApp:
    """One generating endpoint."""

    def __init__(self, endpoint: Endpoint, house: ServiceContext) -> None:
        self._endpoint = endpoint
        self._house = house

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        house, options = self._house, self._house.options
        http = HTTPRequest(scope, receive)
        conventions = self._endpoint.conventions
        named = conventions.names_events is not None and conventions.names_events in http.headers
        key = caller(http.headers, house.keys, key_header=conventions.key_header)
        request_body.check_head(http)
        with house.limits.admitted(key), contextlib.suppress(ClientDisconnect):
            body = await house.ending.unless(
                lambda: request_body.body_of(http, limit=options.body_limit, within=options.upload_timeout)
            )
            request = await beside(
                lambda: request_body.parsed(self._endpoint, body, strict=options.strict), size=len(body)
            )
            words = http.headers.get(fault_injection.HEADER)
            asked = house.faults if words is None else fault_injection.parse_faults(words)
            dialect = dialect_of(self._endpoint, request, profile=options.profile)
            opening = self._events(key, request, asked, dialect, size=len(body))
            async with _attended(receive), aclosing(await opening) as events:
                await house.ending.unless(asked.before)
                if request.streams:
                    writer = dialect.writer(include_usage=request.asks_for_usage, named=named)
                    await self._stream(writer, events, asked, send)
                else:
                    await self._whole(dialect, events, asked, send)

    async def _events(
        self, key: str, request: Request, asked: InjectedFaults, dialect: Dialect, *, size: int
    ) -> AsyncGenerator[Event]:
        """The events of the reply; of a response that is to be stored, kept as they pass."""
        if request.continues is None and not request.stores_reply:
            prompt = await beside(lambda: build_prompt(request), size=size)
            return self._told(prompt, asked, streams=request.streams)
        store, previous = self._house.store, request.continues
        earlier = PriorConversation() if previous is None else await store.get_conversation(key, previous)
        prompt, said = await beside(lambda: (build_prompt(request, earlier), conversation(request)), size=size)
        events = self._told(prompt, asked, streams=request.streams)
        if not request.stores_reply:
            return events
        known = StoredResponse(previous=previous, earlier=earlier, said=said, system=prompt.system)
        return kept(store, key, events, dialect, endpoint=self._endpoint, asked=known, streams=request.streams)

    async def _told(self, prompt: GenerationPrompt, asked: InjectedFaults, *, streams: bool) -> AsyncGenerator[Event]:
        """What the engine says, with the reply's identity; a failure inside a stream becomes the stream's end."""
        started = False
        try:
            async with aclosing(self._house.engine.generate(prompt)) as source:
                async for event in self._house.ending.until(asked.failing(source)):
                    if type(event) is Started:
                        started = True
                        yield Started(self._endpoint.conventions.new_id(), prompt.model, int(time.time()))
                    else:
                        yield event
        except Exception as error:
            if not (started and streams):
                raise
            if not isinstance(error, ServiceError):
                _log.exception("the engine failed inside a stream")
                error = ServiceError(500, "the engine failed; what was sent so far is incomplete")
            yield Ended("error", status="failed", fault=error.fault(self._endpoint))
            yield Done()

    async def _stream(self, writer: Writer, events: AsyncGenerator[Event], asked: InjectedFaults, send: Send) -> None:
        """Send the reply as it comes: one block, one write; the body ends right after the last."""
        first = await anext(events)
        await send({"type": "http.response.start", "status": 200, "headers": [*_STREAM_HEADERS]})
        for block in writer.write(first):
            await send({"type": "http.response.body", "body": block, "more_body": True})
        with contextlib.suppress(ConnectionCut):
            async for block in asked.blocks(events, writer):
                await send({"type": "http.response.body", "body": block, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _whole(self, dialect: Dialect, events: AsyncIterator[Event], asked: InjectedFaults, send: Send) -> None:
        """Send the reply as one JSON object, once it is complete."""
        folding = ReplyBuilder()
        async for event in events:
            folding.add(event)
        reply = folding.reply()
        if reply.fault is not None:
            raise ServiceError(500, reply.fault.message, code=reply.fault.code)
        data = lenient_json.encode(dialect.write(reply))
        sent = asked.whole(data)
        length = len(data) if asked.cut is not None else len(sent)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": sent, "more_body": asked.cut is not None})


@contextlib.asynccontextmanager
async def _attended(receive: Receive) -> AsyncIterator[None]:
    """Run what is inside only while the caller stays: it is cancelled when the caller leaves."""
    task = asyncio.current_task()
    assert task is not None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        pass  # the caller left, or the service is ending: nobody waits for the rest
    finally:
        watcher.cancel()
