"""The chat-completions dialect of both chat endpoints, read here; how it is written stands in `chat_writer`.

read   {choices: [{message}], usage}, or chunks {choices: [{delta}]} … {choices: [], usage} and [DONE]
Thinking, text and refusals stand at (0, n) in the order of their appearance, tool calls at (1, index).
"""

from __future__ import annotations

from typing import Any

import msgspec

from famnb.events import Address, Closed, Delta, Ended, Event, Opened, Other, Started, Usage
from famnb.wire import codec, faults
from famnb.wire.chat_writer import ChatWriter, fault, write
from famnb.wire.reading import StreamReader
from famnb.wire.thinktags import ThinkTags

__all__ = ["fault", "read", "reader", "write", "writer"]

_FINISH = {"function_call": "tool_calls", "max_tokens": "length", "end_turn": "stop"}
"""Finish reasons of servers that use other words than this dialect's."""
_THINKING = ("reasoning_content", "reasoning", "thinking")
"""The fields in which servers send thinking; where several are set, they say the same."""


class _Said(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A delta that says text and nothing else, though it may name more."""

    content: str
    role: str | None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning_content: None = None
    reasoning: None = None
    thinking: None = None


class _Choice(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A choice with such a delta."""

    delta: _Said
    index: int
    finish_reason: None = None
    logprobs: None = None


class _Plain(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A chunk that says one piece of text: nearly all of them, and read several times faster than any other."""

    choices: tuple[_Choice]
    id: str = ""
    object: str = ""
    created: int | float = 0
    model: str = ""
    system_fingerprint: str | None = None
    service_tier: str | None = None
    error: None = None
    usage: None = None


_plain = msgspec.json.Decoder(_Plain).decode


def read(body: Any) -> list[Event]:
    """The events of a whole chat completion."""
    fields = codec.mapping(body)
    if faults.is_failure(fields):
        return [*_started(fields), faults.ended(body)]
    choices = codec.array(fields.get("choices"))
    choice = codec.mapping(choices[0] if choices else None)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise codec.not_a_reply(body, "a chat completion with `choices[0].message`")
    content = _Content()
    return [
        *_started(fields),
        *content.add(message, whole=True),
        *content.close(),
        _ended(choice.get("finish_reason")),
        *_usage(fields.get("usage")),
    ]


def reader() -> ChatReader:
    """A reader for one stream of chunks."""
    return ChatReader()


def writer(*, include_usage: bool = False, named: bool = False) -> ChatWriter:  # noqa: ARG001 - as in Dialect
    """A writer for one stream; this dialect names no events, so `named` changes nothing."""
    return ChatWriter(include_usage=include_usage)


class ChatReader(StreamReader):
    """Reads the chunks of one completion; of several choices it follows the one that comes first."""

    __slots__ = ("_choice", "_content", "_known", "_plain", "_started")

    def __init__(self) -> None:
        super().__init__()
        self._content = _Content()
        self._plain = True
        """Whether the chunks of text have been plain ones so far."""
        self._started = Started()
        self._known = False
        """Whether the reply's id and model are known, which later chunks only repeat."""
        self._choice: int | None = -1

    def read(self, data: bytes, /) -> list[Event]:
        content = self._content
        # Once text flows, so that nothing else that a chunk tells could be news.
        if self._plain and content.kind == "text" and content.tags.settled and self._known and not self._done:
            try:
                chunk = _plain(data)
            except (msgspec.DecodeError, UnicodeDecodeError):
                self._plain = False
            else:
                (choice,) = chunk.choices
                if choice.index == self._choice and choice.delta.content and chunk.object != "error":
                    return [Delta(content.at, "text", choice.delta.content)]
        return super().read(data)

    def _read(self, chunk: dict[str, Any]) -> list[Event]:
        if faults.is_failure(chunk):
            return [*self._content.flush(), faults.ended(chunk)]
        events: list[Event] = []
        if not self._known:
            for started in _started(chunk):
                if started != self._started:
                    self._started = started
                    events.append(started)
                    self._known = bool(started.id and started.model)
        for choice in codec.array(chunk.get("choices")):
            if type(choice) is dict:
                self._read_choice(choice, events)
        if usage := chunk.get("usage"):
            events += _usage(usage)
        return events or [Other(codec.word(chunk.get("object")))]

    def end(self) -> list[Event]:
        return self._content.flush()

    def _read_choice(self, choice: dict[str, Any], events: list[Event]) -> None:
        index = choice.get("index")
        if type(index) is not int:
            index = codec.integer(index)
        if self._choice == -1:
            self._choice = index
        elif index != self._choice:
            return
        delta = choice.get("delta")
        if type(delta) is dict:
            events += self._content.add(delta)
        elif self._content.empty:
            events += self._content.add(codec.mapping(choice.get("message")), whole=True)
        if reason := choice.get("finish_reason"):
            events += self._content.close()
            events.append(_ended(reason))


class _Content:
    """The blocks of one message: the same rules for a whole message as for its deltas."""

    __slots__ = ("_by_id", "_by_index", "_calls", "_last", "at", "kind", "tags")

    def __init__(self) -> None:
        self.tags = ThinkTags()
        self.at: Address = (0, -1)
        """Where the block stands that grows."""
        self.kind = ""
        """Its kind; empty while none is open."""
        self._calls: dict[Address, tuple[str, str]] = {}
        self._by_id: dict[str, Address] = {}
        self._by_index: dict[int, Address] = {}
        self._last: Address | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing was said yet."""
        return self.at[1] < 0 and not self._calls

    def add(self, message: dict[str, Any], *, whole: bool = False) -> list[Event]:
        """The events that a message says, or a delta of one."""
        content = message.get("content")
        events: list[Event] = []
        if thinking := next((said for name in _THINKING if (said := codec.text(message.get(name)))), ""):
            events += self.flush()
            self._piece(events, "thinking", thinking)
        for kind, piece in self._pieces(content):
            self._piece(events, kind, piece)
        if refusal := codec.text(message.get("refusal")):
            self._piece(events, "refusal", refusal)
        calls = message.get("tool_calls")
        if not calls and isinstance(message.get("function_call"), dict):
            calls = [{"index": 0, "function": message["function_call"]}]
        for position, call in enumerate(calls if isinstance(calls, list) else [calls]):
            if isinstance(call, dict):
                self._call(events, call, position if whole else codec.integer(call.get("index")))
        return events

    def flush(self) -> list[Event]:
        """What was held back because a tag might have followed; none is looked for any more."""
        events: list[Event] = []
        for kind, piece in self.tags.end():
            self._piece(events, kind, piece)
        return events

    def close(self) -> list[Event]:
        """The events that end the message: every block is finished."""
        events = self.flush()
        if self.kind:
            events.append(Closed(self.at))
            self.kind = ""
        return [*events, *(Closed(at) for at in self._calls)]

    def _pieces(self, content: Any) -> list[tuple[str, str]]:
        """The pieces of a content of any shape, each with its kind."""
        if isinstance(content, str):
            return self.tags.split(content) if content else []
        pieces: list[tuple[str, str]] = []
        for part in content if isinstance(content, list) else [content]:
            type_ = codec.word(codec.mapping(part).get("type"))
            kind = type_ if type_ == "refusal" else "thinking" if type_.startswith(("think", "reason")) else "text"
            if said := codec.text(part):
                pieces += self.tags.split(said) if kind == "text" else [(kind, said)]
        return pieces

    def _piece(self, events: list[Event], kind: str, piece: str) -> None:
        if kind != self.kind:
            if self.kind:
                events.append(Closed(self.at))
            self.at, self.kind = (0, self.at[1] + 1), kind
            events.append(Opened(self.at, kind))
        events.append(Delta(self.at, kind, piece))

    def _call(self, events: list[Event], call: dict[str, Any], index: int | None) -> None:
        function = codec.mapping(call.get("function"))
        id_, name = codec.word(call.get("id")), codec.word(function.get("name"))
        at = self._last = self._place(index, id_, name)
        if index is not None:
            self._by_index[index] = at
        if id_:
            self._by_id[id_] = at
        known = self._calls.get(at)
        named = (id_ or known[0], name or known[1]) if known else (id_, name)
        if named != known:
            self._calls[at] = named
            events.append(Opened(at, "tool_call", *named))
        if said := codec.arguments(function.get("arguments")):
            events.append(Delta(at, "tool_call", said))

    def _place(self, index: int | None, id_: str, name: str) -> Address:
        """Where a call's delta belongs: by its index, else by its id, else with the call before it.

        A name begins another call where the id is another, as some servers give every call the index 0,
        and where neither index nor id is sent at all.
        """
        at = self._by_index.get(index) if index is not None else self._by_id.get(id_) if id_ else self._last
        if at is not None:
            known_id, known_name = self._calls[at]
            other = known_id not in ("", id_) if id_ else bool(index is None and not known_id and known_name)
            if not (name and other):
                return at
        wanted = (1, index or 0)
        return (1, max(place for _, place in self._calls) + 1) if wanted in self._calls else wanted


def _started(body: dict[str, Any]) -> list[Started]:
    started = Started(codec.word(body.get("id")), codec.word(body.get("model")), codec.integer(body.get("created")))
    return [] if started == Started() else [started]


def _ended(reason: Any) -> Ended:
    said = codec.word(reason)
    return Ended(_FINISH.get(said, said) or None, said or None)


def _usage(value: Any) -> list[Event]:
    """The usage, normalised; where the total counts reasoning beside the completion, output is derived from both."""
    fields = codec.mapping(value)
    asked = codec.integer(fields.get("prompt_tokens"))
    completed = codec.integer(fields.get("completion_tokens"))
    reasoning = codec.integer(codec.mapping(fields.get("completion_tokens_details")).get("reasoning_tokens"))
    total = codec.integer(fields.get("total_tokens"))
    usage = Usage(
        input_tokens=asked,
        output_tokens=completed,
        reasoning_tokens=reasoning,
        cached_tokens=codec.integer(codec.mapping(fields.get("prompt_tokens_details")).get("cached_tokens")),
        total_tokens=total,
    )
    if asked is not None and completed is not None and reasoning and total == asked + completed + reasoning:
        usage = usage.then(Usage(output_tokens=completed + reasoning, derived=("output_tokens",)))
    return [] if usage == Usage() else [usage]
