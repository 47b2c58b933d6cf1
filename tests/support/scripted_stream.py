"""A stream that says what a test tells it to, in steps."""

import dataclasses
from datetime import UTC, datetime
from typing import Self

from famnb.client.engine import new_call_id
from famnb.client.exchange import Exchange
from famnb.endpoints import ENDPOINTS, compose
from famnb.events import Event
from famnb.reply import Reply, ReplyBuilder


class ScriptedStream:
    """What a pane reads of a stream; `add` adds events, `end` ends it."""

    def __init__(self, prompt: str = "Why?", *, endpoint: str = "messages") -> None:
        request = compose(endpoint, prompt)
        self.exchange = Exchange(
            id=new_call_id(),
            started_at=datetime.now(UTC),
            request=request,
            endpoint=ENDPOINTS[endpoint],
            url="http://127.0.0.1",
        )
        self.events: list[Event] = []
        self.running = True
        self.stopped = False
        self._builder = ReplyBuilder()
        self._changes: dict[str, object] = {"status": "running"}

    @property
    def reply(self) -> Reply:
        return dataclasses.replace(self._builder.reply(), request=self.exchange.request, **self._changes)

    def add(self, *events: Event) -> Self:
        for event in events:
            self._builder.add(event)
            self.events.append(event)
        return self

    def update(self, **changes: object) -> Self:
        """Fields of the running reply that do not follow from the events."""
        self._changes |= changes
        return self

    def end(self, **changes: object) -> Self:
        """Nothing more comes; `changes` are fields of the final reply."""
        self._changes = changes
        self.running = False
        return self

    def stop(self) -> None:
        self.stopped = True
