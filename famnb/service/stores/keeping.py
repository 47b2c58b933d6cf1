"""How a response gets into a store while its events pass; what a store does with it is left to `store`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator

from famnb.endpoints import ENDPOINTS
from famnb.events import Done, Ended, Event, Started, Status
from famnb.reply import Folding, Reply
from famnb.service.prompt import Turn
from famnb.service.refusal import Refusal
from famnb.service.stores.store import Store, Stored
from famnb.wire import codec
from famnb.wire.dialect import Dialect


async def kept(
    store: Store, key: str, events: AsyncGenerator[Event], dialect: Dialect, *, asked: Stored, streams: bool
) -> AsyncGenerator[Event]:
    """The events as they are, while the response they make is stored, as far as it came.

    `asked` is what is known before: what the request continues, and the turns it adds. The store has the response
    before a caller learns its id, and all of it before the last event goes out, so that whoever reads that can continue
    it, also after a crash. A response that cannot be stored fails: its last event would promise what is not so.
    """
    folding = Folding()
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
                except Refusal as refusal:
                    yield Ended("error", status="failed", fault=refusal.fault(ENDPOINTS["responses"]))
            yield event
    except Exception:
        unfinished = "failed"
        raise
    finally:
        if begun and not over:
            reply = folding.reply()
            broken = dataclasses.replace(reply, status=unfinished) if reply.status == "running" else reply
            # Nobody waits for it any more, and a store reads what it has not heard the end of as failed.
            with contextlib.suppress(Refusal):
                await store.end(key, _ended(asked, broken, dialect))
        await events.aclose()


def _begun(asked: Stored, started: Started, dialect: Dialect) -> Stored:
    """A response of which only the identity is known."""
    empty = dialect.write(Reply(id=started.id, model=started.model, created=started.created))
    return dataclasses.replace(asked, id=started.id, body=codec.encode({**empty, "status": "in_progress"}))


def _ended(asked: Stored, reply: Reply, dialect: Dialect) -> Stored:
    """A response that will not change any more."""
    body = dialect.write(reply)
    said = (*asked.said, Turn("assistant", reply.text))
    return dataclasses.replace(asked, id=reply.id, status=body["status"], body=codec.encode(body), said=said)
