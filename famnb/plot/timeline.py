"""One reply over time: waiting, thinking, answering, and what came when."""

from __future__ import annotations

import textwrap
from typing import Any

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from famnb.formatting import format_duration
from famnb.frame.deltas import deltas
from famnb.plot.canvas import Canvas
from famnb.plot.labels import short
from famnb.plot.palette import BLUE, GREEN, ORANGE, PURPLE, VERMILLION
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.timing import Timing

KINDS = {"thinking": PURPLE, "text": BLUE, "tool_call": GREEN, "refusal": ORANGE}
NAMES = {"thinking": "thinking", "text": "answer", "tool_call": "tool call", "refusal": "refusal"}
ENDS = {"cancelled": "stopped", "interrupted": "cut off", "failed": "failed", "running": "so far"}
"""How the end is marked when it was not the reply's own."""
ROOM = 1.02
"""How much of the axis there is, the reply's whole time being 1."""


def timeline(reply: Reply | RecordedCall | str, *, ax: Axes | None = None) -> matplotlib.figure.Figure:
    """The waterfall of one reply: bands for waiting, thinking and answering, and the characters as they came.

    `reply` is a `Reply`, a `RecordedCall`, or a call's id in the default ledger. x: seconds since the request was
    sent; y: characters so far, by kind. A stop, a cut or a failure is marked where it happened.
    """
    call = Ledger().call(reply) if isinstance(reply, str) else reply
    seen = call.reply if isinstance(call, RecordedCall) else call
    sheet = Canvas.of(ax)
    model = seen.model or getattr(seen.request, "model", "")
    title = " · ".join(word for word in (short(model), seen.endpoint) if word)
    title = f"One reply: {title}" if title else "One reply"
    total = seen.timing.e2e_s or (seen.reads[-1].t_ns / 1e9 if seen.reads else None)
    if total is None:
        sheet.words(title=title)
        sheet.empty(_why_empty(seen))
        return sheet.done(f"{title}: {_why_empty(seen)}")
    series = _series(seen, total)
    _bands(sheet, seen.timing, total, thought="thinking" in series)
    _steps(sheet, series, total)
    rows = _marks(sheet, seen, total)
    facts = _facts(seen, total)
    x, y = "seconds since the request was sent", "characters so far"
    sheet.words(title=title, subtitle=facts, x=x, y=y, above_pt=12 * rows)
    sheet.foot([], [], _notes(seen))
    return sheet.done(f"{title}: {facts}")


def _series(reply: Reply, total: float) -> dict[str, pd.DataFrame]:
    """Characters so far by kind: columns `t_s`, `chars`; a whole reply brings all of it at its end."""
    if not reply.streamed:
        sizes = {kind: sum(len(block.text) for block in reply.blocks if block.kind == kind) for kind in KINDS}
        return {kind: pd.DataFrame({"t_s": [total], "chars": [size]}) for kind, size in sizes.items() if size}
    table = deltas(reply)
    brought = table[(table["chars"] > 0) & table["kind"].isin(KINDS)]
    return {
        str(kind): pd.DataFrame({"t_s": rows["t_s"].astype(float), "chars": rows["chars"].astype(float).cumsum()})
        for kind, rows in brought.groupby("kind", observed=True)
    }


def _bands(sheet: Canvas, timing: Timing, total: float, *, thought: bool) -> None:
    """Shade what the reply was doing, named where there is room."""
    first = total if timing.ttft_s is None else timing.ttft_s
    answer = timing.ttfa_s if timing.ttfa_s is not None else total if thought else first
    spans = [("waiting", 0.0, first, "#8c959f"), ("thinking", first, answer, PURPLE), ("answer", answer, total, BLUE)]
    for name, start, end, colour in spans:
        if end <= start:
            continue
        sheet.axes.axvspan(start, end, color=colour, alpha=0.1, linewidth=0, zorder=0)
        words = f"{name}  {format_duration(end - start, ms_below=1)}"
        if sheet.width(words) < (end - start) / (total * ROOM) - 0.025:
            across = sheet.axes.get_xaxis_transform()
            style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 8.5, "color": sheet.ink.words(colour)}
            sheet.axes.text((start + end) / 2, 0.955, words, transform=across, **style)


def _steps(sheet: Canvas, series: dict[str, pd.DataFrame], total: float) -> None:
    """Draw each kind's characters as a line of steps, its size at its end."""
    axes = sheet.axes
    peak = max((float(rows["chars"].iloc[-1]) for rows in series.values()), default=0.0)
    axes.set_xlim(0, total * ROOM)
    axes.set_ylim(0, (peak or 1) * 1.3)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    if not peak:
        axes.set_yticks([0])
    for kind, rows in series.items():
        times = [rows["t_s"].iloc[0], *rows["t_s"]]
        sizes = [0.0, *rows["chars"]]
        colour = KINDS[kind]
        axes.step(times, sizes, where="post", color=colour, linewidth=1.8, solid_joinstyle="round", zorder=3)
        axes.fill_between(times, sizes, step="post", color=colour, alpha=0.14, linewidth=0, zorder=2)
        axes.plot(times[-1:], sizes[-1:], marker="o", markersize=4.5, color=colour, zorder=5, clip_on=False)
        place = times[-1] / (total * ROOM)
        full = f"{NAMES[kind]}: {int(sizes[-1]):,} {'character' if sizes[-1] == 1 else 'characters'}"
        words = full if sheet.width(full) < max(place, 1 - place) else f"{int(sizes[-1]):,}"
        right = sheet.width(words) < place
        axes.annotate(
            words,
            (times[-1], sizes[-1]),
            xytext=(-5 if right else 5, 4),
            textcoords="offset points",
            ha="right" if right else "left",
            va="bottom",
            fontsize=8.5,
            color=sheet.ink.words(colour),
            fontweight="bold",
            path_effects=sheet.halo(),
            zorder=6,
        )


def _marks(sheet: Canvas, reply: Reply, total: float) -> int:
    """Mark first token, first answer and end above the axes; returns how many rows of labels that took."""
    timing, ending = reply.timing, ENDS.get(reply.status)
    marks: list[tuple[float, str, str]] = []
    if timing.ttft_s is not None and reply.streamed:
        marks.append((timing.ttft_s, "first token", sheet.ink.strong))
        if timing.think_s is not None and timing.ttfa_s is not None:
            marks.append((timing.ttfa_s, "first answer", sheet.ink.strong))
    bad = ending is not None and reply.status != "running"
    marks.append((total, ending or "end", VERMILLION if bad else sheet.ink.strong))
    filled: list[float] = []
    for time_s, name, colour in marks:
        sheet.axes.axvline(time_s, color=colour, linewidth=1, alpha=0.75, zorder=4)
        place, width = time_s / (total * ROOM), sheet.width(name)
        left = min(max(place - width / 2, 0), 1 - width)
        row = next((row for row, until in enumerate(filled) if until < left), len(filled))
        filled[row : row + 1] = [left + width + 0.01]
        sheet.note(name, at=(left, 1), offset_pt=(0, 3 + 11 * row), va="bottom", color=sheet.ink.words(colour))
    if bad:
        sheet.axes.plot([total], [0], marker="X", markersize=9, color=VERMILLION, clip_on=False, zorder=6)
    return len(filled)


def _facts(reply: Reply, total: float) -> str:
    timing = reply.timing
    facts = []
    if reply.streamed and timing.ttft_s is not None:
        facts.append(f"first token {format_duration(timing.ttft_s, ms_below=1)}")
    if timing.think_s is not None and timing.ttfa_s is not None:
        facts.append(f"first answer {format_duration(timing.ttfa_s, ms_below=1)}")
    facts.append(f"{ENDS.get(reply.status, 'end')} {format_duration(total, ms_below=1)}")
    if reply.finish_reason and reply.finish_reason not in ("stop", "cancelled", "error"):
        facts.append(f"finish reason {reply.finish_reason}")
    if reply.usage.output_tokens is not None:
        facts.append(f"{reply.usage.output_tokens:,} output tokens")
    if timing.icl_p50_s is not None:
        facts.append(f"median gap {format_duration(timing.icl_p50_s, ms_below=1)}")
    return " · ".join(facts)


def _notes(reply: Reply) -> list[str]:
    notes = []
    if not reply.streamed and reply.blocks:
        notes.append("Not streamed: the whole reply came at once.")
    if not reply.blocks and reply.status != "completed":
        notes.append(_why_empty(reply))
    if reply.service == "sim":
        notes.append("Simulated: answered by a simulated engine; timings and texts are made up.")
    return notes


def _why_empty(reply: Reply) -> str:
    if reply.error is not None:
        return textwrap.shorten(f"No content arrived: {reply.error}", 280, placeholder=" …")
    if reply.status == "running":
        return "Nothing has arrived yet."
    return "No content arrived." if reply.reads else "This reply has no record of what came when."
