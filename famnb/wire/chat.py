"""Reads and writes the chat-completions dialect of both chat endpoints, whole and streamed.

{choices: [{message}], usage}, or chunks {choices: [{delta}]} … {choices: [], usage} and [DONE]
Thinking, text, refusals and images have the addresses (0, n) in the order of their appearance, tool calls (1, index):
calls come last in a reply, whenever they appear, but for what is said about the text, (2, n) and (3, 0), and for audio
and the calls that the service made itself, (4, n). What the service wants back with the message is at (-1, 0), what it
wants back with a call at the address of the call. Thinking is read from the fields in which servers send it, and from
`<think>…</think>` at the head of the text: servers of open models that do not know the model's thinking format pass its
tags through as content.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from famnb.events import (
    Address,
    Closed,
    Count,
    Delta,
    Done,
    Ended,
    Event,
    Fault,
    Noted,
    Opaque,
    Opened,
    Other,
    Started,
    Usage,
)
from famnb.reply import Reply
from famnb.wire import errors, lenient_json, sse
from famnb.wire.dialect import (
    Conventions,
    Sdk,
    StreamReader,
    join_pieces,
    read_attached,
    read_foreign,
    read_identity,
    read_usage,
    write_usage,
)
from famnb.wire.lenient_json import arguments_json, as_list, as_object, find_text, integer, scalar_text

CONVENTIONS = Conventions(
    new_id=lambda: f"chatcmpl-{uuid.uuid4()}",
    error_types={429: "rate_limit_error"},
    sdk=Sdk(
        package="openai",
        client="openai.OpenAI",
        path="/chat/completions",
        method="chat.completions",
        extra_fields=("reasoning", "max_new_tokens", "top_k", "min_p"),
        answer="reply.choices[0].message",
        print_event='    if event.choices:\n        print(event.choices[0].delta.content or "", end="")',
    ),
)


# Reading

_FINISH_REASONS = {"function_call": "tool_calls", "max_tokens": "length", "end_turn": "stop"}
"""Finish reasons that servers use instead of this dialect's own."""

# A server that sets several of them sends the same text in each, so only the first that is set is read.
_THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""The fields in which servers send thinking."""
WANTED_BACK = ("reasoning_content", "reasoning_details", "extra_content")
"""The fields of a message that some services want back with it: DeepSeek, Kimi and GLM, OpenRouter, Gemini."""
_FOREIGN_FIELDS = ("audio", "executed_tools")
"""The fields of a message with contents that are blocks of their own."""
_SOURCES = ("citations", "search_results")
"""The fields beside the choices that name the sources of the answer."""

_ONE_CHOICE = Noted("the service sent more than one choice; only that of index 0 is read, `reply.raw` has all")


def read(body: Any) -> list[Event]:
    """Return the events of a whole chat completion. Raises ResponseFormatError if the body is not one."""
    fields = as_object(body)
    if errors.is_failure(fields):
        return [*read_identity(fields, "created"), errors.read_failure(body)]
    choices = [choice for choice in as_list(fields.get("choices")) if isinstance(choice, dict)]
    choice = next((choice for choice in choices if choice.get("index") == 0), choices[0] if choices else {})
    message = choice.get("message")
    # Azure leaves the message out where a filter has removed it.
    if not isinstance(message, dict) and not (message is None and choice.get("finish_reason")):
        raise lenient_json.not_a_reply_error(body, "a chat completion with `choices[0].message`")
    content = _MessageReader()
    return [
        *read_identity(fields, "created"),
        *([_ONE_CHOICE] if len(choices) > 1 else []),
        *content.add(as_object(message), whole=True),
        *content.add_logprobs(choice.get("logprobs")),
        *content.close(),
        *content.end_of(choice),
        *_read_filters(choice, fields),
        *(event for n, name in enumerate(_SOURCES, 1) for event in read_attached((2, n), name, fields.get(name))),
        *_read_usage(fields.get("usage"), fields, content.foreign_kinds),
    ]


class ChatReader(StreamReader):
    """Reads the chunks of one completion; of several choices only that of index 0, or else the first."""

    def __init__(self) -> None:
        super().__init__()
        self._content = _MessageReader()
        self._started = Started()
        self._has_identity = False
        """Whether the reply's id and model are known, which later chunks only repeat."""
        self._has_noted_choice = False
        self._choice: int | None = -1
        """The index of the choice that is read; -1 before it is known, None if the server numbers none."""
        self._held: list[dict[str, Any]] = []
        """The choices of other indices that came before one of index 0."""
        self._sources: dict[str, Any] = {}
        """The sources of the answer, of which every chunk has the whole list."""

    def _read(self, chunk: dict[str, Any]) -> list[Event]:
        if errors.is_failure(chunk):
            return [*self._content.flush(), errors.read_failure(chunk)]
        events: list[Event] = []
        if not self._has_identity:
            for started in read_identity(chunk, "created"):
                if started != self._started:
                    self._started = started
                    events.append(started)
                    self._has_identity = bool(started.id and started.model)
        for choice in as_list(chunk.get("choices")):
            if type(choice) is dict:
                self._read_choice(choice, events)
        for name in _SOURCES:
            if name in chunk:
                self._sources[name] = chunk[name]
        if "prompt_filter_results" in chunk:
            events += _read_filters({}, chunk)
        # Groq has it in a place of its own.
        if counts := chunk.get("usage") or as_object(chunk.get("x_groq")).get("usage"):
            events += _read_usage(counts, {"model": self._started.model, **chunk}, self._content.foreign_kinds)
        return events or [Other(scalar_text(chunk.get("object")))]

    def end(self) -> list[Event]:
        events: list[Event] = []
        held, self._held = self._held, []
        for choice in held if self._choice == -1 else ():
            self._choice = held[0].get("index")
            self._read_choice(choice, events)
        for number, name in enumerate(_SOURCES, 1):
            events += read_attached((2, number), name, self._sources.pop(name, None))
        return [*events, *self._content.flush(), *self._content.opaque()]

    def _read_choice(self, choice: dict[str, Any], events: list[Event]) -> None:
        index = integer(choice.get("index"))
        if self._choice == -1 and index:
            self._held.append(choice)
            return
        if self._choice == -1:
            self._choice = index
        if index != self._choice or self._held:
            self._held.clear()
            if not self._has_noted_choice:
                self._has_noted_choice = True
                events.append(_ONE_CHOICE)
            if index != self._choice:
                return
        delta = choice.get("delta")
        if type(delta) is dict:
            events += self._content.add(delta)
        # Some servers send a whole message instead of deltas; others repeat the message after them.
        elif self._content.is_empty:
            events += self._content.add(as_object(choice.get("message")), whole=True)
        if logprobs := choice.get("logprobs"):
            events += self._content.add_logprobs(logprobs)
        if "content_filter_results" in choice:
            events += _read_filters(choice, {})
        if choice.get("finish_reason"):
            events += self._content.close()
            events += self._content.end_of(choice)


reader = ChatReader


class _MessageReader:
    """Builds the blocks of one message, by the same rules from a whole message as from its deltas."""

    def __init__(self) -> None:
        self.tags = ThinkTags()
        self._pieces: dict[str, list[Any]] = {}
        """The pieces of what the service wants back with the message, by field."""
        self._contents: dict[str, list[Any]] = {}
        """The pieces of contents that are blocks once the message is closed, by field."""
        self._has_opaque = False
        """Whether something that the service wants back came since this was last said."""
        self.foreign_kinds: list[str] = []
        """The kinds of what the service did itself, which it may bill."""
        self._call_pieces: dict[Address, list[dict[str, Any]]] = {}
        """The fields of each call that only its service knows."""
        self._custom: set[Address] = set()
        """The calls whose input is a text of any form."""
        self.at: Address = (0, -1)
        """The address of the block that is open, or was last."""
        self.kind = ""
        """The kind of the open block; empty if none is open."""
        self._calls: dict[Address, tuple[str, str]] = {}
        self._by_id: dict[str, Address] = {}
        self._by_index: dict[int, Address] = {}
        self._last_call: Address | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no block was opened yet."""
        return self.at[1] < 0 and not self._calls

    def add(self, message: dict[str, Any], *, whole: bool = False) -> list[Event]:
        """Return the events of a message, or of one delta of it."""
        content = message.get("content")
        events: list[Event] = []
        # Nearly all deltas are a piece of text and nothing else.
        if type(content) is str and message.keys() <= {"content", "role"}:
            for kind, piece in self.tags.split(content):
                self._add_piece(events, kind, piece)
            return events
        if thinking := next((text for name in _THINKING_FIELDS if (text := find_text(message.get(name)))), ""):
            # A server with a field for thinking writes no tags into the content.
            events += self.flush()
            self._add_piece(events, "thinking", thinking)
        for kind, piece in self._split_content(content):
            self._add_piece(events, kind, piece)
        for part in as_list(message.get("images")):
            self._add_piece(events, "image", _image_url(part))
        for names, pieces in ((WANTED_BACK, self._pieces), (_FOREIGN_FIELDS, self._contents)):
            for name in names:
                if value := message.get(name):
                    pieces.setdefault(name, []).append(value)
                    self._has_opaque = True
        if refusal := find_text(message.get("refusal")):
            self._add_piece(events, "refusal", refusal)
        calls = message.get("tool_calls")
        # The form before `tool_calls`, with one call a message and without ids; some servers have it with empty texts.
        if not calls and any(as_object(message.get("function_call")).values()):
            calls = [{"index": 0, "function": message["function_call"]}]
        for position, call in enumerate(calls if isinstance(calls, list) else [calls]):
            if isinstance(call, dict):
                self._add_call(events, call, position if whole else integer(call.get("index")))
        if annotations := message.get("annotations"):
            events += read_attached((2, 0), "annotations", annotations)
        return events

    def add_logprobs(self, logprobs: Any) -> list[Event]:
        """Return the log-probabilities of the tokens of a message, or of one delta of it."""
        fields = as_object(logprobs)
        tokens = [*as_list(fields.get("content")), *as_list(fields.get("refusal"))]
        return read_attached((3, 0), "logprobs", tokens)

    def flush(self) -> list[Event]:
        """Return the text that was held back because a tag might have followed; looks for no more tags."""
        events: list[Event] = []
        for kind, piece in self.tags.end():
            self._add_piece(events, kind, piece)
        return events

    def close(self) -> list[Event]:
        """Return the events that end the message, with every block closed."""
        events = self.flush()
        if self.kind:
            events.append(Closed(self.at))
            self.kind = ""
        events += [Closed(at) for at in self._calls]
        audio = as_object(join_pieces(self._contents.pop("audio", ())))
        if audio.get("id"):
            self._pieces["audio"] = [{"id": audio["id"]}]
        tools = as_list(join_pieces(self._contents.pop("executed_tools", ())))
        foreign = [("audio", audio)] if any(audio.values()) else []
        foreign += [("executed_tools", as_object(tool)) for tool in tools]
        for number, (kind, fields) in enumerate(foreign):
            events += read_foreign((4, number), kind, fields)
        self.foreign_kinds += ["executed_tools"] if tools else []
        return events + self.opaque()

    def opaque(self) -> list[Event]:
        """Return what the service wants back with the message and its calls, as far as it came."""
        if not self._has_opaque:
            return []
        self._has_opaque = False
        fields = {name: join_pieces(pieces) for name, pieces in self._pieces.items()}
        found = {(-1, 0): fields, **{at: join_pieces(pieces) for at, pieces in self._call_pieces.items()}}
        return [Opaque(at, lenient_json.encode(fields).decode()) for at, fields in found.items() if fields]

    def end_of(self, choice: dict[str, Any]) -> list[Event]:
        """Return the end that a choice reports."""
        word = scalar_text(choice.get("finish_reason"))
        if word == "error" or choice.get("error"):
            failure = errors.read_failure({"error": choice.get("error") or {"message": "the model's provider failed"}})
            return [msgspec.structs.replace(failure, stop_reason=word or None)]
        return [Ended(_FINISH_REASONS.get(word, word) or None, word or None)]

    def _split_content(self, content: Any) -> list[tuple[str, str]]:
        """Return the pieces of a content of any shape, as pairs of kind and text."""
        if isinstance(content, str):
            return self.tags.split(content) if content else []
        pieces: list[tuple[str, str]] = []
        for part in content if isinstance(content, list) else [content]:
            type_ = scalar_text(as_object(part).get("type"))
            kind = type_ if type_ == "refusal" else "thinking" if type_.startswith(("think", "reason")) else "text"
            if text := find_text(part):
                pieces += self.tags.split(text) if kind == "text" else [(kind, text)]
            elif url := _image_url(part):
                pieces.append(("image", url))
            elif type_ and kind == "text" and type_ not in ("text", "output_text"):
                pieces.append((type_, lenient_json.encode(part).decode()))
        return pieces

    def _add_piece(self, events: list[Event], kind: str, piece: str) -> None:
        if kind != self.kind or kind not in ("text", "thinking", "refusal"):
            if self.kind:
                events.append(Closed(self.at))
            self.at, self.kind = (0, self.at[1] + 1), kind
            events.append(Opened(self.at, kind))
        events.append(Delta(self.at, kind, piece))

    def _add_call(self, events: list[Event], call: dict[str, Any], index: int | None) -> None:
        is_custom = call.get("type") == "custom"
        function = as_object(call.get("custom" if is_custom else "function") or call.get("custom"))
        id_, name = scalar_text(call.get("id")), scalar_text(function.get("name"))
        at = self._last_call = self._call_address(index, id_, name)
        if index is not None:
            self._by_index[index] = at
        if id_:
            self._by_id[id_] = at
        known = self._calls.get(at)
        identity = (id_ or known[0], name or known[1]) if known else (id_, name)
        if identity != known:
            self._calls[at] = identity
            if is_custom:
                self._custom.add(at)
            events.append(Opened(at, "custom_tool_call" if at in self._custom else "tool_call", *identity))
        kind, field = ("custom_tool_call", "input") if at in self._custom else ("tool_call", "arguments")
        if arguments := arguments_json(function.get(field)):
            events.append(Delta(at, kind, arguments))
        if unknown := {name: value for name, value in call.items() if name not in _CALL_FIELDS and value}:
            self._call_pieces.setdefault(at, []).append(unknown)
            self._has_opaque = True

    def _call_address(self, index: int | None, id_: str, name: str) -> Address:
        """Return the address of the call that a delta belongs to: by its index, else by its id, else the last call."""
        at = self._by_index.get(index) if index is not None else self._by_id.get(id_) if id_ else self._last_call
        if at is not None:
            known_id, known_name = self._calls[at]
            # Some servers give every call the index 0, and some send neither index nor id: there a name with another
            # id, or a second name, begins a new call.
            is_new_id = known_id not in ("", id_) if id_ else bool(index is None and not known_id and known_name)
            if not (name and is_new_id):
                return at
        address = (1, index or 0)
        return (1, max(number for _, number in self._calls) + 1) if address in self._calls else address


_CALL_FIELDS = ("index", "id", "type", "function", "custom")
"""The fields of a call that blocks have."""


def _image_url(part: Any) -> str:
    """Return the URL of a part with an image; empty for any other."""
    image = as_object(part).get("image_url")
    return scalar_text(as_object(image).get("url") or image)


def _read_filters(choice: dict[str, Any], body: dict[str, Any]) -> list[Event]:
    """Return the results of content filters that found something, in the answer or in the prompt."""
    results = [choice.get("content_filter_results")]
    results += [as_object(item).get("content_filter_results") for item in as_list(body.get("prompt_filter_results"))]
    found = [
        result
        for result in map(as_object, results)
        if any(as_object(verdict).get(word) is True for verdict in result.values() for word in ("filtered", "detected"))
    ]
    return read_attached((2, 1 + len(_SOURCES)), "content_filter_results", found)


def _read_usage(value: Any, body: dict[str, Any], unpriced: Sequence[str]) -> list[Event]:
    """Return the usage with reasoning counted as output."""
    counts = read_usage(
        as_object(value),
        ("prompt_tokens", "completion_tokens"),
        details=("prompt_tokens_details", "completion_tokens_details"),
        cached=("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens"),
        total="total_tokens",
        tier=body.get("service_tier"),
        unpriced=unpriced,
    )
    prompt, completion, reasoning = counts.input_tokens, counts.output_tokens, counts.reasoning_tokens
    # Google counts thoughts in the total alone.
    if prompt is not None and counts.total_tokens and "gemini" in scalar_text(body.get("model")):
        if thoughts := max(counts.total_tokens - prompt - (completion or 0), 0):
            total = counts.total_tokens - prompt
            derived: tuple[Count, ...] = ("output_tokens",) if reasoning else ("output_tokens", "reasoning_tokens")
            counts = counts.merge(Usage(output_tokens=total, reasoning_tokens=reasoning or thoughts, derived=derived))
        return [counts]
    # Some servers count reasoning beside the completion instead of within it; their total gives it away.
    if prompt is not None and completion is not None and reasoning:
        output = completion + reasoning
        if counts.total_tokens == prompt + output:
            counts = counts.merge(Usage(output_tokens=output, derived=("output_tokens",)))
    return [] if counts == Usage() else [counts]


_OPEN_TAG = "<think>"
_CLOSE_TAG = "</think>"
# More white space than a server puts before a tag, and few enough that the first text of a reply is not held back long.
_MAX_HELD_TAG_CHARS = 64
"""The most leading characters that are held back while a tag may still follow."""


class ThinkTags:
    """Splits the content of one reply, cut anywhere, into thinking and text.

    start ── "<think>" ── inside ── "</think>" ── after ── (anything but white space) ── text
      └───────────────────────── anything else ────────────────────────────────────────┘
    """

    # Only a tag at the very start of the content counts: later it is more likely a word of an answer about tags.
    # White space around the tags is dropped, since servers put line ends there that belong to neither text.

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""
        """The end of the content so far, as long as it may belong to a tag."""
        self._is_blank = True
        """Whether nothing but white space followed the opening tag so far."""

    def split(self, piece: str) -> list[tuple[str, str]]:
        """Return the pieces whose kind is certain now, as pairs of kind (`thinking` or `text`) and text."""
        piece, self._held = self._held + piece, ""
        if self._state == "start":
            content = piece.lstrip()
            if content.startswith(_OPEN_TAG):
                self._state, piece = "inside", content.removeprefix(_OPEN_TAG)
            elif _OPEN_TAG.startswith(content) and len(piece) <= _MAX_HELD_TAG_CHARS:
                self._held = piece
                return []
            else:
                self._state = "text"
        thinking = ""
        if self._state == "inside":
            thinking, close_tag, piece = piece.partition(_CLOSE_TAG)
            if close_tag:
                self._state = "after"
            else:
                # The end of the piece may be the beginning of the closing tag.
                tail = next((n for n in range(len(_CLOSE_TAG) - 1, 0, -1) if thinking.endswith(_CLOSE_TAG[:n])), 0)
                thinking, self._held = thinking[: len(thinking) - tail], thinking[len(thinking) - tail :]
            if self._is_blank:
                thinking = thinking.lstrip()
                self._is_blank = not thinking
        if self._state == "after" and (piece := piece.lstrip()):
            self._state = "text"
        return [pair for pair in (("thinking", thinking), ("text", piece)) if pair[1]]

    def end(self) -> list[tuple[str, str]]:
        """Return the piece that was held back; no more content follows."""
        kind, held = "thinking" if self._state == "inside" else "text", self._held
        self._state, self._held = "text", ""
        return [(kind, held)] if held else []


# Writing

_FINISH_WORDS = {"stop_sequence": "stop", "cancelled": "stop"}
"""Finish reasons that this dialect has no word of its own for."""
_WRITTEN_FIELDS = {"text": "content", "refusal": "refusal", "thinking": "reasoning_content"}
"""For each kind of block of text the field of a message that holds it."""


def write(reply: Reply) -> dict[str, Any]:
    """Return a reply as the body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for kind, field in _WRITTEN_FIELDS.items():
        if text := "".join(block.text for block in reply.blocks if block.kind == kind):
            message[field] = text
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for call in reply.tool_calls
        ]
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": _finish_word(reply.finish_reason)}
    if logprobs := [entry for block in reply.blocks if block.kind == "logprobs" for entry in block.entries]:
        choice["logprobs"] = {"content": logprobs}
    return {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created or 0,
        "model": reply.model,
        "choices": [choice],
        "usage": write_usage(reply.usage, "prompt", "completion"),
    }


class ChatWriter:
    """Writes the chunks of one completion; this dialect names no events, so `named` changes nothing."""

    def __init__(self, *, include_usage: bool = False, named: bool = False) -> None:  # noqa: ARG002 - as in Dialect
        self._include_usage = include_usage
        self._usage = Usage()
        self._kinds: dict[Address, str] = {}
        self._calls: dict[Address, int] = {}
        self._with_deltas: set[Address] = set()
        self._needs_role = True
        self._ended = False
        self._started = Started()

    def write(self, event: Event, /) -> list[bytes]:
        match event:
            case Delta():
                self._with_deltas.add(event.at)
                return self._write_delta(event.at, event.kind, event.text)
            case Opened():
                self._kinds[event.at] = event.kind
                return self._write_call(event.at, event.id, event.name, "") if event.kind == "tool_call" else []
            case Closed(text=str() as text) if text and event.at not in self._with_deltas:
                return self._write_delta(event.at, self._kinds.get(event.at, "text"), text)
            case Started():
                self._started = event
            case Usage():
                self._usage = self._usage.merge(event)
            # An upstream may end twice; a failure after an end is written all the same.
            case Ended() if not self._ended or event.fault is not None:
                self._ended = True
                if event.fault:
                    return [sse.encode(lenient_json.encode(fault(event.fault)))]
                return [self._write_choice({}, _finish_word(event.finish_reason))]
            case Done():
                if not self._include_usage or self._usage == Usage():
                    return [sse.encode(sse.DONE)]
                usage = write_usage(self._usage.with_total(), "prompt", "completion")
                return [self._render_chunk([], usage=usage), sse.encode(sse.DONE)]
            case _:
                pass
        return []

    def _render_chunk(self, choices: list[dict[str, Any]], **fields: Any) -> bytes:
        started = self._started
        chunk = {
            "id": started.id,
            "object": "chat.completion.chunk",
            "created": started.created or 0,
            "model": started.model,
            "choices": choices,
            **fields,
        }
        return sse.encode(lenient_json.encode(chunk))

    def _write_choice(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        # The role comes with the first content: a chunk of its own would be one event more than the document shows.
        if delta and self._needs_role:
            delta = {"role": "assistant", **delta}
            self._needs_role = False
        return self._render_chunk([{"index": 0, "delta": delta, "finish_reason": finish_reason}])

    def _write_delta(self, at: Address, kind: str, text: str) -> list[bytes]:
        if kind in _WRITTEN_FIELDS:
            return [self._write_choice({_WRITTEN_FIELDS[kind]: text})]
        if kind == "tool_call":
            return self._write_call(at, "", "", text)
        if kind == "logprobs":
            logprobs = {"content": [lenient_json.decode(text.encode())]}
            return [self._render_chunk([{"index": 0, "delta": {}, "logprobs": logprobs}])]
        return []

    def _write_call(self, at: Address, id_: str, name: str, arguments: str) -> list[bytes]:
        is_new = at not in self._calls
        call: dict[str, Any] = {"index": self._calls.setdefault(at, len(self._calls))}
        if id_:
            call["id"] = id_
        if is_new:
            call["type"] = "function"
        call["function"] = {**({"name": name} if name else {}), "arguments": arguments}
        return [self._write_choice({"tool_calls": [call]})]


writer = ChatWriter


def fault(fault: Fault, *, named: bool = False) -> dict[str, Any]:  # noqa: ARG001 - as in Dialect
    """Return the error body of the chat endpoints."""
    fields = {"message": fault.message, "type": fault.type, "code": fault.code}
    return {"error": {**fields, "param": fault.param} if fault.param else fields}


def _finish_word(reason: str | None) -> str:
    return _FINISH_WORDS.get(reason, reason) if reason else "stop"
