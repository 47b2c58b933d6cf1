"""Rounds of a board: a prompt to all panes and their answers, of which each pane shows one, with its meters.

The meters are times, tokens, speed and cost as text, while a reply streams and when it has ended. Figures that are not
known are left out, figures that are estimated are marked. A round is saved as a table with a column a pane, readable
without kernel or script.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping

import msgspec

from famnb.client.client import BaseClient
from famnb.client.conversation import Turn
from famnb.formatting import ESTIMATE_MARK, format_count, format_duration, shorten
from famnb.record import Ledger
from famnb.record.price import Cost
from famnb.record.token_estimates import PRIOR
from famnb.reply import Reply
from famnb.widget.form.draft import last_user_content, split_content
from famnb.widget.form.images import PromptImage
from famnb.widget.html import diff, facts, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.live.reply_pane import UNFINISHED, BlockView, Markdown, PaneView, ReplyPane, StreamLike
from famnb.widget.runtime.view import View


class CellView(View, frozen=True):
    """An answer in the place of its pane in a round; the key is the pane's."""

    key: str
    label: str
    pane: PaneView | None
    """None if the pane was not asked."""
    meters: dict[str, str] = msgspec.field(default_factory=dict)
    """Figures by name; empty where not known."""
    is_winner: bool = False
    version: int = 0
    """Its index among the pane's answers to this prompt."""
    version_count: int = 0


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
        self.meters = self.read_meters()
        self._next_reading_s = 0.0
        self._reference: BoardAnswer | None = None
        """The answer with which it is compared."""

    @property
    def turn(self) -> Turn:
        """The turn that it is in its pane's chat."""
        return Turn(self._content, self.reply, self._before)

    def read_meters(self) -> dict[str, str]:
        """Return the meters now."""
        reply = self.reply
        if reply.status != "running":
            return read_meters(reply, cost=reply.cost, elapsed_s=0)
        # While a stream runs, the output tokens that it has reported are those of its beginning: their cost would be
        # too low, so they are estimated from the text instead.
        usage = msgspec.structs.replace(reply.usage, output_tokens=None, total_tokens=None)
        estimated = dataclasses.replace(reply, usage=usage)
        cost = self._ledger.cost(self.stream.exchange, estimated) if self._ledger else None
        return read_meters(reply, cost=cost, elapsed_s=self._elapsed.whole())

    def advance(self) -> bool:
        has_changed = super().advance()
        if self._clock() < self._next_reading_s:
            return has_changed
        self._next_reading_s = self._clock() + METERS_PERIOD_S
        before, self.meters = self.meters, self.read_meters()
        return has_changed or self.meters != before

    def finish(self) -> None:
        super().finish()
        self.meters = self.read_meters()

    def compare_with(self, reference: BoardAnswer | None) -> None:
        """Show how it differs from another answer, once both have ended with a text; None to show it as it is."""
        answers = (self, reference)
        if reference is self or not all(other and not other.is_running and other.reply.text for other in answers):
            reference = None
        if reference is not self._reference:
            self._reference, self._view = reference, None

    def differences(self) -> tuple[SafeHtml, str] | None:
        """Return it with its differences marked, and how many words differ; None if it is shown as it is."""
        reference = self._reference
        return None if reference is None else diff.mark_html(_answer_html(reference.reply), _answer_html(self.reply))

    def _make_view(self) -> PaneView:
        view = super()._make_view()
        blocks = view.blocks
        if differences := self.differences():
            html, summary = differences
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
    pictures: tuple[PromptImage, ...] = ()
    versions: dict[str, list[BoardAnswer]] = dataclasses.field(default_factory=dict)
    """All answers by the key of the pane, in the order of the panes: one more for each time that it was retried."""
    shown: dict[str, int] = dataclasses.field(default_factory=dict)
    """The index of the answer that is shown, by the key of the pane."""
    winner_key: str = ""
    """The key of the answer that was pinned."""
    saved: tuple[object, Bundle] = (None, {})
    """The round as notebook output, and what it was made of."""

    @property
    def answers(self) -> dict[str, BoardAnswer]:
        """The answers that are shown, by the key of the pane."""
        return {key: versions[self.shown[key]] for key, versions in self.versions.items()}

    @property
    def winner(self) -> str | None:
        """The label of the answer that was pinned, if it is shown."""
        return next((answer.label for answer in self.answers.values() if answer.key == self.winner_key), None)

    def reference(self) -> BoardAnswer | None:
        """Return the answer with which others are compared: the pinned one, or else the first."""
        answers = sorted(self.answers.values(), key=lambda answer: answer.key != self.winner_key)
        return next(iter(answers), None)

    def add(self, pane: str, answer: BoardAnswer) -> None:
        """Show one more answer of a pane."""
        self.versions.setdefault(pane, []).append(answer)
        self.shown[pane] = len(self.versions[pane]) - 1

    def view(self, panes: Mapping[str, str], *, is_marked: bool) -> RoundView:
        """Return what the page shows; `panes` are labels by key, and `is_marked` whether differences are marked."""
        reference, answers = self.reference() if is_marked else None, self.answers
        cells = []
        # Those of panes that are gone stand last.
        for key in dict.fromkeys([*panes, *answers]):
            answer = answers.get(key)
            if answer is None:
                cells.append(CellView(key=key, label=panes[key], pane=None))
                continue
            answer.compare_with(reference)
            cell = CellView(
                key=key,
                label=answer.label,
                pane=answer.view(),
                meters=answer.meters,
                is_winner=answer.key == self.winner_key,
                version=self.shown[key],
                version_count=len(self.versions[key]),
            )
            cells.append(cell)
        return RoundView(key=self.key, prompt=sanitize.visible(self.prompt), cells=tuple(cells))


# Nobody can read figures that change faster.
METERS_PERIOD_S = 1.0
"""Between two readings of the meters."""


def read_meters(reply: Reply, *, cost: Cost | None, elapsed_s: float) -> dict[str, str]:
    """Return the figures of a reply as text by name, empty where not known.

    Tokens are estimated from characters while it runs, and if they are not reported.
    `elapsed_s` is the time since the call began; it counts while the reply runs.
    """
    is_running, timing = reply.status == "running", reply.timing
    reported = None if is_running else reply.usage.output_tokens
    is_exact = reported is not None and reply.usage.source("output_tokens") != "estimated"
    mark = "" if is_exact else ESTIMATE_MARK
    tokens = round(reply.output_chars * PRIOR.mid) if reported is None else reported
    seconds = elapsed_s if is_running else timing.e2e_s
    return {
        "first token": _format_time(timing.ttft_s),
        "answer": _format_time(timing.ttfa_s),
        "tokens": f"{mark}{format_count(tokens)}" if tokens else "",
        "tokens/s": f"{mark}{tokens / seconds:.0f}" if tokens and seconds else "",
        "in all": _format_time(seconds),
        "cost": "unknown" if cost is None else str(cost),
    }


def _format_time(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds, brief=True)


WINNER = "★ winner"
_ANSWER_KINDS = ("thinking", "text", "code", "picture", "failure", "note")
"""The kinds of a reply's sections that are in its cell; prompt, badges and figures are beside or above it."""

MAX_COLUMNS = 4
"""The columns of one table; more panes stand in further tables below, as wide as the first."""
# The widths are in the cells: sanitisers keep them there.
_CELL_STYLE = "vertical-align:top;text-align:left;line-height:1.5;overflow-wrap:anywhere;padding:0.5em 1em 0.5em 0"
_LINE_STYLE = f"border-top:1px solid rgba(128,128,128,0.35);{_CELL_STYLE}"
_TABLE = SafeHtml(
    '<table style="width:100%;border-collapse:collapse;margin:0.4em 0 1em;table-layout:fixed;font-size:1em">'
    "<tbody>{}</tbody></table>"
)
_ROW = SafeHtml('<tr style="background-color:transparent">{}</tr>')
_HEAD = SafeHtml(
    f'<th scope="col" style="{_LINE_STYLE};width:{{width}}%;font-weight:400"><strong>{{label}}</strong>{{star}}'
    f'<div style="{transcript.MUTED_STYLE}">{{facts}}</div></th>'
)
_CELL = SafeHtml(f'<td style="{_CELL_STYLE}">{{}}</td>')
_FIGURE_CELL = SafeHtml(f'<td style="{_CELL_STYLE};{transcript.MUTED_STYLE}">{{}}</td>')
_LINE_BREAK = SafeHtml("<br>")
_STAR = SafeHtml(
    ' <span style="border:1px solid currentcolor;border-radius:9px;padding:0 0.6em;font-weight:600;'
    f'white-space:nowrap">{WINNER}</span>'
)


def round_output(board_round: BoardRound, *, is_marked: bool) -> Bundle:
    """Return a round as notebook output, made anew if something of it has changed."""
    answers = board_round.answers.values()
    if any(answer.is_running for answer in answers):
        return transcript.render([*_prompt_sections(board_round), Section("note", UNFINISHED)])
    basis = is_marked, board_round.winner_key, [(answer.key, answer.label) for answer in answers]
    if board_round.saved[0] != basis:
        board_round.saved = basis, round_bundle(board_round, is_marked=is_marked)
    return board_round.saved[1]


def round_bundle(board_round: BoardRound, *, is_marked: bool) -> Bundle:
    """Return a round that has ended as notebook output; `is_marked` has the words marked that differ."""
    head = transcript.render(_prompt_sections(board_round))
    # As many in each table, so that all columns are about as wide.
    table_count = math.ceil(len(board_round.answers) / MAX_COLUMNS)
    size = math.ceil(len(board_round.answers) / table_count)
    columns: list[tuple[SafeHtml, ...]] = []
    """What answered, the answer, and its figures."""
    markdown, plain, rows = [], [], []
    for key, answer in board_round.answers.items():
        answer.compare_with(board_round.reference() if is_marked else None)
        reply, versions, meters = answer.reply, board_round.versions[key], answer.read_meters()
        target = (reply.endpoint, reply.model or getattr(reply.request, "model", ""))
        # The label may name the target.
        names = " · ".join(name for name in target if name and name not in answer.label)
        version = f"answer {versions.index(answer) + 1} of {len(versions)}" if len(versions) > 1 else ""
        badges = ", ".join(badge.text for badge in facts.badges(reply))
        remarks = [remark for remark in (names, badges, version) if remark]
        is_winner = answer.label == board_round.winner
        title = [answer.label, WINNER] if is_winner else [answer.label]
        figures = [f"{name}: {figure}" for name, figure in meters.items() if figure]
        body = _answer_bundle(answer)
        star = _STAR if is_winner else ""
        about = _HEAD.format(width=100 // size, label=answer.label, star=star, facts=_LINE_BREAK.join(remarks))
        answer_html = _CELL.format(SafeHtml(body["text/html"]))
        columns.append((about, answer_html, _FIGURE_CELL.format(_LINE_BREAK.join(figures))))
        heading = " · ".join([*title, *remarks])
        markdown.append(f"#### {sanitize.escape_markdown(heading)}\n\n{body['text/markdown']}")
        summary = sanitize.visible(f"== {heading} ==\n({' · '.join(figures)})")
        plain.append(f"{summary}\n\n{body['text/plain']}")
        rows.append((" ".join(title), *meters.values()))
    tables = SafeHtml()
    for start in range(0, len(columns), size):
        shown = columns[start : start + size]
        shown += [(_CELL.format(""),) * 3] * (size - len(shown))
        lines = (_ROW.format(SafeHtml().join(cells)) for cells in zip(*shown, strict=True))
        tables += _TABLE.format(SafeHtml().join(lines))
    # The meters of all panes, which have the same names, as a table; HTML has them below each answer.
    table = sanitize.markdown_table([("variant", *meters), *rows])
    return {
        "text/html": SafeHtml(head["text/html"]) + tables,
        "text/markdown": "\n\n".join([head["text/markdown"], table, *markdown]),
        "text/plain": "\n\n".join([head["text/plain"], *plain]),
    }


def _answer_bundle(answer: BoardAnswer) -> Bundle:
    """Return an answer, its HTML with the differences marked from the one with which it is compared."""
    sections = [Section("prompt", answer.own_prompt, "user")] if answer.own_prompt else []
    sections += [Section("note", note) for note in answer.stream.exchange.request.losses]
    sections += [section for section in transcript.sections(answer.reply) if section.kind in _ANSWER_KINDS]
    if not (differences := answer.differences()):
        return transcript.render(sections)
    html, summary = differences
    note = Section("note", summary)
    # The marked text replaces the answer: sections without a label. Thinking, tool calls and notes stand before it.
    others = [section for section in sections if section.kind not in ("text", "code") or section.label]
    before = SafeHtml(transcript.render([note, *others])["text/html"])
    return {**transcript.render([note, *sections]), "text/html": before + html}


def round_title(board_round: BoardRound) -> str:
    """Return one line for a round that is folded."""
    start = shorten(" ".join(board_round.prompt.split()))
    winner = f"winner {board_round.winner}" if board_round.winner else ""
    return " · ".join(item for item in (f"{len(board_round.versions)} variants", winner, f"“{start}”") if item)


def _prompt_sections(board_round: BoardRound) -> list[Section]:
    """Return what all panes are asked."""
    texts = {"system": board_round.system, "user": board_round.prompt}
    return [Section("prompt", text, role) for role, text in texts.items() if text]
