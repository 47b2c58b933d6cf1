"""The frame of calls: one row a call, metrics as stored, missing counts estimated, costs by the price book.

calls() ── filters.where ── read_columns (SQL) ── fill_estimates, of calls that lack counts ── costs ── CallsFrame
                                      └ with another tool's definition: the reads of each call ── latencies

`CallsFrame` is a DataFrame that shows the columns people look for first. A plain one of sixty columns shows its first
ten and its last ten, digits to the microsecond and no word on which figures are estimates. Options of pandas would
change that for every frame of the notebook, so calls have a class.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

import msgspec
import numpy as np
import pandas as pd

from famnb import endpoints
from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidRequest
from famnb.events import COUNTS, Billing, Usage
from famnb.formatting import FormatValue, escape_html, format_count, format_estimate, format_number, format_usd
from famnb.frame.columnar_reader import ColumnArrays, SelectedColumn, read_columns
from famnb.frame.columns import BOUNDED_COUNTS, CALLS, PEER, format_columns, plain_series, tag_column_name
from famnb.frame.fill_estimates import NEEDED_COLUMNS, CountBounds, fill_counts
from famnb.frame.latency_definitions import Definition, Latencies, Peer, latencies
from famnb.profiles import names_deployments
from famnb.record import Ledger, prices
from famnb.record.costs import CountColumns, cost_columns
from famnb.record.filters import Filters, Moment, OneOrMore, where
from famnb.record.ledger import HasLedger, ledger_of
from famnb.record.serialize import EPOCH
from famnb.validation import check_integer
from famnb.wire import lenient_json


def calls(
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    model: OneOrMore | None = None,
    endpoint: OneOrMore | None = None,
    profile: OneOrMore | None = None,
    experiment: OneOrMore | None = None,
    variant: OneOrMore | None = None,
    tag: OneOrMore | None = None,
    status: OneOrMore | None = None,
    limit: int | None = None,
    columns: Iterable[str] | None = None,
    definition: Definition = "famnb",
) -> pd.DataFrame:
    """One row a call, newest last; calls that failed, were stopped or cut off included.

    `ledger` is a `Ledger`, a path, a `Client` that records, or None for the default ledger. `since` (included) and
    `until` (excluded) are datetimes, dates or ISO texts, UTC where they name no zone, timedeltas back from now, or
    "today", "yesterday", "last 7 days". The other filters take a text or several; `limit` keeps the newest, `columns`
    names the columns wanted, in their order.
    `definition` is "famnb", or "vllm", "guidellm", "aiperf": then `ttft_s`, `tpot_s`, `e2e_s` and the added `itl_s`,
    `itl_n` are as that tool defines them, from the same recorded events. LedgerError if the file cannot be read.
    Times are monotonic, in seconds from sending the request, and noted once a read from the socket. Input tokens
    include cached ones and output tokens include reasoning, on every endpoint. A missing number is missing, never 0;
    an estimated one has its ends beside it (`input_tokens_low`, …), and so has its cost.
    Filters and `columns` are applied inside the ledger, which matters from some 100,000 calls on.
    With all columns the frame shows itself by those that people look for first; it is a DataFrame like any other.
    The tags of an experiment's prompts (`keep=`) follow `tag`, a column each, where any of the calls has one.
    To pair calls, use `prompt_id` within an experiment and `prompt_hash` elsewhere: `prompt` is only a prompt's head.
    The columns:
    """
    if definition not in get_args(Definition):
        raise InvalidRequest(f"definition: {definition!r} is not one of {', '.join(get_args(Definition))}")
    if limit is not None:
        limit = check_integer("limit", limit, minimum=0, expected="a number of calls of at least 0")
    names = [columns] if isinstance(columns, str) else None if columns is None else list(dict.fromkeys(columns))
    if names == []:
        raise InvalidRequest("columns: expected at least one; None is all of them")
    chosen = CALLS if names is None else tuple(_BY_NAME[name] for name in names if name in _BY_NAME)
    source = ledger_of(ledger)
    filters: Filters = {"since": since, "until": until, "model": model, "endpoint": endpoint, "profile": profile}
    filters |= {"experiment": experiment, "variant": variant, "tag": tag, "status": status}
    condition, values = where(filters)
    # Counts and costs need columns of their own and much of the time.
    costs = [column.name for column in chosen if column.name in _COSTS]
    computed = {column.name for column in chosen if column.name in _COMPUTED}
    selected = [SelectedColumn.of(column) for column in chosen if column.name not in (*_COSTS, *_BOUNDS)]
    selected += [SelectedColumn(count) for count, ends in _ENDS.items() if computed & {*ends}]
    if computed or costs:
        selected += NEEDED_COLUMNS
    if costs:
        selected += _NEEDED_FOR_COSTS
    if definition != "famnb":
        selected.append(SelectedColumn("id", "text"))
    # A name that is not a declared column may be that of a tag.
    needs_tags = names is None or len(names) > len(chosen)
    if needs_tags:
        selected.append(_PROMPT_TAGS)
    arrays = read_columns(source, selected, condition, values, limit)
    if computed or costs:
        bounds = fill_counts(arrays, source)
    if costs:
        arrays |= _costs(arrays, bounds)
    for count, ends in _ENDS.items():
        for end, bound in zip(ends, bounds[count], strict=True) if computed & {*ends} else ():
            # An estimated count that nothing limits has no upper end.
            arrays[end] = np.where(np.isinf(bound), np.nan, bound)
    ids, first = arrays.get("id", ()), next(iter(arrays["started_us"]), 0)
    # Popped, so that few columns are in memory both as they were read and as they are shown.
    table = {column.name: column.to_series(arrays.pop(column.sql or column.name)) for column in chosen}
    if needs_tags:
        table = _with_tags(table, arrays[_PROMPT_TAGS.sql], names)
    frame = pd.DataFrame(table, copy=False)
    if definition != "famnb":
        # Calls may have been recorded since; those read before are among the rows from the first of them on.
        rows = source.select(f"({condition}) AND started_us >= ?", [*values, int(first)])
        by_name = {column.name: column for column in (*CALLS, *PEER)}
        for name, column_values in _peer_latencies(definition, ids, rows, source).items():
            if name in frame or names is None:
                frame[name] = by_name[name].to_series(column_values)
    if names is None:
        frame = CallsFrame(frame)
    frame.attrs["definition"] = definition
    return frame


calls.__doc__ = f"{calls.__doc__}\n{format_columns(CALLS)}\n"

_BY_NAME = {column.name: column for column in CALLS}
_PROMPT_TAGS = SelectedColumn("prompt_tags", "word")
_REPORTED_COST = "reported_cost_usd"
_COSTS = ("cost_usd", "cost_low_usd", "cost_high_usd")
_WITHOUT_CACHE_WRITES = {name for name, value in ENDPOINTS.items() if not value.traits.has_cache_writes}
"""Endpoints whose calls write nothing to a cache, though no reply reports it."""
_ENDS: Mapping[str, tuple[str, str]] = {count: (f"{count}_low", f"{count}_high") for count in BOUNDED_COUNTS}
_BOUNDS = (*_ENDS["input_tokens"], *_ENDS["output_tokens"])
_COMPUTED = {*_BOUNDS, *COUNTS, *(f"{count}_source" for count in COUNTS)}
"""Columns that are not simply what the ledger has stored, costs apart."""
COMPUTED = frozenset({*_COMPUTED, *_COSTS})
"""Columns that are not simply what the ledger has stored."""
_PRICED_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
"""The counts that a cost depends on."""
_NEEDED_FOR_COSTS = (
    *(SelectedColumn(name, "word") for name in ("endpoint", "model", "profile", "reply_model", "billing")),
    *(SelectedColumn(name) for name in (*_PRICED_COUNTS, *_COSTS, _REPORTED_COST)),
)


def _with_tags(table: dict[str, Any], encoded: pd.Categorical, names: list[str] | None) -> dict[str, Any]:
    """The columns with those of tags: in the order of the names, or all of them after `tag`. Raises InvalidRequest.

    `encoded` has the tags of each call as a JSON object, which is decoded once for each prompt.
    """
    objects = [lenient_json.decode(word.encode()) for word in encoded.categories]
    tags = {}
    for name in dict.fromkeys(name for values in objects for name in values):
        # The None at the end is where the code -1 points.
        column = plain_series([*(values.get(name) for values in objects), None])
        tags[tag_column_name(name)] = column.array.take(encoded.codes)
    available = {**table, **tags}
    if names is None:
        after_tag = list(table).index("tag") + 1
        names = [*list(table)[:after_tag], *tags, *list(table)[after_tag:]]
    for name in names:
        if name not in available:
            raise InvalidRequest(f"columns: {name!r} is not a column; help(famnb.calls) lists all of them")
    return {name: available[name] for name in names}


def _costs(arrays: ColumnArrays, bounds: CountBounds) -> ColumnArrays:
    """The cost columns: as the service reported, by the price book of each call's day, or as stored when it ended."""
    counts = {name: arrays[name].copy() for name in _PRICED_COUNTS}
    written = counts["cache_write_tokens"]
    written[np.isnan(written) & arrays["endpoint"].isin(_WITHOUT_CACHE_WRITES)] = 0
    arrays = {**arrays, "model": _priced_models(arrays)}
    low, high = ({name: ends[index] for name, ends in bounds.items()} for index in (0, 1))
    costs = dict(zip(_COSTS, cost_columns(prices, arrays, counts, low=low, high=high), strict=True))
    has_no_price = np.isnan(costs["cost_usd"])
    for name, column in costs.items():
        column[has_no_price] = arrays[name][has_no_price]
    _price_billed_items(arrays, counts, low, high, costs)
    reported = arrays[_REPORTED_COST]
    is_reported = ~np.isnan(reported)
    for column in costs.values():
        column[is_reported] = reported[is_reported]
    return costs


def _priced_models(arrays: ColumnArrays) -> pd.Categorical:
    """The models by whose names calls are priced: of a request that names a deployment, that of its reply."""
    models: pd.Categorical = arrays["model"]
    reply_models, profiles = arrays["reply_model"], arrays["profile"]
    deploying = profiles.isin([*filter(names_deployments, profiles.categories)]) & ~models.isna() & ~reply_models.isna()
    if not deploying.any():
        return models
    names = models.astype(object)
    pairs = zip(names[deploying], reply_models[deploying], strict=True)
    names[deploying] = [prices.priced_model(model, reply_model) for model, reply_model in pairs]
    return pd.Categorical(names)


def _price_billed_items(
    arrays: ColumnArrays, counts: CountColumns, low: CountColumns, high: CountColumns, costs: ColumnArrays
) -> None:
    """Price those calls one by one that are billed for more than their tokens."""
    billing, models, profiles = arrays["billing"], arrays["model"], arrays["profile"]
    for row in np.flatnonzero(~billing.isna() & models.isin({price.model for price in prices})):
        known, lowest, highest = (
            {name: int(value) if np.isfinite(value := column[row]) else None for name, column in columns.items()}
            for columns in (counts, low, high)
        )
        # The names are those of counts alone, which a type of `**` does not say: hence what is ignored here.
        usage = Usage(
            **known,  # type: ignore[arg-type]
            billing=msgspec.json.decode(billing[row], type=Billing),
            estimated=tuple(name for name in BOUNDED_COUNTS if lowest[name] != highest[name]),
        )
        started = EPOCH + timedelta(microseconds=int(arrays["started_us"][row]))
        between = (Usage(**lowest), Usage(**highest))  # type: ignore[arg-type]
        cost = prices.cost(models[row], usage, started, between=between, service=profiles[row])
        for name, end in zip(_COSTS, ("usd", "low", "high"), strict=True):
            costs[name][row] = np.nan if cost is None else float(getattr(cost, end))


def _peer_latencies(
    definition: Peer, call_ids: Iterable[str], rows: Iterable[sqlite3.Row], source: Ledger
) -> dict[str, Sequence[Any]]:
    """Columns of these calls' latencies by another tool's definition; only calls that ended in order have any."""
    order = dict.fromkeys(call_ids)
    ended = {row["id"]: row for row in rows if row["id"] in order and row["standing"] in ("completed", "incomplete")}
    by_call: dict[str, Latencies] = {}
    for call_id, reads in source.reads(ended):
        row = ended[call_id]
        if row["streamed"]:
            is_reported = row["output_tokens_source"] in ("reported", "derived")
            by_call[call_id] = latencies(
                definition,
                endpoints.endpoint(row["endpoint"]),
                reads,
                end_ns=row["end_ns"],
                tokens=row["output_tokens"] if is_reported else None,
            )
        else:
            by_call[call_id] = Latencies(e2e_s=row["e2e_s"])
    in_order = [by_call.get(call_id, Latencies()) for call_id in order]
    return {name: [getattr(call_latencies, name) for call_latencies in in_order] for name in Latencies._fields}


SHOWN_COLUMNS = (
    *("model", "endpoint", "variant", "prompt_id", "status", "error", "ttft_s", "e2e_s"),
    *("input_tokens", "output_tokens", "cost_usd", "prompt", "note", "started_at", "call_id"),
)
"""The columns that a CallsFrame shows, and after `cost_usd` scores; one without any value is left out."""
_IDENTIFYING_COLUMNS = {"model", "endpoint", "status", "ttft_s", "e2e_s", "cost_usd", "prompt", "call_id"}
"""The columns by which a frame is known as one of calls."""
MISSING_VALUE = "–"
CALLS_LEGEND = "times in s, started_at in UTC, ≈ is an estimate"
_ENDS_OF_FIGURE = {**_ENDS, "cost_usd": ("cost_low_usd", "cost_high_usd")}
"""The columns of the low and the high end, by the column of the figure."""
_COLUMNS_IN_TERMINAL = 20
"""How many columns fit where pandas is to find out by itself, as in a terminal."""


_ID_PARTS, _BREAKS = re.compile(r"(>call_|[0-9a-f]{8})(?=[0-9a-f]{8})"), r"\1<wbr>"
"""Where a call's id may go on in the next line, so that the table is as wide as the page; copied, it is whole."""


class CallsFrame(pd.DataFrame):
    """A frame of calls: an ordinary DataFrame with all its columns, which shows itself by those looked for first.

    Only where pandas would leave columns out. What is made of it, by choosing columns, grouping or describing, is a
    plain DataFrame unless its rows are calls still; so is what is read from a pickle, and `pandas.DataFrame(frame)`.
    """

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        # What pandas documents for subclasses: so a selection of calls shows itself the same way.
        return _calls_or_plain

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Who reads the pickle need not have famnb.
        return pd.DataFrame, (), self.__getstate__()

    def __repr__(self) -> str:
        shown = _show_calls(self, repr)
        return super().__repr__() if shown is None else "\n\n".join(shown)

    def _repr_html_(self) -> str | None:
        shown = _show_calls(self, _html_of)
        if shown is None:
            return _html_of(self)
        table, footer = shown
        # None where the user has turned HTML off.
        return None if table is None else f"{_ID_PARTS.sub(_BREAKS, table)}<p>{escape_html(footer)}</p>"


# pandas (2.2 to 3.1) gives it a plain frame, or the arguments of DataFrame, and takes any DataFrame.
def _calls_or_plain(*arguments: Any, **options: Any) -> pd.DataFrame:
    """A CallsFrame if its rows are calls, else a plain DataFrame."""
    frame = pd.DataFrame(*arguments, **options)
    return CallsFrame(frame) if _has_calls(frame) else frame


def _has_calls(frame: pd.DataFrame) -> bool:
    """Whether the rows are calls, with the columns by which they are shown; counts of calls by column are not."""
    columns = frame.columns
    return (
        columns.is_unique
        and set(columns) >= _IDENTIFYING_COLUMNS
        and pd.api.types.is_string_dtype(frame["call_id"].dtype)
    )


def _html_of(frame: pd.DataFrame) -> str | None:
    # As the class has it; pandas' stubs (2.2) leave the method out.
    html: str | None = pd.DataFrame._repr_html_(frame)  # type: ignore[attr-defined]
    return html


def _show_calls(frame: pd.DataFrame, show_table: Callable[[pd.DataFrame], Any]) -> tuple[Any, str] | None:
    """The frame's table as text or as HTML, and the line below it; None where pandas is to show the frame itself."""
    columns = _shown_columns(frame)
    if columns is None:
        return None
    max_rows, min_rows = pd.get_option("display.max_rows"), pd.get_option("display.min_rows")
    rows = frame
    if max_rows and len(frame) > max_rows:
        max_rows = min(min_rows or max_rows, max_rows)
        # Twice what is shown, so that pandas puts its dots between the rows at the beginning and those at the end.
        rows = pd.concat([frame.head(max_rows), frame.tail(max_rows)])
    try:
        table = format_calls(rows, columns)
    except (TypeError, ValueError):
        # Users may have put anything into these columns.
        return None
    # Where the terminal is narrow, the table goes on below rather than losing its middle. And prompts may hold dollar
    # signs, which a notebook would typeset as formulas.
    options = {"max_columns": None, "max_rows": max_rows, "show_dimensions": False, "html.use_mathjax": False}
    with pd.option_context(*(part for name, value in options.items() for part in (f"display.{name}", value))):
        shown = show_table(table)
    dimensions = f"{format_count(len(frame), 'row')} × {len(frame.columns)} columns"
    return shown, f"{dimensions}, of which these are shown; {CALLS_LEGEND}"


def format_calls(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of calls as texts: times to the millisecond, `≈` before estimates, `–` where a value is missing.

    A figure that is known only within more than a factor of three is shown by its upper end.
    """
    texts = {}
    for name in columns:
        ends = _ENDS_OF_FIGURE.get(name, ())
        if ends and set(ends) <= set(frame.columns):
            format_value: FormatValue = format_usd if name == "cost_usd" else format_count
            texts[name] = [
                MISSING_VALUE
                if pd.isna(value)
                # A count without an upper end has none.
                else format_estimate(value, low, math.inf if pd.isna(high) else high, format_value, brief=True)
                for value, low, high in zip(frame[name], *(frame[end] for end in ends), strict=True)
            ]
        else:
            texts[name] = [MISSING_VALUE if pd.isna(value) else _format_cell(name, value) for value in frame[name]]
    return pd.DataFrame(texts, index=frame.index)


def _format_cell(name: str, value: Any) -> str:
    match value:
        case pd.Timestamp():
            return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        case float() if name.endswith("_s"):
            return f"{value:.3f}"
        case float():
            return format_number(value)
        case _:
            return str(value)


def _shown_columns(frame: pd.DataFrame) -> list[str] | None:
    """The columns to show; None where pandas shows the frame itself, since all fit or its rows are no calls."""
    limit = pd.get_option("display.max_columns")
    limit = _COLUMNS_IN_TERMINAL if limit == 0 else limit
    if limit is None or len(frame.columns) <= limit or not _has_calls(frame):
        return None
    names = set(frame.columns)
    after_cost = SHOWN_COLUMNS.index("cost_usd") + 1
    scores = sorted(str(name) for name in names if str(name).startswith("score_"))
    wanted = [name for name in (*SHOWN_COLUMNS[:after_cost], *scores, *SHOWN_COLUMNS[after_cost:]) if name in names]
    return [name for name in wanted if not len(frame) or frame[name].notna().any()]
