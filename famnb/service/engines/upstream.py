"""The upstream engine: any server with `POST /v1/chat/completions` answers.

model's name ── request (upstream_request.py) ── POST ── (a field refused: once more without it)
     ── events ── our events (both upstream_reply.py) ── end

Of its errors the caller's own mistakes are answered with 400, too many requests with 429, all others with 500.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from types import MappingProxyType
from typing import Any

from famnb.client.auth import Credential
from famnb.client.config import Deadlines, check_address
from famnb.client.engine import read_error_body
from famnb.client.response_reader import ResponseReader
from famnb.client.transport import RequestSender, Response, origin_of
from famnb.endpoints import ENDPOINTS, UPSTREAM
from famnb.errors import APIStatusError, ConnectError, FamnbError, InvalidRequest, StreamError, StreamInterrupted
from famnb.events import Done, Ended, Event, Usage
from famnb.service.engines.upstream_reply import ReplyTranslator
from famnb.service.engines.upstream_request import (
    RefusedField,
    UpstreamRequest,
    build_upstream_request,
    is_invalid_request,
)
from famnb.service.errors import ServiceError
from famnb.service.prompt import GenerationPrompt
from famnb.wire import errors, lenient_json

_CONTEXT = re.compile(r"context.?(length|window|size)|maximum context|(prompt|input) is too long|too many tokens", re.I)
"""How servers report that a prompt does not fit."""
# Some servers put one into the message of an error, with the paths of their files: nothing for the caller.
_TRACEBACK = re.compile(r"\n\s*\n|\s*Traceback|\s*File \"")
"""Where a traceback begins in an error message."""
_ERROR_CODE = re.compile(r"[a-z][a-z_]*")
"""What an error code looks like; some servers send numbers or sentences instead."""
# A large model may think for minutes before its first token, and the caller has deadlines of its own.
SILENCE_S = 600.0
"""How many seconds an upstream may send nothing before it counts as gone."""
# The answer itself is complete by then, and its caller waits for the end: servers send usage and the end right behind.
_TAIL_TIMEOUT_S = 0.4
"""How many seconds the rest of the body may take once the answer has ended."""
# A call whose model's name is not known yet waits for it, and so does `/health`.
_PROBE_TIMEOUT_S = 2.0
"""How many seconds the upstream may take to list its models."""
MAX_OPAQUE = 10_000
"""Of how many calls is kept what the upstream wants back with them."""
DOCUMENT_MODELS = tuple(dict.fromkeys(model for endpoint in ENDPOINTS.values() for model in endpoint.models))


class UpstreamEngine:
    """Generates replies by calling a server with chat completions; created and used in one event loop."""

    name = "upstream"
    takes_any_model = True

    def __init__(
        self,
        url: str,
        *,
        credential: Credential | None = None,
        models: str | Sequence[str] = (),
        headers: Mapping[str, str] = MappingProxyType({}),
        opening_fields: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """`credential` is the upstream's key, if it has one; `models` are `ours=theirs` or, for all others, `theirs`.

        `headers` go with every request, `opening_fields` into the body of one that begins a conversation.

        Raises InvalidRequest for an invalid address or model, CredentialError for an invalid key.
        """
        self._base = check_address("upstream", url)
        self._credential = credential
        if credential:
            credential.check()
        self._model_names = dict(map(_parse_model, [models] if isinstance(models, str) else models))
        """For each model of ours the upstream's name; under the empty name that of all others."""
        self._sender = RequestSender(
            origin=origin_of(self._base),
            credential=self._credential,
            deadlines=Deadlines(),
            headers=headers,
            silence=SILENCE_S,
        )
        self._opening_fields = opening_fields
        host = origin_of(self._base).partition("://")[2]
        forms = [self._base, origin_of(self._base), host, re.sub(r":\d+$", "", host)]
        pattern = "|".join(rf"(?<![\w.-]){re.escape(form)}(?![\w-])" for form in forms)
        self._address_pattern = re.compile(pattern, re.IGNORECASE)
        """Matches its address in any text, whole or the host alone."""
        self._refused: dict[str, frozenset[RefusedField]] = {}
        """For each of its models the fields that it is known to refuse."""
        self._listed_models: tuple[str, ...] | None = None
        self._opaque: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        """What it wants back with the answers that made calls, by the call's id: with the answer, and with the call."""

    async def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        try:
            async with self._open_answer(prompt) as (answer, request), aclosing(answer.chunks()) as chunks:
                # Some servers answer a request for a stream with one JSON object.
                streams = request.body["stream"] and not answer.content_type.endswith("json")
                reader = ResponseReader(
                    UPSTREAM,
                    streamed=streams or answer.content_type == "text/event-stream",
                    mask=self._credential.mask_bytes if self._credential else bytes,
                )
                translator = ReplyTranslator(prompt)
                async for chunk in chunks:
                    events, fault = _read(reader, chunk)
                    for event in translator.translate(events, streamed=True):
                        yield event
                    if translator.has_ended:
                        tail = [] if translator.is_cut else await _read_tail(chunks, reader)
                        break
                    if fault is not None:
                        raise fault
                else:
                    tail, fault = _read(reader, None)
                for event in translator.translate(tail, streamed=reader.streamed):
                    yield event
                if fault is not None and not translator.has_ended:
                    raise fault
                of_answer = translator.opaque.get((-1, 0), {})
                for at, call_id in translator.call_ids.items():
                    if of_answer or at in translator.opaque:
                        self._opaque[call_id] = of_answer, translator.opaque.get(at, {})
                while len(self._opaque) > MAX_OPAQUE:
                    del self._opaque[next(iter(self._opaque))]
                for event in translator.translate_end():
                    yield event
        except FamnbError as error:
            # The upstream's key and its address are nothing for the caller.
            text = self._credential.mask(error.args[0]) if self._credential else error.args[0]
            raise to_service_error(error, self._address_pattern.sub("[upstream]", text)) from None

    async def state(self) -> dict[str, Any]:
        return {"upstream": await self._ask_state()}

    async def models(self) -> tuple[str, ...]:
        await self._ask_state()
        return self._listed_models or ()

    async def aclose(self) -> None:
        await self._sender.aclose()

    @contextlib.asynccontextmanager
    async def _open_answer(self, prompt: GenerationPrompt) -> AsyncIterator[tuple[Response, UpstreamRequest]]:
        """Open the answer to a request, sent again without what the upstream refuses; raises APIStatusError."""
        model = await self._find_model(prompt.model)
        known = self._refused.get(model, frozenset())
        first_error = None
        while True:
            request = build_upstream_request(prompt, model=model, refused=known)
            # What the upstream wants back with earlier answers, which callers of other dialects cannot carry.
            for message in request.body["messages"]:
                for call in message.get("tool_calls", ()):
                    of_answer, of_call = self._opaque.get(call["id"], ({}, {}))
                    message.update(of_answer)
                    call.update(of_call)
            fields = self._opening_fields if len(prompt.turns) == 1 else {}
            body, streams = lenient_json.encode({**request.body, **fields}), request.body["stream"]
            async with self._sender.send(self._base + UPSTREAM.path, body, streams=streams) as answer:
                if 200 <= answer.status < 300:
                    # Only now remembered: an error may name a field without meaning it.
                    self._refused[model] = known
                    prompt.left_out[:] = request.left_out
                    yield answer, request
                    return
                error = errors.read(answer.status, answer.headers, await read_error_body(answer))
            if error.status == 404:  # the model may have been exchanged for another: its name is asked for again
                self._listed_models = None
            first_error = first_error or error
            more = set() if is_prompt_too_long(error) else request.find_refused_fields(error)
            if not more:
                raise first_error
            known |= more

    async def _find_model(self, ours: str) -> str:
        """Return the upstream's name of a model: the one configured, else ours if it has it, else its only one."""
        configured = self._model_names.get(ours) or self._model_names.get("")
        if configured:
            return configured
        if self._listed_models is None:
            await self._ask_state()
        listed = self._listed_models or ()
        return listed[0] if len(listed) == 1 and ours not in listed else ours

    async def _ask_state(self) -> str:
        """Ask the upstream for its models, and remember them; return `up`, `unauthorized` or `down`."""
        state, body = "down", b""
        with contextlib.suppress(FamnbError, TimeoutError):
            async with asyncio.timeout(_PROBE_TIMEOUT_S), self._sender.send(f"{self._base}/v1/models", None) as answer:
                body = await read_error_body(answer)
                # A server without a list of models (404) is up all the same.
                state = "unauthorized" if answer.status in (401, 403) else "down" if answer.status >= 500 else "up"
        if state == "up":
            ids = []
            with contextlib.suppress(ValueError):
                models = lenient_json.as_list(lenient_json.as_object(lenient_json.decode(body)).get("data"))
                ids = [lenient_json.scalar_text(lenient_json.as_object(model).get("id")) for model in models]
            self._listed_models = tuple(filter(None, ids))
        return state


def _parse_model(option: str) -> tuple[str, str]:
    """Return our name of a model, empty for all that have no other, and theirs. Raises InvalidRequest."""
    ours, separator, theirs = option.rpartition("=")
    if (separator and not theirs) or (ours and ours not in DOCUMENT_MODELS and "/" not in ours):
        raise InvalidRequest(
            f"upstream_model: expected THEIRS, or OURS=THEIRS where OURS is one of {', '.join(DOCUMENT_MODELS)} "
            f"or a <provider>/<model>, got {option!r}"
        )
    return ours, theirs


def _read(reader: ResponseReader, chunk: bytes | None) -> tuple[list[Event], FamnbError | None]:
    """Return the events that a chunk completes, or the end of the body for None; and what is wrong behind them."""
    fault = None
    try:
        if chunk is None:
            reader.end(0)
        else:
            reader.feed(chunk, 0)
    except FamnbError as error:
        fault = error
    events = reader.events[:]
    # Many replies are on their way at once, and what was passed on is needed no more.
    reader.events.clear()
    del reader.reads[:-1]
    return events, fault


async def _read_tail(chunks: AsyncIterator[bytes], reader: ResponseReader) -> list[Event]:
    """Return what follows the finish reason, such as usage; an answer without it is complete all the same.

    A body that is read to its end leaves a connection that can be used again.
    """
    tail: list[Event] = []
    with contextlib.suppress(FamnbError, TimeoutError):
        async with asyncio.timeout(_TAIL_TIMEOUT_S):
            async for chunk in chunks:
                # Without content: an engine that goes on after its own end would fill the memory with it.
                tail += [event for event in _read(reader, chunk)[0] if isinstance(event, Usage | Ended | Done)]
            tail += _read(reader, None)[0]
    return tail


def to_service_error(error: FamnbError, message: str) -> ServiceError:
    """Return the error that the caller gets; `message` is the upstream's, without its key and address."""
    message = _TRACEBACK.split(message)[0].strip()
    status = 500
    match error:
        case StreamError() if is_prompt_too_long(error):
            return ServiceError(400, message, code="context_length_exceeded")
        case APIStatusError() if is_invalid_request(error):
            code = error.code if error.code and _ERROR_CODE.fullmatch(error.code) else None
            return ServiceError(400, message, code="context_length_exceeded" if is_prompt_too_long(error) else code)
        case APIStatusError(status=429):
            status, what = 429, "has too many requests; try again later"
        case APIStatusError(status=401 | 403):
            # Not the caller's key: a 401 would have the caller change it.
            what = "refuses the service's own key; its operator can set it"
        case APIStatusError(status=404):
            what = f"does not know the model, or has no chat completions: {message}"
        case APIStatusError():
            what = f"failed ({error.status}): {message}"
        case ConnectError():
            what = "does not answer; try again later"
        case StreamError():
            what = f"failed: {message}"
        case StreamInterrupted():
            what = "broke off; what was sent so far is incomplete"
        case _:
            what = "sent something that is not a chat completion"
    wait = getattr(error, "retry_after", None)
    return ServiceError(status, f"the engine behind this service {what}", retry_after=wait)


def is_prompt_too_long(error: APIStatusError | StreamError) -> bool:
    """Whether an error reports that the prompt does not fit into the model's context."""
    return bool(_CONTEXT.search(f"{error.type} {error.code} {error.args[0]}"))
