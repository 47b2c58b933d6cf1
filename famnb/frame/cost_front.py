"""Where models or variants stand in cost, latency and score at once: the table behind `famnb.plot.pareto`."""

from __future__ import annotations

import pandas as pd

from famnb import stats

_COST_BOUNDS = ("cost_low_usd", "cost_high_usd")


def cost_front(
    frame: pd.DataFrame,
    *,
    by: str = "model",
    cost: str = "cost_usd",
    latency: str = "e2e_s",
    score: str | None = None,
    pair: str | None = None,
    level: float = 0.95,
) -> stats.Front:
    """Return where each value of the column `by` stands: clear, possible or beaten, as `famnb.stats.front` has it.

    Less is better of the mean of `cost` and the median of `latency`, more of the mean of `score`. Estimated costs count
    with both ends. Calls are paired by the column `pair`, else by prompt; warm-ups are left out.
    """
    bounds = _COST_BOUNDS if cost == "cost_usd" and set(_COST_BOUNDS) <= set(frame.columns) else None
    objectives = [stats.Objective(cost, bounds=bounds), stats.Objective(latency, statistic="median")]
    if score:
        objectives.append(stats.Objective(score, more_is_better=True))
    calls, prompts = without_warmups(frame), pair or prompt_column(frame)
    return stats.front(calls, objectives, by=by, prompts=prompts, level=level)


def without_warmups(frame: pd.DataFrame) -> pd.DataFrame:
    """The calls that did not only warm the service up."""
    if "warmup" not in frame:
        return frame
    is_warmup = frame["warmup"].eq(True).fillna(False).to_numpy(dtype=bool)
    # To select all of a million rows copies them.
    return frame[~is_warmup] if is_warmup.any() else frame


def prompt_column(frame: pd.DataFrame) -> str | None:
    """The column that says which calls asked the same prompt; None if there is none, or all of it is missing.

    Ids of prompts are an experiment's own, so that of calls of several the hash tells.
    """
    is_one_experiment = "experiment" not in frame or frame["experiment"].nunique(dropna=False) <= 1
    names = ["prompt_id"] if is_one_experiment else []
    for name in (*names, "prompt_hash", "prompt"):
        if name in frame and frame[name].notna().any():
            return name
    return None
