"""A stream that says what a test tells it to, in steps, and outputs whose contents a test can see."""

from __future__ import annotations

import dataclasses

import pytest

from famnb.client.exchange import Exchange
from famnb.endpoints import ENDPOINTS, compose
from famnb.events import Event
from famnb.reply import Reply, ReplyBuilder


class Scripted:
    """What a pane reads of a stream; `says` adds events, `ends` ends it."""

    def __init__(self, prompt: str = "Why?", *, endpoint: str = "messages") -> None:
        request = compose(endpoint, prompt)
        self.exchange = Exchange(request=request, endpoint=ENDPOINTS[endpoint], url="http://127.0.0.1")
        self.events: list[Event] = []
        self.running = True
        self.stopped = False
        self._folding = ReplyBuilder()
        self._changes: dict[str, object] = {"status": "running"}

    @property
    def reply(self) -> Reply:
        return dataclasses.replace(self._folding.reply(), request=self.exchange.request, **self._changes)

    def says(self, *events: Event) -> Scripted:
        for event in events:
            self._folding.add(event)
            self.events.append(event)
        return self

    def knows(self, **changes: object) -> Scripted:
        """Fields of the running reply that do not follow from the events."""
        self._changes |= changes
        return self

    def ends(self, **changes: object) -> Scripted:
        """Nothing more comes; `changes` are fields of the final reply."""
        self._changes = changes
        self.running = False
        return self

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def stream() -> Scripted:
    """A stream that has said nothing yet."""
    return Scripted()


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    """How to make more of them."""
    return Scripted


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What composers and boards put into their outputs, in order."""
    made: list[dict[str, str]] = []
    monkeypatch.setattr("famnb.widget.live.output.Output.replace", lambda _self, bundle: made.append(bundle))
    return made
