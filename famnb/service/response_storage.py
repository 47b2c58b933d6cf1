"""How a response is stored while its events pass, and how a request refers to what is stored.

Started ── add(in_progress) ── events … ── Done ── finish
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from typing import Any

from famnb.endpoints import Endpoint
from famnb.events import Done, Ended, Event, Started, Status
from famnb.reply import Reply, ReplyBuilder
from famnb.request.neutral import PromptToolCall, PromptTurn
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.service.store import ResponseStore, StoredResponse
from famnb.wire import lenient_json
from famnb.wire.dialect import Dialect
from famnb.wire.responses import response_id


async def find_items(store: ResponseStore, key: str, ids: tuple[str, ...]) -> dict[str, dict[str, Any]]:
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
    store: ResponseStore,
    key: str,
    events: AsyncGenerator[Event],
    dialect: Dialect,
    *,
    endpoint: Endpoint,
    conversation: PriorConversation,
) -> AsyncGenerator[Event]:
    """Yield the events unchanged while the response that they make is stored.

    `conversation` is what the request continues, and the turns it adds. The store has the response before the caller
    learns its id, and all of it before the last event is sent, so that a reader of that event can continue it, also
    after a crash. If it cannot be stored, the response fails: its last event would promise something untrue.
    """
    builder = ReplyBuilder()
    is_added = is_finished = False
    early_status: Status = "cancelled"
    try:
        async for event in events:
            builder.add(event)
            if type(event) is Started:
                # Set before: if the store fails halfway, the response has to be finished all the same.
                is_added = True
                empty = dialect.write(Reply(id=event.id, model=event.model, created=event.created))
                body = lenient_json.encode({**empty, "status": "in_progress"})
                await store.add(key, StoredResponse(id=event.id, body=body, conversation=conversation))
            elif type(event) is Done:
                is_finished = True
                final = _final_response(conversation, builder.reply(), dialect)
                try:
                    await store.finish(key, final)
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
            # No caller waits for it any more, and the store takes a response without an end as failed.
            with contextlib.suppress(ServiceError):
                await store.finish(key, _final_response(conversation, partial, dialect))
        await events.aclose()


def _final_response(conversation: PriorConversation, reply: Reply, dialect: Dialect) -> StoredResponse:
    """Return a response that will not change any more."""
    body = dialect.write(reply)
    calls = tuple(PromptToolCall(call.id, call.name, call.text) for call in reply.tool_calls)
    turns = (*conversation.turns, PromptTurn("assistant", reply.text, (), calls))
    whole = PriorConversation(turns, conversation.system)
    return StoredResponse(id=reply.id, status=body["status"], body=lenient_json.encode(body), conversation=whole)
