"""A pane: one reply as a page shows it, while it streams and when it has ended.

A piece of Markdown that can no longer change, a finished paragraph or list, goes out once as clean HTML and is frozen;
so a flush of a long reply costs the same as one of a short reply. What is still growing goes out as text, or as a draft
of its HTML where it has any markup, it is short, and drafts have not taken too much time.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.events import ATTACHED_KINDS, Address, Closed, Delta, Event, Opened
from famnb.reply import Block, Reply
from famnb.widget.html import facts, sanitize
from famnb.widget.html.facts import Tone
from famnb.widget.html.transcript import Section, format_json, picture_html, sections
from famnb.widget.runtime.view import Growing, View

# Rendering this much takes about 6 ms; a longer block is nearly always code, whose text looks the same.
MAX_DRAFT_CHARS = 2_000
"""The longest growing text that is rendered before it is finished."""
# Each is sent whole: eight panes of 2,000 deltas, which share the time, send 0.4 MB, and no stream waits for drafts.
DRAFT_PERIOD_S = 0.1
"""The least time between two drafts of a view."""
_MARKUP = re.compile(r"[*_`~#|<>\[\]\\$&]|^\s*(?:[-+=]|\d+[.)])", re.MULTILINE)
"""What may make Markdown look unlike its text."""
_UNSHOWN_KINDS = {"signature", *ATTACHED_KINDS}
"""Kinds of deltas that nobody reads while they come."""

UNFINISHED = "A reply was streaming here when this was saved: famnb.calls() lists it, famnb.Inspector(call_id) has it."
"""The text in a file that was saved while a reply streamed."""
EDITED = "edited by hand; the figures are those of the answer as it came"
"""The note at an answer that was edited."""
BlockKind: TypeAlias = Literal["text", "thinking", "code"]


@dataclasses.dataclass(frozen=True)
class EndedStream:
    """A reply that is not streamed, as a pane follows it: one of a recorded call, or one that was edited."""

    reply: Reply
    exchange: Exchange
    events: list[Event] = dataclasses.field(default_factory=list)
    running = False

    def stop(self) -> None:
        """Do nothing, since it has ended."""


StreamLike: TypeAlias = Stream | EndedStream
"""What a pane follows."""


class Markdown(Growing):
    """A text that is rendered while it grows: frozen HTML, then a tail of text that may still change its meaning.

    Its whole is {"html", "tail"}. Its changes are a text to append to the tail, or a list of [name, …], which
    front/runtime/growing.js makes: text: text to append · draft: HTML of the tail, text to append to it ·
    freeze: HTML to append, the tail after it · replace: HTML and tail in place of what was shown.
    """

    def __init__(self, html: str = "", tail: str = "", *, render: Callable[[str], str | None] = lambda _: None) -> None:
        """`render` returns a draft of the tail, or None while there is to be none."""
        super().__init__()
        self._render = render
        self._html = [html] if html else []
        self._tail = tail
        self._has_draft = False
        """Whether the page shows the tail as HTML."""
        self._searched_length = 0
        """The length of the tail when it was last searched for finished Markdown."""
        self._unsent: list[list[Any]] = []

    def whole(self) -> dict[str, str]:
        self._has_draft = False
        self._unsent.clear()
        return {"html": "".join(self._html), "tail": self._tail}

    def changes(self) -> list[list[Any]] | str:
        changes, self._unsent = self._unsent, []
        return str(changes[0][1]) if len(changes) == 1 and changes[0][0] == "text" else changes

    def append(self, text: str, *, is_markdown: bool) -> None:
        """Append a text; what of Markdown is finished by it is frozen."""
        if not text:
            return
        self._tail += text
        # Only a line break can end a block of Markdown.
        finished = self._stable_length() if is_markdown and "\n" in text else 0
        if finished:
            finished_text, self._tail = self._tail[:finished], self._tail[finished:]
            self._freeze(finished_text)
            self._searched_length = 0
            text = ""
        draft = self._render(self._tail) if is_markdown else None
        if draft is not None:
            self._unsent.append(["draft", draft, text])
            self._has_draft = True
        elif text:
            self._unsent.append(["text", text])

    def close(self, markdown: str) -> None:
        """Show the text as finished, rendered as a whole."""
        rendered, rest = _render(markdown), self._tail
        if not rest and "".join(self._html) == rendered:
            return
        self._tail = ""
        # What was shown before is sent again only if the end has changed it, as the definition of a link does.
        if "".join(self._html) + _render(rest) == rendered:
            self._freeze(rest)
        else:
            self.replace(rendered, "")

    def replace(self, html: str, tail: str) -> None:
        """Show this instead, if it is not shown already."""
        if html == "".join(self._html) and tail == self._tail and not self._has_draft:
            return
        self._html, self._tail, self._has_draft = [html], tail, False
        self._unsent = [["replace", html, tail]]

    def _freeze(self, text: str) -> None:
        """Freeze the text before the tail."""
        self._html.append(_render(text))
        self._unsent.append(["freeze", self._html[-1], self._tail])
        self._has_draft = False

    def _stable_length(self) -> int:
        # Searched again only once the tail has grown by a quarter, which keeps the cost of a long code block linear.
        if len(self._tail) < self._searched_length * 1.25:
            return 0
        self._searched_length = len(self._tail)
        # A last line without a word may still become a block of another kind: `*` is a list's item, `*word` is text.
        end = self._tail.rfind("\n") + 1
        has_word = any(map(str.isalpha, self._tail[end:]))
        return sanitize.stable_length(self._tail if has_word else self._tail[:end])


class Elapsed(Growing):
    """The seconds since a call was started, at the moment when the view is sent; the page counts on from there."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._start = clock()

    def whole(self) -> float:
        return self._clock() - self._start

    def changes(self) -> None:
        return None


class BadgeView(View, frozen=True):
    """A short remark on a reply, and how alarming it is."""

    text: str
    tone: Tone


class PromptView(View, frozen=True):
    """A message of a request; `label` is its role, or empty for the user's."""

    label: str
    text: str


class BlockView(View, frozen=True):
    """One block of a reply."""

    key: str
    kind: BlockKind
    label: str
    is_open: bool
    """Whether thinking is unfolded."""
    body: Markdown


class PaneView(View, frozen=True):
    """One reply."""

    key: str
    head: str
    is_running: bool
    has_stop: bool
    """Whether the pane has a Stop button of its own."""
    status: str
    """What the model does now, in words; empty if it has ended."""
    elapsed: Elapsed
    badges: tuple[BadgeView, ...]
    prompts: tuple[PromptView, ...]
    blocks: tuple[BlockView, ...]
    failure: str
    notes: tuple[str, ...]
    figures: str
    """Usage, timing and cost; empty while it streams."""


class _Block:
    """One block of a stream while it grows."""

    def __init__(self, key: str, kind: BlockKind, label: str, body: Markdown) -> None:
        self.view = BlockView(key=key, kind=kind, label=sanitize.visible(label), is_open=True, body=body)
        self.text: list[str] = []
        """All of the text, as it came in deltas."""
        self.unread: list[str] = []
        """The deltas since the last flush."""
        self.is_closing = False
        """Whether the stream has closed it and it was not rendered as a whole yet."""

    def read(self) -> None:
        """Append what was added since the last flush."""
        if not self.unread:
            return
        added = sanitize.visible("".join(self.unread))
        self.unread.clear()
        self.view.body.append(added, is_markdown=self.view.kind != "code")

    def close(self) -> None:
        """Show the block as finished, rendered as a whole."""
        self.is_closing = False
        self.read()
        text = sanitize.visible("".join(self.text))
        if self.view.kind == "code":
            self.view.body.replace("", format_json(text) or text)
        else:
            self.view.body.close(text)


class ReplyPane:
    """One stream and what its page shows: a `Source` of a tool, whose view it makes anew only when it changes."""

    def __init__(
        self,
        stream: StreamLike,
        *,
        key: str,
        prompts: Sequence[Section] | None = None,
        has_stop: bool = True,
        sharers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`prompts` are shown with what the endpoint cannot carry of the request; None: all messages of the request.

        `sharers` is how many panes share the time for drafts.
        """
        self.key = key
        self.stream = stream
        self._prompts = prompts
        self._has_stop = has_stop
        self._clock = clock
        self._elapsed = Elapsed(clock)
        self._sharers = sharers
        self._event_count = 0
        """How many events of the stream the blocks have taken in."""
        self._service: str | None = None
        self._blocks: dict[Address, _Block] = {}
        self._pictures: set[Address] = set()
        self._final_blocks: tuple[BlockView, ...] | None = None
        """The blocks once the stream has ended."""
        self._view: PaneView | None = None
        self._next_draft = 0.0
        """When the next draft may be rendered, by the clock."""

    # What a tool asks

    @property
    def is_running(self) -> bool:
        """Whether more can come."""
        return self.stream.running

    @property
    def reply(self) -> Reply:
        """The reply so far, with its request and the service that answers."""
        return reply_so_far(self.stream)

    def view(self) -> PaneView:
        """Return what the page shows, the same object until it changes."""
        if self._view is None:
            if self._final_blocks is None and not self.is_running:
                self.finish()
            self._view = self._make_view()
        return self._view

    def advance(self) -> bool:
        """Take in what came since the last call; returns whether the view has changed otherwise than by growing.

        A closed block is rendered as a whole one call later, since that takes longer: its last words come first.
        """
        if self._final_blocks is not None:
            return False
        for block in self._blocks.values():
            if block.is_closing:
                block.close()
        block_count = len(self._blocks)
        self._read_events()
        for block in self._blocks.values():
            block.read()
        is_folded = self._fold_thinking()
        has_changed = is_folded or len(self._blocks) > block_count or self.stream.exchange.service != self._service
        if has_changed:
            self._view = None
        return has_changed

    def finish(self) -> None:
        """Show the reply that has ended, in the words of its transcript."""
        blocks = [block.view for block in self._blocks.values()]
        kinds = ("thinking", "text", "code", "picture")
        final = [section for section in sections(self.reply) if section.kind in kinds]
        # The same blocks go on where they are the same, so that what a reader has folded or selected stays.
        is_same = [block.kind for block in blocks] == [section.kind for section in final]
        self._final_blocks = tuple(
            final_block(section, blocks[number] if is_same else None, key=f"final{number}")
            for number, section in enumerate(final)
        )
        self._view = None

    # How the view is made

    def _make_view(self) -> PaneView:
        transcript = sections(self.reply)
        self._service = self.stream.exchange.service
        blocks = (
            tuple(block.view for block in self._blocks.values()) if self._final_blocks is None else self._final_blocks
        )
        has_ended = self._final_blocks is not None
        status = f"waiting for the {'first token' if self.stream.exchange.request.streams else 'reply'} …"
        if blocks:
            status = "thinking …" if blocks[-1].kind == "thinking" else "answering …"
        notes = [section.text for section in transcript if section.kind == "note"]
        if self._prompts is not None:
            notes = [*self.stream.exchange.request.losses, *notes]
        return PaneView(
            key=self.key,
            head=_text_of(transcript, "head"),
            is_running=not has_ended,
            has_stop=self._has_stop,
            status="" if has_ended else status,
            elapsed=self._elapsed,
            badges=tuple(BadgeView(text=text, tone=tone) for text, tone in transcript[0].badges),
            prompts=tuple(
                PromptView(label="" if section.label == "user" else section.label, text=sanitize.visible(section.text))
                for section in (transcript if self._prompts is None else self._prompts)
                if section.kind == "prompt"
            ),
            blocks=blocks,
            failure=_text_of(transcript, "failure"),
            notes=tuple(map(sanitize.visible, notes)),
            figures=_text_of(transcript, "figures") if has_ended else "",
        )

    def _read_events(self) -> None:
        events = self.stream.events
        end = len(events)
        for event in events[self._event_count : end]:
            match event:
                # A picture is shown when it is whole.
                case Opened(at=address, kind="image") | Delta(at=address, kind="image"):
                    self._pictures.add(address)
                case Closed(at=address) if address in self._pictures:
                    pass
                case Opened(at=address, kind=kind, name=name):
                    self._block(address, kind, name)
                case Delta(at=address, kind=kind, text=text) if kind not in _UNSHOWN_KINDS and text:
                    block = self._block(address, kind)
                    block.text.append(text)
                    block.unread.append(text)
                case Closed(at=address, text=text):
                    block = self._block(address, "text")
                    # Where the final text differs from the deltas, it is right.
                    if text is not None:
                        block.text = [text]
                    block.is_closing = True
                case _:
                    pass
        self._event_count = end

    def _block(self, address: Address, kind: str, name: str = "") -> _Block:
        """Return the block at an address; a new one is opened."""
        block = self._blocks.get(address)
        if block is None:
            label = f"calls {name}" if kind == "tool_call" else {"text": "", "thinking": "thinking"}.get(kind, kind)
            is_prose = kind == "text" and not self.stream.exchange.request.settings().answer_format.json
            shown: BlockKind = "thinking" if kind == "thinking" else "text" if is_prose else "code"
            body = Markdown(render=self._render_draft)
            block = self._blocks[address] = _Block(str(len(self._blocks)), shown, label, body)
        return block

    def _render_draft(self, text: str) -> str | None:
        """Return a growing text as HTML; None if it looks like its text, is too long, or it is too early."""
        if len(text) > MAX_DRAFT_CHARS or not _MARKUP.search(text) or (now := self._clock()) < self._next_draft:
            return None
        self._next_draft = now + DRAFT_PERIOD_S * self._sharers
        return str(sanitize.render_draft(text))

    def _fold_thinking(self) -> bool:
        """Fold thinking which an answer follows, and say how long it took once that is known."""
        blocks = list(self._blocks.values())
        last = max((i for i, block in enumerate(blocks) if block.view.kind != "thinking" and block.text), default=-1)
        followed = [block for block in blocks[: last + 1] if block.view.kind == "thinking"]
        # Only until it is known: the reply so far takes longer to make the more has come.
        if all(not block.view.is_open and block.view.label != "thought" for block in followed):
            return False
        reply, has_changed = self.stream.reply, False
        label = facts.describe_thinking(reply.timing, reply.usage, closed=True)
        for block in followed:
            if block.view.is_open or block.view.label != label:
                block.view = msgspec.structs.replace(block.view, label=label, is_open=False)
                has_changed = True
        return has_changed


def reply_so_far(stream: StreamLike) -> Reply:
    """Return the reply so far with its request, endpoint and service, which only the call knows while it runs."""
    exchange = stream.exchange
    return dataclasses.replace(
        stream.reply,
        request=exchange.request,
        endpoint=exchange.endpoint.name,
        service=exchange.service,
        profile=exchange.profile,
    )


def edit_reply(reply: Reply, text: str) -> Reply:
    """Return a reply with another text for its answer; what the service has stored or signed is no longer it."""
    block = Block(at=(0, 0), kind="text", text=text, closed=True)
    warnings = (*(warning for warning in reply.warnings if warning != EDITED), EDITED)
    reply = dataclasses.replace(reply, id="", blocks=(block,), opaque=(), parsed=None, error=None, fault=None)
    return dataclasses.replace(reply, status="completed", complete=True, finish_reason="stop", warnings=warnings)


def final_block(section: Section, block: BlockView | None, *, key: str) -> BlockView:
    """Return a section of a transcript as a block that has ended; it goes on with the body of `block`, if given."""
    kind: BlockKind = "code" if section.kind == "code" else "thinking" if section.kind == "thinking" else "text"
    label = sanitize.visible(section.label)
    if block is None:
        block = BlockView(key=key, kind=kind, label=label, is_open=False, body=Markdown())
    if kind == "code":
        block.body.replace("", sanitize.visible(section.text))
    elif section.kind == "picture":
        block.body.replace(picture_html(section.text), "")
    else:
        block.body.close(section.text)
    return msgspec.structs.replace(block, label=label, is_open=False)


def _text_of(transcript: Iterable[Section], kind: str) -> str:
    return "".join(sanitize.visible(section.text) for section in transcript if section.kind == kind)


def _render(markdown: str) -> str:
    return str(sanitize.render_markdown(markdown))
