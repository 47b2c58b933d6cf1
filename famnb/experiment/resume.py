"""What the ledger has of an experiment already: which cells are answered, which failed, and what all of it cost.

the cell's calls                    a run …
── one completed or incomplete      leaves it alone
── one running still                leaves it alone
── none of these, one failed, also  leaves it alone, or runs it again with `retry_failed`
   by a stream that was cut off
── cancelled, interrupted or none   runs it

MERGED: The frame of an experiment: its plan with what came of every cell; what it means is left to the summary.
"""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Mapping
from decimal import Decimal
from typing import get_args

import numpy as np
import pandas as pd

from famnb.errors import InvalidRequest, LedgerError
from famnb.events import Status
from famnb.experiment.budget import Outcome, ceiling, counted, fruitless
from famnb.frame.calls import calls
from famnb.record import Ledger, schema

ANSWERED = ("completed", "incomplete")
COLUMNS = ("cell", "status", "call_id", "cost_high_usd", "http_status", "attempts", "error")
"""Of `famnb.calls`, what is needed to know how a call ended."""


@dataclasses.dataclass(frozen=True, slots=True)
class ResumeState:
    """The recorded calls of an experiment."""

    statuses: Mapping[str, frozenset[str]]
    """For each cell that was ever called, how its calls stand."""
    outcomes: tuple[tuple[str, Outcome], ...]
    """Every call, with its cell."""

    def settled(self, key: str, *, retry_failed: bool) -> bool:
        """Whether a run leaves the cell alone."""
        found = self.statuses.get(key, frozenset())
        return not found.isdisjoint((*ANSWERED, "running")) or ("failed" in found and not retry_failed)

    def failed(self, key: str) -> bool:
        """Whether the cell failed, and was never answered."""
        found = self.statuses.get(key, frozenset())
        return "failed" in found and found.isdisjoint(ANSWERED)

    def counted(self, worst: Mapping[str, Decimal], ledger: Ledger) -> Decimal:
        """What these calls count for against a budget."""
        each = ((made, worst[key] if key in worst else worst_of(made, ledger)) for key, made in self.outcomes)
        return sum((counted(made, most) for made, most in each), Decimal())


def standing(ledger: Ledger, name: str) -> ResumeState:
    """How an experiment stands in a ledger; LedgerError if the file cannot be read."""
    outcomes = recorded(calls(ledger, experiment=name, columns=COLUMNS))
    statuses: dict[str, set[str]] = {}
    for key, made in outcomes:
        statuses.setdefault(key, set()).add("failed" if made.failed else made.status)
    return ResumeState({key: frozenset(found) for key, found in statuses.items()}, outcomes)


def recorded(table: pd.DataFrame) -> tuple[tuple[str, Outcome], ...]:
    """How recorded calls ended, each with its cell, of a frame of calls with COLUMNS."""
    rows = table[[*COLUMNS]].astype(object).where(table.notna(), None).itertuples(index=False)
    return tuple(
        (
            cell or "",
            Outcome(
                status=status,
                call_id=call_id,
                high=None if high is None else Decimal(str(high)),
                http_status=http_status,
                attempts=attempts or 0,
                error=error,
            ),
        )
        for cell, status, call_id, high, http_status, attempts, error in rows
    )


def worst_of(outcome: Outcome, ledger: Ledger) -> Decimal:
    """A recorded call's worst case, as its request has it, where it matters; InvalidRequest where it is not known."""
    if counted(outcome, Decimal(1)) == counted(outcome, Decimal()) or outcome.call_id is None:
        return Decimal()
    found = ceiling(ledger.call(outcome.call_id).request)
    if found.usd is None:
        raise InvalidRequest(
            f"budget_usd: what call {outcome.call_id} of an earlier run cost is not known: {found.why}"
        )
    return found.usd


def writable(ledger: Ledger) -> None:
    """Make sure that calls can be recorded, and are: LedgerError if not, since what is not is paid for again."""
    if left := ledger.behind:
        raise LedgerError(
            f"the ledger {ledger.path} cannot be written, and {left:,} records of earlier calls wait in memory: "
            "make room or unlock the file, and try again in this process, so that nothing is paid for twice"
        )
    try:
        schema.open_to_write(ledger.path).close()
    except (sqlite3.Error, OSError) as error:
        raise schema.unreadable(ledger.path, error) from error


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
