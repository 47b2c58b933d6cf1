"""What a store of responses is (`Store`), what it stores, and how a response is stored while its events pass.

Started ── add(in_progress) ── events … ── Done ── finish        a stream; the id is known to the caller from the start
Started ── events … ── Done ── add                               a whole reply
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from famnb.endpoints import Endpoint
from famnb.events import Done, Ended, Event, Started, Status
from famnb.reply import Reply, ReplyBuilder
from famnb.request.neutral import PromptToolCall, PromptTurn
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.wire import lenient_json
from famnb.wire.dialect import Dialect
from famnb.wire.responses import response_id

# Bounds the memory, or the file, of a service that runs for weeks; a conversation goes on without its oldest responses.
MAX_RESPONSES = 10_000
"""How many responses a key may have stored; beyond that the oldest is deleted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """A response as far as it came, and what is needed to continue it."""

    id: str = ""
    status: str = "in_progress"
    body: bytes = b""
    """The response object as JSON, as a whole reply has it."""
    previous_id: str | None = None
    """The id of the response that it continues."""
    prior: PriorConversation = dataclasses.field(default_factory=PriorConversation)
    """The conversation up to that response."""
    turns: tuple[PromptTurn, ...] = ()
    """The turns it added: those of the request, then the answer."""
    system: str = ""
    """The system text under which the engine saw all of them."""

    @property
    def is_continuable(self) -> bool:
        """Whether a request may continue it: not while it runs, nor after it failed or was cancelled."""
        return self.status in ("completed", "incomplete")

    @property
    def conversation(self) -> PriorConversation:
        """The conversation up to and including this response."""
        return PriorConversation((*self.prior.turns, *self.turns), self.system)


class Store(Protocol):
    """The responses of each API key; conversations continue by `previous_response_id`, and may branch.

    What `add`, `finish` and `delete` change is as durable as the store is once they return; if it cannot be, they raise
    ServiceError 500.
    """

    async def add(self, key: str, response: StoredResponse, /) -> None:
        """Store a new response, finished or still running."""

    async def finish(self, key: str, response: StoredResponse, /) -> None:
        """Store the end of a response that was added while it ran; one deleted meanwhile stays deleted."""

    async def get(self, key: str, id_: str, /) -> bytes:
        """Return the response object as JSON. Raises ServiceError 404."""

    async def delete(self, key: str, id_: str, /) -> None:
        """Delete a response; those that continue it stay as they are. Raises ServiceError 404."""

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        """Return the conversation up to and including a response. Raises ServiceError 400 if it cannot be continued."""

    async def aclose(self) -> None:
        """Finish pending changes and close the store."""


def not_found_error(id_: str) -> ServiceError:
    """Return the error for retrieving or deleting a response that a key does not have."""
    # The id is the caller's own, of any length.
    return ServiceError(404, f"no response {id_[:80]!r} is stored for this key", code="response_not_found")


def not_continuable_error(id_: str, status: str | None) -> ServiceError:
    """Return the error for continuing a response with this status; None for one that is not stored."""
    reason = "is not stored for this key" if status is None else f"cannot be continued: it is {status}"
    return ServiceError(
        400,
        f"previous_response_id: the response {id_[:80]!r} {reason}; name a finished one, or send the whole input",
        code="previous_response_not_found",
        param="previous_response_id",
    )


async def find_items(store: Store, key: str, ids: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return stored output items by id. Raises ServiceError 400 for one that is not stored for the key."""
    items: dict[str, dict[str, Any]] = {}
    for id_ in ids:
        if id_ not in items:
            with contextlib.suppress(ServiceError):
                response = lenient_json.decode(await store.get(key, response_id(id_)))
                items |= {item["id"]: item for item in response["output"]}
        if id_ not in items:
            raise ServiceError(
                400,
                f"input: the item {id_[:80]!r} is not stored for this key; send the item itself",
                code="invalid_value",
                param="input",
            )
    return items


async def store_events(
    store: Store,
    key: str,
    events: AsyncGenerator[Event],
    dialect: Dialect,
    *,
    endpoint: Endpoint,
    response: StoredResponse,
    streams: bool,
) -> AsyncGenerator[Event]:
    """Yield the events unchanged while the response that they make is stored.

    `response` holds what is known beforehand: what the request continues, and the turns it adds. The store has the
    response before the caller learns its id, and all of it before the last event is sent, so that whoever reads that
    event can continue it, also after a crash. If it cannot be stored, the response fails: its last event would promise
    something untrue.
    """
    builder = ReplyBuilder()
    is_added = is_finished = False
    early_status: Status = "cancelled"
    try:
        async for event in events:
            builder.add(event)
            if type(event) is Started and streams:
                # Only for streams: the id of a whole reply is unknown to its caller before it is complete.
                # Set before: if the store fails halfway, the response has to be finished all the same.
                is_added = True
                await store.add(key, _running_response(response, event, dialect))
            elif type(event) is Done:
                is_finished = True
                final = _final_response(response, builder.reply(), dialect)
                try:
                    await (store.finish(key, final) if is_added else store.add(key, final))
                except ServiceError as error:
                    yield Ended("error", status="failed", fault=error.to_fault(endpoint))
            yield event
    except Exception:
        early_status = "failed"
        raise
    finally:
        if is_added and not is_finished:
            reply = builder.reply()
            partial = dataclasses.replace(reply, status=early_status) if reply.status == "running" else reply
            # Nobody waits for it any more, and a store reads a response without an end as failed.
            with contextlib.suppress(ServiceError):
                await store.finish(key, _final_response(response, partial, dialect))
        await events.aclose()


def _running_response(response: StoredResponse, started: Started, dialect: Dialect) -> StoredResponse:
    """Return a response of which only the id, the model and the time are known."""
    empty = dialect.write(Reply(id=started.id, model=started.model, created=started.created))
    body = lenient_json.encode({**empty, "status": "in_progress"})
    return dataclasses.replace(response, id=started.id, body=body)


def _final_response(response: StoredResponse, reply: Reply, dialect: Dialect) -> StoredResponse:
    """Return a response that will not change any more."""
    body = dialect.write(reply)
    calls = tuple(PromptToolCall(call.id, call.name, call.text) for call in reply.tool_calls)
    turns = (*response.turns, PromptTurn("assistant", reply.text, (), calls))
    return dataclasses.replace(
        response, id=reply.id, status=body["status"], body=lenient_json.encode(body), turns=turns
    )
