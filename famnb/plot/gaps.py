"""`famnb.plot.gaps`: how evenly streams arrive, by the gaps between reads that brought content."""

from __future__ import annotations

import matplotlib.figure
import pandas as pd
from matplotlib.axes import Axes

from famnb.formatting import format_count, format_simulated
from famnb.frame.deltas import CallSelection, deltas
from famnb.plot.chart import Chart, LegendEntry
from famnb.plot.ecdf import ascending_values, draw_ecdf, mark_percentiles, set_ecdf_axes
from famnb.plot.grouping import group_rows, numeric_column, require_columns, select_calls
from famnb.plot.labels import format_in, simulation_note
from famnb.plot.layout import FigureSize, Width


def gaps(
    which: CallSelection,
    *,
    by: str = "kind",
    figsize: tuple[float, float] | None = None,
    width: Width | None = None,
    ax: Axes | None = None,
) -> matplotlib.figure.Figure:
    """The share of inter-chunk gaps that were at most so long (ECDF), one line for each value of the column `by`.

    `which` is a frame of `famnb.deltas`, or what `famnb.deltas` takes: a reply, calls, or a frame of calls, whose
    streams are then read from the default ledger and whose columns `by` may name. x: milliseconds between two reads
    from the socket that brought content, so a gap is per chunk, not per token; y: share of the gaps. A gap belongs to
    what came after it. Parts of a reply have their own colours. Percentiles stand where n carries them. Whole replies
    have no gaps.
    """
    size = FigureSize.choose(figsize, width, ax)
    left_out: list[str] = []
    if isinstance(which, pd.DataFrame):
        which, left_out = select_calls(which)
    events = _events_of(which, by)
    require_columns(events, "call_id", "batch", "t_s", "chars", by)
    content = events[numeric_column(events, "chars", "expected characters") > 0]
    content = content.assign(t_s=numeric_column(content, "t_s", "expected seconds"))
    # Events of one batch came in one read, so there is no gap between them.
    reads = content.drop_duplicates(["call_id", "batch"])
    gap_s = reads.groupby("call_id", sort=False, observed=True, dropna=False)["t_s"].diff()
    table = reads.assign(gap_s=gap_s).dropna(subset=["gap_s"])
    codes, groups = group_rows(table[by])
    rows = pd.DataFrame({"group": codes, "value": table["gap_s"].to_numpy() * 1e3})
    if "simulated" in events:
        simulated = simulation_note(events.drop_duplicates("call_id"))
    else:  # what `deltas` read
        count = events.attrs.get("simulated_streams", 0)
        simulated = [format_simulated(count, events.attrs["streams"])] if count else []
    chart = Chart(
        title=f"Inter-chunk gaps by {by}",
        x="gap between reads that brought content (ms)",
        y="share of gaps",
        notes=[*left_out, *simulated],
        ax=ax,
        size=size,
        by=by,
        groups=groups,
    )
    if rows.empty:
        return chart.finish_empty("Nothing to draw: no stream here has two reads that brought content.")
    canvas = chart.create_canvas()
    format_gap = format_in("t_s", 1e3)
    entries = []
    for index, group in enumerate(groups):
        values = ascending_values(rows, index)
        handle = draw_ecdf(canvas, index, values)
        facts = mark_percentiles(canvas, index, values, 1.0, lambda gap: format_gap(gap.value / 1e3), most=0.99)
        entries.append(LegendEntry(handle, group, facts, f"{len(values):,} gaps"))
    set_ecdf_axes(canvas, rows["value"].to_numpy())
    streams = table["call_id"].nunique(dropna=False)
    chart.add_legend(entries, f"{format_count(len(rows), 'gap')} in {format_count(streams, 'stream')}")
    return chart.finish()


def _events_of(which: CallSelection, by: str) -> pd.DataFrame:
    """The frame of events, with the columns wanted of the frame of calls that it came from."""
    if not isinstance(which, pd.DataFrame):
        return deltas(which)
    if "t_s" in which or "call_id" not in which:
        return which
    events = deltas(which)
    require_columns(events.join(which.iloc[:0], rsuffix="_call"), by)
    wanted = [name for name in {by, "simulated"} if name in which and name not in events]
    return events.merge(which[["call_id", *wanted]], on="call_id", how="left")
