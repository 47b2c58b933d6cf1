"""The frame of an experiment: its plan with what came of every cell; what it means is left to the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import numpy as np
import pandas as pd

from famnb.events import Status
from famnb.experiment.budget import fruitless
from famnb.experiment.standing import ANSWERED
from famnb.frame import calls
from famnb.record import Ledger

STATUSES = ("planned", *get_args(Status))


def joined(plan: pd.DataFrame, *, ledger: Ledger, name: str, replayed: Mapping[str, str]) -> pd.DataFrame:
    """The plan, then `status` and the columns of `famnb.calls`; missing where a cell has no call yet.

    A cell's call is its completed one, the first if there are several, else one that is incomplete, else its latest.
    `replayed` has the recorded calls that answered cells without being recorded again.
    """
    recorded = calls(ledger, experiment=name)
    if replayed:
        recorded = pd.concat([recorded, _replays(ledger, replayed)], ignore_index=True)
    taken = [
        column for column in recorded.columns if column not in plan.columns and column not in ("cell", "experiment")
    ]
    rows = _chosen(recorded).reindex(plan["cell"])
    rows.index = plan.index
    status = rows["status"].astype("string").fillna("planned")
    found = rows[taken].assign(status=pd.Categorical(status, categories=list(STATUSES)))
    order = ["status", *(column for column in taken if column != "status")]
    return pd.concat([plan, found[order]], axis=1)


def failures(frame: pd.DataFrame) -> pd.Series[bool]:
    """Which rows of an experiment's frame are of calls that failed, those included that the service cut off."""
    ended = zip(frame["status"].astype(object), frame["error"].astype(object), strict=True)
    return pd.Series([fruitless(*each) for each in ended], index=frame.index, dtype=bool)


def _chosen(recorded: pd.DataFrame) -> pd.DataFrame:
    """One row a cell, by its key."""
    rows = recorded[recorded["cell"].notna()]
    status = rows["status"].astype(object).to_numpy()
    rank = np.where(status == ANSWERED[0], 0, np.where(status == ANSWERED[1], 1, 2))
    place = np.arange(len(rows))
    order = np.lexsort((np.where(rank == 0, place, -place), rank))
    return rows.iloc[order].drop_duplicates("cell").set_index("cell")


def _replays(ledger: Ledger, replayed: Mapping[str, str]) -> pd.DataFrame:
    """The recorded calls that answered cells, once a cell."""
    found = calls(ledger).set_index("call_id", drop=False)
    known = {cell: call_id for cell, call_id in replayed.items() if call_id in found.index}
    rows = found.loc[list(known.values())].reset_index(drop=True)
    return rows.assign(cell=pd.array(list(known), dtype="string"))
