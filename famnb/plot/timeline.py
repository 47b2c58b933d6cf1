"""`famnb.plot.timeline`: one reply over time, waiting, thinking and answering, and what came when."""

from __future__ import annotations

import textwrap

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from famnb.formatting import format_count, format_duration
from famnb.frame.deltas import deltas
from famnb.model_colours import KIND_PARTS, PART_COLOURS
from famnb.plot.canvas import Canvas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.explore import show_points
from famnb.plot.labels import shorten
from famnb.plot.layout import TICK_PT, FigureSize, Width
from famnb.plot.palette import VERMILLION
from famnb.record import Ledger, RecordedCall
from famnb.reply import Reply
from famnb.timing import Timing

# "completed" and "incomplete" are missing: these are ends of the reply's own.
END_NAMES = {"cancelled": "stopped", "interrupted": "cut off", "failed": "failed", "running": "so far"}
"""The mark of an end by the status of the reply."""
# So that the mark of the end is not on the edge of the axes.
X_MARGIN = 1.02
"""The length of the axis, in durations of the reply."""
AnyReply = Reply | RecordedCall | str


def timeline(
    reply: AnyReply,
    *,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """The waterfall of one reply: bands for waiting, thinking and answering, and the characters as they came.

    `reply` is a `Reply`, a `RecordedCall`, or a call's id in the default ledger. x: seconds since the request was sent;
    y: characters so far, by kind. A stop, a cut or a failure is marked where it happened. `interactive` returns a
    widget of what came instead, each event a point at its time and its size, as `explore` does.
    """
    size = FigureSize.choose(figsize, width, ax)
    call = Ledger().call(reply) if isinstance(reply, str) else reply
    found = call.reply if isinstance(call, RecordedCall) else call
    if interactive:
        events = deltas(found)
        content = events[(events["chars"] > 0) & events["kind"].isin(KIND_PARTS)]
        return show_points(content, x="t_s", y="chars", by="kind", figsize=figsize, width=width, ax=ax)
    model = found.model or getattr(found.request, "model", "")
    name = " · ".join(name for name in (shorten(model), found.endpoint) if name)
    # One that was cut off has no terminal event, but a last read.
    total = found.timing.e2e_s or (found.reads[-1].t_ns / 1e9 if found.reads else None)
    unit, scale = ("milliseconds", 1e3) if total is not None and total < 1 else ("seconds", 1.0)
    title, x = f"One reply: {name}" if name else "One reply", f"{unit} since the request was sent"
    chart = Chart(title=title, x=x, y="characters so far", notes=_notes(found), ax=ax, size=size)
    if total is None:
        return chart.finish_empty(_empty_reason(found))
    series = _characters_by_kind(found, total)
    canvas = chart.create_canvas()
    canvas.axes.xaxis.set_major_formatter(FuncFormatter(lambda time_s, _: f"{time_s * scale:g}"))
    entries = _draw_characters(canvas, series, total)
    _draw_bands(canvas, found.timing, total, has_thinking="thinking" in series)
    _draw_marks(canvas, found, total)
    chart.add_legend(entries, _facts(found, total))
    return chart.finish()


def _characters_by_kind(reply: Reply, total: float) -> dict[str, pd.DataFrame]:
    """Characters so far by kind: columns `t_s`, `chars`; a whole reply brings all of it at its end."""
    if not reply.streamed or not any(block.text for block in reply.blocks):
        sizes = {kind: sum(len(block.text) for block in reply.blocks if block.kind == kind) for kind in KIND_PARTS}
        return {kind: pd.DataFrame({"t_s": [total], "chars": [size]}) for kind, size in sizes.items() if size}
    table = deltas(reply)
    content = table[(table["chars"] > 0) & table["kind"].isin(KIND_PARTS)]
    return {
        str(kind): pd.DataFrame({"t_s": rows["t_s"].astype(float), "chars": rows["chars"].astype(float).cumsum()})
        for kind, rows in content.groupby("kind", observed=True)
    }


def _draw_bands(canvas: Canvas, timing: Timing, total: float, *, has_thinking: bool) -> None:
    """Shade what the reply was doing from when to when, named where there is room."""
    first = total if timing.ttft_s is None else timing.ttft_s
    answer = timing.ttfa_s if timing.ttfa_s is not None else total if has_thinking else first
    for part, start, end in (("waiting", 0.0, first), ("thinking", first, answer), ("answer", answer, total)):
        if start >= end:
            continue
        colour = PART_COLOURS[part]
        canvas.axes.axvspan(start, end, color=colour, alpha=0.1, linewidth=0, zorder=0)
        # Between the ends of the band, and in the room that is left above the lines.
        room = (end - start) / (total * X_MARGIN) * 0.9
        texts = (f"{part}  {format_duration(end - start, ms_below=1)}", part)
        text = next((text for text in texts if canvas.text_width(text) < room), "")
        canvas.annotate(
            text,
            at=((start + end) / 2, canvas.axes.get_ylim()[1] * 0.97),
            offset_pt=(0, 0),
            xycoords="data",
            color=canvas.palette.text_colour(colour),
            ha="center",
            va="top",
        )


def _draw_characters(canvas: Canvas, series: dict[str, pd.DataFrame], total: float) -> list[LegendEntry]:
    """Draw each kind's characters as a line of steps; returns the lines of the legend, which say how many they are."""
    axes, entries = canvas.axes, []
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
        colour = PART_COLOURS[KIND_PARTS[kind]]
        axes.step(times, sizes, where="post", color=colour, linewidth=1.8, solid_joinstyle="round", zorder=3)
        axes.fill_between(times, sizes, step="post", color=colour, alpha=0.14, linewidth=0, zorder=2)
        axes.plot(times[-1:], sizes[-1:], marker="o", markersize=4.5, color=colour, zorder=5, clip_on=False)
        size = format_count(int(sizes[-1]), "character")
        entries.append(LegendEntry(Line2D([], [], color=colour, linewidth=2), f"{KIND_PARTS[kind]}: {size}"))
    return entries


def _draw_marks(canvas: Canvas, reply: Reply, total: float) -> None:
    """Mark first token, first answer and end, named above our own axes."""
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
        if not canvas.is_own:
            # Above the caller's axes another may begin.
            continue
        across, width = time_s / (total * X_MARGIN), canvas.text_width(name)
        left = min(max(across - width / 2, 0), 1 - width)
        row = next((row for row, until in enumerate(filled) if until < left), len(filled))
        filled[row : row + 1] = [left + width + 0.02]
        above_pt = 3 + canvas.size.text_pt(TICK_PT) * 1.35 * row
        text_colour = canvas.palette.text_colour(colour)
        canvas.annotate(name, at=(left, 1), offset_pt=(0, above_pt), va="bottom", color=text_colour)
    if is_bad_end:
        canvas.axes.plot([total], [0], marker="X", markersize=9, color=VERMILLION, clip_on=False, zorder=6)


def _facts(reply: Reply, total: float) -> str:
    timing = reply.timing
    facts = []
    if reply.streamed and timing.ttft_s is not None:
        facts.append(f"first token {format_duration(timing.ttft_s, ms_below=1)}")
    if timing.think_s is not None and timing.ttfa_s is not None:
        facts.append(f"first answer {format_duration(timing.ttfa_s, ms_below=1)}")
    facts.append(f"{END_NAMES.get(reply.status, 'end')} {format_duration(total, ms_below=1)}")
    if reply.finish_reason and reply.finish_reason not in ("stop", "cancelled", "error"):
        facts.append(f"finish reason {reply.finish_reason}")
    if reply.usage.output_tokens is not None:
        facts.append(f"{format_count(reply.usage.output_tokens)} output tokens")
    if timing.icl_p50_s is not None:
        facts.append(f"median gap {format_duration(timing.icl_p50_s, ms_below=1)}")
    return " · ".join(facts)


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
