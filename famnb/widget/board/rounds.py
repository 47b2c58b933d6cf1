"""Rounds of a board: a prompt to all panes and their answers, of which each pane shows one, with its meters.

The meters are times, tokens, speed and cost as text, while a reply streams and when it has ended. Figures that are not
known are left out, figures that are estimated are marked.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from famnb.client.client import BaseClient
from famnb.client.conversation import Turn
from famnb.formatting import ESTIMATE_MARK, format_count, format_duration
from famnb.record import Ledger
from famnb.record.price import Cost
from famnb.record.token_estimates import PRIOR
from famnb.reply import Reply
from famnb.widget.form.draft import last_user_content, split_content
from famnb.widget.form.images import PromptImage
from famnb.widget.html import diff, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.live.reply_pane import BlockView, Markdown, PaneView, ReplyPane, StreamLike
from famnb.widget.runtime.view import View


class AnswerView(View, frozen=True):
    """An answer."""

    label: str
    pane: PaneView
    meters: tuple[str, ...]
    """In the order of the board's `meter_names`; empty where not known."""
    is_winner: bool
    version: int
    """Its index among the pane's answers to this prompt."""
    version_count: int


class CellView(View, frozen=True):
    """The place of a pane in a round; its key is the pane's."""

    key: str
    label: str
    answer: AnswerView | None
    """None if the pane was not asked."""


class RoundView(View, frozen=True):
    """A prompt and its answers."""

    key: str
    prompt: str
    cells: tuple[CellView, ...]


class BoardAnswer(ReplyPane):
    """An answer on a board: a labelled stream with its meters."""

    def __init__(
        self,
        stream: StreamLike,
        *,
        key: str,
        label: str,
        client: BaseClient | None = None,
        ledger: Ledger | None = None,
        before: Turn | None = None,
        shared_prompt: str | None = None,
        sharers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """It follows the turn `before`; its prompt is shown unless it is the `shared_prompt` of the round."""
        content = last_user_content(stream.exchange.request)
        prompt = split_content(content)[0]
        self.own_prompt = "" if shared_prompt in (None, prompt) else prompt
        """What this pane alone was asked."""
        prompts = [Section("prompt", self.own_prompt, "user")] if self.own_prompt else []
        super().__init__(stream, key=key, prompts=prompts, sharers=sharers, clock=clock)
        self.label = label
        self.client = client
        self._ledger = ledger
        self._content, self._before = content, before
        self._start = clock()
        self._meters = self.read_meters()
        self._next_reading_s = 0.0
        self._reference: BoardAnswer | None = None
        """The answer with which it is compared."""

    @property
    def turn(self) -> Turn:
        """The turn that it is in its pane's chat."""
        return Turn(self._content, self.reply, self._before)

    def read_meters(self) -> Meters:
        """Return the meters now."""
        reply = self.reply
        if reply.status != "running":
            return read_meters(reply, cost=reply.cost, elapsed_s=0)
        # While a stream runs, the output tokens that it has reported are those of its beginning: their cost would be
        # too low, so they are estimated from the text instead.
        usage = msgspec.structs.replace(reply.usage, output_tokens=None, total_tokens=None)
        estimated = dataclasses.replace(reply, usage=usage)
        cost = self._ledger.cost(self.stream.exchange, estimated) if self._ledger else None
        return read_meters(reply, cost=cost, elapsed_s=self._clock() - self._start)

    def advance(self) -> bool:
        has_changed = super().advance()
        if self._clock() < self._next_reading_s:
            return has_changed
        self._next_reading_s = self._clock() + METERS_PERIOD_S
        before, self._meters = self._meters, self.read_meters()
        return has_changed or self._meters != before

    def finish(self) -> None:
        super().finish()
        self._meters = self.read_meters()

    def is_comparable(self, reference: BoardAnswer) -> bool:
        """Whether it can be compared with another answer: both have ended with a text."""
        return reference is not self and all(
            not answer.is_running and answer.reply.text for answer in (reference, self)
        )

    def mark_differences(self, reference: BoardAnswer) -> tuple[SafeHtml, str]:
        """Return it as it is shown, its differences from another answer marked, and how many words differ."""
        return diff.mark_html(_answer_html(reference.reply), _answer_html(self.reply))

    def compare_with(self, reference: BoardAnswer | None) -> None:
        """Show how it differs from another answer, once both have ended; None to show it as it is."""
        if reference is not None and not self.is_comparable(reference):
            reference = None
        if reference is not self._reference:
            self._reference, self._view = reference, None

    def answer_view(self, *, is_winner: bool, version: int, version_count: int) -> AnswerView:
        """Return what the page shows."""
        return AnswerView(
            label=self.label,
            pane=self.view(),
            meters=tuple(self._meters),
            is_winner=is_winner,
            version=version,
            version_count=version_count,
        )

    def _make_view(self) -> PaneView:
        view = super()._make_view()
        blocks = view.blocks
        if self._reference is not None:
            html, summary = self.mark_differences(self._reference)
            body = Markdown(html=str(html))
            marked = BlockView(key="differences", kind="text", label=summary, is_open=True, body=body)
            blocks = (*(block for block in blocks if block.kind == "thinking"), marked)
        return msgspec.structs.replace(view, blocks=blocks, figures="")


def _answer_html(reply: Reply) -> SafeHtml:
    sections = [transcript.block_section(block, reply) for block in reply.blocks if block.kind in ("text", "refusal")]
    return SafeHtml().join(
        sanitize.code_block(section.text) if section.kind == "code" else sanitize.render_markdown(section.text)
        for section in sections
    )


@dataclasses.dataclass(slots=True, eq=False)
class BoardRound:
    """A prompt, and the answers to it."""

    number: int
    """Its index in the chat."""
    key: str
    prompt: str
    """What all panes are asked; empty if each has a prompt of its own."""
    system: str
    tag: str
    """The label `tag` of its calls in the ledger, by which `frame` finds them."""
    template: str = ""
    """The prompt with its variables; empty if it has none."""
    pictures: tuple[PromptImage, ...] = ()
    versions: dict[str, list[BoardAnswer]] = dataclasses.field(default_factory=dict)
    """All answers by the key of the pane, in the order of the panes: one more for each time that it was retried."""
    shown: dict[str, int] = dataclasses.field(default_factory=dict)
    """The index of the answer that is shown, by the key of the pane."""
    winner_key: str = ""
    """The key of the pane whose answer was pinned."""
    saved: tuple[object, Bundle] = (None, {})
    """The round as notebook output, and what it was made of."""

    @property
    def answers(self) -> dict[str, BoardAnswer]:
        """The answers that are shown, by the key of the pane."""
        return {key: versions[self.shown[key]] for key, versions in self.versions.items()}

    @property
    def winner(self) -> str | None:
        """The label of the answer that was pinned."""
        answer = self.answers.get(self.winner_key)
        return None if answer is None else answer.label

    def reference(self) -> BoardAnswer | None:
        """Return the answer with which others are compared: the pinned one, or else the first."""
        answers = self.answers
        return answers.get(self.winner_key) or next(iter(answers.values()), None)

    def add(self, pane: str, answer: BoardAnswer) -> None:
        """Show one more answer of a pane."""
        self.versions.setdefault(pane, []).append(answer)
        self.shown[pane] = len(self.versions[pane]) - 1

    def label_for(self, pane: str, label: str) -> str:
        """Return a label for the answers of a pane that no other one of this round has."""
        is_taken = any(answer.label == label for key, answer in self.answers.items() if key != pane)
        return f"{label} ({pane})" if is_taken else label

    def view(self, panes: Mapping[str, str], *, is_marked: bool) -> RoundView:
        """Return what the page shows; `panes` are labels by key, and `is_marked` whether differences are marked."""
        reference, answers = self.reference() if is_marked else None, self.answers
        cells = []
        # Those of panes that are gone stand last.
        for key in dict.fromkeys([*panes, *answers]):
            view, answer = None, answers.get(key)
            if answer is not None:
                answer.compare_with(reference)
                view = answer.answer_view(
                    is_winner=key == self.winner_key, version=self.shown[key], version_count=len(self.versions[key])
                )
            cells.append(CellView(key=key, label=panes.get(key, ""), answer=view))
        return RoundView(key=self.key, prompt=sanitize.visible(self.prompt), cells=tuple(cells))


# Nobody can read figures that change faster.
METERS_PERIOD_S = 1.0
"""Between two readings of the meters."""


class Meters(NamedTuple):
    """The figures of one pane as text; empty where not known."""

    first_token: str
    answer: str
    tokens: str
    speed: str
    in_all: str
    cost: str


METER_NAMES = Meters("first token", "answer", "tokens", "tokens/s", "in all", "cost")


def read_meters(reply: Reply, *, cost: Cost | None, elapsed_s: float) -> Meters:
    """Return the meters of a reply; its tokens are estimated from characters while it runs, and if not reported.

    `elapsed_s` is the time since the call began; it counts while the reply runs.
    """
    is_running, timing = reply.status == "running", reply.timing
    reported = None if is_running else reply.usage.output_tokens
    is_exact = reported is not None and reply.usage.source("output_tokens") != "estimated"
    mark = "" if is_exact else ESTIMATE_MARK
    tokens = round(reply.output_chars * PRIOR.mid) if reported is None else reported
    seconds = elapsed_s if is_running else timing.e2e_s
    return Meters(
        first_token=_format_time(timing.ttft_s),
        answer=_format_time(timing.ttfa_s),
        tokens=f"{mark}{format_count(tokens)}" if tokens else "",
        speed=f"{mark}{tokens / seconds:.0f}" if tokens and seconds else "",
        in_all=_format_time(seconds),
        cost="unknown" if cost is None else str(cost),
    )


def _format_time(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds, brief=True)
