"""`famnb.plot.tokens`: input tokens, cached or not, and output tokens, of reasoning or visible."""

from __future__ import annotations

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from famnb.formatting import ESTIMATE_MARK, format_count, format_percent
from famnb.model_colours import PART_COLOURS
from famnb.plot.canvas import Canvas
from famnb.plot.explore import show_calls
from famnb.plot.facets import Chart, LegendEntry
from famnb.plot.grouping import group_rows, numeric_column, require_columns, select_calls
from famnb.plot.labels import no_rows_reason, simulation_note
from famnb.plot.layout import DirectLabel, FigureSize, Width
from famnb.plot.points import read_axis

TOKEN_KINDS = {
    "cached input": "cached",
    "other input": "input",
    "input, cache unknown": "input",
    "reasoning": "thinking",
    "visible output": "answer",
    "output, reasoning unknown": "answer",
}
"""The parts of a bar, and the parts of a call whose colours they have. Tokens that a service does not tell apart are a
kind of their own, which is drawn hollow.
"""
UNKNOWN_HATCH = "////"
COUNT_COLUMNS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
ESTIMATED_HATCH = "xxxx"
MAX_TEXT_SHARE = 0.45
"""The most of the axes' width that is given to the text after a bar."""


def tokens(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    facet: str | None = None,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """The tokens of all calls, one bar for each value of the column `by`, divided into input and output of each kind.

    x: tokens in all. Input is cached or not, output is reasoning or visible; where the service does not tell them
    apart, the bar is hollow and striped. Estimated counts are crossed. Calls without a count are in no bar, which then
    ends with `+ ?`. `facet` draws a panel for each value of a column. `interactive` returns a widget instead, each call
    a point at its input and its output tokens, as `explore` does. KeyError for a column that is not there.
    """
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, by, *COUNT_COLUMNS, facet)
    frame, left_out = select_calls(frame, of_use=True)
    if interactive:
        x, y = read_axis(frame, "input_tokens"), read_axis(frame, "output_tokens")
        return show_calls(frame, x, y, by=by, notes=left_out, facet=facet, figsize=figsize, width=width, ax=ax)
    counts = {name: numeric_column(frame, name, "expected counts") for name in COUNT_COLUMNS}
    codes, groups = group_rows(frame[by])
    rows = pd.DataFrame(_split_by_kind(**counts) | {"group": codes})
    for side in ("input", "output"):
        source = frame.get(f"{side}_tokens_source")
        rows[f"{side} estimated"] = False if source is None else (source == "estimated").to_numpy(dtype=bool)
    has_input, has_output = (~np.isnan(counts[name]) for name in ("input_tokens", "output_tokens"))
    rows["is missing"] = ~(has_input & has_output)
    missing = int(rows["is missing"].sum())
    calls = format_count(missing, "call")
    missing_note = f"{calls} without an input or an output count: what is missing is in no bar."
    chart = Chart(
        title=f"Tokens by {by}",
        x="tokens",
        notes=[*([missing_note] if missing else []), *left_out, *simulation_note(frame)],
        facet=(facet, frame[facet].reset_index(drop=True)) if facet else None,
        ax=ax,
        size=size,
        height_in=0.3 + 0.34 * size.text_scale * len(groups),
        by=by,
        groups=groups,
    )
    if not (has_input | has_output).any():
        return chart.finish_empty(no_rows_reason(frame, "a token count"))
    sums = _sum_kinds(rows)
    total = sum(sums.values())
    used = [kind for kind in TOKEN_KINDS if sums[kind] > 0]
    estimated = bool(rows[["input estimated", "output estimated"]].to_numpy().any())
    for canvas, part in chart.panels(rows):
        texts = [_draw_bar(canvas, index, part[part["group"] == index]) for index in range(len(groups))]
        canvas.set_row_names(chart.names)
        canvas.axes.set_ylim(len(chart.names) - 0.4, -0.6)
        canvas.axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
        chart.details += [f"{name}: {text}." for name, text in zip(chart.names, texts, strict=True)]
        sums = _sum_kinds(part)
        entries, all_tokens = [], sum(sums.values())
        for kind in used:
            mark = ESTIMATE_MARK if _sum_estimated(part, kind) else ""
            share = format_percent(sums[kind] / (all_tokens or 1), decimals=1)
            facts = [f"{mark}{format_count(sums[kind])}", share] if all_tokens else []
            entries.append(LegendEntry(Patch(**_part_style(canvas, kind)), kind, facts))
        if estimated:
            style: Any = {
                "facecolor": "none",
                "hatch": ESTIMATED_HATCH,
                "edgecolor": canvas.palette.soft,
                "linewidth": 0,
            }
            entries.append(LegendEntry(Patch(**style), "estimated from the length of the text"))
        amount = f"{ESTIMATE_MARK if estimated else ''}{format_count(total)} tokens"
        chart.add_legend(entries, f"{amount} in {format_count(len(part), 'call')}")
    return chart.finish()


def _split_by_kind(
    *,
    input_tokens: np.ndarray[Any, Any],
    cached_tokens: np.ndarray[Any, Any],
    output_tokens: np.ndarray[Any, Any],
    reasoning_tokens: np.ndarray[Any, Any],
) -> dict[str, np.ndarray[Any, Any]]:
    """Each call's tokens by kind; the kinds add up to input and output."""
    # A service may report more cached than input tokens; no part of a bar may be below 0.
    cached, reasoning = np.minimum(cached_tokens, input_tokens), np.minimum(reasoning_tokens, output_tokens)
    return {
        "cached input": cached,
        "other input": input_tokens - cached,
        "input, cache unknown": np.where(np.isnan(cached), input_tokens, np.nan),
        "reasoning": reasoning,
        "visible output": output_tokens - reasoning,
        "output, reasoning unknown": np.where(np.isnan(reasoning), output_tokens, np.nan),
    }


def _part_style(canvas: Canvas, kind: str, *, estimated: bool = False) -> dict[str, Any]:
    """How a kind of tokens is drawn: filled, or hollow and striped where what it is of is not known."""
    colour = PART_COLOURS[TOKEN_KINDS[kind]]
    if "unknown" in kind:
        hatch = ESTIMATED_HATCH if estimated else UNKNOWN_HATCH
        return {"facecolor": canvas.palette.ground, "edgecolor": colour, "hatch": hatch, "linewidth": 1}
    hatch = ESTIMATED_HATCH if estimated else ""
    return {"facecolor": colour, "edgecolor": canvas.palette.ground, "hatch": hatch, "linewidth": 0.6}


def _draw_bar(canvas: Canvas, y: int, rows: pd.DataFrame) -> str:
    """Draw one group's bar, its estimated parts crossed; returns its sum and mean, which stand at the end."""
    left = 0.0
    for kind in TOKEN_KINDS:
        whole, guessed = float(rows[kind].sum()), _sum_estimated(rows, kind)
        # Parts of the same kind stand next to each other, the estimated one second.
        for estimated, size in ((False, whole - guessed), (True, guessed)):
            if size:
                canvas.axes.barh([y], [size], 0.66, left=left, **_part_style(canvas, kind, estimated=estimated))
            left += size
    n = int(rows[list(TOKEN_KINDS)].notna().any(axis=1).sum())
    mark = ESTIMATE_MARK if any(_sum_estimated(rows, kind) for kind in TOKEN_KINDS) else ""
    missing = f" + ? of {format_count(rows['is missing'].sum(), 'call')}" if rows["is missing"].any() else ""
    amount = f"{mark}{left:,.0f}" if left or not missing else ""
    full = f"{amount} · {mark}{left / n:,.0f} a call (n={n:,})" if left else amount
    texts = [f"{full}{missing}", f"{amount} + ?" if missing and amount else amount or "?"]
    # A bar that only its text leaves room for shows nothing.
    texts = [text for text in texts if not canvas.is_panel and canvas.text_width(text, 8) < MAX_TEXT_SHARE] or texts[1:]
    style: dict[str, Any] = {"fontsize": canvas.text_pt(8), "color": canvas.palette.soft}
    DirectLabel(canvas.axes, texts, (left, y), [{"offset_pt": (4, 0), "ha": "left", "va": "center"}], **style)
    # The axis ends where the text after the longest bar does.
    room = 1 / max(1 - canvas.text_width(texts[0], 8) - 0.04, 0.3)
    canvas.axes.set_xlim(0, max(canvas.axes.get_xlim()[1], left * room, 1))
    return f"{full}{missing}".strip()


def format_tick(value: float) -> str:
    """A number of tokens as ticks show it: 2M, 15k, 300."""
    size = abs(value)
    return f"{value / 1e6:g}M" if size >= 1e6 else f"{value / 1e3:g}k" if size >= 1e4 else f"{value:,g}"


def _sum_estimated(rows: pd.DataFrame, kind: str) -> float:
    """How many tokens of a kind are of estimated counts."""
    is_estimated = rows["input estimated" if "input" in kind else "output estimated"]
    # To select of a million rows takes longer than to see that there is nothing to select.
    return float(rows.loc[is_estimated, kind].sum()) if is_estimated.any() else 0.0


def _sum_kinds(rows: pd.DataFrame) -> dict[str, float]:
    # Column by column: the sum of a frame of a million rows takes ten times as long.
    return {kind: float(rows[kind].sum()) for kind in TOKEN_KINDS}
