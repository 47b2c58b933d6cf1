"""What calls cost over time, with how sure that is, and what could not be counted."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, get_args

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from famnb.formatting import format_count, format_usd
from famnb.plot.canvas import Canvas
from famnb.plot.facets import Drawn, Key, Picture, show
from famnb.plot.grouping import grouped, moments, need
from famnb.plot.labels import short, simulated
from famnb.plot.time_axis import dates, places, utc

COSTS = ("cost_usd", "cost_low_usd", "cost_high_usd")
COUNTS = ("input_tokens", "output_tokens")
FEW = 12
"""Up to so many calls each is shown as a dot."""
POINTS = 1_500
"""More calls than this are drawn as sums at so many moments."""
Per = Literal["hour", "day", "week", "month"]
PERIODS: dict[Per, str] = {"hour": "h", "day": "D", "week": "W", "month": "M"}
HELD = 0.02
"""The share of the time for which stacked sums are held after the last call."""


def cost(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    stacked: bool = False,
    per: Per | None = None,
    facet: str | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """What the calls cost so far, added up over time, one line for each value of the column `by`.

    x: when a call started; y: USD. The band, and the bar at the right for the sum, is the interval where usage was
    estimated. `stacked` puts the groups on top of each other, the interval being the sum's; `per` shows each hour,
    day, week or month (UTC) as a stacked bar instead of adding up. Calls without a known price or without usage are
    not in the sums; a note says how many, and how to set a price. `facet` draws a panel for each value of a column;
    `ax` draws into that axes. KeyError for a column that is not there.
    """
    need(frame, by, "started_at", "model", *COSTS, *COUNTS, facet)
    if per is not None and per not in get_args(Per):
        raise ValueError(f"per: expected one of {', '.join(get_args(Per))}, or None to add up; got {per!r}")
    frame = frame.assign(started_at=moments(frame))
    known = frame[frame["cost_usd"].notna() & frame["started_at"].notna()].sort_values("started_at", kind="stable")
    notes = _uncounted(frame)
    title = f"Cost by {by} and {per}" if per else f"Cost by {by}"
    if known.empty:
        why = " ".join(notes) or "There are no calls in this frame."
        return show(Picture(title, "", "", _nothing, f"Nothing to add up. {why}"), known, facet=None, ax=ax)
    codes, names = grouped(known[by])
    rows = pd.DataFrame({name: known[name].to_numpy(dtype=float) for name in COSTS} | {"group": codes})
    x, label, dated = places(known["started_at"])
    rows["x"] = x
    draw = partial(_areas if stacked else _lines, names)
    if per:
        rows["period"] = utc(known["started_at"]).dt.to_period(PERIODS[per]).array
        draw, label, dated = partial(_bars, names, list(_periods(rows["period"]))), f"{per} (UTC)", False

    def drawn(sheet: Canvas, part: pd.DataFrame) -> Drawn:
        made = draw(sheet, part)
        if dated:
            dates(sheet.axes)
        elif not per and x[0] == x[-1]:
            sheet.axes.set_xticks(x[:1])
        sheet.axes.set_ylim(bottom=0)
        sheet.axes.yaxis.set_major_formatter(FuncFormatter(_dollar_ticks(sheet.axes)))
        return Drawn(made, f"{_figure(part)} for {format_count(len(part), 'call')}")

    y = f"USD each {per}" if per else "USD so far"
    parts = (facet, known[facet].reset_index(drop=True)) if facet else None
    return show(Picture(title, label, y, drawn, notes=[*notes, *simulated(frame)]), rows, facet=parts, ax=ax)


def _nothing(_: Canvas, __: pd.DataFrame) -> Drawn:
    return Drawn([])


def _lines(names: list[str], sheet: Canvas, rows: pd.DataFrame) -> list[Key]:
    """A rising line a group, up to the last call of all, with its interval."""
    keys = []
    until = float(rows["x"].max()) if len(rows) else 0.0
    for place, name in enumerate(names):
        part = rows[rows["group"] == place]
        if len(part):
            _line(sheet, place, part, until)
        keys.append(_key(sheet, Line2D([], [], linewidth=2, **sheet.ink.line(place)), name, part))
    return keys


def _line(sheet: Canvas, place: int, rows: pd.DataFrame, until: float) -> None:
    line, axes = sheet.ink.line(place), sheet.axes
    x = rows["x"].to_numpy()
    kept = _moments(x)
    sums = {name: rows[name].to_numpy().cumsum()[kept] for name in COSTS}
    drawn = {name: np.append(values, values[-1]) for name, values in sums.items()}
    ends = np.append(x[kept], until)
    best, low, high = (drawn[name] for name in COSTS)
    if (high > low).any():
        axes.fill_between(ends, low, high, step="post", color=line["color"], alpha=0.12, linewidth=0)
        beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "color": line["color"], "clip_on": False}
        edge = 1.008 + 0.011 * place
        axes.plot([edge, edge], [low[-1], high[-1]], marker="_", markersize=6, linewidth=1.4, **beside)
        axes.plot([edge], [best[-1]], marker="o", markersize=4.5, **beside)
    axes.step(np.append(ends[:1], ends), np.append([0.0], best), where="post", linewidth=1.8, **line)
    if len(x) <= FEW:
        axes.plot(x, sums["cost_usd"], marker="o", markersize=4, linestyle="none", color=line["color"], zorder=5)


def _areas(names: list[str], sheet: Canvas, rows: pd.DataFrame) -> list[Key]:
    """The groups' sums on top of each other, and the interval of the sum of all as dashed lines."""
    x = rows["x"].to_numpy()
    kept = _moments(x)
    if len(x):
        # A step has its width from the one after it: the last is held for a while, or it would not be seen.
        x, kept = np.append(x, x[-1] + (HELD * (x[-1] - x[0]) or 1)), np.append(kept, len(x))
        rows = pd.concat([rows, rows.iloc[-1:].assign(**dict.fromkeys(COSTS, 0.0), group=-1)])
    below = np.zeros(len(kept))
    keys = []
    for place, name in enumerate(names):
        of = (rows["group"] == place).to_numpy()
        above = below + np.where(of, rows["cost_usd"], 0.0).cumsum()[kept]
        face = sheet.ink.face(place)
        if of.any():
            sheet.axes.fill_between(x[kept], below, above, step="post", alpha=0.85, **face)
        keys.append(_key(sheet, Patch(**face), name, rows[of]))
        below = above
    sums = [rows[name].to_numpy().cumsum()[kept] for name in COSTS[1:]]
    if len(kept) and sums[1][-1] > sums[0][-1]:
        for values in sums:
            sheet.axes.step(x[kept], values, where="post", color=sheet.ink.strong, linewidth=1.2, linestyle=(0, (4, 2)))
        keys.append(Key(Line2D([], [], color=sheet.ink.strong, linestyle=(0, (4, 2))), "interval of the sum"))
    return keys


def _bars(names: list[str], periods: list[Any], sheet: Canvas, rows: pd.DataFrame) -> list[Key]:
    """A stacked bar a period, with the interval of its sum."""
    axes, keys = sheet.axes, []
    below = np.zeros(len(periods))
    index = pd.Index(periods)
    for place, name in enumerate(names):
        part = rows[rows["group"] == place]
        sums = part.groupby("period")["cost_usd"].sum().reindex(index, fill_value=0.0).to_numpy()
        face = sheet.ink.face(place)
        if len(part):
            axes.bar(range(len(periods)), sums, 0.8, bottom=below, **face)
        keys.append(_key(sheet, Patch(**face), name, part))
        below = below + sums
    low, high = (rows.groupby("period")[name].sum().reindex(index, fill_value=0.0).to_numpy() for name in COSTS[1:])
    for place in map(int, np.flatnonzero(high > low)):
        axes.plot([place, place], [low[place], high[place]], color=sheet.ink.strong, marker="_", linewidth=1.4)
    label = max((sheet.width(str(period)) for period in periods[:1]), default=0.1) * 1.35
    every = max(1, math.ceil(len(periods) * label))
    axes.set_xticks(range(0, len(periods), every), [str(period) for period in periods[::every]])
    axes.set_xlim(-0.7, len(periods) - 0.3)
    axes.grid(visible=False, axis="x")
    return keys


def _periods(values: pd.Series[Any]) -> Any:
    """All periods from first to last, those without a call included."""
    return pd.period_range(values.min(), values.max())


def _moments(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Places of the rows to draw of many, in time: the last before each of many moments, where its sum is exact."""
    if len(x) <= POINTS:
        return np.arange(len(x))
    last = np.searchsorted(x, np.linspace(x[0], x[-1], POINTS), side="right") - 1
    return np.unique(np.concatenate([[0], last]))


def _key(sheet: Canvas, handle: Any, name: str, rows: pd.DataFrame) -> Key:
    return Key(handle, name) if sheet.panel else Key(handle, f"{name} (n={len(rows):,})", [_figure(rows)])


def _figure(rows: pd.DataFrame) -> str:
    """The sum of some calls, with its interval where it has one."""
    best, low, high = (float(rows[name].sum()) for name in COSTS)
    if high - low <= best * 1e-9:
        return format_usd(best)
    return f"about {format_usd(best)} ({format_usd(low)} to {format_usd(high)})"


def _dollar_ticks(axes: Axes) -> Any:
    """Ticks with as many decimals as their distance needs."""

    def tick(value: float, _: int) -> str:
        ticks = axes.get_yticks()
        step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else value
        return f"${value:,.{min(max(len(f'{step:.9f}'.rstrip('0').partition('.')[2]), 2), 9)}f}"

    return tick


def _uncounted(frame: pd.DataFrame) -> list[str]:
    """What is not in the sums, and why."""
    unknown = frame[frame["cost_usd"].isna()]
    used = unknown[list(COUNTS)].notna().all(axis=1)
    priceless, unused = unknown[used], unknown[~used]
    notes = []
    if len(priceless):
        models = sorted(str(model) for model in priceless["model"].dropna().unique())
        named = ", ".join(map(short, models[:3])) + (" …" if len(models) > 3 else "")
        notes.append(
            f"Not in the sum: {format_count(len(priceless), 'call')} of {named}, for want of a price. "
            f'Set one, in USD per million tokens: famnb.prices.set("{models[0] if models else "…"}", input=…, output=…)'
        )
    if len(unused):
        notes.append(f"Not in the sum: {format_count(len(unused), 'call')} whose token counts are not known.")
    return notes
