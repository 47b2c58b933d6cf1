"""Where tokens went: what was asked, what of it was cached, what was thought, and what could be read."""

from __future__ import annotations

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from famnb.formatting import format_count
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Drawn, Key, Picture, no_rows, show
from famnb.plot.grouping import grouped, need, numbers
from famnb.plot.labels import short, simulated
from famnb.plot.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

KINDS = {
    "cached input": SKY,
    "other input": BLUE,
    "input, cache unknown": GREEN,
    "reasoning": PURPLE,
    "visible output": ORANGE,
    "output, reasoning unknown": VERMILLION,
}
"""What is not told apart is a kind of its own: unknown is not none."""
COUNTS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
ESTIMATED = "xxxx"


def tokens(
    frame: pd.DataFrame, *, by: str = "model", facet: str | None = None, ax: Axes | None = None
) -> matplotlib.figure.Figure:
    """The tokens of all calls, one bar for each value of the column `by`, divided into input and output of each kind.

    x: tokens in all. Input is cached or not, output is reasoning or visible; where the service does not tell them
    apart, the bar says so in a colour of its own. Estimated counts are crossed. Calls without a count are named in a
    footnote and in no bar. `facet` draws a panel for each value of a column. KeyError for a column that is not there.
    """
    need(frame, by, *COUNTS, facet)
    given = {name: numbers(frame, name, "expected counts") for name in COUNTS}
    kinds = _kinds(**given)
    codes, names = grouped(frame[by])
    rows = pd.DataFrame(kinds | {"group": codes})
    for side in ("input", "output"):
        source = frame.get(f"{side}_tokens_source")
        rows[f"{side} estimated"] = False if source is None else (source == "estimated").to_numpy(dtype=bool)
    total = sum(float(np.nansum(values)) for values in kinds.values())
    used = [kind for kind in KINDS if np.nansum(kinds[kind]) > 0]
    estimated = bool(rows[["input estimated", "output estimated"]].to_numpy().any())
    without = np.isnan(given["input_tokens"]) | np.isnan(given["output_tokens"])
    notes = [
        f"{format_count(int(without.sum()), 'call')} without an input or an output count: what is missing is in no bar."
    ]
    known = not (np.isnan(given["input_tokens"]) & np.isnan(given["output_tokens"])).all()

    def draw(sheet: Canvas, part: pd.DataFrame) -> Drawn:
        for place in range(len(names)):
            _bar(sheet, len(names) - 1 - place, part[part["group"] == place])
        _names(sheet, names)
        keys = [Key(Patch(facecolor=KINDS[kind]), kind, _share(part[kind], part)) for kind in used]
        if estimated:
            hatched: Any = {"facecolor": "none", "hatch": ESTIMATED, "edgecolor": sheet.ink.soft, "linewidth": 0}
            keys.append(Key(Patch(**hatched), "estimated from the length of the text"))
        return Drawn(keys, f"{total:,.0f} tokens in {format_count(len(part), 'call')}")

    picture = Picture(
        f"Tokens by {by}",
        "tokens",
        "",
        draw,
        "" if known else no_rows(frame, "a token count"),
        [*(notes if without.any() else []), *simulated(frame)],
        height_in=1.5 + 0.34 * len(names),
    )
    return show(picture, rows, facet=(facet, frame[facet].reset_index(drop=True)) if facet else None, ax=ax)


def _kinds(
    *,
    input_tokens: np.ndarray[Any, Any],
    cached_tokens: np.ndarray[Any, Any],
    output_tokens: np.ndarray[Any, Any],
    reasoning_tokens: np.ndarray[Any, Any],
) -> dict[str, np.ndarray[Any, Any]]:
    """Each call's tokens by kind; the kinds add up to input and output."""
    cached, thought = np.minimum(cached_tokens, input_tokens), np.minimum(reasoning_tokens, output_tokens)
    return {
        "cached input": cached,
        "other input": input_tokens - cached,
        "input, cache unknown": np.where(np.isnan(cached), input_tokens, np.nan),
        "reasoning": thought,
        "visible output": output_tokens - thought,
        "output, reasoning unknown": np.where(np.isnan(thought), output_tokens, np.nan),
    }


def _bar(sheet: Canvas, y: int, rows: pd.DataFrame) -> None:
    """One group's bar, its estimated parts crossed, its sum and mean at the end."""
    left = 0.0
    for kind, colour in KINDS.items():
        side = "input estimated" if "input" in kind else "output estimated"
        for guessed in (False, True):
            size = float(rows.loc[rows[side] == guessed, kind].sum())
            if size:
                edge: dict[str, Any] = {"edgecolor": sheet.ink.ground, "linewidth": 0.6}
                hatch = ESTIMATED if guessed else None
                sheet.axes.barh([y], [size], 0.66, left=left, color=colour, hatch=hatch, **edge)
            left += size
    n = int(rows[list(KINDS)].notna().any(axis=1).sum())
    words = f"{left:,.0f}" if sheet.panel or not left else f"{left:,.0f} · {left / n:,.0f} a call (n={n:,})"
    if left or not sheet.panel:
        style: dict[str, Any] = {"fontsize": 8, "va": "center", "color": sheet.ink.soft}
        sheet.axes.annotate(words, (left, y), xytext=(4, 0), textcoords="offset points", **style)
    room = 1 / max(1 - sheet.width(words) - 0.03, 0.3)
    sheet.axes.set_xlim(0, max(sheet.axes.get_xlim()[1], left * room, 1))


def _names(sheet: Canvas, names: list[str]) -> None:
    """The groups' names beside the bars, the first on top."""
    limit = 14 if sheet.panel else 28
    sheet.axes.set_yticks(range(len(names)), [short(name, limit) for name in reversed(names)])
    for words in sheet.axes.get_yticklabels():
        words.set_parse_math(False)
    sheet.axes.set_ylim(-0.6, len(names) - 0.4)
    sheet.axes.grid(visible=False, axis="y")
    sheet.axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: brief(value)))


def brief(value: float) -> str:
    """A number of tokens as ticks say it: 2M, 1.5k, 300."""
    size = abs(value)
    return f"{value / 1e6:g}M" if size >= 1e6 else f"{value / 1e3:g}k" if size >= 1e4 else f"{value:,g}"


def _share(values: pd.Series[float], rows: pd.DataFrame) -> list[str]:
    total = float(rows[list(KINDS)].sum().sum())
    return [f"{values.sum():,.0f}", f"{values.sum() / total:.1%}"] if total else []
