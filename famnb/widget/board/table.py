"""A round of a board as ordinary notebook output: one table with a row a variant, readable without kernel or script."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from famnb.reply import Reply
from famnb.widget.board.meters import NAMES, Meters
from famnb.widget.html import diff, facts, sanitize, transcript

WINNER = "★ winner"
_EMPTY = "Their answers stream here side by side, and stay in the notebook as a table."
_PENDING = "When all answers have ended they stand here as a table; until then famnb.calls() has what came of them."
_SHOWN = ("thinking", "text", "code", "failure", "note")
_TABLE = "width:100%;border-collapse:collapse;margin:0.4em 0 1em;table-layout:fixed;font-size:1em"
_LINE = "border-top:1px solid rgba(128,128,128,0.35);vertical-align:top;text-align:left;line-height:1.5"
_HEAD = f"{_LINE};width:30%;padding:0.5em 0.8em 0.5em 0;font-weight:400;overflow-wrap:anywhere"
_BODY = f"{_LINE};padding:0.5em 0;overflow-wrap:anywhere"
_WON = "border:1px solid currentcolor;border-radius:9px;padding:0 0.6em;font-weight:600;white-space:nowrap"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of one variant."""

    label: str
    reply: Reply
    """With its request."""
    meters: Meters
    notes: tuple[str, ...] = ()
    """What its endpoint could not carry."""

    @property
    def named(self) -> str:
        """Where it was asked, unless the label says it."""
        place = (self.reply.endpoint, self.reply.model or getattr(self.reply.request, "model", ""))
        return " · ".join(name for name in place if name and name not in self.label)

    @property
    def figures(self) -> list[tuple[str, str]]:
        """The meters that are known, by name."""
        return [(name, figure) for name, figure in zip(NAMES, self.meters, strict=True) if figure]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One prompt and what came of it, a row a variant."""

    prompt: str
    system: str = ""
    rows: tuple[Row, ...] = ()
    winner: str | None = None
    """The label that was pinned."""
    reference: str | None = None
    """The label that the other answers are compared with; None: answers are shown as they are."""

    def compared(self, row: Row) -> Sequence[diff.Piece] | None:
        """A row's answer against the reference's; None where it is to be shown as it is."""
        return compared(self.reference, row.label, {each.label: each.reply for each in self.rows})


def compared(reference: str | None, label: str, replies: dict[str, Reply]) -> Sequence[diff.Piece] | None:
    """One answer against another, both of which must have ended and have a text; None where that is not so."""
    if reference is None or reference == label or not {reference, label} <= set(replies):
        return None
    theirs, ours = replies[reference], replies[label]
    if "running" in (theirs.status, ours.status) or not (theirs.text and ours.text):
        return None
    return diff.compare_words(theirs.text, ours.text)


def bundle(made: Round) -> transcript.Bundle:
    """The round as notebook output."""
    head = transcript.render(_asked(made.prompt, made.system))
    written = [_written(made, row) for row in made.rows]
    table = f'<table style="{_TABLE}"><tbody>{"".join(each["text/html"] for each in written)}</tbody></table>'
    return {
        "text/html": head["text/html"] + table,
        "text/markdown": "\n\n".join([head["text/markdown"], _figures(made), *(e["text/markdown"] for e in written)]),
        "text/plain": "\n\n".join([head["text/plain"], *(each["text/plain"] for each in written)]),
    }


def awaited(panes: Mapping[str, Sequence[str]]) -> transcript.Bundle:
    """What stands there before the first round: the panes by label, and what the endpoint of each cannot carry."""
    said = f"{len(panes)} {'panes' if len(panes) > 1 else 'pane'}: {' | '.join(panes)}"
    lost = [f"{label}: {loss}" for label, losses in panes.items() for loss in losses]
    return transcript.render([transcript.Section("note", words) for words in (said, *lost, _EMPTY)])


def pending(prompt: str, *, system: str) -> transcript.Bundle:
    """What stands there while a round streams, for a file that is saved meanwhile."""
    return transcript.render([*_asked(prompt, system), transcript.Section("note", _PENDING)])


def title(made: Round) -> str:
    """One line for a folded round."""
    prompt = " ".join(made.prompt.split())
    won = f"winner {made.winner}" if made.winner else ""
    details = [f"{len(made.rows)} variants", won, f"“{prompt if len(prompt) <= 60 else prompt[:59] + '…'}”"]
    return " · ".join(detail for detail in details if detail)


def _asked(prompt: str, system: str) -> list[transcript.Section]:
    """What all panes are asked."""
    said = (("system", system), ("user", prompt))
    return [transcript.Section("asked", text, role) for role, text in said if text]


def _written(made: Round, row: Row) -> transcript.Bundle:
    """One variant: its name and figures, then its answer."""
    answer = _answer(made, row)
    won = row.label == made.winner
    badges = [badge.text for badge in facts.badges(row.reply)]
    lines = [row.named, ", ".join(badges), *(f"{name}: {figure}" for name, figure in row.figures)]
    small = "<br>".join(sanitize.escape(line) for line in lines if line)
    star = f' <span style="{_WON}">{WINNER}</span>' if won else ""
    head = " · ".join([row.label, *([WINNER] if won else []), *(line for line in lines[:2] if line)])
    figures = " · ".join(lines[2:])
    return {
        "text/html": (
            f'<tr style="background-color:transparent"><th scope="row" style="{_HEAD}">'
            f"<strong>{sanitize.escape(row.label)}</strong>{star}"
            f'<div style="{transcript.MUTED}">{small}</div></th>'
            f'<td style="{_BODY}">{answer["text/html"]}</td></tr>'
        ),
        "text/markdown": f"#### {sanitize.escape_markdown(head)}\n\n{answer['text/markdown']}",
        "text/plain": f"== {sanitize.visible(head)} ==\n({sanitize.visible(figures)})\n\n{answer['text/plain']}",
    }


def _answer(made: Round, row: Row) -> transcript.Bundle:
    """What one variant said, its differences marked where they are wanted."""
    found = made.compared(row)
    pieces = [part for part in transcript.sections(row.reply) if part.kind in _SHOWN]
    pieces = [*(transcript.Section("note", note) for note in row.notes), *pieces]
    if found is None:
        return transcript.render(pieces)
    rest = transcript.render([transcript.Section("note", diff.describe_differences(found)), *_beside(pieces)])
    marked = {
        "text/html": diff.html(found),
        "text/markdown": diff.markdown(found),
        "text/plain": diff.plain(found),
    }
    return {form: f"{rest[form]}\n\n{text}" for form, text in marked.items()}


def _beside(pieces: Sequence[transcript.Section]) -> list[transcript.Section]:
    """The pieces that are not the answer itself."""
    return [part for part in pieces if part.kind not in ("text", "code") or part.label]


def _figures(made: Round) -> str:
    """The meters of all variants as a Markdown table."""
    rows = [("variant", *NAMES)]
    rows += [(f"{row.label} {WINNER}" if row.label == made.winner else row.label, *row.meters) for row in made.rows]
    lines = [f"| {' | '.join(sanitize.escape_markdown(' '.join(cell.split())) for cell in row)} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])
