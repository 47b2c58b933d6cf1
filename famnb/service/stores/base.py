"""What a store of responses is, and the words for what it does not have; where it keeps them is left to each.

MERGED: How a response gets into a store while its events pass; what a store does with it is left to `store`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from typing import Protocol

from famnb.endpoints import Endpoint
from famnb.events import Done, Ended, Event, Started, Status
from famnb.reply import Reply, ReplyBuilder
from famnb.request.neutral import PromptTurn
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.wire import lenient_json
from famnb.wire.dialect import Dialect

MOST = 10_000
"""How many responses a key may have stored; the oldest is forgotten first."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """A response as far as it came, and what it takes to continue it."""

    id: str = ""
    status: str = "in_progress"
    body: bytes = b""
    """The response object, encoded as a whole reply has it."""
    previous: str | None = None
    """The id of the response that it continues."""
    earlier: PriorConversation = dataclasses.field(default_factory=PriorConversation)
    """The conversation up to that one."""
    said: tuple[PromptTurn, ...] = ()
    """The turns it added: the request's own, then the answer."""
    system: str = ""
    """The system text under which the engine saw all of them."""

    @property
    def is_continuable(self) -> bool:
        """Whether a request may go on from here: not while it runs, nor once it failed or was cancelled."""
        return self.status in ("completed", "incomplete")

    @property
    def conversation(self) -> PriorConversation:
        """The conversation up to and including this response."""
        return PriorConversation((*self.earlier.turns, *self.said), self.system)


class Store(Protocol):
    """The responses of every key, each key's own; a conversation goes on by `previous_response_id`, and branches.

    What `add`, `end` and `delete` were told is kept, as surely as the store keeps anything, once they return; when it
    cannot be, they raise Refusal 500.
    """

    async def add(self, key: str, stored: StoredResponse, /) -> None:
        """Keep a response that is new, finished or still running."""

    async def end(self, key: str, stored: StoredResponse, /) -> None:
        """Keep what became of a response that was added while it ran; one deleted meanwhile stays deleted."""

    async def get(self, key: str, id_: str, /) -> bytes:
        """The response object, encoded; raises Refusal 404."""

    async def delete(self, key: str, id_: str, /) -> None:
        """Forget a response; what continues it already goes on. Raises Refusal 404."""

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        """The conversation that a request with this `previous_response_id` continues; raises Refusal 400."""

    async def aclose(self) -> None:
        """Finish what was begun, and let go of what the store holds."""


def unknown(id_: str) -> ServiceError:
    """The answer to whoever retrieves or deletes what a key does not have."""
    return ServiceError(404, f"no response {id_[:80]!r} is stored for this key", code="response_not_found")


def not_continuable_error(id_: str, status: str | None) -> ServiceError:
    """The answer to whoever continues a response that has this status, or is not stored at all."""
    reason = "is not stored for this key" if status is None else f"cannot be continued: it is {status}"
    return ServiceError(
        400,
        f"previous_response_id: the response {id_[:80]!r} {reason}; name a finished one, or send the whole input",
        code="previous_response_not_found",
        param="previous_response_id",
    )


async def kept(
    store: Store,
    key: str,
    events: AsyncGenerator[Event],
    dialect: Dialect,
    *,
    endpoint: Endpoint,
    asked: StoredResponse,
    streams: bool,
) -> AsyncGenerator[Event]:
    """The events as they are, while the response they make is stored, as far as it came.

    `asked` is what is known before: what the request continues, and the turns it adds. The store has the response
    before a caller learns its id, and all of it before the last event goes out, so that whoever reads that can continue
    it, also after a crash. A response that cannot be stored fails: its last event would promise what is not so.
    """
    folding = ReplyBuilder()
    begun = over = False
    unfinished: Status = "cancelled"
    try:
        async for event in events:
            folding.add(event)
            if type(event) is Started and streams:
                # Nobody learns the id of a whole reply before it is complete.
                begun = True
                await store.add(key, _begun(asked, event, dialect))
            elif type(event) is Done:
                over = True
                complete = _ended(asked, folding.reply(), dialect)
                try:
                    await (store.end(key, complete) if begun else store.add(key, complete))
                except ServiceError as refusal:
                    yield Ended("error", status="failed", fault=refusal.fault(endpoint))
            yield event
    except Exception:
        unfinished = "failed"
        raise
    finally:
        if begun and not over:
            reply = folding.reply()
            broken = dataclasses.replace(reply, status=unfinished) if reply.status == "running" else reply
            # Nobody waits for it any more, and a store reads what it has not heard the end of as failed.
            with contextlib.suppress(ServiceError):
                await store.end(key, _ended(asked, broken, dialect))
        await events.aclose()


def _begun(asked: StoredResponse, started: Started, dialect: Dialect) -> StoredResponse:
    """A response of which only the identity is known."""
    empty = dialect.write(Reply(id=started.id, model=started.model, created=started.created))
    return dataclasses.replace(asked, id=started.id, body=lenient_json.encode({**empty, "status": "in_progress"}))


def _ended(asked: StoredResponse, reply: Reply, dialect: Dialect) -> StoredResponse:
    """A response that will not change any more."""
    body = dialect.write(reply)
    said = (*asked.said, PromptTurn("assistant", reply.text))
    return dataclasses.replace(asked, id=reply.id, status=body["status"], body=lenient_json.encode(body), said=said)
