"""Frames of calls for figures: made by rule, so that every value is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from famnb.frame import CALLS
from famnb.frame.columns import build_frame as framed

START_US = 1_790_000_000_000_000


def many(
    n: int = 240, *, models: int = 2, gap_s: float = 2.0, missing: float = 0.0, name: str = "model"
) -> pd.DataFrame:
    """A frame of `n` calls of some models, one every `gap_s` seconds, a share of whose values is missing."""
    random = np.random.default_rng(7)
    which = np.arange(n) % models
    ttft = random.lognormal(-1.2 + 0.12 * which, 0.35, n)
    think = random.lognormal(-0.3, 0.4, n)
    e2e = ttft + think + random.lognormal(0.3, 0.4, n)
    out, given = random.integers(80, 600, n), random.integers(50, 400, n)
    cost = given * 0.25e-6 + out * (1 + which) * 1e-6
    off = np.where(random.random(n) < 0.4, 1.3, 1.0)
    numbers: dict[str, Any] = {
        "ttfb_s": ttft * 0.8,
        "ttft_s": ttft,
        "ttfa_s": ttft + think,
        "think_s": think,
        "e2e_s": e2e,
        "icl_p50_s": random.lognormal(-4, 0.3, n),
        "tpot_s": random.lognormal(-4, 0.3, n),
        "output_tps": out / e2e,
        "input_tokens": given,
        "cached_tokens": np.where(which % 3 == 2, np.nan, given // 4),
        "output_tokens": out,
        "reasoning_tokens": np.where(which % 3 == 1, np.nan, out // 3),
        "cost_usd": cost,
        "cost_low_usd": cost / off,
        "cost_high_usd": cost * off,
    }
    gone = random.random(n) < missing
    values: dict[str, Any] = {key: np.where(gone, np.nan, value) for key, value in numbers.items()}
    whole = {column.name for column in CALLS if column.dtype == "Int64"}
    for key, found in values.items():
        values[key] = [None if np.isnan(x) else int(x) if key in whole else float(x) for x in found]
    values |= {
        "started_at": [START_US + round(i * gap_s * 1e6) for i in range(n)],
        "call_id": [f"c{i}" for i in range(n)],
        "model": [f"{name}-{m + 1:02}" for m in which],
        "endpoint": [("chat", "responses", "web", "messages")[i // max(models, 1) % 4] for i in range(n)],
        "status": ["failed" if g else "completed" for g in gone],
        "prompt": [f"prompt {i // models % 12}" for i in range(n)],
        "simulated": [True] * n,
        "output_tokens_source": ["estimated" if o > 1 else "reported" for o in off],
        "input_tokens_source": ["reported"] * n,
    }
    table = framed(CALLS, {column.name: values.get(column.name, [None] * n) for column in CALLS})
    return table.assign(score=np.where(gone, np.nan, random.normal(0.7 + 0.02 * which, 0.1, n)))


def events(streams: int = 6, reads: int = 60) -> pd.DataFrame:
    """A frame of events of some streams: thinking first, then text, one event a read."""
    random = np.random.default_rng(3)
    parts = []
    for stream in range(streams):
        kinds = ["thinking"] * (reads // 3) + ["text"] * (reads - reads // 3)
        parts.append(
            pd.DataFrame(
                {
                    "call_id": f"c{stream}",
                    "batch": range(reads),
                    "t_s": 0.4 + random.lognormal(-4, 0.5, reads).cumsum(),
                    "kind": kinds,
                    "type": "chunk",
                    "chars": 12,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


SECOND = 1_000_000


def calls(**columns: list[Any]) -> pd.DataFrame:
    """A frame of calls with some columns given; the others are missing, but for the start: one call a second."""
    n = len(next(iter(columns.values()), []))
    given = {"started_at": [1_790_000_000 * SECOND + place * SECOND for place in range(n)], **columns}
    return framed(CALLS, {column.name: given.get(column.name, [None] * n) for column in CALLS})


def priced(model: list[str], cost: list[float | None], *, off: float = 1.0, **more: list[Any]) -> pd.DataFrame:
    """Calls with costs that may be `off` by a factor either way."""
    low, high = [c and c / off for c in cost], [c and c * off for c in cost]
    used = {"input_tokens": [1] * len(cost), "output_tokens": [1] * len(cost)}
    return calls(model=model, cost_usd=cost, cost_low_usd=low, cost_high_usd=high, **{**used, **more})
