"""Names of columns, values in their units, and footnotes as figures show them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from famnb.experiment.metrics import find_metric
from famnb.formatting import FormatValue, format_count, format_duration, format_number, format_simulated, format_usd
from famnb.frame.columns import CALLS, DELTAS, PEER

NAMES = {
    "icl_p50_s": "median inter-chunk latency",
    "icl_p95_s": "95th percentile of inter-chunk latency",
    "icl_max_s": "longest inter-chunk latency",
    "itl_s": "inter-token latency",
    "score_votes": "share of votes won",
}
"""Names of columns where they are not those of the metrics of an experiment."""
UNITS = {column.name: column.unit for column in (*DELTAS, *CALLS, *PEER)}


def column_name(column: str) -> str:
    """The name of a column in words, such as "time to first token" for `ttft_s`; the column itself if it has none."""
    return NAMES.get(column) or find_metric(column).title


def axis_label(column: str, largest: float) -> tuple[str, float]:
    """The label of a column's axis, and the factor from the column's unit to the axis': below a second, that is ms."""
    name, unit = column_name(column), UNITS.get(column, "")
    if unit in ("s", "s/token") and largest < 1:
        return f"{name} (m{unit})", 1e3
    return (f"{name} ({unit})" if unit not in ("", "tokens", "tokens/s") else name), 1.0


def format_metric(column: str, value: float, *, more_digits: int = 0) -> str:
    """A value of a column, in its unit; below a second in milliseconds, as on the axis."""
    match UNITS.get(column, ""):
        case "s":
            return format_duration(value, ms_below=1, more_digits=more_digits)
        case "s/token":
            return f"{format_duration(value, ms_below=1, more_digits=more_digits)}/token"
        case "USD":
            return format_usd(value, more_digits=more_digits)
        case "tokens" | "characters" | "requests":
            return format_count(value, more_digits=more_digits)
        case _:
            return format_number(value, more_digits=more_digits)


def format_in(column: str, scale: float) -> FormatValue:
    """How values of a column are written beside an axis of that scale: seconds and milliseconds are not mixed."""
    unit = UNITS.get(column, "")
    if unit not in ("s", "s/token"):
        return partial(format_metric, column)

    def format_value(value: float, *, more_digits: int = 0) -> str:
        size = abs(value * scale)
        decimals = (2 if size < 9.995 else 1 if size < 99.95 else 0) + more_digits
        return f"{'−' if value < 0 else ''}{size:,.{decimals}f} {'m' if scale > 1 else ''}{unit}"

    return format_value


NAME_CHARS = 30
"""The most characters of a name in a figure; what is cut stands in the figure's caption."""


def shorten(text: str, limit: int = NAME_CHARS) -> str:
    """Cut a text in its middle: names of models differ at their ends."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[head + 1 - limit :]}"


def shorten_names(names: Sequence[str]) -> list[str]:
    """Names as every part of every figure shows them: the long ones cut, no two alike."""
    cut = [shorten(name) for name in names]
    # Names that differ in their middle alone would be one name twice.
    return [
        short if cut.count(short) == 1 else f"{shorten(short, NAME_CHARS - 4)} #{cut[: index + 1].count(short)}"
        for index, short in enumerate(cut)
    ]


def describe_short_names(names: Sequence[str]) -> list[str]:
    """A sentence for each name that is shown cut."""
    return [f"{short} is {name}." for short, name in zip(shorten_names(names), names, strict=True) if short != name]


def simulation_note(frame: pd.DataFrame) -> list[str]:
    """The footnote that says how many of these calls a simulated engine answered; empty if none."""
    simulated = int(frame["simulated"].fillna(False).sum()) if "simulated" in frame else 0
    return [format_simulated(simulated, len(frame))] if simulated else []


# As long as Python lets one thread compute before the next gets its turn: a busy cell makes the client that late.
STARVED_MS = 5.0
"""From which median of `late_p50_ms` on a call's client counts as starved, in milliseconds."""


def clock_notes(frame: pd.DataFrame, metric: str) -> list[str]:
    """Footnotes that say of which calls the times are in doubt, and where Python was kept from looking; empty if none.

    For frames with the columns `clock`, `late_p50_ms`, or the low end of `metric`, a column of seconds: `ttft_low_s`.
    """
    notes = []
    calls = format_count(len(frame), "call")
    if "clock" in frame and (by_user := int((frame["clock"] == "user").sum())):
        notes.append(f"{by_user:,} of {calls} are timed by the user's program, which a busy cell makes late.")
    if "late_p50_ms" in frame and (starved := int((frame["late_p50_ms"] >= STARVED_MS).sum())):
        notes.append(
            f"In {starved:,} of {calls} Python was kept from reading, by {STARVED_MS:g} ms or more in the median: "
            "arrival is by the kernel's clock, but what was shown live came later."
        )
    low = f"{metric.removesuffix('_s')}_low_s"
    if low in frame and metric in frame and (inexact := int((frame[low] < frame[metric]).sum())):
        notes.append(f"{inexact:,} of {calls} have their {column_name(metric)} only as an interval; its end is drawn.")
    return notes


def no_rows_reason(frame: pd.DataFrame, needed: str) -> str:
    """Why nothing can be drawn of a frame none of whose rows has what is needed ("a token count"), as a sentence."""
    calls = format_count(len(frame), "call")
    reason = f"none of these {calls} has {needed}" if len(frame) else "there are no calls in this frame"
    return f"Nothing to draw: {reason}."
