"""Stored responses, each key's own, in memory; they let a conversation go on by `previous_response_id`, and branch."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from typing import Any

from famnb.events import Done, Event, Started, Status
from famnb.reply import Folding, Reply
from famnb.service.prompt import Earlier, Turn
from famnb.service.refusal import Refusal
from famnb.wire.dialect import Dialect

MOST = 10_000
"""How many responses a key may have stored; the oldest is forgotten first."""


@dataclasses.dataclass(slots=True)
class Stored:
    """A response, and the conversation up to and including it."""

    body: dict[str, Any]
    """The response object as a whole reply has it."""
    conversation: Earlier | None = None
    """None while it is not to be continued: it still runs, failed, or was cancelled."""


class Store:
    """The responses of every key; each branch of a conversation shares what came before it."""

    def __init__(self) -> None:
        self._shelves: dict[str, dict[str, Stored]] = {}

    def put(self, key: str, stored: Stored) -> None:
        """Keep a response under the id in its body."""
        shelf = self._shelves.setdefault(key, {})
        shelf[stored.body["id"]] = stored
        if len(shelf) > MOST:
            del shelf[next(iter(shelf))]

    def get(self, key: str, id_: str) -> Stored:
        """A response of this key; raises Refusal 404."""
        try:
            return self._shelves.get(key, {})[id_]
        except KeyError:
            raise Refusal(404, f"no response {id_[:80]!r} is stored for this key", code="response_not_found") from None

    def delete(self, key: str, id_: str) -> None:
        """Forget a response; what continues it already goes on. Raises Refusal 404."""
        self.get(key, id_)
        del self._shelves[key][id_]

    def continued(self, key: str, id_: str | None) -> Earlier:
        """The conversation that a request with this `previous_response_id` continues; raises Refusal 400."""
        if id_ is None:
            return Earlier()
        found = self._shelves.get(key, {}).get(id_)
        if found is not None and found.conversation is not None:
            return found.conversation
        reason = "is not stored for this key" if found is None else f"cannot be continued: it is {found.body['status']}"
        raise Refusal(
            400,
            f"previous_response_id: the response {id_[:80]!r} {reason}; name a finished one, or send the whole input",
            code="previous_response_not_found",
            param="previous_response_id",
        )

    async def kept(
        self, key: str, events: AsyncGenerator[Event], dialect: Dialect, *, turns: tuple[Turn, ...], system: str
    ) -> AsyncGenerator[Event]:
        """The events as they are, while the response they make is stored, as far as it came.

        It is complete in the store before the last event goes out, so that whoever reads that can continue it.
        """
        folding = Folding()
        stored: Stored | None = None
        unfinished: Status = "cancelled"

        def close() -> None:
            reply = folding.reply()
            if stored is None:
                return
            if reply.status == "running":
                reply = dataclasses.replace(reply, status=unfinished)
            stored.body = dialect.write(reply)
            if reply.status in ("completed", "incomplete"):
                stored.conversation = Earlier((*turns, Turn("assistant", reply.text)), system)

        try:
            async for event in events:
                folding.add(event)
                if type(event) is Started:
                    empty = dialect.write(Reply(id=event.id, model=event.model, created=event.created))
                    stored = Stored({**empty, "status": "in_progress"})
                    self.put(key, stored)
                elif type(event) is Done:
                    close()
                yield event
        except Exception:
            unfinished = "failed"
            raise
        finally:
            close()
            await events.aclose()
