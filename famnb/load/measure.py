"""What the recorded calls of a load say: the frame of calls with times since each was due, and one row a step.

first_s     the first content, since the call was due     = late_s + what it waited in the client + ttft_s
latency_s   its end, since the call was due               = late_s + wait_s
met         whether it keeps the objective, by these times; a call that failed or was stopped does not
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from famnb import stats
from famnb.experiment.resume import ANSWERED
from famnb.formatting import format_count, format_duration, format_number, format_share
from famnb.load.step import EndReason, Step

Verdict: TypeAlias = Literal["met", "missed", "unclear", "measured", "growing", "invalid"]
"""Of a step: the objective is kept, is not, or too few calls say so; no objective; calls in flight grew without end;
this client was the bottleneck, so that nothing is said of the service."""
# A share of what is measured, since 5 ms are much of a first token of 20 ms and nothing of one of 2 s.
MAX_OWN_SHARE = 0.1
"""What share of all latency may be this process's own lateness."""
# Neighbours in a queue are alike: where one is late, so is the next, and both say it once.
BLOCKS = 20
"""Stretches of time that a step is divided into to see how alike the calls of one are."""
MIN_BLOCKS = 5
"""Blocks that must hold the rarer of kept and missed for it to be seen."""
SHIFTED = ("ttft_s", "ttfa_s", "e2e_s")
"""Times since sending that an objective means since the call was due."""
OF_STREAMS = ("ttft_s", "ttfa_s", "think_s", "tpot_s", "icl_p50_s", "icl_p95_s", "icl_max_s")
"""Columns that say of a whole reply nothing, or no more than its end."""


def add_load_columns(calls: pd.DataFrame, slo: Mapping[str, float]) -> pd.DataFrame:
    """Return the calls of a load with the columns of this module's head, `step`, `end_s` and `met`."""
    latest = calls.groupby("variant", observed=True)["repeat"].transform("max")
    calls = calls[calls["repeat"] == latest].reset_index(drop=True)
    late_s, wait_s = (calls[name].astype("Float64") for name in ("late_s", "wait_s"))
    frame = calls.rename(columns={"variant": "step"})
    frame["offered"] = pd.to_numeric(frame["step"].astype(str).str.replace(r"/s$", "", regex=True), errors="coerce")
    before_s = late_s + wait_s - calls["e2e_s"]
    frame["first_s"] = before_s + calls["ttft_s"]
    frame["latency_s"] = late_s + wait_s
    frame["end_s"] = calls["due_s"] + frame["latency_s"]
    frame["met"] = pd.array([pd.NA] * len(frame), dtype="boolean")
    if slo:
        shifted = frame.assign(**{name: before_s + calls[name] for name in SHIFTED}, latency_s=frame["latency_s"])
        frame["met"] = stats.meets_slo(shifted, slo, failed=~calls["status"].isin(ANSWERED))
    return frame


@dataclasses.dataclass(frozen=True, slots=True)
class StepResult:
    """What one step met."""

    label: str
    amount: float
    """Calls a second, or calls at once in a closed load."""
    verdict: Verdict
    n: int
    """Calls that were counted: those due after the warm-up."""
    failed: int
    """Of them, those that were not answered, the ones that were stopped included."""
    answered_per_s: float
    """Calls whose answer ended while calls began, a second."""
    share: stats.Interval | None
    """Of calls that keep the objective; None without one."""
    goodput_per_s: float | None
    """Of these answers, those that keep it; None without an objective."""
    first_s: tuple[float, float]
    """Median and 95th percentile of the first content since the call was due, in seconds; NaN where not known."""
    latency_s: tuple[float, float]
    """The same of the end, of calls that were answered."""
    own_share: float
    """What share of all latency was this process's own lateness."""
    note: str = ""
    """Why the verdict is what it is, where numbers do not say it."""

    @property
    def keeps(self) -> bool:
        """Whether the share of calls that keep the objective is at least the wanted one, sure or not."""
        return self.verdict == "met" or (self.verdict == "unclear" and not self.note)


def measure_step(step: Step, calls: pd.DataFrame, *, has_slo: bool, wanted: float, end: EndReason = "") -> StepResult:
    """Return what a step's calls say of it; a share `wanted` is to keep the objective, `end` is why it ended early."""
    counted = calls[(calls["due_s"] >= step.warmup_s)]
    answered = counted["status"].isin(ANSWERED)
    latency = counted["latency_s"].astype(float).to_numpy()
    late_share = float(np.nansum(counted["late_s"].astype(float)) / (np.nansum(latency) or math.inf))
    end_s = float(calls["end_s"].max()) if len(calls) else 0.0
    window = step.warmup_s, max(min(end_s, step.duration_s), step.warmup_s + 1e-9)
    span_s = window[1] - window[0]
    answers = calls[calls["status"].isin(ANSWERED) & calls["end_s"].between(*window)]
    share = goodput = None
    if has_slo and len(counted):
        met = counted["met"].fillna(False).astype(bool)
        since_s = counted["due_s"].to_numpy(dtype=float) - step.warmup_s
        blocks = np.minimum(since_s / span_s * BLOCKS, BLOCKS - 1).astype(int)
        rarest = min(len(set(blocks[met])), len(set(blocks[~met])))
        share = stats.share(met, clusters=blocks if rarest >= MIN_BLOCKS else None)
        goodput = float(answers["met"].fillna(False).sum()) / span_s
    verdict, note = _judge(end, step, calls, share, wanted, late_share)
    return StepResult(
        label=step.label,
        amount=step.amount,
        verdict=verdict,
        n=len(counted),
        failed=int((~answered).sum()),
        answered_per_s=len(answers) / span_s,
        share=share,
        goodput_per_s=goodput,
        first_s=_quantiles(counted["first_s"]),
        # A call that was stopped has no end of its own.
        latency_s=_quantiles(counted.loc[answered, "latency_s"]),
        own_share=late_share,
        note=note,
    )


def _quantiles(values: pd.Series[Any]) -> tuple[float, float]:
    present = values.dropna().astype(float).to_numpy()
    median, high = (stats.percentile(present, p).value for p in (0.5, 0.95))
    return median, high


def _judge(
    end: EndReason, step: Step, calls: pd.DataFrame, share: stats.Interval | None, wanted: float, late_share: float
) -> tuple[Verdict, str]:
    if end == "connections":
        return "invalid", "the client had no connection left: make it with Client(connections=…) of ten times as many"
    if late_share > MAX_OWN_SHARE:
        return "invalid", (
            f"this process started calls late, which is {format_share(late_share)} of their latency: "
            "give a lower rate, shorter prompts, or a machine with less to do"
        )
    if end == "growing":
        begun_s = float(calls["due_s"].max())
        return "growing", f"more calls began than ended; it was ended after {format_duration(begun_s, brief=True)}"
    if end == "drain":
        count = format_count(int(calls["status"].eq("cancelled").sum()), "call")
        return "missed", f"{count} had not ended {step.drain_s:g} s after the last began"
    if share is None:
        return "measured", ""
    if share.low >= wanted:
        return "met", ""
    if share.high < wanted:
        return "missed", ""
    return "unclear", "" if share.value >= wanted else "fewer than wanted, by a difference that may be chance"


STEP_COLUMNS = (
    *("step", "calls", "failed", "answered", "goodput", "kept"),
    *("first p50 / p95", "end p50 / p95", "own lateness", "verdict"),
)


def step_rows(results: Sequence[StepResult]) -> list[tuple[str, ...]]:
    """Return the texts of a table of steps, a row each, under STEP_COLUMNS."""

    def format_pair(values: tuple[float, float]) -> str:
        return " / ".join("–" if math.isnan(value) else format_duration(value, brief=True) for value in values)

    return [
        (
            result.label,
            f"{result.n:,}",
            f"{result.failed:,}",
            f"{format_number(result.answered_per_s)}/s",
            "–" if result.goodput_per_s is None else f"{format_number(result.goodput_per_s)}/s",
            "–" if result.share is None else format_share(result.share.value),
            format_pair(result.first_s),
            format_pair(result.latency_s),
            format_share(result.own_share),
            result.verdict,
        )
        for result in results
    ]
