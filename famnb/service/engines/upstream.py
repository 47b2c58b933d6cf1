"""The upstream engine: any server with `POST /v1/chat/completions` answers; what is asked and told stands beside it.

model's name ── request ── POST ── (a field refused: once more without it) ── events ── end

MERGED: What goes wrong with an upstream, as a Refusal: the caller's own mistakes are 400, too many 429, all else 500.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from famnb.client.auth import Credential
from famnb.client.config import Deadlines, checked
from famnb.client.engine import drained, error_body
from famnb.client.response_reader import ResponseReader
from famnb.client.transport import Response, Transport, origin_of
from famnb.endpoints import ENDPOINTS, UPSTREAM
from famnb.errors import (
    APIStatusError,
    ConnectError,
    FamnbError,
    InvalidRequest,
    StreamDecodeError,
    StreamError,
    StreamInterrupted,
)
from famnb.events import Event
from famnb.service.engines.upstream_reply import ReplyTranslator
from famnb.service.engines.upstream_request import RefusedField, UpstreamRequest, asking, invalid
from famnb.service.errors import ServiceError
from famnb.service.prompt import GenerationPrompt
from famnb.wire import errors, lenient_json

_CONTEXT = re.compile(r"context.?(length|window|size)|maximum context|(prompt|input) is too long|too many tokens", re.I)
"""How servers say that a prompt does not fit."""
_TRACE = re.compile(r"\n\s*\n|\s*Traceback|\s*File \"")
"""Where the inside of a server begins to show in its words."""
_WORD = re.compile(r"[a-z][a-z_]*")
"""What an error code looks like; servers also send numbers and sentences."""


def refusal(error: FamnbError, *, hide: Callable[[str], str]) -> ServiceError:
    """The refusal for a failed call; `hide` takes the upstream's key and address out of its words."""
    match error:
        case APIStatusError(status=int() as status):
            return _by_status(error, status, hide(_TRACE.split(error.args[0])[0].strip()))
        case ConnectError():
            return ServiceError(500, "the engine behind this service does not answer; try again later")
        case StreamError() if too_long(error):
            return ServiceError(400, hide(str(error)), code="context_length_exceeded")
        case StreamError():
            return ServiceError(500, f"the engine behind this service failed: {hide(str(error))}")
        case StreamInterrupted():
            return ServiceError(500, "the engine behind this service broke off; what was sent so far is incomplete")
        case _:
            return ServiceError(500, "the engine behind this service sent something that is no chat completion")


def too_long(error: APIStatusError | StreamError) -> bool:
    """Whether an error says that the prompt does not fit into the model's context."""
    return bool(_CONTEXT.search(f"{error.type} {error.code} {error.args[0]}"))


def _by_status(error: APIStatusError, status: int, words: str) -> ServiceError:
    wait = error.retry_after
    headers = (
        {} if wait is None else {"retry-after": str(math.ceil(wait)), "retry-after-ms": str(math.ceil(wait * 1000))}
    )
    match status:
        case _ if invalid(error) and too_long(error):
            return ServiceError(400, words, code="context_length_exceeded")
        case _ if invalid(error):
            return ServiceError(400, words, code=error.code if error.code and _WORD.fullmatch(error.code) else None)
        case 429:
            return ServiceError(
                429, "the engine behind this service has too many requests; try again later", headers=headers
            )
        case 401 | 403:
            return ServiceError(
                500, "the engine behind this service refuses the service's own key; its operator can set it"
            )
        case 404:
            said = f"the engine behind this service does not know the model, or has no chat completions: {words}"
            return ServiceError(500, said)
        case _:
            return ServiceError(500, f"the engine behind this service failed ({status}): {words}", headers=headers)


SILENCE_S = 600.0
"""How long an upstream may say nothing before it counts as gone."""
_STALE_S = 1.0
"""A connection that breaks sooner than this was closing already, which says nothing about the upstream."""
_REST_S = 2.0
"""How long usage and the end of the body may take once the answer has ended."""
_PROBE_S = 2.0
"""How long the upstream may take to say whether it is there."""
_KNOWN_S = 1.0
"""How long what it said is good: anyone may ask for `/health`, as often as they like."""
_MODELS = tuple(dict.fromkeys(model for endpoint in ENDPOINTS.values() for model in endpoint.models))


class UpstreamEngine:
    """Answers prompts by a server of the field's chat dialect; made and used in one event loop."""

    name = "upstream"

    def __init__(self, url: str, *, key_variable: str = "", models: str | Sequence[str] = ()) -> None:
        """`key_variable` names the environment variable with the key; `models` are `ours=theirs`, or one for the rest.

        Raises InvalidRequest for an address or a model that is none, CredentialError for a key that is none.
        """
        self._base = checked("upstream", url)
        self._credential = Credential(os.getenv(key_variable)) if key_variable else None
        if self._credential:
            self._credential.check()
        self._names = dict(map(_pair, [models] if isinstance(models, str) else models))
        """For each of our models the upstream's name of it; under the empty name, that of all others."""
        self._transport = Transport(
            origin_of(self._base), credential=self._credential, deadlines=Deadlines(), silence=SILENCE_S
        )
        self._address = _address_of(self._base)
        self._refused: dict[str, frozenset[RefusedField]] = {}
        """For each of its models what it is known to refuse."""
        self._listed: tuple[str, ...] | None = None
        self._state: tuple[float, str] | None = None

    async def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        try:
            async with self._answer(prompt) as (answer, asked), aclosing(self._told(prompt, answer, asked)) as events:
                async for event in events:
                    yield event
        except FamnbError as error:
            raise refusal(error, hide=self._hidden) from None

    async def state(self) -> dict[str, Any]:
        return {"upstream": await self._found()}

    async def aclose(self) -> None:
        await self._transport.aclose()

    @contextlib.asynccontextmanager
    async def _answer(self, prompt: GenerationPrompt) -> AsyncIterator[tuple[Response, UpstreamRequest]]:
        """The answer to a request without what the upstream refuses; raises APIStatusError where it refuses more."""
        model = await self._theirs(prompt.model)
        refused, first = self._refused.get(model, frozenset()), None
        while True:
            asked = asking(prompt, model=model, refused=refused)
            async with self._sent(lenient_json.encode(asked.body), streams=asked.body["stream"]) as answer:
                if 200 <= answer.status < 300:
                    # Kept only now: an error may name a field without meaning it.
                    self._refused[model] = self._refused.get(model, frozenset()) | refused
                    yield answer, asked
                    return
                error = errors.read(answer.status, answer.headers, await error_body(answer))
            if error.status == 404:
                self._listed = None
            first = first or error
            more = set() if too_long(error) else asked.refused(error)
            if not more:
                raise first
            refused |= more

    @contextlib.asynccontextmanager
    async def _sent(self, body: bytes, *, streams: bool) -> AsyncIterator[Response]:
        """The answer to a request, which is sent once more where a kept connection turned out to be closing."""
        url, began = self._base + UPSTREAM.path, time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(self._transport.send(url, body, streams=streams))
            except ConnectError:
                if time.monotonic() - began > _STALE_S:
                    raise
                answer = await stack.enter_async_context(self._transport.send(url, body, streams=streams))
            yield answer

    async def _told(self, prompt: GenerationPrompt, answer: Response, asked: UpstreamRequest) -> AsyncGenerator[Event]:
        """What an answer says, up to its proven end; raises FamnbError where it has none."""
        streams = asked.body["stream"] and not answer.content_type.endswith("json")
        intake = ResponseReader(
            UPSTREAM,
            streamed=streams or answer.content_type == "text/event-stream",
            mask=self._credential.masked_bytes if self._credential else bytes,
        )
        telling, seen, folding = ReplyTranslator(prompt), 0, intake.folding
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                failure = _fed(intake, chunk)
                for event in telling.told(intake.events[seen:], streamed=True):
                    yield event
                seen = len(intake.events)
                if failure is not None:
                    raise failure
                if folding.done or folding.ended is not None:
                    break
            if not folding.done:
                await _rest(chunks, intake)
            intake.end(0)
            for event in telling.told(intake.events[seen:], streamed=intake.streamed):
                yield event
            for event in telling.ending(folding):
                yield event
            if folding.done:
                await drained(chunks)

    async def _theirs(self, ours: str) -> str:
        """The upstream's name of a model: as told, else our own if it has such a model, else its only one."""
        told = self._names.get(ours) or self._names.get("")
        if told:
            return told
        if self._listed is None:
            await self._found()
        listed = self._listed or ()
        return listed[0] if len(listed) == 1 and ours not in listed else ours

    async def _found(self) -> str:
        """Whether the upstream is there: `up`, `unauthorized` or `down`; which models it lists is kept."""
        if self._state is not None and time.monotonic() - self._state[0] < _KNOWN_S:
            return self._state[1]
        word, body = "down", b""
        with contextlib.suppress(FamnbError, TimeoutError):
            async with asyncio.timeout(_PROBE_S), self._transport.send(f"{self._base}/v1/models", None) as answer:
                body = await error_body(answer)
                word = "unauthorized" if answer.status in (401, 403) else "down" if answer.status >= 500 else "up"
        if word == "up":
            self._listed = _ids(body)
        self._state = time.monotonic(), word
        return word

    def _hidden(self, words: str) -> str:
        """Words of the upstream without its address and its key."""
        words = self._credential.masked(words) if self._credential else words
        return self._address.sub("[upstream]", words)


def _pair(words: str) -> tuple[str, str]:
    """Our name of a model, empty for all that have no other, and theirs; raises InvalidRequest."""
    ours, marked, theirs = words.rpartition("=")
    if (marked and not theirs) or (ours and ours not in _MODELS and "/" not in ours):
        raise InvalidRequest(
            f"upstream_model: expected THEIRS, or OURS=THEIRS where OURS is one of {', '.join(_MODELS)} "
            f"or a <provider>/<model>, got {words!r}"
        )
    return ours, theirs


def _fed(intake: ResponseReader, chunk: bytes) -> StreamDecodeError | None:
    """Take a chunk in; an event that cannot be read is given back, since those before it are to be told first."""
    try:
        intake.feed(chunk, 0)
    except StreamDecodeError as failure:
        return failure
    return None


async def _rest(chunks: AsyncIterator[bytes], intake: ResponseReader) -> None:
    """What follows the end of an answer, usage and the terminator: its lack spoils nothing."""
    with contextlib.suppress(StreamInterrupted, StreamDecodeError, TimeoutError):
        async with asyncio.timeout(_REST_S):
            async for chunk in chunks:
                intake.feed(chunk, 0)
                if intake.folding.done:
                    break


def _ids(body: bytes) -> tuple[str, ...]:
    """The models in a list of them; none where it is no such list."""
    try:
        listed = lenient_json.array(lenient_json.mapping(lenient_json.decode(body)).get("data"))
    except ValueError:
        return ()
    return tuple(id_ for model in listed if (id_ := lenient_json.word(lenient_json.mapping(model).get("id"))))


def _address_of(base: str) -> re.Pattern[str]:
    """Finds an address in any words, whole or its host alone."""
    origin = origin_of(base)
    netloc = origin.partition("://")[2]
    forms = [base, origin, netloc, re.sub(r":\d+$", "", netloc)]
    return re.compile("|".join(rf"(?<![\w.-]){re.escape(form)}(?![\w-])" for form in forms), re.IGNORECASE)
