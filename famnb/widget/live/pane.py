"""A pane: one stream as a view shows it, as changes since the last flush and as a snapshot of everything.

A piece of Markdown that can no longer change, a finished paragraph or list, goes out once as clean HTML and is frozen;
so a flush of a long reply costs the same as one of a short reply. What is still growing goes out as text, or as a draft
of its HTML where it has any markup, it is short, and drafts have not taken too much time. A pane reads its stream and
sends nothing; `live_view` does.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from famnb.events import ATTACHED_KINDS, Address, Closed, Delta, Opened
from famnb.reply import Reply
from famnb.widget.html import facts, sanitize
from famnb.widget.html.facts import wants_json
from famnb.widget.html.transcript import JsonLayout, Section, indent_json, sections
from famnb.widget.live.reply_pane import StreamLike, reply_so_far

Change: TypeAlias = list[Any]
"""[change, block number, …], applied in order by the front end, whose `changes` has a function for each.

open: kind, label · text: text to append · draft: HTML of the growing text, text to append to it · settle: HTML to
append, rest of the text · paragraphs: how much of the text is finished, as paragraphs without markup · close: HTML,
text, both in place of what was shown · fold: label

The HTML of draft and settle is two values: how much of the last draft it begins with, and the rest of it. What is
counted are UTF-16 units, as JavaScript does.
"""
# Rendering this much takes about 6 ms; a longer block is nearly always code, whose text looks the same.
MAX_DRAFT_CHARS = 2_000
"""The longest growing text that is rendered before it is finished."""
# What reading and recording the streams needs of the process must not wait for drafts.
DRAFT_SHARE = 0.1
"""The share of the time that all panes of a view may spend on drafts."""
_MARKUP = re.compile(r"[*_`~#|<>\[\]\\$&]|^\s*(?:[-+=]|\d+[.)])", re.MULTILINE)
"""What may make Markdown look unlike its text."""
_UNSHOWN_KINDS = {"signature", *ATTACHED_KINDS}
"""Kinds of deltas that nobody reads while they come."""
_MARKDOWN_KINDS = ("text", "thinking")


class _GrowingBlock:
    """One block while it grows: frozen HTML, then a tail of text that may still change its meaning."""

    def __init__(
        self, number: int, kind: str, label: str, layout: JsonLayout | None, *, render: Callable[[str], str | None]
    ) -> None:
        """`render` returns a draft of the growing text, or None while there is to be none."""
        self._render = render
        self.number = number
        self.kind = "code" if layout or kind not in _MARKDOWN_KINDS else kind
        self.label = label
        self._layout = layout
        """Indents JSON as it grows; None for any other text."""
        self.text: list[str] = []
        """All of the text, as it came in deltas."""
        self.unsent: list[str] = []
        """The deltas since the last flush."""
        self.html: list[str] = []
        """The frozen HTML, in pieces."""
        self.tail = ""
        """The text after it."""
        self.draft = ""
        """The HTML of the tail, as far as it was sent; empty if the page has none."""
        self.searched_length = 0
        """The length of the tail when it was last searched for finished Markdown."""
        self.is_closing = False
        """Whether the stream has closed it and it was not rendered as a whole yet."""
        self.is_folded = False
        self.is_fold_due = False
        """Whether the answer had begun at the last flush, but how long the thinking took was not known."""

    def snapshot(self) -> dict[str, Any]:
        # A page that draws a snapshot has no draft.
        self.draft = ""
        return {
            "kind": self.kind,
            "label": sanitize.visible(self.label),
            "open": not self.is_folded,
            "html": "".join(self.html),
            "tail": self.tail,
        }

    def take_unsent(self) -> list[Change]:
        """Return the changes that show what was added since the last flush."""
        if not self.unsent:
            return []
        added = sanitize.visible("".join(self.unsent))
        self.unsent.clear()
        if self._layout:
            added = self._layout.add(added)
        if not added:
            return []
        self.tail += added
        # Only a line break can end a block of Markdown.
        finished = self._stable_length() if self.kind != "code" and "\n" in added else 0
        if not finished:
            draft = None if self.kind == "code" else self._render(self.tail)
            return [["text", self.number, added] if draft is None else self._draft_change(draft, added)]
        text, self.tail = self.tail[:finished], self.tail[finished:]
        changes = self._settle(text, added)
        self.searched_length = 0
        draft = self._render(self.tail)
        return changes if draft is None else [*changes, self._draft_change(draft, "")]

    def _settle(self, text: str, added: str) -> list[Change]:
        """Freeze the text before the tail, and return the changes that show it; `added` is what no change has told."""
        html = _render(text)
        self.html.append(html)
        changes: list[Change]
        # What the page can make by itself is not sent a second time.
        if html == _paragraphs_html(text):
            changes = [["text", self.number, added]] if added else []
            changes.append(["paragraphs", self.number, _utf16_length(text)])
        else:
            changes = [["settle", self.number, *self._omit_draft(html), self.tail]]
        self.draft = ""
        return changes

    def _draft_change(self, html: str, added: str) -> Change:
        change: Change = ["draft", self.number, *self._omit_draft(html), added]
        self.draft = html
        return change

    def _omit_draft(self, html: str) -> tuple[int, str]:
        """Return how much of some HTML the page has at the beginning of its draft, and the rest."""
        pairs = zip(self.draft, html, strict=False)
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return _utf16_length(html[:shared]), html[shared:]

    def _stable_length(self) -> int:
        # Searched again only once the tail has grown by a quarter, which keeps the cost of a long code block linear.
        if len(self.tail) < self.searched_length * 1.25:
            return 0
        self.searched_length = len(self.tail)
        return sanitize.stable_length(self.tail)

    def close(self) -> list[Change]:
        """Return the changes that show the block as finished, rendered as a whole."""
        self.is_closing = False
        changes = self.take_unsent()
        text = sanitize.visible("".join(self.text))
        if self.kind == "code":
            self.tail = indent_json(text) if self._layout else text
            return [*changes, ["close", self.number, "", self.tail]]
        rendered, rest = _render(text), self.tail
        self.tail = ""
        # What was shown before is sent again only if the end has changed it, as the definition of a link does.
        if "".join(self.html) + _render(rest) == rendered:
            return [*changes, *self._settle(rest, "")]
        self.html, self.draft = [rendered], ""
        return [*changes, ["close", self.number, rendered, ""]]


class Pane:
    """One stream, and what was sent of it so far."""

    def __init__(
        self, stream: StreamLike, *, id: str, has_stop: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`has_stop`: whether the pane has a Stop button of its own."""
        self.id = id
        self.stream = stream
        self._has_stop = has_stop
        self._clock = clock
        self._start = clock()
        self._event_count = 0
        """How many events of the stream the blocks have taken in."""
        self._shown_service: str | None = None
        self._blocks: dict[Address, _GrowingBlock] = {}
        self.sharers = 1
        """How many panes share the time for drafts."""
        self._final_blocks: list[dict[str, Any]] | None = None
        """The blocks of the stream that has ended, once they were rendered."""
        self._next_draft = 0.0
        """When the next draft may be rendered, by the clock."""

    @property
    def service_changed(self) -> bool:
        """Whether it became known since the last snapshot which service answers."""
        return self.stream.exchange.service != self._shown_service

    def changes(self) -> list[Change]:
        """Return what came since the last flush.

        A closed block is rendered as a whole one flush later, since that takes longer: its last words come first.
        """
        events = self.stream.events
        end = len(events)
        changes = [change for block in self._blocks.values() if block.is_closing for change in block.close()]
        for event in events[self._event_count : end]:
            match event:
                case Opened(at=address, kind=kind, name=name):
                    self._block(address, kind, changes, name)
                case Delta(at=address, kind=kind, text=text) if kind not in _UNSHOWN_KINDS and text:
                    block = self._block(address, kind, changes)
                    block.text.append(text)
                    block.unsent.append(text)
                case Closed(at=address, text=text):
                    block = self._block(address, "text", changes)
                    # Where the final text differs from the deltas, it is right.
                    if text is not None:
                        block.text = [text]
                    block.is_closing = True
                case _:
                    pass
        self._event_count = end
        for block in self._blocks.values():
            changes += block.take_unsent()
        return [*changes, *self._fold_changes()]

    def _block(self, address: Address, kind: str, changes: list[Change], name: str = "") -> _GrowingBlock:
        """Return the block at an address; a new one is opened, which is added to `changes`."""
        block = self._blocks.get(address)
        if block is None:
            label = f"calls {name}" if kind == "tool_call" else {"text": "", "thinking": "thinking"}.get(kind, kind)
            is_json = kind == "tool_call" or (kind == "text" and wants_json(self.stream.exchange.request))
            layout = JsonLayout() if is_json else None
            block = self._blocks[address] = _GrowingBlock(
                len(self._blocks), kind, label, layout, render=self._render_draft
            )
            changes.append(["open", block.number, block.kind, sanitize.visible(label)])
        return block

    def _render_draft(self, text: str) -> str | None:
        """Return a growing text as HTML; None if it looks like its text, is too long, or it is too early."""
        if len(text) > MAX_DRAFT_CHARS or not _MARKUP.search(text) or (start := self._clock()) < self._next_draft:
            return None
        html = str(sanitize.render_draft(text))
        end = self._clock()
        self._next_draft = end + (end - start) * (1 / DRAFT_SHARE - 1) * self.sharers
        return html

    def _fold_changes(self) -> list[Change]:
        """Return the changes that fold thinking which an answer follows.

        How long it took may be known a moment after the answer has begun, so the fold waits for one more flush.
        """
        blocks = list(self._blocks.values())
        last = max((block.number for block in blocks if block.kind != "thinking" and block.text), default=-1)
        changes: list[Change] = []
        for block in blocks[: last + 1]:
            if block.kind != "thinking" or block.is_folded:
                continue
            reply = self.stream.reply
            block.is_folded = block.is_fold_due or reply.timing.think_s is not None
            block.is_fold_due = True
            if block.is_folded:
                block.label = facts.describe_thinking(reply.timing, reply.usage, closed=True)
                changes.append(["fold", block.number, block.label])
        return changes

    @property
    def reply(self) -> Reply:
        """The reply so far, with its request and the service that answers."""
        return reply_so_far(self.stream)

    def final_blocks(self, transcript: Sequence[Section]) -> list[dict[str, Any]]:
        """Return the blocks of a stream that has ended, in the front end's shape."""
        if self._final_blocks is None:
            # Only once: a pane is drawn anew with every snapshot, and rendering 6 KB of Markdown takes 20 ms.
            kinds = ("thinking", "text", "code")
            self._final_blocks = [final_block(section) for section in transcript if section.kind in kinds]
        return self._final_blocks

    def summary(self) -> dict[str, Any]:
        """Return the snapshot, without its blocks (None) if the changes have shown them already."""
        blocks = [block.snapshot() for block in self._blocks.values()]
        snapshot = self.snapshot()
        is_shown = [*map(_as_seen, snapshot["blocks"])] == [*map(_as_seen, blocks)]
        return {**snapshot, "blocks": None} if is_shown else snapshot

    def snapshot(self) -> dict[str, Any]:
        """Return all there is to show, in the front end's shape; once the stream has ended, from its reply alone."""
        has_ended = not self.stream.running
        if not has_ended:
            # A snapshot and the changes after it must not have the same text twice.
            self.changes()
        self._shown_service = self.stream.exchange.service
        transcript = sections(self.reply)
        return {
            "id": self.id,
            "running": not has_ended,
            "stop": self._has_stop,
            "waiting": "first token" if self.stream.exchange.request.streams else "reply",
            "elapsed": self._clock() - self._start,
            "head": _text_of(transcript, "head"),
            "badges": [list(badge) for badge in transcript[0].badges],
            "asked": [
                [section.label, sanitize.visible(section.text)] for section in transcript if section.kind == "prompt"
            ],
            "blocks": (
                self.final_blocks(transcript) if has_ended else [block.snapshot() for block in self._blocks.values()]
            ),
            "failure": _text_of(transcript, "failure"),
            "notes": [sanitize.visible(section.text) for section in transcript if section.kind == "note"],
            "figures": _text_of(transcript, "figures") if has_ended else "",
        }


def _text_of(transcript: Sequence[Section], kind: str) -> str:
    return "".join(sanitize.visible(section.text) for section in transcript if section.kind == kind)


def _as_seen(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block as a reader sees it: only thinking can be folded, so `open` means nothing elsewhere."""
    return {**block, "open": block["open"] and block["kind"] == "thinking"}


def final_block(section: Section) -> dict[str, Any]:
    """Return a block of a reply that has ended, in the front end's shape."""
    is_code = section.kind == "code"
    return {
        "kind": section.kind,
        "label": sanitize.visible(section.label),
        "open": False,
        "html": "" if is_code else _render(section.text),
        "tail": sanitize.visible(section.text) if is_code else "",
    }


def _paragraphs_html(text: str) -> str:
    """Return the HTML that the page makes of paragraphs whose text is all that they are (pane.js: makeParagraphs)."""
    # Unescaped, since it is compared with and never shown: what needs escaping differs, and goes to the page as HTML.
    paragraphs = re.split(r"\n{2,}", text.strip("\n"))
    return "".join('<p dir="auto" style="text-align:start">' + paragraph + "</p>\n" for paragraph in paragraphs)


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def _render(markdown: str) -> str:
    # A plain text: marimo writes a value that can show itself as HTML into a message as an object.
    return str(sanitize.render_markdown(markdown))
