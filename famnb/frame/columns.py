"""The columns of every frame: name, type, unit and meaning, which fill the docstrings and `describe`.

To add a column of `calls`: a `Column` here, with `sql=` if it is an expression. If the ledger does not store its value
yet: a name in `record/schema.py` with a step at the end of `MIGRATIONS` (old rows are filled in if possible), and the
value in `record/serialize.py`, under the same name.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd

from famnb.endpoints import ENDPOINTS
from famnb.events import COUNTS, Count, Source, Status


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame."""

    name: str
    dtype: str
    """A pandas dtype that has missing values."""
    unit: str
    """What a value counts or measures; empty for words."""
    doc: str
    """What it means, and when it is missing."""
    categories: tuple[str, ...] | None = None
    """The values a category may have; None: those that occur."""
    sql: str = ""
    """The SQL expression that gives it, if that is not the column of its name."""

    def to_series(self, values: Any) -> pd.Series[Any]:
        """Return values, None or NaN where missing, as a Series of this column's type."""
        dtype: Any = self.dtype
        match self.dtype:
            case "category":
                words = values.categories if isinstance(values, pd.Categorical) else {*values} - {None}
                categories = pd.Index(self.categories or sorted(words), dtype=object)
                array: Any = pd.Categorical(values, categories=categories)
            case "datetime64[us, UTC]":
                array = pd.to_datetime(pd.Series(values, dtype="Int64"), unit="us", utc=True).astype(dtype)
            case _ if isinstance(values, pd.Categorical):
                # Each once; the None at the end is where the code -1 of a missing one points.
                array = pd.array([*values.categories, None], dtype=dtype).take(values.codes)
            case _:
                array = pd.array(values, dtype=dtype)
        return pd.Series(array, name=self.name)


def build_frame(columns: Iterable[Column], values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return a frame of these columns in this order; its types do not depend on the rows, nor on there being any."""
    return pd.DataFrame({column.name: column.to_series(values.get(column.name, ())) for column in columns})


def plain_series(values: Sequence[Any]) -> pd.Series[Any]:
    """Return users' values, None where missing, as a Series of the type that they have in common, else of objects."""
    is_plain = all(isinstance(value, str | bool | int | float | None) for value in values)
    return pd.Series(values).convert_dtypes() if is_plain else pd.Series(values, dtype=object)


def tag_column_name(tag: str, *, others: Container[str] = ()) -> str:
    """Return the name of the column for a tag of prompts: its own, or `prompt_…` where frames have that name already.

    `others` are names of columns that a frame has besides those of `calls`.
    """
    is_taken = tag in _TAKEN or tag in others or tag.startswith("score_")
    return f"prompt_{tag}" if is_taken else tag


def describe(columns: Sequence[Column] | None = None) -> pd.DataFrame:
    """Return a frame of what columns mean: those of `calls`, unless others (`DELTAS`, `SPEND`) are given."""
    described = CALLS if columns is None else columns
    return pd.DataFrame(
        [(column.dtype, column.unit, column.doc) for column in described],
        index=pd.Index([column.name for column in described], name="column"),
        columns=["dtype", "unit", "meaning"],
    )


def format_columns(columns: Sequence[Column]) -> str:
    """Return the columns as a list for a docstring."""
    items = []
    for column in columns:
        type_and_unit = f"{column.dtype}, {column.unit}" if column.unit else column.dtype
        doc = textwrap.fill(column.doc, 108, initial_indent=" " * 8, subsequent_indent=" " * 8)
        items.append(f"    {column.name} ({type_and_unit})\n{doc}")
    return "\n".join(items)


_SOURCES = get_args(Source)
_COUNT_DOCS = {
    "input_tokens": "Tokens of the request, cached ones included; estimated from its length where not reported.",
    "output_tokens": "Tokens of the reply, reasoning included; estimated from its length where not reported.",
    "reasoning_tokens": "Tokens of thinking, shown or hidden.",
    "cached_tokens": "Input tokens read from the service's cache.",
    "cache_write_tokens": "Input tokens written to the service's cache.",
    "total_tokens": "Input and output tokens.",
}
BOUNDED_COUNTS: tuple[Count, ...] = ("input_tokens", "output_tokens")
"""The counts that are estimated where they are missing, each with a `_low` and a `_high` column."""


def _count_column(count: Count) -> Column:
    return Column(count, "Int64", "tokens", f"{_COUNT_DOCS[count]} Missing where nothing is known.")


def _source_column(count: Count) -> Column:
    return Column(
        f"{count}_source",
        "category",
        "",
        f"Where `{count}` comes from: the service (reported), other reported counts (derived), "
        "the length of the text (estimated), nowhere (absent).",
        _SOURCES,
    )


# What people look for first comes first, and what only finds a call again last: a frame is read from the left.
CALLS: tuple[Column, ...] = (
    Column("model", "category", "", "The model that was asked for."),
    Column("endpoint", "category", "", f"The endpoint, one of {', '.join(ENDPOINTS)}.", tuple(ENDPOINTS)),
    Column(
        "status",
        "category",
        "",
        "How the call stands; `interrupted`: cut off without evidence of an end, or its process died.",
        get_args(Status),
        sql="standing",
    ),
    Column("ttft_s", "Float64", "s", "Time to first token: generated content of any kind; for a whole reply its body."),
    Column("e2e_s", "Float64", "s", "Time to the terminal event, or to the end of what was observed."),
    *(_count_column(count) for count in BOUNDED_COUNTS),
    Column("cost_usd", "Float64", "USD", "Cost by the price book of the call's day; missing where no price is known."),
    Column("prompt", "string", "", "The head of the last user message, at most 200 characters."),
    Column("note", "string", "", "What was noted on the call, by `reply.note` or in a tool; missing if nothing was."),
    Column("started_at", "datetime64[us, UTC]", "UTC", "When it started, by this machine's clock.", sql="started_us"),
    Column("experiment", "category", "", "The experiment it belongs to."),
    Column("variant", "category", "", "The variant of that experiment; missing outside of one."),
    Column("prompt_id", "category", "", "The id of the prompt in that experiment; missing outside of one."),
    Column("repeat", "Int64", "", "Which repeat of the same request it is, from 0; missing outside of an experiment."),
    Column("warmup", "boolean", "", "Whether it only warmed the service up; missing outside of an experiment."),
    Column("tag", "category", "", "The caller's own tag."),
    Column("temperature", "Float64", "", "What the request set; missing where it left that to the service."),
    Column("top_p", "Float64", "", "The share of likeliest tokens that are sampled from, as the request set it."),
    Column("max_tokens", "Int64", "tokens", "The limit that the request set, whatever its endpoint calls it."),
    Column("thinking", "Int64", "tokens", "The budget of thinking that is shown; missing where none was asked for."),
    Column("effort", "category", "", "The effort of reasoning that the request set."),
    Column("verbosity", "category", "", "How long the answer is to be, as the request set it."),
    Column("finish_reason", "category", "", "Why generation ended, in the same words on every endpoint."),
    Column("stop_reason", "category", "", "The same in the service's own word."),
    Column("complete", "boolean", "", "Whether there is evidence that it is whole; missing: only `[DONE]` came."),
    Column("error", "category", "", "The class of the error it ended with; missing where there was none."),
    Column("error_message", "string", "", "The message of that error."),
    Column("streamed", "boolean", "", "Whether the reply was an event stream; as asked for, where none came."),
    Column("service", "category", "", "The engine of a famnb service (sim, upstream); missing for any other service."),
    Column(
        "simulated",
        "boolean",
        "",
        "Whether a simulated engine answered; missing where nobody did.",
        sql="CASE WHEN http_status IS NOT NULL THEN IFNULL(service, '') = 'sim' END",
    ),
    Column("reply_model", "category", "", "The model that answered, as the reply names it; missing if it does not."),
    Column("attempts", "Int64", "requests", "Requests sent, retries included."),
    Column("http_status", "Int64", "", "The HTTP status; missing where no response came."),
    Column(
        "wait_s",
        "Float64",
        "s",
        "What the caller waited in all: from the first attempt's start to the end, with retries, pauses and waits for "
        "a connection; missing while the call runs.",
    ),
    Column("ttfb_s", "Float64", "s", "Time to the response headers."),
    Column("ttfa_s", "Float64", "s", "Time to the first visible answer text."),
    Column("think_s", "Float64", "s", "`ttfa_s - ttft_s`; missing unless thinking came first in a stream."),
    Column("thinking_latency_ms", "Int64", "ms", "The service's own measure of its thinking."),
    Column(
        "icl_p50_s",
        "Float64",
        "s",
        "Inter-chunk latency, the gap between reads with content: median. Not per token. By the kernel's `clock` it "
        "is of exact times; missing where those that are not known could change it by more than 5 %.",
    ),
    Column("icl_p95_s", "Float64", "s", "95th percentile of the same gaps; missing below 20 gaps."),
    Column("icl_max_s", "Float64", "s", "The longest of the same gaps."),
    Column("icl_n", "Int64", "", "How many gaps are known exactly."),
    Column(
        "tpot_s",
        "Float64",
        "s/token",
        "Time per output token after the first, over the same span; missing without a reported output count.",
    ),
    Column("output_tps", "Float64", "tokens/s", "Output tokens / `e2e_s`; missing without a reported output count."),
    Column("ttft_low_s", "Float64", "s", "The earliest that `ttft_s` can be; equal to it where it is exact."),
    Column("e2e_low_s", "Float64", "s", "The earliest that `e2e_s` can be; equal to it where it is exact."),
    Column("connect_s", "Float64", "s", "Time to connect, before all others; missing where a connection was kept."),
    Column(
        "clock",
        "category",
        "",
        "Who noted when something came: the kernel, or the user's program, which a busy cell keeps from looking.",
        ("kernel", "user"),
    ),
    Column(
        "exact_share",
        "Float64",
        "",
        "Share of events whose time no other event has, which is exact; missing where `clock` is not `kernel`.",
    ),
    Column("late_p50_ms", "Float64", "ms", "How much later Python got round to an event than it came: median."),
    Column("late_max_ms", "Float64", "ms", "The most of the same."),
    Column("text_chars", "Int64", "characters", "Length of the visible answer; missing while the call runs."),
    Column("thinking_chars", "Int64", "characters", "Length of the thinking shown; missing while the call runs."),
    *(
        column
        for count in BOUNDED_COUNTS
        for column in (
            *(
                Column(
                    f"{count}_{end}",
                    "Int64",
                    "tokens",
                    f"{word} end of `{count}`; equals it unless estimated, or at odds with the total.",
                )
                for end, word in (("low", "Low"), ("high", "High"))
            ),
            _source_column(count),
        )
    ),
    *(
        column
        for count in COUNTS
        if count not in BOUNDED_COUNTS
        for column in (_count_column(count), _source_column(count))
    ),
    Column(
        "cost_low_usd",
        "Float64",
        "USD",
        "Low end of the cost; equals `cost_usd` unless a count is estimated or the total contradicts it, or absent and "
        "priced: any of the input may then have been read from the cache.",
    ),
    Column("cost_high_usd", "Float64", "USD", "High end of the cost; equals `cost_usd` where `cost_low_usd` does."),
    Column("profile", "category", "", "The profile of the client: fam, or the name of a vendor's."),
    Column(
        "reported_cost_usd", "Float64", "USD", "The cost that the service reported, if any, which `cost_usd` then is."
    ),
    Column("url", "string", "", "Where the request was sent."),
    Column("prompt_hash", "string", "", "The same for the same last user message, images included, on every endpoint."),
    Column("cell", "string", "", "The key of the planned cell that it fills; missing outside of an experiment."),
    Column("request_id", "string", "", "The service's `x-request-id`, or `request-id`."),
    Column("call_id", "string", "", "The call's id in the ledger; `Ledger.call` takes it.", sql="id"),
)
"""The columns of `calls`."""
_TAKEN = {"order", *(column.name for column in CALLS)}
"""Names that no tag of a prompt can have as a column."""

PEER: tuple[Column, ...] = (
    Column("itl_s", "Float64", "s", "Inter-token latency of the call as the chosen tool defines it."),
    Column("itl_n", "Int64", "", "The weight of `itl_s` in that tool's own mean over calls."),
)
"""What `calls` has besides, under another tool's definition."""

DELTAS: tuple[Column, ...] = (
    Column("call_id", "string", "", "The call's id in the ledger."),
    Column("seq", "Int64", "", "The event's place in its stream, from 0; repeated where it feeds several blocks."),
    Column("batch", "Int64", "", "The read from the socket that completed it, from 0; its events share a time."),
    Column("t_s", "Float64", "s", "When that read came, from sending the request."),
    Column(
        "type", "category", "", "The event's own word for its type; `[DONE]` for the terminator, `invalid` if not JSON."
    ),
    Column("block", "Int64", "", "Its block, an index of `reply.blocks`; missing for events about the reply."),
    Column("kind", "category", "", "The kind of that block: thinking, text, tool_call, …"),
    Column("chars", "Int64", "characters", "Length of the text it brought."),
    Column("text", "string", "", "That text; missing for events that bring none."),
    Column("late_ms", "Float64", "ms", "How much later than `t_s` Python had it; missing where `t_s` is that moment."),
    Column("exact", "boolean", "", "Whether it came at `t_s`; else at some time since the read before."),
)
"""The columns of `deltas`."""

SPEND: tuple[Column, ...] = (
    Column("calls", "Int64", "calls", "All calls of the row, also those that failed or were stopped."),
    Column(
        "unpriced_calls",
        "Int64",
        "calls",
        "Of these, calls that cost something unknown: no price, or no usage. Refused calls are not among them.",
    ),
    Column("simulated_calls", "Int64", "calls", "Of these, calls of a simulated engine: nothing was billed."),
    *(
        Column(name, "Int64", "tokens", f"{_COUNT_DOCS[name].split(';')[0].rstrip('.')}, of calls where known.")
        for name in ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")
    ),
    *(
        Column(f"{count}_{end}", "Int64", "tokens", f"The {end} ends of these counts, added up.")
        for count in BOUNDED_COUNTS
        for end in ("low", "high")
    ),
    Column("cost_usd", "Float64", "USD", "Cost of the calls whose cost is known; missing where it is of none."),
    Column("cost_low_usd", "Float64", "USD", "The low ends of their costs, added up."),
    Column("cost_high_usd", "Float64", "USD", "The high ends of their costs, added up."),
)
"""The columns of `spend`, after those it is asked for by."""
