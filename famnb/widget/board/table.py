"""A round of a board as notebook output: a table with a column a pane, readable without kernel or script."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from famnb.formatting import shorten
from famnb.reply import Reply
from famnb.widget.board.rounds import METER_NAMES, Meters
from famnb.widget.html import diff, facts, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section

WINNER = "★ winner"
_EMPTY = "Their answers stand here side by side, and are saved with the notebook."
_PENDING = "When all answers have ended they stand here as a table; until then famnb.calls() has what came of them."
_ANSWER_KINDS = ("thinking", "text", "code", "failure", "note")
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
_STAR = SafeHtml(
    ' <span style="border:1px solid currentcolor;border-radius:9px;padding:0 0.6em;font-weight:600;'
    f'white-space:nowrap">{WINNER}</span>'
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PaneResult:
    """The answer of one pane."""

    label: str
    reply: Reply
    """With its request."""
    meters: Meters
    prompt: str = ""
    """What this pane alone was asked; empty if all were asked the same."""
    version: str = ""
    """Which of the pane's answers it is, if there are several."""
    notes: tuple[str, ...] = ()
    """What its endpoint could not carry of the settings, a sentence each."""

    @property
    def target(self) -> str:
        """The endpoint and the model, unless the label names them."""
        target = (self.reply.endpoint, self.reply.model or getattr(self.reply.request, "model", ""))
        return " · ".join(name for name in target if name and name not in self.label)

    @property
    def figures(self) -> list[tuple[str, str]]:
        """The meters that are known, by name."""
        return [(name, figure) for name, figure in zip(METER_NAMES, self.meters, strict=True) if figure]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BoardRound:
    """One prompt and the answer of each pane."""

    prompt: str
    system: str = ""
    results: tuple[PaneResult, ...] = ()
    winner: str | None = None
    """The label that was pinned."""
    reference: str | None = None
    """The label that the other answers are compared with; None to show all answers as they are."""

    def pair_of(self, result: PaneResult) -> tuple[Reply, Reply] | None:
        """The reference's reply and this one, to be compared; None if this answer is to be shown as it is."""
        return comparable(self.reference, result.label, {other.label: other.reply for other in self.results})


def comparable(reference: str | None, label: str, replies: Mapping[str, Reply]) -> tuple[Reply, Reply] | None:
    """Return the replies of the reference and of a label; None unless both have ended and have a text."""
    if reference is None or reference == label or not {reference, label} <= set(replies):
        return None
    pair = replies[reference], replies[label]
    return pair if all(reply.status != "running" and reply.text for reply in pair) else None


def mark_differences(reference: Reply, reply: Reply) -> tuple[SafeHtml, str]:
    """Return an answer as it is shown, its differences marked, and how many words differ."""
    return diff.mark_html(_answer_html(reference), _answer_html(reply))


def _answer_html(reply: Reply) -> SafeHtml:
    sections = [transcript.block_section(block, reply) for block in reply.blocks if block.kind in ("text", "refusal")]
    return SafeHtml().join(
        sanitize.code_block(section.text) if section.kind == "code" else sanitize.render_markdown(section.text)
        for section in sections
    )


def round_bundle(board_round: BoardRound) -> Bundle:
    """A round as notebook output."""
    head = transcript.render(_prompt_sections(board_round.prompt, board_round.system))
    results = board_round.results
    columns = [_result_bundle(board_round, result) for result in results]
    # As many in each table, so that all columns are about as wide.
    table_count = max(1, math.ceil(len(results) / MAX_COLUMNS))
    size = max(1, math.ceil(len(results) / table_count))
    tables = [_table(board_round, results[start : start + size], size) for start in range(0, len(results), size)]
    markdown = [head["text/markdown"], _meters_markdown(board_round), *(each["text/markdown"] for each in columns)]
    return {
        "text/html": SafeHtml(head["text/html"]) + SafeHtml().join(tables),
        "text/markdown": "\n\n".join(markdown),
        "text/plain": "\n\n".join([head["text/plain"], *(each["text/plain"] for each in columns)]),
    }


def _table(board_round: BoardRound, results: Sequence[PaneResult], size: int) -> SafeHtml:
    """Some results side by side: what answered, the answers, and their figures, each in one row."""
    empty = [SafeHtml("")] * (size - len(results))
    heads = [_head(board_round, result, width=100 // size) for result in results]
    answers = [SafeHtml(_answer_bundle(board_round, result)["text/html"]) for result in results]
    figures = [
        SafeHtml("<br>").join(sanitize.escape(f"{name}: {figure}") for name, figure in result.figures)
        for result in results
    ]
    rows = [
        [*heads, *map(_CELL.format, empty)],
        [_CELL.format(cell) for cell in [*answers, *empty]],
        [_FIGURE_CELL.format(cell) for cell in [*figures, *empty]],
    ]
    return _TABLE.format(SafeHtml().join(_ROW.format(SafeHtml().join(row)) for row in rows))


def _head(board_round: BoardRound, result: PaneResult, *, width: int) -> SafeHtml:
    badges = ", ".join(badge.text for badge in facts.badges(result.reply))
    lines = [sanitize.escape(line) for line in (result.target, badges, result.version) if line]
    return _HEAD.format(
        width=width,
        label=result.label,
        star=_STAR if result.label == board_round.winner else "",
        facts=SafeHtml("<br>").join(lines),
    )


def empty_bundle(losses: Mapping[str, Sequence[str]]) -> Bundle:
    """The output before the first round: the panes by label, and what the endpoint of each cannot carry."""
    panes = f"{len(losses)} {'panes' if len(losses) > 1 else 'pane'}: {' | '.join(losses)}"
    notes = [f"{label}: {loss}" for label, own_losses in losses.items() for loss in own_losses]
    return transcript.render([Section("note", note) for note in (panes, *notes, _EMPTY)])


def pending_bundle(prompt: str, *, system: str) -> Bundle:
    """The output while a round streams, for a file that is saved meanwhile."""
    return transcript.render([*_prompt_sections(prompt, system), Section("note", _PENDING)])


def round_title(board_round: BoardRound) -> str:
    """One line for a round that is folded."""
    start = shorten(" ".join(board_round.prompt.split()))
    winner = f"winner {board_round.winner}" if board_round.winner else ""
    return " · ".join(item for item in (f"{len(board_round.results)} variants", winner, f"“{start}”") if item)


def _prompt_sections(prompt: str, system: str) -> list[Section]:
    """What all panes are asked."""
    return [Section("prompt", text, role) for role, text in (("system", system), ("user", prompt)) if text]


def _result_bundle(board_round: BoardRound, result: PaneResult) -> Bundle:
    """One pane as Markdown and plain text: a head with label and figures, and its answer."""
    answer = _answer_bundle(board_round, result)
    is_winner = result.label == board_round.winner
    badges = ", ".join(badge.text for badge in facts.badges(result.reply))
    figures = [f"{name}: {figure}" for name, figure in result.figures]
    items = (result.label, WINNER if is_winner else "", result.target, badges, result.version)
    head = " · ".join(item for item in items if item)
    return {
        "text/markdown": f"#### {sanitize.escape_markdown(head)}\n\n{answer['text/markdown']}",
        "text/plain": (
            f"== {sanitize.visible(head)} ==\n({sanitize.visible(' · '.join(figures))})\n\n{answer['text/plain']}"
        ),
    }


def _answer_bundle(board_round: BoardRound, result: PaneResult) -> Bundle:
    """The answer of one pane, with its differences marked if that is wanted."""
    pair = board_round.pair_of(result)
    sections = [] if not result.prompt else [Section("prompt", result.prompt, "user")]
    sections += [Section("note", note) for note in result.notes]
    sections += [section for section in transcript.sections(result.reply) if section.kind in _ANSWER_KINDS]
    if pair is None:
        return transcript.render(sections)
    # The marked text replaces the answer: sections without a label. Thinking, tool calls and notes stand before it.
    others = [section for section in sections if section.kind not in ("text", "code") or section.label]
    html, summary = mark_differences(*pair)
    pieces = diff.compare_words(pair[0].text, pair[1].text)
    rest = transcript.render([Section("note", diff.describe_differences(pieces)), *others])
    html_rest = transcript.render([Section("note", summary), *others])["text/html"]
    return {
        "text/html": SafeHtml(html_rest) + html,
        "text/markdown": f"{rest['text/markdown']}\n\n{diff.markdown(pieces)}",
        "text/plain": f"{rest['text/plain']}\n\n{diff.plain(pieces)}",
    }


def _meters_markdown(board_round: BoardRound) -> str:
    """The meters of all panes as a Markdown table; HTML has them in the head of each row."""
    rows: list[tuple[str, ...]] = [("variant", *METER_NAMES)]
    for result in board_round.results:
        label = f"{result.label} {WINNER}" if result.label == board_round.winner else result.label
        rows.append((label, *result.meters))
    return sanitize.markdown_table(rows)
