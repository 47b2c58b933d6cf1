"""Experiments on an engine of known truth: prompts, variants on each endpoint, and what their calls truly cost."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import famnb
from famnb import scorers
from famnb.experiment.comparison import compare_variants, judge
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.metrics import Failed, find_metric, measure
from famnb.experiment.summary import drop_warmups, list_variants
from tests.support.truth_rates import LEVEL
from tests.truth import truth_engine
from tests.truth.truth_engine import TrueReply, TruthEngine

MODELS = ("fam-mini", "fam-2-5-pro", "fam-2-5-mini")
PRICE = {"input": 1.0, "output": 4.0, "cached": 0.1}
"""USD per million tokens, of every model."""
HIDDEN = {"endpoint": "web", "stream_options": {"include_usage": False}}
"""Fields of a variant whose streams report no usage at all."""


def experiment(
    client: famnb.Client, prompts: int, variants: dict[str, dict[str, Any]], **options: Any
) -> BaseExperiment:
    """An experiment whose variants carry their name as system text, by which the engine knows them."""
    named = {name: {"model": "fam-2-5-pro", "system": name, **fields} for name, fields in variants.items()}
    # Of different lengths, as prompts are.
    rows = [f"question {number} {'why ' * (20 + number * 7 % 60)}" for number in range(prompts)]
    right = scorers.regex(f"^{truth_engine.RIGHT}\\b", name="right")
    return BaseExperiment(rows, named, **{"name": "truth", "client": client, "scorers": [right]} | options)


def run_served(
    engine: TruthEngine, folder: Path, prompts: int, variants: dict[str, dict[str, Any]], *, concurrency: int
) -> BaseExperiment:
    """An experiment that was run over sockets, recorded in this folder."""
    options: dict[str, Any] = {"api_key": truth_engine.KEY, "retries": famnb.Retries(tries=1)}
    with (
        truth_engine.serve(engine) as url,
        famnb.Client(base_url=url, ledger=folder / "truth.sqlite", **options) as client,
    ):
        exp = experiment(client, prompts, variants)
        exp.run(concurrency=concurrency, progress=False)
        return exp


def unconnected(folder: Path) -> famnb.Client:
    """A client that records in this folder and has no service."""
    return famnb.Client(base_url="http://127.0.0.1:1", api_key=truth_engine.KEY, ledger=folder / "truth.sqlite")


def true_cost(reply: TrueReply) -> float:
    """What a reply truly costs in USD."""
    plain = reply.input_tokens - reply.cached_tokens
    counts = {"input": plain, "cached": reply.cached_tokens, "output": reply.output_tokens}
    return sum(PRICE[kind] * tokens for kind, tokens in counts.items()) / 1e6


def true_replies(exp: BaseExperiment, engine: TruthEngine) -> dict[str, TrueReply]:
    """What each cell is truly answered, by the cell's key."""
    return {cell.key: engine.draw_cell(cell) for cell in exp.cells}


def cut(frame: pd.DataFrame, prompts: int) -> Iterator[pd.DataFrame]:
    """Yield the frames of experiments of so many prompts each, from that of one with very many."""
    numbers, _ = pd.factorize(frame["prompt_id"])
    yield from (part for _, part in frame.groupby(numbers // prompts))


def compare(frame: pd.DataFrame, metrics: Sequence[str], *, failed: Failed = "zero") -> pd.DataFrame:
    """The pairs of `summary`, with the first variant as the baseline, without its other tables and its words.

    They take four times as long; `test_summaries.py` has what all of it says together.
    """
    rows = drop_warmups(frame)
    first, *others = list_variants(rows)
    found = compare_variants(
        rows,
        {metric: measure(rows, metric, failed=failed, slo={}) for metric in map(find_metric, metrics)},
        [(first, other) for other in others],
        baseline=first,
        primary=metrics[0],
        level=LEVEL,
    )
    return judge(found, LEVEL)
