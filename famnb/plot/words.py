"""Names, durations and footnotes as figures say them."""

from __future__ import annotations

import pandas as pd


def short(words: str, limit: int = 44) -> str:
    """Words for a legend: the middle of a long one left out, since names differ at their ends."""
    if len(words) <= limit:
        return words
    head = limit // 2
    return f"{words[:head]}…{words[head + 1 - limit :]}"


def seconds(value: float) -> str:
    """A duration as one reads it."""
    match value:
        case _ if value >= 60:
            return f"{value / 60:.1f} min"
        case _ if value >= 1:
            return f"{value:.2f} s"
        case _ if value >= 0.1:
            return f"{value * 1e3:.0f} ms"
        case _:
            return f"{value * 1e3:.2g} ms"


def simulated(frame: pd.DataFrame) -> list[str]:
    """The footnote that says which of these calls were answered by a simulated engine."""
    count = int(frame["simulated"].fillna(False).sum()) if "simulated" in frame else 0
    if not count:
        return []
    which = "all calls were" if count == len(frame) else f"{count:,} of {len(frame):,} calls were"
    return [f"Simulated: {which} answered by a simulated engine; timings and texts are made up."]
