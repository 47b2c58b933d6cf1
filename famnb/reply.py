"""`Reply`, with its blocks, the reason for its end and its usage; `ReplyBuilder` makes one from a stream's events."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, assert_never

import msgspec

from famnb.errors import FamnbError, InvalidRequest
from famnb.events import (
    ATTACHED_KINDS,
    Address,
    Closed,
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
    Status,
    Usage,
)
from famnb.formatting import escape_controls, shorten
from famnb.timing import Read, Timing

_DECODE_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What the decoder raises for bytes that are not JSON, or are nested too deeply."""


class Block(msgspec.Struct, frozen=True):
    """One piece of a reply: thinking, text, a tool call, a refusal, what is attached to a text, or any other kind."""

    at: Address
    kind: str
    text: str = ""
    """The text; a tool call's JSON arguments; a JSON list for citations, annotations and log-probabilities."""
    id: str = ""
    name: str = ""
    signature: str = ""
    latency_ms: int | None = None
    closed: bool = False
    """Whether the server said that the block is finished."""

    @property
    def arguments(self) -> Any:
        """A tool call's decoded arguments; None when they are not valid JSON (see `valid`)."""
        return self._decode()[0]

    @property
    def entries(self) -> list[Any]:
        """The decoded citations, annotations or log-probabilities, each as the server sent it; none of other blocks."""
        return list(self.arguments) if self.kind in ATTACHED_KINDS else []

    @property
    def valid(self) -> bool:
        """Whether the arguments of a tool call are valid JSON; True for every other block."""
        return self.kind != "tool_call" or self._decode()[1]

    def _decode(self) -> tuple[Any, bool]:
        try:
            return msgspec.json.decode(self.text or "{}"), True
        except _DECODE_ERRORS:
            return None, False


class NoteBook(Protocol):
    """What keeps notes on calls: the ledger."""

    def note(self, call: str, text: str) -> None:
        """Note something on the call of that id."""


# A dataclass rather than a struct: there is one a call, and a struct cannot leave single fields out of a comparison.
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reply:
    """One reply, whole or as far as it came; replies with equal content are equal, however and whenever they came."""

    id: str = ""
    """The service's id of the reply."""
    model: str = ""
    """The model that answered, as the service names it."""
    created: int | None = None
    blocks: tuple[Block, ...] = ()
    finish_reason: str | None = None
    """Why generation ended, normalised (see events.FinishReason); None if the server did not say."""
    stop_reason: str | None = None
    """`finish_reason` as the server wrote it."""
    stop_sequence: str | None = None
    status: Status = "running"
    complete: bool | None = False
    """True with evidence, None when only `[DONE]` came, False otherwise."""
    usage: Usage = Usage()
    fault: Fault | None = None
    """The failure the service reported inside the reply."""
    warnings: tuple[str, ...] = ()

    # Not compared: a reply that is written anew, as a gateway does, says the same without it.
    opaque: tuple[Opaque, ...] = dataclasses.field(default=(), compare=False)
    """What the service wants back with the answer, in the order of the blocks; requests of its own kind write it."""
    call_id: str | None = dataclasses.field(default=None, compare=False)
    """The call's id in the ledger."""
    ledger: NoteBook | None = dataclasses.field(default=None, compare=False)
    """The ledger that has the call; None where nothing has recorded it."""
    endpoint: str = dataclasses.field(default="", compare=False)
    request: Any = dataclasses.field(default=None, compare=False)
    """The request that was sent."""
    timing: Timing = dataclasses.field(default=Timing(), compare=False)
    cost: Any = dataclasses.field(default=None, compare=False)
    """What the call cost (`record.Cost`, USD); None where no price or no usage is known."""
    error: FamnbError | None = dataclasses.field(default=None, compare=False)
    service: str | None = dataclasses.field(default=None, compare=False)
    """The engine a famnb service says answered (`sim`, `upstream`); None for any other service."""
    profile: str = dataclasses.field(default="", compare=False)
    """The profile of the client that asked: fam, or the name of a vendor's."""
    replayed: bool = dataclasses.field(default=False, compare=False)
    """Whether a recorded call was played again: id, timing and cost are that call's, and nothing was sent or spent."""
    rounds: tuple[Any, ...] = dataclasses.field(default=(), compare=False)
    """The rounds of tool calls that led to it (`client.ask.Round`), each with its reply and its results."""
    parsed: Any = dataclasses.field(default=None, compare=False)
    """The instance of the `schema` that `ask` was given; None without one, and of a reply that was stopped."""
    streamed: bool = dataclasses.field(default=False, compare=False)
    reads: tuple[Read, ...] = dataclasses.field(default=(), compare=False)
    """The bytes that came from the socket, with their times."""
    events: tuple[Event, ...] = dataclasses.field(default=(), compare=False)
    """The typed events, in order."""

    @property
    def text(self) -> str:
        """The visible answer."""
        return "".join(block.text for block in self.blocks if block.kind == "text")

    @property
    def thinking(self) -> str:
        """The thinking that the service sent as text."""
        return "".join(block.text for block in self.blocks if block.kind == "thinking")

    @property
    def output_chars(self) -> int:
        """The length of all that was generated, thinking and tool calls included."""
        return sum(len(block.text) for block in self.blocks if block.kind not in ATTACHED_KINDS)

    @property
    def tool_calls(self) -> tuple[Block, ...]:
        """The calls of the caller's tools, in order; the server's calls of its own are blocks of another kind."""
        return tuple(block for block in self.blocks if block.kind == "tool_call")

    @property
    def raw(self) -> Any:
        """The decoded JSON, unknown fields included: the body of a whole reply, or the list of a stream's events."""
        bodies: list[Any] = []
        for data in (data for read in self.reads for data in read.data):
            try:
                bodies.append(msgspec.json.decode(data))
            except _DECODE_ERRORS:
                bodies.append(data.decode(errors="replace"))
        return bodies if self.streamed else (bodies[0] if bodies else None)

    def note(self, text: str) -> None:
        """Note something on the call, in place of an earlier note: the column `note` of `famnb.calls`.

        An empty text deletes it. Raises InvalidRequest for a reply that was not recorded, LedgerError if the ledger
        cannot be written.
        """
        if self.ledger is None or self.call_id is None:
            raise InvalidRequest("note: this reply was not recorded, so there is no call to note it on")
        self.ledger.note(self.call_id, text)

    def __str__(self) -> str:
        # What is printed may go to a terminal; `text` has every character.
        return escape_controls(self.text)

    def __repr__(self) -> str:
        facts = [self.status, self.endpoint, self.model]
        if self.finish_reason:
            facts.append(f"finish_reason={self.finish_reason!r}")
        if self.usage.output_tokens is not None:
            facts.append(f"output_tokens={self.usage.output_tokens}")
        if self.timing.e2e_s is not None:
            facts.append(f"e2e_s={self.timing.e2e_s:.3f}")
        return escape_controls(f"<Reply {' '.join(fact for fact in facts if fact)} {shorten(self.text)!r}>")


@dataclasses.dataclass(slots=True)
class _BlockBuilder:
    """A block that is still growing."""

    # The pieces are kept apart and joined once: appending to a text for each delta would copy it each time, and make
    # the cost of a reply grow with the square of its length.

    kind: str
    pieces: list[str] = dataclasses.field(default_factory=list)
    signature: list[str] = dataclasses.field(default_factory=list)
    id: str = ""
    name: str = ""
    latency_ms: int | None = None
    final: str | None = None
    closed: bool = False


class ReplyBuilder:
    """Builds a reply from events; adding an event costs the same however long the reply is."""

    def __init__(self) -> None:
        self.content_deltas = 0
        """Non-empty content deltas so far, of any kind."""
        self.answer_deltas = 0
        """Non-empty deltas of visible text so far."""
        self.thinking_deltas = 0
        """Non-empty deltas of thinking so far."""
        self.ended: Ended | None = None
        self.done = False
        self.usage = Usage()
        self._started = Started()
        self._blocks: dict[Address, _BlockBuilder] = {}
        self._opaque: dict[Address, Opaque] = {}
        self.notes: list[str] = []
        """What the dialect has noted."""

    def add(self, event: Event) -> None:
        """Add one event to the reply."""
        match event:
            # First, since streams are made of these.
            case Delta():
                self._add_delta(event)
            case Started():
                # Some servers send id and model in different events, or an event without them first.
                self._started = Started(
                    event.id or self._started.id,
                    event.model or self._started.model,
                    self._started.created if event.created is None else event.created,
                )
            case Opened():
                block = self._get_block(event.at, event.kind)
                block.id = event.id or block.id
                block.name = event.name or block.name
            case Closed():
                # A block without a start or a delta can only be closed with a text of its own.
                block = self._get_block(event.at, "text")
                block.closed = True
                block.final = block.final if event.text is None else event.text
                block.latency_ms = block.latency_ms if event.latency_ms is None else event.latency_ms
            case Usage():
                self.usage = self.usage.merge(event)
            case Ended():
                self.ended = event if self.ended is None else _merge_ends(self.ended, event)
            case Done():
                self.done = True
            case Opaque():
                self._opaque[event.at] = event
            case Noted():
                self.notes.append(event.text)
            case Other():
                pass
            case _:
                assert_never(event)

    def _add_delta(self, event: Delta) -> None:
        block = self._blocks.get(event.at) or self._get_block(event.at, event.kind)
        # A signature proves a block to the service that gets it back; nobody reads it, so it does not count as content.
        if event.kind == "signature":
            block.signature.append(event.text)
            return
        block.pieces.append(event.text)
        if event.text and block.kind not in ATTACHED_KINDS:
            self.content_deltas += 1
            if block.kind == "text":
                self.answer_deltas += 1
            elif block.kind == "thinking":
                self.thinking_deltas += 1

    def _get_block(self, at: Address, kind: str) -> _BlockBuilder:
        block = self._blocks.get(at)
        if block is None:
            block = self._blocks[at] = _BlockBuilder("thinking" if kind == "signature" else kind)
        return block

    def texts(self) -> Iterator[str]:
        """Yield the text of each block, and its signature, as far as the deltas go."""
        for block in self._blocks.values():
            yield "".join(block.pieces)
            yield "".join(block.signature)

    def reply(self) -> Reply:
        """Return the reply so far; its status is `running` until there is evidence of an end."""
        warnings = list(self.notes)
        blocks = tuple(_build_block(at, block, warnings) for at, block in sorted(self._blocks.items()))
        ended = self.ended
        if ended is None and self.done:
            # `[DONE]` proves that the transport ended in order, not that generation did.
            warnings.append("the stream said [DONE] without a finish reason: nothing proves that the reply is complete")
        usage = self.usage
        if usage.is_contradictory:
            warnings.append(
                f"the usage contradicts itself: {usage.input_tokens} tokens of input and {usage.output_tokens} of "
                f"output are not the {usage.total_tokens} in all; the cost is an interval"
            )
        return Reply(
            id=self._started.id,
            model=self._started.model,
            created=self._started.created,
            blocks=blocks,
            finish_reason=ended.finish_reason if ended else None,
            stop_reason=ended.stop_reason if ended else None,
            stop_sequence=ended.stop_sequence if ended else None,
            status=_status(ended, self.done),
            complete=ended.fault is None and ended.status != "running" if ended else None if self.done else False,
            usage=usage.with_total(),
            fault=ended.fault if ended else None,
            warnings=tuple(warnings),
            opaque=tuple(opaque for _, opaque in sorted(self._opaque.items())),
        )


def fold(events: Iterable[Event]) -> Reply:
    """Return the reply that a stream's events add up to."""
    builder = ReplyBuilder()
    for event in events:
        builder.add(event)
    return builder.reply()


def _merge_ends(first: Ended, second: Ended) -> Ended:
    """Return two ends as one: the second counts, the first fills what it leaves open; a failure stays a failure."""
    # A server may split the end between a finish reason and a terminal event, or write a normal end after an error.
    if first.fault is not None and second.fault is None:
        return first
    fields = zip(msgspec.structs.astuple(first), msgspec.structs.astuple(second), strict=True)
    return Ended(*(late or early for early, late in fields))


_STATUSES: dict[str | None, Status] = {
    # Cut short: by a limit, a filter, want of capacity, or to be continued.
    "length": "incomplete",
    "content_filter": "incomplete",
    "insufficient_system_resource": "incomplete",
    "pause_turn": "incomplete",
    "error": "failed",
    "cancelled": "cancelled",
}
"""The status that follows from a finish reason, where it is not `completed`."""


def _status(ended: Ended | None, done: bool) -> Status:
    if ended is None:
        return "completed" if done else "running"
    if ended.fault is not None:
        return "failed"
    if ended.status is not None:
        return ended.status
    # Only the responses dialect sends a status; in the others it follows from the reason.
    return _STATUSES.get(ended.finish_reason, "completed")


def _build_block(at: Address, block: _BlockBuilder, warnings: list[str]) -> Block:
    text = f"[{','.join(block.pieces)}]" if block.kind in ATTACHED_KINDS else _mend_surrogates("".join(block.pieces))
    final = None if block.final is None else _mend_surrogates(block.final)
    # The final text comes in one event, the deltas in thousands: where they disagree, the final text is trusted.
    if final is not None and final != text:
        if text:
            warnings.append(f"the deltas of block {at} disagree with its final text; the final text is kept")
        text = final
    return Block(
        at=at,
        kind=block.kind,
        text=text,
        id=block.id,
        name=block.name,
        signature="".join(block.signature),
        latency_ms=block.latency_ms,
        closed=block.closed,
    )


def _mend_surrogates(text: str) -> str:
    """Return a text without lone surrogates.

    Servers that escape JSON write a character outside the basic plane as two surrogates, and may put them into two
    events. Together they become the character again; a surrogate without the other becomes U+FFFD.
    """
    # UTF-8 cannot encode surrogates, so this is a quick test for the rare case.
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
