"""An upstream's reply: `ReplyTranslator` makes the service's events of the upstream's, and keeps none of them."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from famnb.errors import StreamError, StreamInterrupted
from famnb.events import Address, Closed, Delta, Done, Ended, Event, Opaque, Opened, Started, Usage
from famnb.reply import ReplyBuilder
from famnb.service.engines.base import StopMatcher
from famnb.service.prompt import GenerationPrompt
from famnb.wire import lenient_json

_COMMON_KINDS = frozenset({"text", "refusal", "tool_call"})
"""The kinds of block that every endpoint can write."""
# Servers have many more words for an ordinary end (`eos_token`, `function_call`); callers know these.
_FINISH_REASONS = {"length", "content_filter", "tool_calls", "stop_sequence"}
"""Finish reasons that are passed on; any other that is not a failure becomes `stop`."""
_FAILURE_REASONS = {"abort", "error", "cancelled"}
"""Finish reasons with which some servers report a failure."""


class ReplyTranslator:
    """Translates the events of one reply, of which it keeps only the end.

    Thinking and log-probabilities pass only if the prompt shows them, an end only with a finish reason; tool calls get
    ids where they have none. A reply that is longer than the prompt allows is cut there, and one that comes to a stop
    text before it, for engines ignore what they do not know.
    """

    def __init__(self, prompt: GenerationPrompt) -> None:
        shown = {"thinking": prompt.shows_thinking, "logprobs": prompt.sampling.get("logprobs")}
        self._kinds = _COMMON_KINDS | {kind for kind, is_shown in shown.items() if is_shown}
        self.is_cut = False
        """Whether the reply was ended here, while the engine would go on."""
        self._cap = math.inf if prompt.enforced_cap is None else prompt.enforced_cap
        self._tokens = self._reported_tokens = 0
        self._stops = StopMatcher(prompt.stop)
        self._text_at: Address | None = None
        """The text of which the stop texts' matcher may hold some back."""
        self._end = ReplyBuilder()
        """The end of the reply, without its content."""
        self._has_started = False
        self._withheld: set[Address] = set()
        self._thinking_since: dict[Address, float] = {}
        self.opaque: dict[Address, dict[str, Any]] = {}
        """What the upstream wants back with the answer and its calls."""
        self.call_ids: dict[Address, str] = {}
        """The ids by which callers know the calls."""

    @property
    def has_ended(self) -> bool:
        """Whether a finish reason, a terminator or the prompt's own limit has ended the reply."""
        return self.is_cut or self._end.done or self._end.ended is not None

    def translate(self, events: Iterable[Event], *, streamed: bool) -> Iterator[Event]:
        """Yield the content among these events, a `Started` before the first; the end follows from `translate_end`."""
        for event in events:
            match event:
                case Delta(kind="logprobs"):
                    # It says something about tokens that have been counted.
                    if "logprobs" in self._kinds:
                        yield event
                case Delta() if self._tokens >= self._cap:
                    self.is_cut = True
                    return
                case Delta():
                    self._tokens += bool(event.text)
                    if event.kind not in self._kinds:
                        self._withheld.add(event.at)
                        continue
                    yield from self._start()
                    if streamed and event.kind == "thinking":
                        self._thinking_since.setdefault(event.at, time.monotonic())
                    if event.kind != "text":
                        yield event
                        continue
                    self._text_at = event.at
                    if text := self._stops.feed(event.text):
                        yield Delta(event.at, "text", text)
                    if self._stops.stop:
                        self.is_cut = True
                        return
                case Started():
                    yield from self._start()
                case Opened() | Closed() if self._text_at is not None:
                    yield from self._release_text()
                    yield from self.translate([event], streamed=streamed)
                case Opened() if event.kind not in self._kinds:
                    self._withheld.add(event.at)
                case Opened() if event.kind == "tool_call":
                    yield from self._start()
                    # Its result will refer to it, so that it gets an id if it has none; opened again, it keeps its own.
                    id_ = "" if event.at in self.call_ids else event.id or f"call_{uuid.uuid4().hex}"
                    self.call_ids.setdefault(event.at, id_)
                    yield Opened(event.at, event.kind, id_, event.name)
                case Opened():
                    yield from self._start()
                    yield event
                case Closed() if event.at not in self._withheld:
                    yield from self._start()
                    since = self._thinking_since.get(event.at)
                    if since is None:
                        yield event
                    else:
                        yield Closed(event.at, event.text, round((time.monotonic() - since) * 1000))
                case Usage():
                    self._end.add(event)
                    # A count of zero, or one that stands still, is ignored; content since the last one is added.
                    if (event.output_tokens or 0) > self._reported_tokens:
                        self._reported_tokens = self._tokens = event.output_tokens or 0
                case Opaque():
                    self.opaque[event.at] = lenient_json.decode(event.text.encode())
                case Ended() | Done():
                    self._end.add(event)
                case _:
                    pass

    def _release_text(self) -> Iterator[Event]:
        """Yield what was held back of a text, for it could have been the start of a stop text."""
        if self._text_at is not None and (rest := self._stops.end()):
            yield Delta(self._text_at, "text", rest)
        self._text_at = None

    def translate_end(self) -> Iterator[Event]:
        """Yield the end of the reply: its finish reason and its usage, as far as the upstream reported it.

        Raises StreamInterrupted if there is no finish reason, StreamError if the upstream reported a failure.
        """
        ended = Ended("length") if self.is_cut else self._end.ended
        if stop := self._stops.stop:
            ended = Ended("stop_sequence", stop_sequence=stop)
        if ended is None:
            # A terminator proves nothing: some servers send it when they drop an answer for the next request.
            raise StreamInterrupted("the upstream ended its answer without a finish reason")
        if ended.fault is not None:
            raise StreamError(ended.fault.message, type=ended.fault.type, code=ended.fault.code)
        reason = ended.finish_reason or "stop"
        if reason in _FAILURE_REASONS:
            raise StreamError(f"the upstream gave up ({reason})")
        yield from self._release_text()
        # Some servers end a reply with tool calls with `stop`.
        if self.call_ids and reason not in _FINISH_REASONS:
            reason = "tool_calls"
        yield from self._start()
        yield Ended(reason if reason in _FINISH_REASONS else "stop", stop_sequence=ended.stop_sequence)
        if self._end.usage != Usage():
            yield self._end.usage.with_total()
        yield Done()

    def _start(self) -> Iterator[Event]:
        if not self._has_started:
            self._has_started = True
            yield Started()
