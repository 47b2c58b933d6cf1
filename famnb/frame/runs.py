"""The frame of runs: one row a variant of an experiment, with counts, medians and sums of its calls."""

from __future__ import annotations

import os
from typing import Any, Unpack, get_args

import pandas as pd

from famnb.events import Status
from famnb.frame.calls import calls
from famnb.frame.columns import RUNS, format_columns
from famnb.frame.spend import PRICING_COLUMNS, add_up, is_unpriced
from famnb.record import Ledger
from famnb.record.filters import Filters
from famnb.record.ledger import HasLedger

_KEYS = ["experiment", "variant", "profile", "endpoint", "model"]
_MEDIANS = ["ttft_s", "e2e_s", "output_tps"]
_SUMS = [column.name for column in RUNS if "_tokens" in column.name or column.name.endswith("_usd")]


def runs(ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None, **filters: Unpack[Filters]) -> pd.DataFrame:
    """One row for each experiment, variant, profile, endpoint and model; calls outside of experiments have rows too.

    The filters are those of `calls`: since, until, model, endpoint, profile, experiment, variant, tag. LedgerError if
    the file cannot be read. The columns:
    """
    frame = calls(ledger, **filters, columns=[*_KEYS, "started_at", *PRICING_COLUMNS, *_MEDIANS, *_SUMS])
    frame["unpriced_calls"] = is_unpriced(frame).astype(int)
    # `dropna=False`: calls outside of an experiment have no experiment, and are rows all the same.
    grouped = frame.groupby(_KEYS, observed=True, dropna=False)
    completed = frame[frame["status"] == "completed"].groupby(_KEYS, observed=True, dropna=False)
    table: dict[str, Any] = {"calls": grouped.size()}
    for status in get_args(Status):
        table[status] = (
            (frame["status"] == status).groupby([frame[key] for key in _KEYS], observed=True, dropna=False).sum()
        )
    for name in _MEDIANS:
        table[f"{name}_p50"], table[f"{name}_n"] = completed[name].median(), completed[name].count()
    table |= {str(name): sums for name, sums in add_up(frame, _KEYS, _SUMS).items()}
    table["cost_n"], table["unpriced_calls"] = grouped["cost_usd"].count(), grouped["unpriced_calls"].sum()
    table["first_at"], table["last_at"] = grouped["started_at"].min(), grouped["started_at"].max()
    result = pd.DataFrame(table, index=table["calls"].index).sort_values("first_at").reset_index()
    # A group without completed calls is not in `completed`, so its count is missing where it should be 0.
    result = result.fillna({f"{name}_n": 0 for name in _MEDIANS})
    dtypes = {column.name: column.dtype for column in RUNS}
    return result.astype(dtypes)[[column.name for column in RUNS]]


runs.__doc__ = f"{runs.__doc__}\n{format_columns(RUNS)}\n"
