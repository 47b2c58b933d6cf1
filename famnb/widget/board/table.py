"""A round of a board as notebook output: one table with a row a variant, readable without kernel or script."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from famnb.formatting import shorten
from famnb.reply import Reply
from famnb.widget.board.meters import METER_NAMES, Meters
from famnb.widget.html import diff, facts, sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section

WINNER = "★ winner"
_EMPTY = "Their answers stream here side by side, and stay in the notebook as a table."
_PENDING = "When all answers have ended they stand here as a table; until then famnb.calls() has what came of them."
_ANSWER_KINDS = ("thinking", "text", "code", "failure", "note")
"""The kinds of a reply's sections that are in its cell; prompt, badges and figures are beside or above it."""

_LINE_STYLE = "border-top:1px solid rgba(128,128,128,0.35);vertical-align:top;text-align:left;line-height:1.5"
_TABLE = SafeHtml(
    '<table style="width:100%;border-collapse:collapse;margin:0.4em 0 1em;table-layout:fixed;font-size:1em">'
    "<tbody>{}</tbody></table>"
)
_ROW = SafeHtml(
    '<tr style="background-color:transparent">'
    f'<th scope="row" style="{_LINE_STYLE};width:30%;padding:0.5em 0.8em 0.5em 0;font-weight:400;'
    'overflow-wrap:anywhere">'
    f'<strong>{{label}}</strong>{{star}}<div style="{transcript.MUTED_STYLE}">{{facts}}</div></th>'
    f'<td style="{_LINE_STYLE};padding:0.5em 0;overflow-wrap:anywhere">{{answer}}</td></tr>'
)
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

    def differences(self, result: PaneResult) -> Sequence[diff.Piece] | None:
        """An answer compared with the reference's; None if it is to be shown as it is."""
        return compare_answers(self.reference, result.label, {other.label: other.reply for other in self.results})


def compare_answers(reference: str | None, label: str, replies: Mapping[str, Reply]) -> Sequence[diff.Piece] | None:
    """Compare the answer of a label with the reference's; None unless both have ended and have a text."""
    if reference is None or reference == label or not {reference, label} <= set(replies):
        return None
    reference_reply, reply = replies[reference], replies[label]
    if "running" in (reference_reply.status, reply.status) or not (reference_reply.text and reply.text):
        return None
    return diff.compare_words(reference_reply.text, reply.text)


def round_bundle(board_round: BoardRound) -> Bundle:
    """A round as notebook output."""
    head = transcript.render(_prompt_sections(board_round.prompt, board_round.system))
    rows = [_result_bundle(board_round, result) for result in board_round.results]
    table = _TABLE.format(SafeHtml().join(SafeHtml(row["text/html"]) for row in rows))
    markdown = [head["text/markdown"], _meters_markdown(board_round), *(row["text/markdown"] for row in rows)]
    return {
        "text/html": SafeHtml(head["text/html"]) + table,
        "text/markdown": "\n\n".join(markdown),
        "text/plain": "\n\n".join([head["text/plain"], *(row["text/plain"] for row in rows)]),
    }


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
    """One pane as a row of the table: a head with label and figures, and its answer."""
    answer = _answer_bundle(board_round, result)
    is_winner = result.label == board_round.winner
    badges = ", ".join(badge.text for badge in facts.badges(result.reply))
    figures = [f"{name}: {figure}" for name, figure in result.figures]
    head = " · ".join(item for item in (result.label, WINNER if is_winner else "", result.target, badges) if item)
    lines = [sanitize.escape(line) for line in (result.target, badges, *figures) if line]
    return {
        "text/html": _ROW.format(
            label=result.label,
            star=_STAR if is_winner else "",
            facts=SafeHtml("<br>").join(lines),
            answer=SafeHtml(answer["text/html"]),
        ),
        "text/markdown": f"#### {sanitize.escape_markdown(head)}\n\n{answer['text/markdown']}",
        "text/plain": (
            f"== {sanitize.visible(head)} ==\n({sanitize.visible(' · '.join(figures))})\n\n{answer['text/plain']}"
        ),
    }


def _answer_bundle(board_round: BoardRound, result: PaneResult) -> Bundle:
    """The answer of one pane, with its differences marked if that is wanted."""
    pieces = board_round.differences(result)
    sections = [Section("note", note) for note in result.notes]
    sections += [section for section in transcript.sections(result.reply) if section.kind in _ANSWER_KINDS]
    if pieces is None:
        return transcript.render(sections)
    # The marked text replaces the answer: sections without a label. Thinking, tool calls and notes stand before it.
    others = [section for section in sections if section.kind not in ("text", "code") or section.label]
    rest = transcript.render([Section("note", diff.describe_differences(pieces)), *others])
    return {
        "text/html": SafeHtml(rest["text/html"]) + SafeHtml("\n\n") + SafeHtml(diff.html(pieces)),
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
