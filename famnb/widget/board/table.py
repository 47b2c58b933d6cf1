"""A round of a board as notebook output: a table with a column a pane, readable without kernel or script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from famnb.formatting import shorten
from famnb.widget.board.rounds import METER_NAMES, BoardAnswer, BoardRound, Meters
from famnb.widget.html import facts, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section

WINNER = "★ winner"
_EMPTY = "Their answers stand here side by side, and are saved with the notebook."
_PENDING = "When all answers have ended they stand here as a table; until then famnb.calls() has what came of them."
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
_STAR = SafeHtml(
    ' <span style="border:1px solid currentcolor;border-radius:9px;padding:0 0.6em;font-weight:600;'
    f'white-space:nowrap">{WINNER}</span>'
)


def round_bundle(board_round: BoardRound, *, is_marked: bool) -> Bundle:
    """Return a round that has ended as notebook output; `is_marked` has the words marked that differ."""
    head = transcript.render(_prompt_sections(board_round))
    reference = board_round.reference() if is_marked else None
    columns = [
        _make_column(answer, versions=board_round.versions[key], winner=board_round.winner, reference=reference)
        for key, answer in board_round.answers.items()
    ]
    # As many in each table, so that all columns are about as wide.
    table_count = max(1, math.ceil(len(columns) / MAX_COLUMNS))
    size = max(1, math.ceil(len(columns) / table_count))
    tables = [_table(columns[start : start + size], size) for start in range(0, len(columns), size)]
    # The meters of all panes as a table; HTML has them below each answer.
    rows = [(f"{column.label} {WINNER}" if column.is_winner else column.label, *column.meters) for column in columns]
    meters = sanitize.markdown_table([("variant", *METER_NAMES), *rows])
    markdown = [f"#### {sanitize.escape_markdown(column.head)}\n\n{column.body['text/markdown']}" for column in columns]
    plain = [
        f"== {sanitize.visible(column.head)} ==\n({sanitize.visible(' · '.join(column.figures))})\n\n"
        f"{column.body['text/plain']}"
        for column in columns
    ]
    return {
        "text/html": SafeHtml(head["text/html"]) + SafeHtml().join(tables),
        "text/markdown": "\n\n".join([head["text/markdown"], meters, *markdown]),
        "text/plain": "\n\n".join([head["text/plain"], *plain]),
    }


class _Column(NamedTuple):
    """An answer as a column of the table."""

    label: str
    is_winner: bool
    facts: tuple[str, ...]
    """What answered, and what is to be known of it, in a few words each."""
    meters: Meters
    body: Bundle

    @property
    def head(self) -> str:
        return " · ".join(filter(None, (self.label, WINNER if self.is_winner else "", *self.facts)))

    @property
    def figures(self) -> list[str]:
        return [f"{name}: {figure}" for name, figure in zip(METER_NAMES, self.meters, strict=True) if figure]


def _make_column(
    answer: BoardAnswer, *, versions: Sequence[BoardAnswer], winner: str | None, reference: BoardAnswer | None
) -> _Column:
    reply = answer.reply
    target = (reply.endpoint, reply.model or getattr(reply.request, "model", ""))
    version = f"answer {versions.index(answer) + 1} of {len(versions)}" if len(versions) > 1 else ""
    badges = ", ".join(badge.text for badge in facts.badges(reply))
    return _Column(
        label=answer.label,
        is_winner=answer.label == winner,
        # The label may name the target.
        facts=tuple(
            filter(None, (" · ".join(name for name in target if name and name not in answer.label), badges, version))
        ),
        meters=answer.read_meters(),
        body=_answer_bundle(answer, reference),
    )


def _table(columns: Sequence[_Column], size: int) -> SafeHtml:
    """Some columns side by side: what answered, the answers, and their figures, each in one row."""
    empty = [_CELL.format(SafeHtml(""))] * (size - len(columns))
    line_break = SafeHtml("<br>")
    heads = [
        _HEAD.format(
            width=100 // size,
            label=column.label,
            star=_STAR if column.is_winner else "",
            facts=line_break.join(map(sanitize.escape, column.facts)),
        )
        for column in columns
    ]
    answers = [_CELL.format(SafeHtml(column.body["text/html"])) for column in columns]
    figures = [_FIGURE_CELL.format(line_break.join(map(sanitize.escape, column.figures))) for column in columns]
    rows = [[*cells, *empty] for cells in (heads, answers, figures)]
    return _TABLE.format(SafeHtml().join(_ROW.format(SafeHtml().join(row)) for row in rows))


def _answer_bundle(answer: BoardAnswer, reference: BoardAnswer | None) -> Bundle:
    """Return an answer, its HTML with the differences from a reference marked if there is one to compare it with."""
    sections = [Section("prompt", answer.own_prompt, "user")] if answer.own_prompt else []
    sections += [Section("note", note) for note in answer.stream.exchange.request.losses]
    sections += [section for section in transcript.sections(answer.reply) if section.kind in _ANSWER_KINDS]
    if reference is None or not answer.is_comparable(reference):
        return transcript.render(sections)
    html, summary = answer.mark_differences(reference)
    note = Section("note", summary)
    # The marked text replaces the answer: sections without a label. Thinking, tool calls and notes stand before it.
    others = [section for section in sections if section.kind not in ("text", "code") or section.label]
    before = SafeHtml(transcript.render([note, *others])["text/html"])
    return {**transcript.render([note, *sections]), "text/html": before + html}


def empty_bundle(losses: Mapping[str, Sequence[str]]) -> Bundle:
    """Return the output before the first round: the panes by label, and what the endpoint of each cannot carry."""
    panes = f"{len(losses)} {'panes' if len(losses) > 1 else 'pane'}: {' | '.join(losses)}"
    notes = [f"{label}: {loss}" for label, pane_losses in losses.items() for loss in pane_losses]
    return transcript.render([Section("note", note) for note in (panes, *notes, _EMPTY)])


def pending_bundle(board_round: BoardRound) -> Bundle:
    """Return the output while a round streams, for a file that is saved meanwhile."""
    return transcript.render([*_prompt_sections(board_round), Section("note", _PENDING)])


def round_title(board_round: BoardRound) -> str:
    """Return one line for a round that is folded."""
    start = shorten(" ".join(board_round.prompt.split()))
    winner = f"winner {board_round.winner}" if board_round.winner else ""
    return " · ".join(item for item in (f"{len(board_round.versions)} variants", winner, f"“{start}”") if item)


def _prompt_sections(board_round: BoardRound) -> list[Section]:
    """Return what all panes are asked."""
    texts = {"system": board_round.system, "user": board_round.prompt}
    return [Section("prompt", text, role) for role, text in texts.items() if text]
