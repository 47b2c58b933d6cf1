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
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Chart, LegendEntry
from famnb.plot.grouping import group_rows, numeric_column, require_columns, select_calls
from famnb.plot.labels import no_rows_reason, shorten, simulation_note
from famnb.plot.layout import FigureSize, Width
from famnb.plot.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from famnb.validation import explain_arguments

TOKEN_KINDS = {
    "cached input": SKY,
    "other input": BLUE,
    "input, cache unknown": GREEN,
    "reasoning": PURPLE,
    "visible output": ORANGE,
    "output, reasoning unknown": VERMILLION,
}
"""The parts of a bar and their colours. Tokens that a service does not tell apart are a kind of their own."""
COUNT_COLUMNS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
ESTIMATED_HATCH = "xxxx"


@explain_arguments
def tokens(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    facet: str | None = None,
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """The tokens of all calls, one bar for each value of the column `by`, divided into input and output of each kind.

    x: tokens in all. Input is cached or not, output is reasoning or visible; where the service does not tell them
    apart, the bar says so in a colour of its own. Estimated counts are crossed. Calls without a count are named in a
    footnote and in no bar. `facet` draws a panel for each value of a column. KeyError for a column that is not there.
    """
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, by, *COUNT_COLUMNS, facet)
    frame, left_out = select_calls(frame, of_use=True)
    counts = {name: numeric_column(frame, name, "expected counts") for name in COUNT_COLUMNS}
    codes, groups = group_rows(frame[by])
    rows = pd.DataFrame(_split_by_kind(**counts) | {"group": codes})
    for side in ("input", "output"):
        source = frame.get(f"{side}_tokens_source")
        rows[f"{side} estimated"] = False if source is None else (source == "estimated").to_numpy(dtype=bool)
    has_input, has_output = (~np.isnan(counts[name]) for name in ("input_tokens", "output_tokens"))
    chart = Chart(
        title=f"Tokens by {by}",
        x="tokens",
        notes=[*_missing_note(int((~(has_input & has_output)).sum())), *left_out, *simulation_note(frame)],
        facet=(facet, frame[facet].reset_index(drop=True)) if facet else None,
        ax=ax,
        size=size,
        height_in=1.5 + 0.34 * len(groups),
    )
    if not (has_input | has_output).any():
        return chart.finish_empty(no_rows_reason(frame, "a token count"))
    total = float(rows[list(TOKEN_KINDS)].sum().sum())
    used = [kind for kind in TOKEN_KINDS if rows[kind].sum() > 0]
    estimated = bool(rows[["input estimated", "output estimated"]].to_numpy().any())
    for canvas, part in chart.panels(rows):
        for index in range(len(groups)):
            _draw_bar(canvas, len(groups) - 1 - index, part[part["group"] == index])
        _set_bar_axes(canvas, groups)
        entries = [LegendEntry(Patch(facecolor=TOKEN_KINDS[kind]), kind, _facts(kind, part)) for kind in used]
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


def _draw_bar(canvas: Canvas, y: int, rows: pd.DataFrame) -> None:
    """Draw one group's bar, its estimated parts crossed, its sum and mean at the end."""
    left = 0.0
    for kind, colour in TOKEN_KINDS.items():
        for estimated in (False, True):
            # Parts of the same kind stand next to each other, the estimated one second.
            size = float(rows.loc[_is_estimated(rows, kind) == estimated, kind].sum())
            if size:
                edge: dict[str, Any] = {"edgecolor": canvas.palette.ground, "linewidth": 0.6}
                hatch = ESTIMATED_HATCH if estimated else None
                canvas.axes.barh([y], [size], 0.66, left=left, color=colour, hatch=hatch, **edge)
            left += size
    n = int(rows[list(TOKEN_KINDS)].notna().any(axis=1).sum())
    mark = ESTIMATE_MARK if any(_has_estimate(rows, kind) for kind in TOKEN_KINDS) else ""
    amount = f"{mark}{left:,.0f}"
    text = amount if canvas.is_panel or not left else f"{amount} · {mark}{left / n:,.0f} a call (n={n:,})"
    if left or not canvas.is_panel:
        style: dict[str, Any] = {"fontsize": 8, "va": "center", "color": canvas.palette.soft}
        canvas.axes.annotate(text, (left, y), xytext=(4, 0), textcoords="offset points", **style)
    # The axis ends where the text after the longest bar does.
    room = 1 / max(1 - canvas.text_width(text) - 0.03, 0.3)
    canvas.axes.set_xlim(0, max(canvas.axes.get_xlim()[1], left * room, 1))


def _set_bar_axes(canvas: Canvas, groups: list[str]) -> None:
    """Name the bars, the first on top."""
    limit = 14 if canvas.is_panel else 28
    canvas.axes.set_yticks(range(len(groups)), [shorten(group, limit) for group in reversed(groups)])
    for label in canvas.axes.get_yticklabels():
        label.set_parse_math(False)
    canvas.axes.set_ylim(-0.6, len(groups) - 0.4)
    canvas.axes.grid(visible=False, axis="y")
    canvas.axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))


def format_tick(value: float) -> str:
    """A number of tokens as ticks show it: 2M, 15k, 300."""
    size = abs(value)
    return f"{value / 1e6:g}M" if size >= 1e6 else f"{value / 1e3:g}k" if size >= 1e4 else f"{value:,g}"


def _is_estimated(rows: pd.DataFrame, kind: str) -> pd.Series[bool]:
    """Which calls' tokens of a kind are of an estimated count."""
    return rows["input estimated" if "input" in kind else "output estimated"]


def _has_estimate(rows: pd.DataFrame, kind: str) -> bool:
    return bool(rows.loc[_is_estimated(rows, kind), kind].sum() > 0)


def _facts(kind: str, rows: pd.DataFrame) -> list[str]:
    """The tokens of one kind and their share of all."""
    amount, total = float(rows[kind].sum()), float(rows[list(TOKEN_KINDS)].sum().sum())
    mark = ESTIMATE_MARK if _has_estimate(rows, kind) else ""
    return [f"{mark}{format_count(amount)}", format_percent(amount / total, decimals=1)] if total else []


def _missing_note(calls: int) -> list[str]:
    if not calls:
        return []
    return [f"{format_count(calls, 'call')} without an input or an output count: what is missing is in no bar."]
