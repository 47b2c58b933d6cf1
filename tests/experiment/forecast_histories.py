"""Plans to forecast, and past calls to forecast them from."""

import numpy as np
import pandas as pd

from famnb.endpoints import ENDPOINTS
from famnb.experiment.plan import plan_cells
from famnb.experiment.prompts import parse_prompts
from famnb.experiment.variants import grid, parse_variants
from famnb.profiles import DEFAULT

SERVICE = "https://api.example.com"
"""The service that the cells are planned for, and that answered the past calls."""
FIELDS = {"endpoint": "messages", "max_tokens": 400}


def cells(prompts=10, *, models=("fam-2-5-pro", "fam-2-5-mini"), repeats=1, service=SERVICE, **fields):
    shared = {**FIELDS, **fields}
    variants = parse_variants(grid(model=list(models)), shared=shared)
    texts = parse_prompts([f"Question {number}" for number in range(prompts)], template=None, keep=())
    return plan_cells(
        texts,
        variants,
        repeats=repeats,
        warmup=0,
        seed=0,
        shared=shared,
        service_of=lambda _variant, _endpoint: service,
    )


def past(
    n,
    *,
    model="fam-2-5-pro",
    endpoint="messages",
    settings="",
    simulated=False,
    seed=0,
    source="reported",
    status="completed",
    service=SERVICE,
):
    """Calls of 30 input tokens for 120 characters, and of log-normal output and time."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "model": model,
            "endpoint": endpoint,
            "status": status,
            "simulated": pd.array([simulated] * n, dtype="boolean"),
            "e2e_s": random.lognormal(0, 0.4, n),
            "input_tokens": 30,
            "input_chars": 120,
            "output_tokens": random.lognormal(5, 0.4, n).round(),
            "input_tokens_source": "reported",
            "output_tokens_source": source,
            "settings": settings,
            "url": f"{service}{ENDPOINTS[endpoint].path}",
            "profile": DEFAULT,
        }
    )


def both(n, **options):
    return pd.concat([past(n, model=model, **options) for model in ("fam-2-5-pro", "fam-2-5-mini")])
