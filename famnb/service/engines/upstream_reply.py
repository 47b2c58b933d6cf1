"""What an upstream says, as the caller is told it: thinking only where it was asked for, an end only with proof."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator

from famnb.errors import StreamError, StreamInterrupted
from famnb.events import Address, Closed, Delta, Done, Ended, Event, Opened, Started, Usage
from famnb.reply import ReplyBuilder
from famnb.service.prompt import GenerationPrompt

_TOLD = frozenset({"text", "refusal", "tool_call"})
"""The kinds of block that every endpoint has a place for."""
_FINISH = {"length", "content_filter", "tool_calls", "stop_sequence"}
_FAILED = {"abort", "error", "cancelled"}
"""Finish reasons that say that the answer is not finished."""


class ReplyTranslator:
    """Tells one reply on; the clock, in seconds, measures how long a streamed thinking block took."""

    def __init__(self, prompt: GenerationPrompt, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._kinds = _TOLD if prompt.thinking is None else _TOLD | {"thinking"}
        self._clock = clock
        self._begun = False
        self._withheld: set[Address] = set()
        self._thinking: dict[Address, float] = {}
        self._calls: set[Address] = set()

    def told(self, events: Iterable[Event], *, streamed: bool) -> Iterator[Event]:
        """The content among these events, begun by a `Started`; what ends the reply is left to `ending`."""
        for event in events:
            match event:
                case Started():
                    yield from self._start()
                case Delta() | Opened() if event.kind not in self._kinds:
                    self._withheld.add(event.at)
                case Delta():
                    yield from self._start()
                    if streamed and event.kind == "thinking":
                        self._thinking.setdefault(event.at, self._clock())
                    yield event
                case Opened():
                    yield from self._start()
                    yield self._opened(event)
                case Closed() if event.at not in self._withheld:
                    yield from self._start()
                    began = self._thinking.get(event.at)
                    yield (
                        event if began is None else Closed(event.at, event.text, round((self._clock() - began) * 1000))
                    )
                case _:
                    pass

    def ending(self, folding: ReplyBuilder) -> Iterator[Event]:
        """The end of the reply: its reason and its usage, as far as the upstream said it.

        Raises StreamInterrupted without a finish reason, StreamError where the reason is a failure.
        """
        ended = folding.ended
        if ended is None:
            # A terminator proves nothing: some servers send it when they drop an answer for the next request.
            raise StreamInterrupted("the upstream ended its answer without a finish reason")
        reason = ended.finish_reason or "stop"
        if reason in _FAILED:
            raise StreamError(f"the upstream gave up ({reason})")
        if self._calls and reason not in _FINISH:
            reason = "tool_calls"
        yield from self._start()
        yield Ended(reason if reason in _FINISH else "stop", stop_sequence=ended.stop_sequence)
        if folding.usage != Usage():
            yield folding.usage.with_total()
        yield Done()

    def _start(self) -> Iterator[Event]:
        if not self._begun:
            self._begun = True
            yield Started()

    def _opened(self, event: Opened) -> Opened:
        """A block as it opens; a tool call gets one id for good, since its result will refer to it."""
        if event.kind != "tool_call":
            return event
        known = event.at in self._calls
        self._calls.add(event.at)
        return Opened(event.at, event.kind, "" if known else event.id or f"call_{uuid.uuid4().hex}", event.name)
