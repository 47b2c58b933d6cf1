"""What calls cost over time, with how sure that is, and what could not be counted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from famnb.plot.figure import Sheet
from famnb.plot.words import short, simulated
from famnb.record.pricebook import dollars

COSTS = ("cost_usd", "cost_low_usd", "cost_high_usd")
COUNTS = ("input_tokens", "output_tokens")
FEW = 12
"""Up to so many calls each is shown as a dot."""
SPANS = ((180.0, 1.0, "seconds"), (3 * 3600.0, 60.0, "minutes"), (48 * 3600.0, 3600.0, "hours"))
"""Up to so many seconds, time is counted from the first call in this unit; beyond, dates are shown."""


def cost(frame: pd.DataFrame, *, by: str = "model", ax: Axes | None = None) -> matplotlib.figure.Figure:
    """What the calls cost so far, added up over time, one line for each value of the column `by`.

    x: when a call started; y: USD. The band, and the bar at the right for the sum, is the interval where usage was
    estimated. Calls without a known price or
    without usage are not in the sums; a note says how many, and how to set a price.
    """
    for column in (by, "started_at", "model", *COSTS, *COUNTS):
        if column not in frame.columns:
            raise KeyError(f"the frame has no column {column!r}; it has {', '.join(map(str, frame.columns))}")
    title = f"Cost by {by}"
    sheet = Sheet.of(ax)
    known = frame[frame["cost_usd"].notna()].sort_values("started_at")
    notes = _uncounted(frame)
    if known.empty:
        sheet.words(title=title)
        why = " ".join(notes) or "There are no calls in this frame."
        sheet.empty(f"Nothing to add up. {why}")
        return sheet.done(f"{title}: {why}")
    times, label = _times(known["started_at"], sheet)
    names = known[by].astype("string").fillna("(none)")
    handles: list[Artist] = []
    rows: list[list[str]] = []
    for place, name in enumerate(sorted(names.unique())):
        chosen = (names == name).to_numpy()
        handles.append(_curve(sheet, place, times[chosen], known[chosen], until=times[-1]))
        rows.append([f"{short(str(name))} (n={int(chosen.sum()):,})", _figure(known[chosen])])
    sheet.axes.set_ylim(bottom=0)
    if times[0] == times[-1]:
        sheet.axes.set_xticks(times[:1])
    sheet.axes.yaxis.set_major_formatter(FuncFormatter(_dollar_ticks(sheet.axes)))
    total = _figure(known)
    sheet.words(title=title, subtitle=f"{total} for {_calls(known)}", x=label, y="USD so far")
    sheet.foot(handles, rows, [*notes, *simulated(frame)])
    return sheet.done(f"{title}: {total} in all; {'; '.join(', '.join(row) for row in rows)}")


def _times(started: pd.Series[pd.Timestamp], sheet: Sheet) -> tuple[np.ndarray[Any, Any], str]:
    """Where the calls lie on the axis, and what the axis says."""
    first, last = started.iloc[0], started.iloc[-1]
    span = (last - first).total_seconds()
    for limit, unit, name in SPANS:
        if span <= limit:
            return ((started - first).dt.total_seconds() / unit).to_numpy(dtype=float), (
                f"{name} since the first call, {first:%Y-%m-%d %H:%M} UTC"
            )
    new_locator, new_formatter = cast(Any, AutoDateLocator), cast(Any, ConciseDateFormatter)  # untyped in matplotlib
    locator = new_locator(minticks=3, maxticks=8)
    sheet.axes.xaxis.set_major_locator(locator)
    sheet.axes.xaxis.set_major_formatter(new_formatter(locator))
    return started.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), "time (UTC)"


def _curve(sheet: Sheet, place: int, times: np.ndarray[Any, Any], rows: pd.DataFrame, *, until: Any) -> Artist:
    line = sheet.ink.line(place)
    sums = {name: rows[f"cost{name}_usd"].to_numpy(dtype=float).cumsum() for name in ("", "_low", "_high")}
    axes, x = sheet.axes, np.append(times, until)
    drawn = {name: np.append(values, values[-1]) for name, values in sums.items()}
    if (sums["_high"] > sums["_low"]).any():
        axes.fill_between(x, drawn["_low"], drawn["_high"], step="post", color=line["color"], alpha=0.12, linewidth=0)
        best, low, high = (float(sums[name][-1]) for name in ("", "_low", "_high"))
        beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "color": line["color"], "clip_on": False}
        edge = 1.008 + 0.011 * place
        axes.plot([edge, edge], [low, high], marker="_", markersize=6, linewidth=1.4, **beside)
        axes.plot([edge], [best], marker="o", markersize=4.5, **beside)
    axes.step(np.append(times[:1], x), np.append([0.0], drawn[""]), where="post", linewidth=1.8, **line)
    if len(times) <= FEW:
        axes.plot(times, sums[""], marker="o", markersize=4, linestyle="none", color=line["color"], zorder=5)
    return Line2D([], [], linewidth=2, **line)


def _figure(rows: pd.DataFrame) -> str:
    """The sum of some calls, with its interval where it has one."""
    best, low, high = (Decimal(repr(float(rows[name].sum()))) for name in COSTS)
    if high - low <= best * Decimal("1e-9"):
        return _rounded(best)
    return f"about {_rounded(best)} ({_rounded(low)} to {_rounded(high)})"


def _rounded(amount: Decimal) -> str:
    """Three significant digits, which is all a sum of floats in a picture has to say."""
    return dollars(round(amount, max(2 - amount.adjusted(), 2)) if amount else amount)


def _dollar_ticks(axes: Axes) -> Any:
    """Ticks with as many decimals as their distance needs."""

    def tick(value: float, _: int) -> str:
        ticks = axes.get_yticks()
        step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else value
        return f"${value:,.{min(max(_places(step), 2), 9)}f}"

    return tick


def _places(step: float) -> int:
    """Decimals that tell two ticks apart: of 0.0025 four."""
    return len(f"{step:.9f}".rstrip("0").partition(".")[2])


def _uncounted(frame: pd.DataFrame) -> list[str]:
    """What is not in the sums, and why."""
    unknown = frame[frame["cost_usd"].isna()]
    used = unknown[list(COUNTS)].notna().all(axis=1)
    priceless, unused = unknown[used], unknown[~used]
    notes = []
    if len(priceless):
        models = sorted(priceless["model"].dropna().astype(str).unique())
        named = ", ".join(map(short, models[:3])) + (" …" if len(models) > 3 else "")
        notes.append(
            f"Not in the sum: {_calls(priceless)} of {named}, for want of a price. "
            f'Set one, in USD per million tokens: famnb.prices.set("{models[0] if models else "…"}", input=…, output=…)'
        )
    if len(unused):
        notes.append(f"Not in the sum: {_calls(unused)} whose token counts are not known.")
    return notes


def _calls(rows: pd.DataFrame) -> str:
    return f"{len(rows):,} {'call' if len(rows) == 1 else 'calls'}"
