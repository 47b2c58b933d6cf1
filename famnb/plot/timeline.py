"""`famnb.plot.timeline`: one reply over time, waiting, thinking and answering, and what came when."""

from __future__ import annotations

import textwrap
from typing import Any

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from famnb.formatting import format_count, format_duration
from famnb.frame.deltas import deltas
from famnb.plot.canvas import Canvas
from famnb.plot.labels import shorten
from famnb.plot.palette import BLUE, GREEN, ORANGE, PURPLE, VERMILLION
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.timing import Timing
from famnb.validation import explain_arguments

GREY = "#8c959f"
BLOCK_COLOURS = {"thinking": PURPLE, "text": BLUE, "tool_call": GREEN, "refusal": ORANGE}
BLOCK_NAMES = {"thinking": "thinking", "text": "answer", "tool_call": "tool call", "refusal": "refusal"}
# "completed" and "incomplete" are missing: these are ends of the reply's own.
END_NAMES = {"cancelled": "stopped", "interrupted": "cut off", "failed": "failed", "running": "so far"}
"""The mark of an end by the status of the reply."""
# So that the mark of the end is not on the edge of the axes.
X_MARGIN = 1.02
"""The length of the axis, in durations of the reply."""


@explain_arguments
def timeline(reply: Reply | RecordedCall | str, *, ax: Axes | None = None) -> matplotlib.figure.Figure:
    """The waterfall of one reply: bands for waiting, thinking and answering, and the characters as they came.

    `reply` is a `Reply`, a `RecordedCall`, or a call's id in the default ledger. x: seconds since the request was
    sent; y: characters so far, by kind. A stop, a cut or a failure is marked where it happened.
    """
    call = Ledger().call(reply) if isinstance(reply, str) else reply
    reply = call.reply if isinstance(call, RecordedCall) else call
    canvas = Canvas.create(ax)
    title = _title(reply)
    # A reply that was cut off has no terminal event: it ends with its last read.
    total = reply.timing.e2e_s or (reply.reads[-1].t_ns / 1e9 if reply.reads else None)
    if total is None:
        canvas.set_titles(title=title)
        canvas.show_message(_empty_reason(reply))
        return canvas.finish(f"{title}: {_empty_reason(reply)}")
    series = _characters_by_kind(reply, total)
    _draw_bands(canvas, reply.timing, total, has_thinking="thinking" in series)
    _draw_characters(canvas, series, total)
    label_rows = _draw_marks(canvas, reply, total)
    facts = _facts(reply, total)
    x, y = "seconds since the request was sent", "characters so far"
    canvas.set_titles(title=title, subtitle=facts, x=x, y=y, above_pt=12 * label_rows)
    canvas.add_legend([], [], _notes(reply))
    return canvas.finish(f"{title}: {facts}")


def _title(reply: Reply) -> str:
    model = reply.model or getattr(reply.request, "model", "")
    names = " · ".join(name for name in (shorten(model), reply.endpoint) if name)
    return f"One reply: {names}" if names else "One reply"


def _characters_by_kind(reply: Reply, total: float) -> dict[str, pd.DataFrame]:
    """Characters so far by kind: columns `t_s`, `chars`; a whole reply brings all of it at its end."""
    if not reply.streamed:
        sizes = {kind: sum(len(block.text) for block in reply.blocks if block.kind == kind) for kind in BLOCK_COLOURS}
        return {kind: pd.DataFrame({"t_s": [total], "chars": [size]}) for kind, size in sizes.items() if size}
    table = deltas(reply)
    content = table[(table["chars"] > 0) & table["kind"].isin(BLOCK_COLOURS)]
    return {
        str(kind): pd.DataFrame({"t_s": rows["t_s"].astype(float), "chars": rows["chars"].astype(float).cumsum()})
        for kind, rows in content.groupby("kind", observed=True)
    }


def _draw_bands(canvas: Canvas, timing: Timing, total: float, *, has_thinking: bool) -> None:
    """Shade what the reply was doing, named where there is room."""
    first = total if timing.ttft_s is None else timing.ttft_s
    answer = timing.ttfa_s if timing.ttfa_s is not None else total if has_thinking else first
    spans = [("waiting", 0.0, first, GREY), ("thinking", first, answer, PURPLE), ("answer", answer, total, BLUE)]
    for name, start, end, colour in spans:
        if end <= start:
            continue
        canvas.axes.axvspan(start, end, color=colour, alpha=0.1, linewidth=0, zorder=0)
        text = f"{name}  {_format_time(end - start)}"
        if canvas.text_width(text) < (end - start) / (total * X_MARGIN) - 0.025:
            across = canvas.axes.get_xaxis_transform()
            font: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 8.5}
            colour = canvas.palette.text_colour(colour)
            canvas.axes.text((start + end) / 2, 0.955, text, transform=across, color=colour, **font)


def _draw_characters(canvas: Canvas, series: dict[str, pd.DataFrame], total: float) -> None:
    """Draw each kind's characters as a line of steps, its size at its end."""
    axes = canvas.axes
    peak = max((float(rows["chars"].iloc[-1]) for rows in series.values()), default=0.0)
    axes.set_xlim(0, total * X_MARGIN)
    # Room above for the names of the bands.
    axes.set_ylim(0, (peak or 1) * 1.3)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    if not peak:
        axes.set_yticks([0])
    for kind, rows in series.items():
        times = [rows["t_s"].iloc[0], *rows["t_s"]]
        sizes = [0.0, *rows["chars"]]
        colour = BLOCK_COLOURS[kind]
        axes.step(times, sizes, where="post", color=colour, linewidth=1.8, solid_joinstyle="round", zorder=3)
        axes.fill_between(times, sizes, step="post", color=colour, alpha=0.14, linewidth=0, zorder=2)
        axes.plot(times[-1:], sizes[-1:], marker="o", markersize=4.5, color=colour, zorder=5, clip_on=False)
        _label_end(canvas, kind, times[-1], sizes[-1], total)


def _label_end(canvas: Canvas, kind: str, time_s: float, size: float, total: float) -> None:
    """Write a kind's name and size at the end of its line, on the side that has room, or its size alone."""
    across = time_s / (total * X_MARGIN)
    full = f"{BLOCK_NAMES[kind]}: {format_count(int(size), 'character')}"
    text = full if canvas.text_width(full) < max(across, 1 - across) else format_count(int(size))
    is_left = canvas.text_width(text) < across
    canvas.axes.annotate(
        text,
        (time_s, size),
        xytext=(-5 if is_left else 5, 4),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="bottom",
        fontsize=8.5,
        color=canvas.palette.text_colour(BLOCK_COLOURS[kind]),
        fontweight="bold",
        path_effects=canvas.halo(),
        zorder=6,
    )


def _draw_marks(canvas: Canvas, reply: Reply, total: float) -> int:
    """Mark first token, first answer and end above the axes; returns how many rows of labels that took."""
    timing, end_name = reply.timing, END_NAMES.get(reply.status)
    marks: list[tuple[float, str, str]] = []
    if timing.ttft_s is not None and reply.streamed:
        marks.append((timing.ttft_s, "first token", canvas.palette.strong))
        if timing.think_s is not None and timing.ttfa_s is not None:
            marks.append((timing.ttfa_s, "first answer", canvas.palette.strong))
    is_bad_end = end_name is not None and reply.status != "running"
    marks.append((total, end_name or "end", VERMILLION if is_bad_end else canvas.palette.strong))
    # Where each row of labels is filled up to: a label goes into the first row that has room to its left.
    filled: list[float] = []
    for time_s, name, colour in marks:
        canvas.axes.axvline(time_s, color=colour, linewidth=1, alpha=0.75, zorder=4)
        across, width = time_s / (total * X_MARGIN), canvas.text_width(name)
        left = min(max(across - width / 2, 0), 1 - width)
        row = next((row for row, until in enumerate(filled) if until < left), len(filled))
        filled[row : row + 1] = [left + width + 0.01]
        text_colour = canvas.palette.text_colour(colour)
        canvas.annotate(name, at=(left, 1), offset_pt=(0, 3 + 11 * row), va="bottom", color=text_colour)
    if is_bad_end:
        canvas.axes.plot([total], [0], marker="X", markersize=9, color=VERMILLION, clip_on=False, zorder=6)
    return len(filled)


def _facts(reply: Reply, total: float) -> str:
    timing = reply.timing
    facts = []
    if reply.streamed and timing.ttft_s is not None:
        facts.append(f"first token {_format_time(timing.ttft_s)}")
    if timing.think_s is not None and timing.ttfa_s is not None:
        facts.append(f"first answer {_format_time(timing.ttfa_s)}")
    facts.append(f"{END_NAMES.get(reply.status, 'end')} {_format_time(total)}")
    if reply.finish_reason and reply.finish_reason not in ("stop", "cancelled", "error"):
        facts.append(f"finish reason {reply.finish_reason}")
    if reply.usage.output_tokens is not None:
        facts.append(f"{format_count(reply.usage.output_tokens)} output tokens")
    if timing.icl_p50_s is not None:
        facts.append(f"median gap {_format_time(timing.icl_p50_s)}")
    return " · ".join(facts)


def _format_time(seconds: float) -> str:
    return format_duration(seconds, ms_below=1)


def _notes(reply: Reply) -> list[str]:
    notes = []
    if not reply.streamed and reply.blocks:
        notes.append("Not streamed: the whole reply came at once.")
    if not reply.blocks and reply.status != "completed":
        notes.append(_empty_reason(reply))
    if reply.service == "sim":
        notes.append("Simulated: answered by a simulated engine; timings and texts are made up.")
    return notes


def _empty_reason(reply: Reply) -> str:
    if reply.error is not None:
        return textwrap.shorten(f"No content arrived: {reply.error}", 280, placeholder=" …")
    if reply.status == "running":
        return "Nothing has arrived yet."
    return "No content arrived." if reply.reads else "This reply has no record of what came when."
