"""`famnb.plot.tokens`: input tokens, cached or not, and output tokens, of reasoning or visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter

from famnb.formatting import ESTIMATE_MARK, format_count, format_percent
from famnb.model_colours import PART_COLOURS
from famnb.plot.canvas import Canvas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.effects import rows_that_fit
from famnb.plot.explore import show_points
from famnb.plot.grouping import group_rows, numeric_column, require_columns, select_calls
from famnb.plot.labels import no_rows_reason, simulation_note
from famnb.plot.layout import NOTE_PT, FigureSize, Width

TOKEN_KINDS = {
    "cached input": "cached",
    "other input": "input",
    "mixed input": "input",
    "reasoning": "thinking",
    "visible output": "answer",
    "mixed output": "answer",
}
"""The parts of a bar, and the parts of a call whose colours they have. Tokens that a service does not tell apart are a
kind of their own, which is drawn hollow."""
UNKNOWN_HATCH = "////"
COUNT_COLUMNS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
ESTIMATED_HATCH = "xxxx"
MAX_TEXT_SHARE = 0.45
"""The most of the axes' width that is given to the text after a bar."""
ROW_HEIGHT_IN = 0.34
"""The height of a row, in inches."""


def tokens(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
    interactive: bool = False,
) -> matplotlib.figure.Figure:
    """The tokens of all calls, one bar for each value of the column `by`, divided into input and output of each kind.

    x: tokens in all. Input is cached or not, output is reasoning or visible; where the service does not tell them
    apart, the part is mixed, hollow and striped. Counts that are estimated from the length of the text are crossed.
    Calls without a count are in no bar, which then ends with `+ ?`. `interactive` returns a widget instead, each call a
    point at its input and its output tokens, as `explore` does. KeyError for a column that is not there.
    """
    size = FigureSize.choose(figsize, width, ax)
    require_columns(frame, by, *COUNT_COLUMNS)
    if interactive:
        return show_points(frame, x="input_tokens", y="output_tokens", by=by, figsize=figsize, width=width, ax=ax)
    frame, left_out = select_calls(frame, of_use=True)
    counts = {name: numeric_column(frame, name, "expected counts") for name in COUNT_COLUMNS}
    codes, groups = group_rows(frame[by], rows_that_fit(size))
    kinds = pd.DataFrame(_split_by_kind(counts))
    is_guess = pd.DataFrame(False, kinds.index, kinds.columns)
    for kind in TOKEN_KINDS:
        source = frame.get("input_tokens_source" if "input" in kind else "output_tokens_source")
        if source is not None:
            is_guess[kind] = (source == "estimated").to_numpy(dtype=bool)
    has_input, has_output = (~np.isnan(counts[name]) for name in ("input_tokens", "output_tokens"))
    is_missing = ~(has_input & has_output)
    missing = int(is_missing.sum())
    calls = format_count(missing, "call")
    missing_note = f"{calls} without an input or an output count: what is missing is in no bar."
    chart = Chart(
        title=f"Tokens by {by}",
        x="tokens",
        notes=[*([missing_note] if missing else []), *left_out, *simulation_note(frame)],
        ax=ax,
        size=size,
        height_in=0.3 + ROW_HEIGHT_IN * size.text_scale * len(groups),
        by=by,
        groups=groups,
    )
    if not (has_input | has_output).any():
        return chart.finish_empty(no_rows_reason(frame, "a token count"))
    estimated = bool(is_guess.to_numpy().any())
    row_in = 0.0 if size.height_in is not None or ax is not None else ROW_HEIGHT_IN * size.text_scale
    canvas = chart.create_canvas()
    sums, guessed = (amounts.groupby(codes).sum() for amounts in (kinds, kinds.where(is_guess)))
    n = kinds.notna().any(axis=1).groupby(codes).sum()
    missing_of_groups = np.bincount(codes, weights=is_missing)
    names = [f"{name} (n={count:,})" for name, count in zip(chart.names, n, strict=True)]
    canvas.set_row_names(names, row_in)
    texts = [
        _describe_amount(amount, guess > 0, count, int(without))
        for amount, guess, count, without in zip(
            sums.sum(axis=1), guessed.sum(axis=1), n, missing_of_groups, strict=True
        )
    ]
    _draw_bars(canvas, sums, guessed, texts)
    canvas.axes.set_ylim(len(groups) - 0.4, -0.6)
    canvas.axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    chart.details += [f"{name}: {full}." for name, (full, _) in zip(names, texts, strict=True)]
    entries, all_tokens = [], float(sums.to_numpy().sum())
    for kind in sums.columns[sums.any()]:
        mark = ESTIMATE_MARK if guessed[kind].any() else ""
        share = format_percent(sums[kind].sum() / (all_tokens or 1), decimals=1)
        facts = [f"{mark}{format_count(sums[kind].sum())}", share] if all_tokens else []
        entries.append(LegendEntry(Patch(**_part_style(canvas, kind)), kind, facts))
    if estimated:
        patch = Patch(facecolor="none", hatch=ESTIMATED_HATCH, edgecolor=canvas.palette.soft, linewidth=0)
        entries.append(LegendEntry(patch, "estimated"))
    amount = f"{ESTIMATE_MARK if estimated else ''}{format_count(all_tokens)} tokens"
    chart.add_legend(entries, f"{amount} in {format_count(len(frame), 'call')}")
    return chart.finish()


def _split_by_kind(counts: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Each call's tokens by kind; the kinds add up to input and output."""
    read, cached, written, reasoning = (counts[name] for name in COUNT_COLUMNS)
    # A service may report more cached than input tokens; no part of a bar may be below 0.
    cached, reasoning = np.minimum(cached, read), np.minimum(reasoning, written)
    return {
        "cached input": cached,
        "other input": read - cached,
        "mixed input": np.where(np.isnan(cached), read, np.nan),
        "reasoning": reasoning,
        "visible output": written - reasoning,
        "mixed output": np.where(np.isnan(reasoning), written, np.nan),
    }


def _part_style(canvas: Canvas, kind: str, *, estimated: bool = False) -> dict[str, Any]:
    """How a kind of tokens is drawn: filled, or hollow and striped where what it is of is not known."""
    colour = PART_COLOURS[TOKEN_KINDS[kind]]
    if "mixed" in kind:
        hatch = ESTIMATED_HATCH if estimated else UNKNOWN_HATCH
        return {"facecolor": canvas.palette.ground, "edgecolor": colour, "hatch": hatch, "linewidth": 1}
    hatch = ESTIMATED_HATCH if estimated else ""
    return {"facecolor": colour, "edgecolor": canvas.palette.ground, "hatch": hatch, "linewidth": 0.6}


def _describe_amount(amount: float, is_estimate: bool, n: int, missing: int) -> tuple[str, str]:
    """How many tokens a group has, with their mean a call, and in brief."""
    mark = ESTIMATE_MARK if is_estimate else ""
    if not amount and missing:
        return f"? of {format_count(missing, 'call')}", "?"
    mean = f" · {mark}{amount / n:,.0f} a call" if amount else ""
    rest = f" + ? of {format_count(missing, 'call')}" if missing else ""
    return f"{mark}{amount:,.0f}{mean}{rest}", f"{mark}{amount:,.0f}{' + ?' if missing else ''}"


def _draw_bars(canvas: Canvas, sums: pd.DataFrame, guessed: pd.DataFrame, texts: Sequence[tuple[str, str]]) -> None:
    """Draw a bar a group, its estimated parts crossed, with its amount after it."""
    left = np.zeros(len(sums))
    for kind in TOKEN_KINDS:
        # Parts of the same kind stand next to each other, the estimated one second.
        for is_estimate, sizes in ((False, (sums[kind] - guessed[kind]).to_numpy()), (True, guessed[kind].to_numpy())):
            if sizes.any():
                style = _part_style(canvas, kind, estimated=is_estimate)
                canvas.axes.barh(range(len(sums)), sizes, 0.66, left=left, **style)
            left += sizes
    full, brief = zip(*texts, strict=True)
    # A bar that only its text leaves room for shows nothing.
    is_wide = max(canvas.text_width(text, NOTE_PT) for text in full) > MAX_TEXT_SHARE
    shown = brief if is_wide else full
    for y, (end, text) in enumerate(zip(left, shown, strict=True)):
        style = {"fontsize": canvas.size.text_pt(NOTE_PT), "color": canvas.palette.soft, "ha": "left", "va": "center"}
        canvas.annotate(text, at=(end, y), offset_pt=(4, 0), xycoords="data", **style)
    # The axis ends where the text after the longest bar does.
    room = 1 / max(1 - max(canvas.text_width(text, NOTE_PT) for text in shown) - 0.06, 0.3)
    canvas.axes.set_xlim(0, max(canvas.axes.get_xlim()[1], left.max() * room, 1))
