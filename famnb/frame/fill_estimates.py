"""Fills in, model by model, the token counts that a service did not report, by the formulas of `token_estimates`."""

from __future__ import annotations

from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from famnb.events import COUNTS, Source
from famnb.frame.columnar_reader import ColumnArrays, SelectedColumn
from famnb.frame.columns import BOUNDED_COUNTS
from famnb.record import Ledger, token_estimates
from famnb.record.token_estimates import MathFunctions, TokenFit

FloatColumn: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.intp]
"""Positions of some of the calls."""
CountBounds: TypeAlias = dict[str, tuple[FloatColumn, FloatColumn]]
"""The low and the high end of input and output tokens, by name, one element per call; NaN where missing, and inf where
nothing limits what may have come."""

ARRAYS = MathFunctions(round=np.rint, floor=np.floor, ceil=np.ceil, minimum=np.minimum, maximum=np.maximum)
"""For the formulas of `token_estimates`; a NaN stays one."""

_NUMBERS = (*BOUNDED_COUNTS, "total_tokens", "input_chars", "output_chars", "hidden_cap")
GAPS = SelectedColumn(
    f"""CASE WHEN CASE
        WHEN input_tokens + output_tokens IS NULL THEN http_status BETWEEN 200 AND 299 AND standing <> 'running'
        WHEN input_tokens + output_tokens <> total_tokens THEN total_tokens_source = 'reported'
            AND input_tokens_source IS NOT 'estimated' AND output_tokens_source IS NOT 'estimated' END
    THEN TRIM(json_array({", ".join(_NUMBERS)}), '[]') END""",
    "text",
)
"""The numbers that estimates are made of, as one text, of those calls alone that ended with an answer and lack counts,
or have a total that is not input and output together: most calls have all, and nothing more is read of them."""
NEEDED_COLUMNS = (GAPS, SelectedColumn("model", "word"), SelectedColumn("service", "word"))
"""What `fill_counts` reads, counts and sources apart."""


def fill_counts(columns: ColumnArrays, source: Ledger) -> CountBounds:
    """Estimate missing counts, in place, by what GAPS has; return the bounds of input and output.

    Of counts and sources, those that there are. The bounds equal the count unless it was estimated here, or the total
    contradicts it.
    """
    for count in COUNTS:
        if (name := f"{count}_source") in columns:
            # A call that is still running has no sources yet.
            columns[name] = columns[name].set_categories(get_args(Source)).fillna("absent")
    bounds: CountBounds = {
        count: (columns[count].copy(), columns[count].copy()) for count in BOUNDED_COUNTS if count in columns
    }
    gaps = np.flatnonzero(~columns[GAPS.sql].isna())
    words = pd.DataFrame({name: columns[name][gaps].astype(object) for name in ("model", "service")})
    # A fit is a query and a median over hundreds of calls, so once for each model and service, not for each call.
    pairs: Any = words.groupby(["model", "service"], dropna=False).indices
    for names, places in pairs.items():
        model, service = (None if pd.isna(name) else name for name in names)
        rows = gaps[places]
        ends = _fill_rows(columns, rows, source.fits(model or "").get(service, TokenFit()))
        for of_count, bounds_of_count in bounds.items():
            for bound, values in zip(bounds_of_count, ends[of_count], strict=True):
                bound[rows] = values
    return bounds


def _fill_rows(columns: ColumnArrays, rows: Rows, fit: TokenFit) -> CountBounds:
    """Fill in the counts of these rows, all of one model and service; return the bounds of input and output."""
    numbers = np.fromstring(",".join(columns[GAPS.sql][rows]).replace("null", "nan"), sep=",")
    input_tokens, output_tokens, total_tokens, input_chars, output_chars, hidden_cap = numbers.reshape(len(rows), -1).T
    is_contradictory = ~np.isnan(input_tokens + output_tokens)
    # What is missing is NaN, which is not >= anything: so the total and the other count are there.
    input_derived = np.isnan(input_tokens) & (total_tokens >= output_tokens)
    output_derived = np.isnan(output_tokens) & (total_tokens >= input_tokens)
    input_tokens[input_derived] = (total_tokens - output_tokens)[input_derived]
    output_tokens[output_derived] = (total_tokens - input_tokens)[output_derived]
    _store(columns, "input_tokens", rows, input_tokens, input_derived, "derived")
    _store(columns, "output_tokens", rows, output_tokens, output_derived, "derived")

    hidden_cap[hidden_cap == token_estimates.NO_CAP] = np.inf
    input_estimated = np.isnan(input_tokens) & (input_chars > 0)
    output_estimated = np.isnan(output_tokens) & (output_chars > 0)
    hides_reasoning = output_estimated & ~np.isnan(hidden_cap)
    visible = token_estimates.tokens_of_text(output_chars, fit.output, ARRAYS)
    hidden = token_estimates.tokens_with_hidden_reasoning(output_chars, fit, hidden_cap, ARRAYS)
    prompts = token_estimates.tokens_of_text(input_chars, fit.input, ARRAYS)
    inputs = [np.where(input_estimated, end, input_tokens) for end in prompts]
    outputs = [
        np.where(hides_reasoning, hidden_end, np.where(output_estimated, shown_end, output_tokens))
        for hidden_end, shown_end in zip(hidden, visible, strict=True)
    ]
    total = inputs[0] + outputs[0]
    total_estimated = np.isnan(total_tokens) & ~np.isnan(total) & (input_estimated | output_estimated)
    _store(columns, "input_tokens", rows, inputs[0], input_estimated, "estimated")
    _store(columns, "output_tokens", rows, outputs[0], output_estimated, "estimated")
    _store(columns, "total_tokens", rows, total, total_estimated, "estimated")
    parts_by_total = token_estimates.parts_by_total(input_tokens, output_tokens, total_tokens, ARRAYS)
    for ends, ends_by_total in zip((inputs, outputs), parts_by_total, strict=True):
        ends[1:] = (np.where(is_contradictory, *pair) for pair in zip(ends_by_total, ends[1:], strict=True))
    return {"input_tokens": (inputs[1], inputs[2]), "output_tokens": (outputs[1], outputs[2])}


def _store(
    columns: ColumnArrays, count: str, rows: Rows, values: FloatColumn, mask: npt.NDArray[np.bool_], source: str
) -> None:
    """Write those values of a count that `mask` marks to these rows, and where they come from."""
    if count in columns:
        columns[count][rows[mask]] = values[mask]
    if (name := f"{count}_source") in columns:
        columns[name][rows[mask]] = source
