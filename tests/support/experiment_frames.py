"""Frames of experiments with values that a test chooses."""

import numpy as np
import pandas as pd


def frame(prompts=60, *, repeats=1, variants=("A", "B"), **columns):
    """An experiment's frame of answered calls; a column is given for each variant, as one value or one a call."""
    count = prompts * repeats
    parts = []
    for index, variant in enumerate(variants):
        values = {
            "prompt_id": [f"p{number // repeats}" for number in range(count)],
            "repeat": [number % repeats for number in range(count)],
            "variant": variant,
            "warmup": False,
            "status": "completed",
            "error": pd.NA,
            "http_status": 200,
            "simulated": False,
            "ttft_s": np.nan,
            "ttfa_s": np.nan,
            "e2e_s": np.nan,
            "output_tps": np.nan,
            "output_tokens": pd.NA,
            "cost_usd": np.nan,
            "cost_low_usd": np.nan,
            "cost_high_usd": np.nan,
        }
        parts.append(
            pd.DataFrame({**values, **{name: values_by_variant[index] for name, values_by_variant in columns.items()}})
        )
    table = pd.concat(parts, ignore_index=True)
    numbers = [name for name in table if name.endswith(("_s", "_usd", "_tokens", "_tps"))]
    return table.astype(dict.fromkeys(numbers, "Float64") | {"warmup": "boolean", "simulated": "boolean"})


def spread(n, around, sd, seed=0):
    return np.random.default_rng(seed).normal(around, sd, n)
