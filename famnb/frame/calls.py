"""The frame of calls: one row a call, metrics as stored, missing counts estimated, costs by the price book."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
import pandas as pd

from famnb import endpoints
from famnb.events import COUNTS
from famnb.frame.columnar_reader import Columns, Field, array, read
from famnb.frame.columns import CALLS, PEER, Column, listing
from famnb.frame.fill_estimates import FIELDS, Bounds, fill, floats
from famnb.frame.filters import HasLedger, Moment, Words, source_of, where
from famnb.frame.latency_definitions import Definition, Latencies, Peer, latencies
from famnb.record import Ledger, costs, prices
from famnb.record.parquet import Parquet
from famnb.validation import check_integer

Row: TypeAlias = sqlite3.Row | Mapping[str, Any]


def calls(
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    model: Words | None = None,
    endpoint: Words | None = None,
    experiment: Words | None = None,
    variant: Words | None = None,
    tag: Words | None = None,
    status: Words | None = None,
    limit: int | None = None,
    columns: Iterable[str] | None = None,
    definition: Definition = "famnb",
) -> pd.DataFrame:
    """One row a call, newest last; calls that failed, were stopped or cut off included.

    `ledger` is a `Ledger`, a path, a `Client` that records, or None for the default ledger; or a Parquet file, or a
    glob of them such as "folder/*.parquet", that `Ledger.export` wrote (extra `scale`). `since` (included) and
    `until` (excluded) are datetimes, dates or ISO texts, UTC where they name no zone, or timedeltas back from now. The
    other filters take a word or several; `limit` keeps the newest, `columns` names the columns wanted, in their order.
    `definition` is "famnb", or "vllm", "guidellm", "aiperf": then `ttft_s`, `tpot_s`, `e2e_s` and the added `itl_s`,
    `itl_n` are as that tool defines them. LedgerError if the file cannot be read. The columns:
    """
    if definition not in get_args(Definition):
        raise ValueError(f"definition: {definition!r} is none of {', '.join(get_args(Definition))}")
    if limit is not None:
        limit = check_integer("limit", limit, minimum=0, expected="a number of calls of at least 0")
    chosen = _chosen(columns)
    source = source_of(ledger)
    condition, values = where(
        since=since,
        until=until,
        model=model,
        endpoint=endpoint,
        experiment=experiment,
        variant=variant,
        tag=tag,
        status=status,
    )
    reckoned = any(column.name in _RECKONED for column in chosen)
    fields = [Field.of(column) for column in chosen if column.name not in _COSTS]
    peer = None if definition == "famnb" else definition
    needed = [*(_NEEDED if reckoned else ()), *(_NAMED if peer else ())]
    found = read(source, [*fields, *needed], condition, values, limit)
    if reckoned:
        found |= _costs(found, fill(found, source))
    result = pd.DataFrame(
        {column.name: array(column, found[column.sql or column.name]) for column in chosen}, copy=False
    )
    if peer:
        # Calls may have been recorded since; those read before are among the rows from the first of them on.
        first = min(found["started_us"], default=0)
        rows = source.select(f"({condition}) AND started_us >= ?", [*values, int(first)])
        result = _replaced(result, _redefined(peer, found["id"], rows, source), columns)
    result.attrs["definition"] = definition
    return result


calls.__doc__ = f"{calls.__doc__}\n{listing(CALLS)}\n"

_COSTS = ("cost_usd", "cost_low_usd", "cost_high_usd")
_CACHED = ("cached_tokens", "cache_write_tokens")
_RECKONED = {*_COSTS, *COUNTS, *(f"{count}_source" for count in COUNTS)}
_NAMED = (Field("id", "text"), Field("started_us", "integer"))
_NEEDED = (*FIELDS, Field("started_us", "integer"), *(Field(name, "real") for name in _COSTS))


def _chosen(names: Iterable[str] | None) -> tuple[Column, ...]:
    """The columns of these names, in the order given; all of them for None."""
    if names is None:
        return CALLS
    known = {column.name: column for column in CALLS}
    wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    if not wanted:
        raise ValueError("columns: expected at least one; None is all of them")
    for name in wanted:
        if name not in known:
            raise ValueError(f"columns: there is no {name!r}; help(famnb.calls) lists what there is")
    return tuple(known[name] for name in wanted)


def _costs(found: Columns, bounds: Bounds) -> Columns:
    """What calls cost by the book of their day; what was reckoned back then where today's book has no price."""
    counts = {name: floats(found[name]) for name in ("input_tokens", "output_tokens", *_CACHED)}
    models = found["model"]
    for model in {entry.model for entry in prices}.intersection(models.words):
        where = np.flatnonzero(models.codes == models.coded(model))
        reckoned = costs.costs(
            prices,
            model,
            found["started_us"][where],
            {name: column[where] for name, column in counts.items()},
            low={name: ends[0][where] for name, ends in bounds.items()},
            high={name: ends[1][where] for name, ends in bounds.items()},
        )
        priced = ~np.isnan(reckoned[0])
        for name, column in zip(_COSTS, reckoned, strict=True):
            found[name][where[priced]] = column[priced]
    return {name: found[name] for name in _COSTS}


def _replaced(frame: pd.DataFrame, table: Mapping[str, Sequence[Any]], columns: Iterable[str] | None) -> pd.DataFrame:
    """The frame with the latencies of a table, those of PEER besides, where they were chosen."""
    known = {column.name: column for column in (*CALLS, *PEER)}
    shown = [name for name in table if name in frame or columns is None]
    return frame.assign(**{name: known[name].series(table[name]) for name in shown})


def _redefined(
    definition: Peer, call_ids: Iterable[str], found: Iterable[Row], ledger: Ledger | Parquet
) -> dict[str, Sequence[Any]]:
    """The latencies of these calls by another tool's definition; only those that ended in order have any."""
    wanted = dict.fromkeys(call_ids)
    ended = (row for row in found if row["standing"] in ("completed", "incomplete"))
    measured = {row["id"]: row for row in ended if row["id"] in wanted}
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
    each = [seen.get(call_id, Latencies()) for call_id in wanted]
    return {name: [getattr(one, name) for one in each] for name in Latencies._fields}
