"""One endpoint as an ASGI application: from an HTTP request to the engine's reply, whole or streamed.

key (401) ── limits (429) ── body (408, 413) ── request (400) ── prompt ── engine ── events ── bytes
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, TypeAlias

import pydantic
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HTTPRequest
from starlette.types import Receive, Scope, Send

from famnb.endpoints import Endpoint
from famnb.events import Address, Closed, Delta, Done, Ended, Event, Started, Usage
from famnb.reply import ReplyBuilder
from famnb.request import Request
from famnb.request.base import explain
from famnb.request.gateway_fields import referenced_ids, resolve_references
from famnb.service import fault_injection
from famnb.service.auth import RateLimiter, authenticate
from famnb.service.engines.base import Engine
from famnb.service.errors import ServiceError
from famnb.service.fault_injection import InjectedFaults
from famnb.service.metrics import DISCONNECTED, RECORD, Metrics, RequestRecord
from famnb.service.openresponses import REPEATED_FIELDS, OpenResponsesDialect
from famnb.service.prompt import GenerationPrompt, PriorConversation, build_prompt, read_turns
from famnb.service.request_body import parse_request, read_body
from famnb.service.response_storage import find_items, store_events
from famnb.service.settings import Options
from famnb.service.shutdown import Shutdown
from famnb.service.store import ResponseStore
from famnb.wire import lenient_json
from famnb.wire.dialect import Dialect

_log = logging.getLogger("famnb.service")
_FIELD_PATH = re.compile(r"[\w.$\[\]-]{1,80}", re.ASCII)
"""What the path of a field looks like that can be named in a header."""
_MAX_IGNORED = 20
"""How many fields of a request are named."""
_MAX_LOGGED = 1_000
# In base64, as real ones are: "nothing is signed here". It is not checked when it is sent back.
_SIGNATURE = "bm90aGluZyBpcyBzaWduZWQgaGVyZQ=="
"""The signature of thinking."""
Headers: TypeAlias = list[tuple[bytes, bytes]]
_STREAM_HEADERS: Headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


class IgnoredFields:
    """Tells callers, and once the log, which fields of their requests had no effect."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def headers(self, endpoint: str, fields: tuple[str, ...]) -> Headers:
        """Return the header `x-famnb-ignored` with these fields; none if there are none."""
        # The names are the caller's own: no header can hold all of them, nor a log an endless number.
        names = [name for name in fields[:_MAX_IGNORED] if _FIELD_PATH.fullmatch(name)]
        for name in names:
            if (endpoint, name) not in self._logged and len(self._logged) < _MAX_LOGGED:
                self._logged.add((endpoint, name))
                _log.warning(
                    "%s: the field %s has no effect, here and from now on; --strict refuses unknown ones",
                    endpoint,
                    name,
                )
        return [(b"x-famnb-ignored", ", ".join(names).encode())] if names else []


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """What the endpoints of one service share."""

    engine: Engine
    keys: tuple[str, ...]
    options: Options
    limiter: RateLimiter
    store: ResponseStore
    shutdown: Shutdown
    faults: InjectedFaults
    """The faults of every generation that does not ask for its own."""
    metrics: Metrics = dataclasses.field(default_factory=Metrics)
    ignored_fields: IgnoredFields = dataclasses.field(default_factory=IgnoredFields)


def authenticate_request(context: ServiceContext, http: HTTPRequest, *, key_header: str | None = None) -> str:
    """Return the key of a request, which may be in `key_header`, and note it. Raises ServiceError 401 without one."""
    # The key comes first: a caller without one learns nothing, and no body is read.
    key = http.scope["state"][RECORD].key = authenticate(http.headers, context.keys, key_header=key_header)
    return key


class EndpointApp:
    """The ASGI application of one generating endpoint."""

    def __init__(self, endpoint: Endpoint, context: ServiceContext) -> None:
        self._endpoint = endpoint
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context, conventions = self._context, self._endpoint.conventions
        http = HTTPRequest(scope, receive)
        # The vendor's SDK is recognised by a header that it always sends; it reads no stream without `event:` lines.
        named = conventions.names_events is not None and conventions.names_events in http.headers
        record: RequestRecord = scope["state"][RECORD]
        key = authenticate_request(context, http, key_header=conventions.key_header)
        with context.limiter.admit(key):
            options = context.options
            try:
                with context.shutdown.interruptible():
                    body = await read_body(http, limit=options.body_limit, timeout=options.upload_timeout)
            except ClientDisconnect:
                # A caller who leaves during the upload is no failure of the service, and nobody is left to answer.
                record.error = DISCONNECTED
                return
            request, ignored = self._parse_request(body)
            record.streams = request.streams
            header = http.headers.get(fault_injection.HEADER)
            if header is not None and not options.takes_faults:
                header, ignored = None, (*ignored, fault_injection.HEADER)
            faults = context.faults if header is None else fault_injection.parse_faults(header)
            record.ignored = ignored
            # From here on the body has been read: all that can still come from the caller is a disconnect.
            await _run_until_disconnect(self._answer(send, request, faults, record, named=named), receive, record)

    async def _answer(
        self, send: Send, request: Request, faults: InjectedFaults, record: RequestRecord, *, named: bool
    ) -> None:
        """Generate the reply and send it, as a stream or whole."""
        dialect = self._choose_dialect(request)
        async with aclosing(await self._open_events(record, request, faults, dialect)) as opened:
            events = sign_thinking(opened) if named and request.settings().thinking is not None else opened
            with self._context.shutdown.interruptible():
                await faults.delay_or_refuse()
            if not request.streams:
                await self._send_whole(dialect, events, faults, send, record)
                return
            # Waits for the first event before the status is sent: a refusal by the engine is then an error response.
            first = await anext(events)
            headers = self._context.ignored_fields.headers(self._endpoint.name, record.ignored)
            await send({"type": "http.response.start", "status": 200, "headers": [*_STREAM_HEADERS, *headers]})
            writer = dialect.writer(include_usage=request.asks_for_usage, named=named)
            for block in writer.write(first):
                await send({"type": "http.response.body", "body": block, "more_body": True})
            await faults.send_stream(events, writer, send)

    def _parse_request(self, body: bytes) -> tuple[Request, tuple[str, ...]]:
        """Return the request in a body and its fields without effect; an unknown model becomes the endpoint's first."""
        options, endpoint = self._context.options, self._endpoint
        request, ignored = parse_request(endpoint, body, strict=options.strict, compat=options.is_compatible)
        if options.is_compatible and not self._context.engine.takes_any_model and not endpoint.serves(request.model):
            request = request.model_copy(update={"model": endpoint.models[0]})
        if ignored and isinstance(self._choose_dialect(request), OpenResponsesDialect):
            ignored = tuple(name for name in ignored if name not in REPEATED_FIELDS)
        return request, ignored

    def _choose_dialect(self, request: Request) -> Dialect:
        """Return the endpoint's dialect, or the one of the profile that the service runs under."""
        if self._context.options.profile == "openresponses":
            return OpenResponsesDialect.for_request(request) or self._endpoint.dialect
        return self._endpoint.dialect

    async def _open_events(
        self, record: RequestRecord, request: Request, faults: InjectedFaults, dialect: Dialect
    ) -> AsyncGenerator[Event]:
        """Return the events, stored as they pass if asked for. ServiceError 400 if what is continued is unknown."""
        if request.continues is None and not request.stores_reply and not referenced_ids(request):
            return self._generate(build_prompt(request), faults, record)
        store, key, previous_id = self._context.store, record.key, request.continues
        if ids := referenced_ids(request):
            items = await find_items(store, key, ids)
            try:
                request = resolve_references(request, items)
            except pydantic.ValidationError as error:
                raise ServiceError(400, f"input: {explain(type(request), error)}", param="input") from None
        prior = PriorConversation() if previous_id is None else await store.get_conversation(key, previous_id)
        prompt = build_prompt(request, prior)
        events = self._generate(prompt, faults, record)
        if not request.stores_reply:
            return events
        conversation = PriorConversation((*prior.turns, *read_turns(request)), prompt.system)
        return store_events(store, key, events, dialect, endpoint=self._endpoint, conversation=conversation)

    async def _generate(
        self, prompt: GenerationPrompt, faults: InjectedFaults, record: RequestRecord
    ) -> AsyncGenerator[Event]:
        """Yield the engine's events, with the reply's id; a failure inside a stream becomes the stream's end."""
        has_started, deltas = False, 0
        try:
            async with aclosing(self._context.engine.generate(prompt)) as source:
                with self._context.shutdown.interruptible():
                    async for event in source:
                        match event:
                            case Started():
                                has_started = True
                                record.ignored += tuple(prompt.left_out)
                                new_id = self._endpoint.conventions.new_id()
                                event = Started(new_id, prompt.model, int(time.time()), event.input_tokens)
                            case Delta():
                                faults.fail(deltas)
                                deltas += 1
                                record.first_token = record.first_token or time.monotonic()
                            case Usage():
                                record.usage = record.usage.merge(event)
                            case _:
                                pass
                        yield event
        except Exception as error:
            # Before the first event, and for a whole reply, there is still a status to answer with.
            if not (has_started and record.streams):
                raise
            if not isinstance(error, ServiceError):
                _log.exception("the engine failed inside a stream")
                error = ServiceError(500, "the engine failed; what was sent so far is incomplete")
            fault = error.to_fault(self._endpoint)
            record.error = fault.code
            yield Ended("error", status="failed", fault=fault)
            yield Done()

    async def _send_whole(
        self, dialect: Dialect, events: AsyncIterator[Event], faults: InjectedFaults, send: Send, record: RequestRecord
    ) -> None:
        """Send the reply as one JSON object, once it is complete. Raises ServiceError 500 if it failed."""
        builder = ReplyBuilder()
        async for event in events:
            builder.add(event)
        reply = builder.reply()
        if reply.fault is not None:
            raise ServiceError(500, reply.fault.message, code=reply.fault.code)
        data = lenient_json.encode(dialect.write(reply))
        body = faults.damage_body(data)
        is_cut = faults.cut is not None
        # A cut reply promises its whole length, so that the caller notices what is missing.
        length = len(data) if is_cut else len(body)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(length).encode()),
            *self._context.ignored_fields.headers(self._endpoint.name, record.ignored),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": is_cut})


async def sign_thinking(events: AsyncIterator[Event]) -> AsyncGenerator[Event]:
    """Yield the events, with a signature at the end of each thinking block: vendors' SDKs want one."""
    thinking: set[Address] = set()
    async for event in events:
        if type(event) is Delta and event.kind == "thinking":
            thinking.add(event.at)
        elif type(event) is Closed and event.at in thinking:
            yield Delta(event.at, "signature", _SIGNATURE)
        yield event


async def _run_until_disconnect(answer: Coroutine[Any, Any, None], receive: Receive, record: RequestRecord) -> None:
    """Run a coroutine to its end, or until the caller disconnects, so that generation stops."""
    # In a task of its own: each event wakes every coroutine of its task, and here a dozen of Starlette's are below.
    answering = asyncio.create_task(answer)

    async def wait_for_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        # The server sends the same message once the answer is complete.
        if not answering.done():
            record.error = DISCONNECTED
            answering.cancel()

    watcher = asyncio.create_task(wait_for_disconnect())
    try:
        await answering
    except asyncio.CancelledError:
        pass  # the caller left, or the service is ending: nobody waits for the rest
    finally:
        watcher.cancel()
