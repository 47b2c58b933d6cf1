"""The sections of a report that say how an experiment was set up: plan, settings, prices and what it was made with."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from famnb.experiment import Trial, Variant, tables
from famnb.experiment.plan import model_of
from famnb.experiment.variants import PLACE
from famnb.record import prices, pricetable
from famnb.widget.experiment.reportpage import facts, table
from famnb.widget.text import markup

PROMPTS = 200
"""Prompts that are listed; of more it is said how many."""
_LIBRARIES = ("famnb", "pandas", "scipy", "matplotlib", "httpx")


def setup(trial: Trial) -> str:
    """What was planned: counts, variants, shared fields and prompts."""
    warmup = f", after {tables.counted(trial.warmup, 'warm-up call')} of each variant" if trial.warmup else ""
    plan = (
        f"{tables.counted(len(trial.prompts), 'prompt')} × {tables.counted(len(trial.variants), 'variant')} × "
        f"{tables.counted(trial.repeats, 'repeat')}{warmup}: {tables.counted(len(trial.cells), 'call')}. "
        f"Variants alternate within each prompt, in an order that seed {trial.seed} decides."
    )
    places = {cell.variant.label: cell.request for cell in trial.cells}
    variants = [
        [variant.label, places[variant.label].endpoint, model_of(places[variant.label]), _fields(_own(variant))]
        for variant in trial.variants
    ]
    head = ("variant", "endpoint", "model", "own fields")
    shared = f"<h3>Fields of every request</h3>{markup.code(_fields(trial.fields))}" if trial.fields else ""
    prompts = [[prompt.id, prompt.text] for prompt in trial.prompts[:PROMPTS]]
    more = len(trial.prompts) - PROMPTS
    rest = f'<p class="soft">{more:,} more are not listed.</p>' if more > 0 else ""
    listed = f"<details><summary>Prompts</summary>{table(('id', 'prompt'), prompts, left=2)}{rest}</details>"
    return f"<p>{markup.escape(plan)}</p>{table(head, variants, left=4)}{shared}{listed}"


def prices_used(trial: Trial) -> str:
    """The prices of the models in the plan, with their sources."""
    models = list(dict.fromkeys(model_of(cell.request) for cell in trial.cells))
    entries = [entry for entry in prices if entry.model in models]
    lost = [model for model in models if all(entry.model != model for entry in entries)]
    unknown = f"No price is known for {', '.join(lost)}; their costs are missing." if lost else ""
    told = f'<p class="soft">{markup.escape(unknown)}</p>' if lost else ""
    return f"<div class=wide>{pricetable.markup(entries) if entries else ''}</div>{told}"


def environment(frame: pd.DataFrame) -> str:
    """Versions, and which services answered."""
    hosts = {urlsplit(url).netloc.rpartition("@")[2] for url in frame["url"].dropna()}
    engines = sorted(str(engine) for engine in frame["service"].dropna().unique())
    known = [("Python", platform.python_version()), *((name, version(name)) for name in _LIBRARIES)]
    known.append(("system", f"{platform.system()} {platform.machine()}"))
    known.append(("service", ", ".join(sorted(hosts)) or "none called yet"))
    known += [("engine, by its own word", ", ".join(engines))] if engines else []
    return f'<div class="small">{facts(known)}</div>'


def _own(variant: Variant) -> Mapping[str, Any]:
    """A variant's own fields, without what stands in columns of its own."""
    return {name: value for name, value in variant.fields.items() if name not in PLACE}


def _fields(fields: Mapping[str, Any]) -> str:
    return (
        json.dumps(dict(fields), ensure_ascii=False, default=repr, indent=2 if len(fields) > 2 else None)
        if fields
        else "–"
    )
