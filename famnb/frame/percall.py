"""The frame of calls: one row a call, metrics as stored, missing counts estimated, costs by the price book."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, get_args

import pandas as pd

from famnb import endpoints
from famnb.events import COUNTS, Usage
from famnb.frame.columns import CALLS, PEER, frame, listing
from famnb.frame.definitions import Definition, Latencies, Peer, latencies
from famnb.frame.source import HasLedger, Moment, Words, ledger_of, where
from famnb.record import Cost, Ledger, estimate, prices, rows

Row = sqlite3.Row


def calls(
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    model: Words | None = None,
    endpoint: Words | None = None,
    experiment: Words | None = None,
    tag: Words | None = None,
    status: Words | None = None,
    limit: int | None = None,
    definition: Definition = "famnb",
) -> pd.DataFrame:
    """One row a call, newest last; calls that failed, were stopped or cut off included.

    `ledger` is a `Ledger`, a path, a `Client` that records, or None for the default ledger. `since` (included) and
    `until` (excluded) are datetimes, dates or ISO texts, UTC where they name no zone, or timedeltas back from now. The
    other filters take a word or several; `limit` keeps the newest. `definition` is "famnb", or "vllm", "guidellm",
    "aiperf": then `ttft_s`, `tpot_s`, `e2e_s` and the added `itl_s`, `itl_n` are as that tool defines them. LedgerError
    if the file cannot be read. The columns:
    """
    if definition not in get_args(Definition):
        raise ValueError(f"definition: {definition!r} is none of {', '.join(get_args(Definition))}")
    if limit is not None and limit < 0:
        raise ValueError(f"limit: expected a number of calls of at least 0, got {limit!r}")
    source = ledger_of(ledger)
    condition, values = where(
        since=since, until=until, model=model, endpoint=endpoint, experiment=experiment, tag=tag, status=status
    )
    found = source.select(condition, values, limit=limit)
    columns, table = CALLS, _stored(found)
    if found:
        table |= _reckoned(found, table, source)
    if definition != "famnb":
        columns, table = (*CALLS, *PEER), table | _redefined(definition, found, source)
    result = frame(columns, table)
    result.attrs["definition"] = definition
    return result


calls.__doc__ = f"{calls.__doc__}\n{listing(CALLS)}\n"


def _stored(found: Sequence[Row]) -> dict[str, Sequence[Any]]:
    """What the ledger has as it is."""
    if not found:
        return {}
    table: dict[str, Sequence[Any]] = dict(zip(found[0].keys(), zip(*found, strict=True), strict=True))
    asked = zip(table["service"], table["http_status"], strict=True)
    return table | {
        "call_id": table["id"],
        "started_at": table["started_us"],
        "status": table["standing"],
        "complete": _booleans(table["complete"]),
        "streamed": _booleans(table["streamed"]),
        "simulated": [None if status is None else service == "sim" for service, status in asked],
    }


def _booleans(values: Sequence[int | None]) -> list[bool | None]:
    return [None if value is None else bool(value) for value in values]


def _reckoned(found: Sequence[Row], table: Mapping[str, Sequence[Any]], ledger: Ledger) -> dict[str, Sequence[Any]]:
    """Counts with the missing ones estimated, and costs."""
    counts: dict[str, list[Any]] = {count: list(table[count]) for count in COUNTS}
    sources: dict[str, list[str]] = {
        count: [source or "absent" for source in table[f"{count}_source"]] for count in COUNTS
    }
    costs: list[tuple[float | None, ...]] = []
    fits: dict[str, Mapping[str | None, estimate.Fit]] = {}
    for place, row in enumerate(found):
        usage = Usage(*(column[place] for column in counts.values()))
        between = None
        if _incomplete(row):
            figures = _estimated(row, usage, fits, ledger)
            usage, between = figures.usage, (figures.low, figures.high)
            for count in COUNTS:
                if counts[count][place] is None:
                    counts[count][place], sources[count][place] = getattr(usage, count), usage.source(count)
        costs.append(_cost(row, usage, between))
    return {
        **counts,
        **{f"{count}_source": column for count, column in sources.items()},
        **dict(zip(_COSTS, zip(*costs, strict=True), strict=True)),
    }


_COSTS = ("cost_usd", "cost_low_usd", "cost_high_usd")


def _incomplete(row: Row) -> bool:
    """Whether a call ended with an answer but without counts."""
    known = row["input_tokens"] is not None and row["output_tokens"] is not None
    return not known and row["standing"] != "running" and estimate.answered(row["http_status"])


def _estimated(
    row: Row, usage: Usage, fits: dict[str, Mapping[str | None, estimate.Fit]], ledger: Ledger
) -> estimate.Estimate:
    """A call's usage with the missing counts estimated; `fits` remembers what was fitted for its model."""
    if row["model"] not in fits:
        fits[row["model"]] = ledger.fits(row["model"])
    return estimate.estimated(
        usage,
        input_chars=row["input_chars"],
        output_chars=row["output_chars"],
        fit=fits[row["model"]].get(row["service"], estimate.Fit()),
        hidden_cap=None if row["thinking_chars"] else row["hidden_cap"],
    )


def _cost(row: Row, usage: Usage, between: tuple[Usage, Usage] | None) -> tuple[float | None, ...]:
    """What a call cost by the book of its day; what was reckoned back then where today's book has no price."""
    started = rows.EPOCH + timedelta(microseconds=row["started_us"])
    cost = prices.cost(row["model"], usage, started, between=between)
    if cost is None and row["cost_usd"] is not None:
        cost = Cost(*(Decimal(row[name]) for name in _COSTS))
    return (None, None, None) if cost is None else (float(cost.usd), float(cost.low), float(cost.high))


def _redefined(definition: Peer, found: Sequence[Row], ledger: Ledger) -> dict[str, Sequence[Any]]:
    """The latencies by another tool's definition; only calls that ended in order have any."""
    measured = {row["id"]: row for row in found if row["standing"] in ("completed", "incomplete")}
    seen: dict[str, Latencies] = {}
    for call_id, reads in ledger.reads(measured):
        row = measured[call_id]
        if row["streamed"]:
            at = endpoints.endpoint(row["endpoint"])
            reported = row["output_tokens_source"] in ("reported", "derived")
            tokens = row["output_tokens"] if reported else None
            seen[call_id] = latencies(definition, at, reads, end_ns=row["end_ns"], tokens=tokens)
        else:
            seen[call_id] = Latencies(e2e_s=row["e2e_s"])
    each = [seen.get(row["id"], Latencies()) for row in found]
    return {name: [getattr(one, name) for one in each] for name in Latencies._fields}
