"""Every figure of many calls: how long it takes from the frame to the image, and what it holds in memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from harness import Goal, Result, Table

from famnb import plot

TITLE = "figures of a million calls, from frame to PNG"
LIMIT_S = 10.0


def frame(n: int) -> pd.DataFrame:
    """A frame of `n` calls of four models in a month, with the columns that figures read."""
    random = np.random.default_rng(1)
    model = random.integers(0, 4, n)
    ttft = random.lognormal(-1, 0.4, n)
    e2e = ttft + random.lognormal(0.5, 0.5, n)
    input_tokens, output_tokens = random.integers(10, 2_000, n), random.integers(10, 900, n)
    cost = input_tokens * 0.25e-6 + output_tokens * 1e-6
    start_us = 1_790_000_000_000_000 + np.sort(random.integers(0, 30 * 86_400_000_000, n))
    names = {"model": [f"model-{i}" for i in range(4)], "endpoint": ["chat", "responses", "web", "messages"]}
    category = {name: pd.Categorical.from_codes(model, values) for name, values in names.items()}
    counts = {
        "input_tokens": input_tokens,
        "cached_tokens": input_tokens // 3,
        "output_tokens": output_tokens,
        "reasoning_tokens": output_tokens // 4,
    }
    numbers = {"ttft_s": ttft, "e2e_s": e2e, "cost_usd": cost, "cost_low_usd": cost * 0.9, "cost_high_usd": cost * 1.1}
    return pd.DataFrame(
        {
            "started_at": pd.to_datetime(start_us, unit="us", utc=True),
            **category,
            **{name: pd.array(values, dtype="Int64") for name, values in counts.items()},
            **{name: pd.array(values, dtype="Float64") for name, values in numbers.items()},
            "prompt": pd.array([f"prompt {i % 1_000}" for i in range(n)], dtype="string"),
            "simulated": pd.array(np.zeros(n, dtype=bool), dtype="boolean"),
            "status": pd.Categorical.from_codes(random.integers(0, 20, n) // 19, ["completed", "failed"]),
            "error": pd.Categorical.from_codes(np.full(n, -1), ["ServerError"]),
            "score": random.random(n),
        }
    )


def gap_events(n: int) -> pd.DataFrame:
    """A frame of `n` stream events, a hundred a stream."""
    number = np.arange(n)
    gap = np.random.default_rng(2).lognormal(-4, 0.4, n)
    kind = pd.Categorical.from_codes((number % 100 >= 30).astype(int), ["thinking", "text"])
    columns = {"call_id": number // 100, "batch": number % 100, "t_s": gap.cumsum(), "chars": 12}
    return pd.DataFrame(columns | {"kind": kind})


def run(quick: bool) -> Result:
    """Time every figure once, its image included."""
    n = 2_000 if quick else 1_000_000
    calls, events = frame(n), gap_events(n)
    figures: dict[str, Callable[[], object]] = {
        "latency": lambda: plot.latency(calls),
        "latency by hour": lambda: plot.latency(calls, over="hour"),
        "cost": lambda: plot.cost(calls),
        "cost per day": lambda: plot.cost(calls, per="day"),
        "tokens": lambda: plot.tokens(calls),
        "throughput": lambda: plot.throughput(calls),
        "pareto": lambda: plot.pareto(calls, score="score"),
        "compare": lambda: plot.compare(calls),
        "compare costs": lambda: plot.compare(calls, metric="cost_usd"),
        "success": lambda: plot.success(calls),
        "gaps (events)": lambda: plot.gaps(events),
    }
    rows = []
    for name, draw in list(figures.items())[:: 4 if quick else 1]:
        start = time.perf_counter()
        figure = draw()
        drawn = time.perf_counter()
        assert isinstance(figure, plot.Figure)
        data, _ = figure._repr_mimebundle_()
        end = time.perf_counter()
        rows.append(
            {
                "figure": name,
                "rows": n,
                "draw s": round(drawn - start, 2),
                "PNG s": round(end - drawn, 2),
                "total s": round(end - start, 2),
                "PNG KB": len(data["image/png"]) // 1000,
            }
        )
    slowest = max(float(row["total s"]) for row in rows)
    goal = Goal("slowest figure of a million rows, s", LIMIT_S, slowest)
    note = "Long lines are thinned: shares by at most 1/2000, sums exact at 1,500 moments."
    return Result(tables=[Table("From frame to image", rows)], goals=[goal], notes=[note])
