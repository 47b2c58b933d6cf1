"""How evenly streams arrive: the gaps between reads that brought content."""

from __future__ import annotations

from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from famnb import stats
from famnb.formatting import format_count, format_duration
from famnb.frame.deltas import Which, deltas
from famnb.plot.canvas import Canvas
from famnb.plot.ecdf import curve, percents
from famnb.plot.facets import Drawn, Key, Picture, show
from famnb.plot.grouping import grouped, need, numbers
from famnb.plot.labels import simulated

MARKS = ((0.5, "o", "○ median"), (0.95, "D", "◇ p95"), (0.99, "s", "□ p99"))


def gaps(
    which: Which, *, by: str = "kind", facet: str | None = None, ax: Axes | None = None
) -> matplotlib.figure.Figure:
    """The share of inter-chunk gaps that were at most so long (ECDF), one line for each value of the column `by`.

    `which` is a frame of `famnb.deltas`, or what `famnb.deltas` takes: a reply, calls, or a frame of calls, whose
    streams are then read from the default ledger and whose columns `by` and `facet` may name. x: milliseconds between
    two reads from the socket that brought content, so a gap is per chunk, not per token; y: share of the gaps. A gap
    belongs to what came after it. Percentiles stand where n carries them. Whole replies have no gaps.
    """
    table = _events(which, by, facet)
    need(table, "call_id", "batch", "t_s", "chars", by, facet)
    found = _gaps(table)
    codes, names = grouped(found[by])
    rows = pd.DataFrame({"group": codes, "value": found["gap_s"].to_numpy() * 1e3})
    why = "" if len(rows) else "Nothing to draw: no stream here has two reads that brought content."
    spans = format_count(len(rows), "gap")

    def draw(sheet: Canvas, part: pd.DataFrame) -> Drawn:
        keys = []
        for place, name in enumerate(names):
            values = np.sort(part["value"].to_numpy()[(part["group"] == place).to_numpy()])
            handle = curve(sheet, place, values)
            marks = [
                (mark, float(np.quantile(values, mark[0]))) for mark in MARKS if stats.carries(len(values), mark[0])
            ]
            for (p, marker, _), at in marks:
                style: dict[str, Any] = {"markeredgecolor": handle.get_color(), "markerfacecolor": sheet.ink.ground}
                sheet.axes.plot([at], [p], marker=marker, markersize=7, markeredgewidth=1.8, zorder=5, **style)
            facts = [f"{mark[2]} {format_duration(at / 1e3, ms_below=1)}" for mark, at in marks]
            keys.append(Key(handle, name) if sheet.panel else Key(handle, f"{name} (n={len(values):,} gaps)", facts))
        percents(sheet, rows["value"].to_numpy())
        calls = found.loc[part.index, "call_id"].nunique(dropna=False) if not sheet.panel else 0
        return Drawn(keys, f"{spans} in {format_count(calls, 'stream')}")

    x = "gap between reads that brought content (ms)"
    picture = Picture(f"Inter-chunk gaps by {by}", x, "share of gaps", draw, why, simulated(table))
    return show(picture, rows, facet=(facet, found[facet]) if facet else None, ax=ax)


def _events(which: Which, by: str, facet: str | None) -> pd.DataFrame:
    """The frame of events meant, with the columns of the frame of calls that it came from."""
    if isinstance(which, pd.DataFrame):
        if "t_s" in which or "call_id" not in which:
            return which
        table = deltas(which)
        need(table.join(which.iloc[:0], rsuffix="_call"), by, facet)
        wanted = [name for name in {by, facet, "simulated"} if name in which and name not in table]
        return table.merge(which[["call_id", *wanted]], on="call_id", how="left")
    return deltas(which)


def _gaps(table: pd.DataFrame) -> pd.DataFrame:
    """One row a gap, `gap_s`, with the columns of the event that ended it."""
    brought = table[numbers(table, "chars", "expected characters") > 0]
    call = pd.factorize(brought["call_id"], use_na_sentinel=False)[0]
    batch, time = (numbers(brought, name, "expected numbers") for name in ("batch", "t_s"))
    new = np.ones(len(brought), dtype=bool)
    new[1:] = (call[1:] != call[:-1]) | (batch[1:] != batch[:-1])
    reads, call, time = brought[new].reset_index(drop=True), call[new], time[new]
    gap = np.full(len(reads), np.nan)
    gap[1:] = np.where(call[1:] == call[:-1], np.diff(time), np.nan)
    found = reads.assign(gap_s=gap)
    return found.dropna(subset=["gap_s"]).reset_index(drop=True)
