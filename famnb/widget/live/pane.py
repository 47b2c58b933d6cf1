"""One stream as a view shows it: what changed since the last look, and the whole; reads the stream, sends nothing.

Text that is still growing goes out as text. A piece of Markdown that can no longer change, a finished paragraph or
list, goes out once as clean HTML and is frozen; so a long reply costs the same per look as a short one.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from famnb.client.exchange import Exchange
from famnb.events import Address, Closed, Delta, Event, Opened
from famnb.reply import Reply
from famnb.widget.html import facts, sanitize
from famnb.widget.html.json_layout import JsonLayout, indent_json
from famnb.widget.html.request_text import wants_json
from famnb.widget.html.transcript import Section, sections

Change: TypeAlias = list[Any]
"""[what, block number, …] with what = open | text | settle | close | fold; applied in order by the front end."""
_MARKDOWN = ("text", "thinking")


class Streaming(Protocol):
    """What a pane needs of a client's Stream."""

    @property
    def exchange(self) -> Exchange:
        """The call itself."""

    @property
    def events(self) -> list[Event]:
        """The typed events so far; append-only."""

    @property
    def reply(self) -> Reply:
        """The reply so far."""

    @property
    def running(self) -> bool:
        """Whether more can come."""

    def stop(self) -> None:
        """End the call and keep what has arrived."""


class _Shown:
    """One block while it grows."""

    def __init__(self, number: int, kind: str, label: str, layout: JsonLayout | None) -> None:
        self.number = number
        self.kind = "code" if layout or kind not in _MARKDOWN else kind
        self.label = label
        self._layout = layout
        """What lays JSON out as it grows; None for any other text."""
        self.text: list[str] = []
        self.html: list[str] = []
        self.tail = ""
        self.fresh: list[str] = []
        self.looked = 0
        """The length of the tail when it was last searched for settled Markdown."""
        self.closing = False
        """Whether the wire has closed it and it was not rendered as a whole yet."""
        self.folded = False
        self.due = False
        """Whether the answer had begun at the last look, but not yet how long the thinking took."""

    def snapshot(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "label": sanitize.visible(self.label),
            "open": not self.folded,
            "html": "".join(self.html),
            "tail": self.tail,
        }

    def grown(self) -> list[Change]:
        """The changes that show what was added."""
        if not self.fresh:
            return []
        added = sanitize.visible("".join(self.fresh))
        self.fresh.clear()
        if self._layout:
            added = self._layout.add(added)
        if not added:
            return []
        self.tail += added
        settled = self._settled() if self.kind != "code" and "\n" in added else 0
        if not settled:
            return [["text", self.number, added]]
        html = sanitize.render_markdown(self.tail[:settled])
        self.html.append(html)
        self.tail = self.tail[settled:]
        self.looked = 0
        return [["settle", self.number, html, self.tail]]

    def _settled(self) -> int:
        # Searching again only once the tail has grown by a quarter keeps the cost of a long code block linear.
        if len(self.tail) < self.looked * 1.25:
            return 0
        self.looked = len(self.tail)
        return sanitize.settled_length(self.tail)

    def close(self) -> list[Change]:
        """The changes that show the block as finished, rendered as a whole."""
        self.closing = False
        made = self.grown()
        whole = sanitize.visible("".join(self.text))
        if self.kind == "code":
            self.tail = indent_json(whole) if self._layout else whole
            return [*made, ["close", self.number, "", self.tail]]
        rendered, rest = sanitize.render_markdown(whole), sanitize.render_markdown(self.tail)
        kept = "".join(self.html) + rest == rendered
        self.html, self.tail = [rendered], ""
        # What was shown before is not sent again, unless the end has changed it.
        return [*made, ["settle", self.number, rest, ""] if kept else ["close", self.number, rendered, ""]]


class Pane:
    """What has been shown of one stream."""

    def __init__(self, stream: Streaming, *, id: str, stop: bool = True, clock: Callable[[], float] = time.monotonic):
        self.id = id
        self.stream = stream
        self._stop = stop
        """Whether the pane itself offers to stop."""
        self._clock = clock
        self._began = clock()
        self._seen = 0
        self._service: str | None = None
        self._blocks: dict[Address, _Shown] = {}

    @property
    def service_changed(self) -> bool:
        """Whether it has become known since the last snapshot who answers."""
        return self.stream.exchange.service != self._service

    def changes(self) -> list[Change]:
        """What came since the last look; a closed block is rendered a look later, so that its last words come first."""
        events = self.stream.events
        end = len(events)
        made = [change for block in self._blocks.values() if block.closing for change in block.close()]
        for event in events[self._seen : end]:
            match event:
                case Opened(at=at, kind=kind, name=name):
                    self._block(at, kind, made, name)
                case Delta(at=at, kind=kind, text=text) if kind != "signature" and text:
                    block = self._block(at, kind, made)
                    block.text.append(text)
                    block.fresh.append(text)
                case Closed(at=at, text=text):
                    block = self._block(at, "text", made)
                    if text is not None:
                        block.text = [text]
                    block.closing = True
                case _:
                    pass
        self._seen = end
        for block in self._blocks.values():
            made += block.grown()
        return [*made, *self._folds()]

    def _block(self, at: Address, kind: str, made: list[Change], name: str = "") -> _Shown:
        """The block at an address, opened if it is new."""
        block = self._blocks.get(at)
        if block is None:
            label = f"calls {name}" if kind == "tool_call" else {"text": "", "thinking": "thinking"}.get(kind, kind)
            json = kind == "tool_call" or (kind == "text" and wants_json(self.stream.exchange.request))
            block = self._blocks[at] = _Shown(len(self._blocks), kind, label, JsonLayout() if json else None)
            made.append(["open", block.number, block.kind, sanitize.visible(label)])
        return block

    def _folds(self) -> list[Change]:
        """An answer folds the thinking before it; a look later, if how long that took is not known yet."""
        blocks = list(self._blocks.values())
        last = max((block.number for block in blocks if block.kind != "thinking" and block.text), default=-1)
        made: list[Change] = []
        for block in blocks[: last + 1]:
            if block.kind != "thinking" or block.folded:
                continue
            reply = self.stream.reply
            block.folded = block.due or reply.timing.think_s is not None
            block.due = True
            if block.folded:
                block.label = facts.describe_thinking(reply.timing, reply.usage, closed=True)
                made.append(["fold", block.number, block.label])
        return made

    @property
    def reply(self) -> Reply:
        """What there is to say of the reply."""
        return reply_so_far(self.stream)

    def final_blocks(self, pieces: Sequence[Section]) -> list[dict[str, Any]]:
        """The blocks of a stream that has ended, in the front end's shape."""
        return [final_block(piece) for piece in pieces if piece.kind in ("thinking", "text", "code")]

    def summary(self) -> dict[str, Any]:
        """The same as `snapshot`, its blocks left out (None) where the changes have told them."""
        told = [block.snapshot() for block in self._blocks.values()]
        whole = self.snapshot()
        return {**whole, "blocks": None} if [*map(_seen, whole["blocks"])] == [*map(_seen, told)] else whole

    def snapshot(self) -> dict[str, Any]:
        """All there is to show, in the front end's shape; once the stream has ended, from its reply alone."""
        ended = not self.stream.running
        if not ended:
            self.changes()
        self._service = self.stream.exchange.service
        pieces = sections(self.reply)
        return {
            "id": self.id,
            "running": not ended,
            "stop": self._stop,
            "waiting": "first token" if self.stream.exchange.request.streams else "reply",
            "elapsed": self._clock() - self._began,
            "head": _text(pieces, "head"),
            "badges": [list(badge) for badge in pieces[0].badges],
            "asked": [[piece.label, sanitize.visible(piece.text)] for piece in pieces if piece.kind == "asked"],
            "blocks": self.final_blocks(pieces) if ended else [block.snapshot() for block in self._blocks.values()],
            "failure": _text(pieces, "failure"),
            "notes": [sanitize.visible(piece.text) for piece in pieces if piece.kind == "note"],
            "figures": _text(pieces, "figures") if ended else "",
        }


def reply_so_far(stream: Streaming) -> Reply:
    """The reply so far with what only the call knows yet: what was asked, and who answers."""
    exchange = stream.exchange
    return dataclasses.replace(
        stream.reply, request=exchange.request, endpoint=exchange.endpoint.name, service=exchange.service
    )


def _text(pieces: list[Section], kind: str) -> str:
    return "".join(sanitize.visible(piece.text) for piece in pieces if piece.kind == kind)


def _seen(block: dict[str, Any]) -> dict[str, Any]:
    """A block as a reader sees it: only thinking can be folded."""
    return {**block, "open": block["open"] and block["kind"] == "thinking"}


def final_block(piece: Section) -> dict[str, Any]:
    """A block that grows no more, in the front end's shape."""
    code = piece.kind == "code"
    return {
        "kind": piece.kind,
        "label": sanitize.visible(piece.label),
        "open": False,
        "html": "" if code else sanitize.render_markdown(piece.text),
        "tail": sanitize.visible(piece.text) if code else "",
    }
