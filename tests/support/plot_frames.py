"""Frames of calls for figures: made by rule, so that every value is known."""

from typing import Any

import numpy as np
import pandas as pd

from famnb.frame import CALLS
from famnb.frame.columns import build_frame

SECOND_US = 1_000_000
START_US = 1_790_000_000 * SECOND_US
"""The first call's start: in September 2026."""


def many_calls(
    n: int = 240, *, models: int = 2, gap_s: float = 2.0, missing: float = 0.0, name: str = "model"
) -> pd.DataFrame:
    """A frame of `n` calls of some models, one every `gap_s` seconds, a share of whose values is missing."""
    random = np.random.default_rng(7)
    model = np.arange(n) % models
    ttft = random.lognormal(-1.2 + 0.12 * model, 0.35, n)
    think = random.lognormal(-0.3, 0.4, n)
    e2e = ttft + think + random.lognormal(0.3, 0.4, n)
    output_tokens, input_tokens = random.integers(80, 600, n), random.integers(50, 400, n)
    cost = input_tokens * 0.25e-6 + output_tokens * (1 + model) * 1e-6
    # Four in ten costs are off by a factor of 1.3 either way, as estimated ones are.
    off = np.where(random.random(n) < 0.4, 1.3, 1.0)
    numbers: dict[str, Any] = {
        "ttfb_s": ttft * 0.8,
        "ttft_s": ttft,
        "ttfa_s": ttft + think,
        "think_s": think,
        "e2e_s": e2e,
        "icl_p50_s": random.lognormal(-4, 0.3, n),
        "tpot_s": random.lognormal(-4, 0.3, n),
        "output_tps": output_tokens / e2e,
        "input_tokens": input_tokens,
        "cached_tokens": np.where(model % 3 == 2, np.nan, input_tokens // 4),
        "output_tokens": output_tokens,
        "reasoning_tokens": np.where(model % 3 == 1, np.nan, output_tokens // 3),
        "cost_usd": cost,
        "cost_low_usd": cost / off,
        "cost_high_usd": cost * off,
    }
    is_missing = random.random(n) < missing
    values: dict[str, Any] = {key: np.where(is_missing, np.nan, value) for key, value in numbers.items()}
    integers = {column.name for column in CALLS if column.dtype == "Int64"}
    for key, numbers_or_nan in values.items():
        values[key] = [None if np.isnan(x) else int(x) if key in integers else float(x) for x in numbers_or_nan]
    values |= {
        "started_at": [START_US + round(i * gap_s * SECOND_US) for i in range(n)],
        "call_id": [f"c{i}" for i in range(n)],
        "model": [f"{name}-{number + 1:02}" for number in model],
        "endpoint": [("chat", "responses", "web", "messages")[i // max(models, 1) % 4] for i in range(n)],
        "status": ["failed" if missed else "completed" for missed in is_missing],
        "prompt": [f"prompt {i // models % 12}" for i in range(n)],
        "simulated": [True] * n,
        "output_tokens_source": ["estimated" if factor > 1 else "reported" for factor in off],
        "input_tokens_source": ["reported"] * n,
    }
    table = build_frame(CALLS, {column.name: values.get(column.name, [None] * n) for column in CALLS})
    return table.assign(score=np.where(is_missing, np.nan, random.normal(0.7 + 0.02 * model, 0.1, n)))


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


def calls(**columns: list[Any]) -> pd.DataFrame:
    """A frame of calls with some columns given; the others are missing, but for the start: one call a second."""
    n = len(next(iter(columns.values()), []))
    values = {"started_at": [START_US + number * SECOND_US for number in range(n)], **columns}
    return build_frame(CALLS, {column.name: values.get(column.name, [None] * n) for column in CALLS})


def priced_calls(model: list[str], cost: list[float | None], *, off: float = 1.0, **more: list[Any]) -> pd.DataFrame:
    """Calls with costs that may be `off` by a factor either way."""
    low, high = [c and c / off for c in cost], [c and c * off for c in cost]
    counts = {"input_tokens": [1] * len(cost), "output_tokens": [1] * len(cost)}
    return calls(model=model, cost_usd=cost, cost_low_usd=low, cost_high_usd=high, **{**counts, **more})
