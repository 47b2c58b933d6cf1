"""An experiment's calls in the ledger: which cells are answered or failed, what they cost, and the frame of cells.

the cell's calls                    a run …
── one completed or incomplete      leaves it alone
── one running still                leaves it alone
── none of these, one failed, also  leaves it alone, or runs it again with `retry_failed`
   by a stream that was cut off
── cancelled, interrupted or none   runs it
── not taken by the service, such   runs it
   as with status 401, 429 or 503

A call that another service answered than the one that the cell is planned for is not the cell's.
"""

from __future__ import annotations

import dataclasses
import math
import sqlite3
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import get_args

import numpy as np
import pandas as pd

from famnb.errors import LedgerError, StreamInterrupted
from famnb.events import Status
from famnb.experiment.budget import UNAVAILABLE_STATUSES, CallOutcome, counted_cost, worst_case
from famnb.experiment.services import SIMULATED, is_simulated, split_key
from famnb.frame.calls import calls
from famnb.record import Ledger, schema
from famnb.record.price import UNMADE_ERRORS

ANSWERED = ("completed", "incomplete")
STATUSES = ("planned", *get_args(Status))
OUTCOME_COLUMNS = ("cell", "status", "call_id", "cost_high_usd", "http_status", "attempts", "error", "simulated")
"""The columns of `famnb.calls` that a CallOutcome and the key of its cell are made of."""


@dataclasses.dataclass(frozen=True, slots=True)
class ResumeState:
    """The recorded calls of an experiment."""

    statuses: Mapping[str, frozenset[str]]
    """The statuses of each cell's calls, by the cell's key; `failed` also for a stream that the service cut off.

    Calls that no service took are left out.
    """
    outcomes: tuple[tuple[str, CallOutcome], ...]
    """Every call with its cell's key."""
    simulations: frozenset[str]
    """The services that are simulations by what they answered."""

    def is_done(self, key: str, *, retry_failed: bool) -> bool:
        """Whether a run leaves the cell alone."""
        statuses = self.statuses.get(key, frozenset())
        return not statuses.isdisjoint((*ANSWERED, "running")) or ("failed" in statuses and not retry_failed)

    def has_failed(self, key: str) -> bool:
        """Whether the cell failed and was never answered."""
        statuses = self.statuses.get(key, frozenset())
        return "failed" in statuses and statuses.isdisjoint(ANSWERED)

    def is_simulated(self, service: str) -> bool:
        """Whether a service is a simulation, one included that is known by its answers alone."""
        return is_simulated(service) or service in self.simulations

    def count_other_service(self, keys: Iterable[str]) -> int:
        """How many of these cells have no answer from their own service, but one from another."""
        planned = set(keys)
        answered = {key for key, statuses in self.statuses.items() if not statuses.isdisjoint(ANSWERED)}
        contents = {split_key(key)[0] for key in answered - planned}
        return sum(split_key(key)[0] in contents for key in planned - answered)


def read_resume_state(ledger: Ledger, name: str) -> ResumeState:
    """Read an experiment's calls from a ledger. Raises LedgerError if the file cannot be read."""
    outcomes = outcomes_of(read_calls(ledger, name, columns=OUTCOME_COLUMNS))
    statuses: dict[str, set[str]] = {}
    for key, outcome in outcomes:
        if not outcome.is_unavailable:
            statuses.setdefault(key, set()).add("failed" if outcome.is_failure else outcome.status)
    return ResumeState(
        {key: frozenset(names) for key, names in statuses.items()},
        outcomes,
        frozenset(split_key(key)[1] for key, outcome in outcomes if outcome.simulated),
    )


def read_calls(ledger: Ledger, name: str, *, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """An experiment's calls as `famnb.calls` frames them.

    Simulated answers are left out where the same service has given others: there is no simulation at this address any
    more. Raises LedgerError if the ledger cannot be read.
    """
    rows = calls(ledger, experiment=name, columns=columns)
    is_simulated_row = rows["simulated"].fillna(False).astype(bool)
    is_real_answer = rows["status"].isin(ANSWERED) & ~rows["simulated"].fillna(True).astype(bool)
    if not is_simulated_row.any() or not is_real_answer.any():
        return rows
    services = rows["cell"].astype(object).map(lambda key: split_key(key)[1], na_action="ignore")
    is_outdated = is_simulated_row & services.isin({*services[is_real_answer]} - {SIMULATED})
    return rows[~is_outdated].reset_index(drop=True)


def outcomes_of(table: pd.DataFrame) -> tuple[tuple[str, CallOutcome], ...]:
    """The outcome of each call in a frame with OUTCOME_COLUMNS, with its cell's key."""
    rows = table[[*OUTCOME_COLUMNS]].astype(object).where(table.notna(), None).itertuples(index=False)
    return tuple(
        (
            cell or "",
            CallOutcome(
                status=status,
                call_id=call_id,
                high=None if high is None or math.isinf(high) else Decimal(str(high)),
                http_status=http_status,
                attempts=attempts or 0,
                error=error,
                # If nobody answered, what the cell was planned for.
                simulated=bool(cell) and is_simulated(split_key(cell)[1]) if simulated is None else simulated,
            ),
        )
        for cell, status, call_id, high, http_status, attempts, error, simulated in rows
    )


def counted_costs(
    outcomes: Iterable[tuple[str, CallOutcome]],
    ledger: Ledger,
    *,
    simulated: bool,
    worst: Mapping[str, Decimal] = MappingProxyType({}),
) -> Decimal:
    """What recorded calls count for against a budget in USD; `worst` is the most that cells can cost, by their keys.

    Either the simulated calls count, as in a rehearsal, or all others: what is simulated is not billed. Raises
    InvalidRequest if a call's cost is not known, nor the most that it can have been.
    """
    total = Decimal()
    for key, outcome in outcomes:
        if outcome.simulated != simulated:
            continue
        most = worst.get(key, Decimal())
        # Most calls have a known cost; then their requests need not be read at all.
        is_unsure = counted_cost(outcome, Decimal(1)) != counted_cost(outcome, Decimal())
        if is_unsure and key not in worst and outcome.call_id is not None:
            call = ledger.call(outcome.call_id)
            fault = f"what call {outcome.call_id} of an earlier run cost is not known"
            most = worst_case(call.request, call.row["profile"], fault)
        total += counted_cost(outcome, most)
    return total


def check_writable(ledger: Ledger) -> None:
    """Raise LedgerError if calls cannot be recorded: a call that is not recorded would be paid for again."""
    ledger.flush()  # A disk that is merely slow is waited for.
    if unrecorded := ledger.behind:
        raise LedgerError(
            f"the ledger {ledger.path} cannot be written, and {unrecorded:,} records of earlier calls wait in memory: "
            "make room or unlock the file, and try again in this process, so that nothing is paid for twice"
        )
    try:
        schema.open_to_write(ledger.path).close()
    except (sqlite3.Error, OSError) as error:
        raise schema.unreadable(ledger.path, error) from error


def join_calls(
    plan: pd.DataFrame,
    *,
    ledger: Ledger,
    name: str,
    replayed: Mapping[str, str],
    columns: Iterable[str] | None = None,
) -> pd.DataFrame:
    """Return the plan with `status` and the columns of `famnb.calls`, missing where a cell has no call yet.

    `columns` names those wanted, OUTCOME_COLUMNS among them; None for all.

    A cell's call is its completed one, the first if there are several, else an incomplete one, else its latest; calls
    that no service took do not count: `attrs["refused"]` has their requests, by the cell's key. `replayed` is the id
    of the recorded call that answered a cell without a row of its own, by the cell's key.
    """
    frame = read_calls(ledger, name, columns=columns)
    recorded = _drop_unavailable(frame)
    refused = frame.drop(recorded.index).groupby("cell")["attempts"].sum().to_dict()
    if replayed:
        by_id = calls(ledger, columns=columns).set_index("call_id", drop=False)
        found = {cell: call_id for cell, call_id in replayed.items() if call_id in by_id.index}
        rows = by_id.loc[list(found.values())].assign(cell=pd.array(list(found), dtype="string"))
        recorded = pd.concat([recorded, rows], ignore_index=True)
    names = [column for column in recorded.columns if column not in (*plan.columns, "cell", "experiment")]
    rows = _choose_calls(recorded).reindex(plan["cell"])
    rows.index = plan.index
    status = rows["status"].astype("string").fillna("planned")
    measured = rows[names].assign(status=pd.Categorical(status, categories=list(STATUSES)))
    order = ["status", *(column for column in names if column != "status")]
    frame = pd.concat([plan, measured[order]], axis=1)
    frame.attrs["refused"] = refused
    return frame


def read_earlier(ledger: Ledger, name: str) -> pd.DataFrame:
    """Return one call for each cell of an experiment of which only the name is known; see `join_calls` for which.

    Where a service answered that is not a simulation, simulated calls are not among them.
    """
    rows = _choose_calls(_drop_unavailable(read_calls(ledger, name))).reset_index()
    is_simulated = rows["simulated"].fillna(False).astype(bool)
    return rows if is_simulated.all() else rows[~is_simulated].reset_index(drop=True)


def _drop_unavailable(recorded: pd.DataFrame) -> pd.DataFrame:
    """The calls that a service took, by the rule of `CallOutcome.is_unavailable`."""
    is_refused = recorded["error"].isin(UNMADE_ERRORS) | recorded["http_status"].isin(UNAVAILABLE_STATUSES)
    return recorded[~(recorded["status"].isin(["failed"]) & is_refused)]


def failures(frame: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are failed calls by the rule of `CallOutcome.is_failure`, those included that no service took."""
    is_cut_off = frame["status"].isin(["interrupted"]) & frame["error"].isin([StreamInterrupted.__name__])
    return frame["status"].isin(["failed"]) | is_cut_off


def _choose_calls(recorded: pd.DataFrame) -> pd.DataFrame:
    """One call a cell, indexed by the cell's key; see `join_calls` for which."""
    rows = recorded[recorded["cell"].notna()]
    status = rows["status"].astype(object).to_numpy()
    rank = np.where(status == ANSWERED[0], 0, np.where(status == ANSWERED[1], 1, 2))
    position = np.arange(len(rows))
    order = np.lexsort((np.where(rank == 0, position, -position), rank))
    return rows.iloc[order].drop_duplicates("cell").set_index("cell")
