"""Fills in, column by column, the token counts that a service did not report, by the formulas of `token_estimates`."""

from __future__ import annotations

from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from famnb.events import COUNTS, Source
from famnb.frame.columnar_reader import ColumnArrays, SelectedColumn
from famnb.frame.columns import BOUNDED_COUNTS
from famnb.record import Ledger, token_estimates
from famnb.record.token_estimates import MathFunctions, TokenFit, TokenRatio

FloatColumn: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.intp]
"""Positions of some of the calls."""
CountBounds: TypeAlias = dict[str, tuple[FloatColumn, FloatColumn]]
"""The low and the high end of input and output tokens, by name, one element per call; NaN where missing, and inf where
nothing limits what may have come."""

ARRAYS = MathFunctions(round=np.rint, floor=np.floor, ceil=np.ceil, minimum=np.minimum, maximum=np.maximum)
"""For the formulas of `token_estimates`; a NaN stays one."""

NEEDED_COLUMNS: tuple[SelectedColumn, ...] = (
    *(SelectedColumn(count) for count in COUNTS),
    *(SelectedColumn(f"{count}_source", "word") for count in COUNTS),
    *(SelectedColumn(name) for name in ("input_chars", "output_chars", "hidden_cap", "http_status")),
    *(SelectedColumn(name, "word") for name in ("standing", "model", "service")),
)
"""What `fill_counts` reads."""


def fill_counts(columns: ColumnArrays, source: Ledger) -> CountBounds:
    """Estimate missing counts of calls that ended with an answer, in place; return the bounds of input and output.

    The bounds equal the count unless it was estimated here.
    """
    for count in COUNTS:
        columns[count] = columns[count].copy()
        # A call that is still running has no sources yet.
        columns[f"{count}_source"] = columns[f"{count}_source"].set_categories(get_args(Source)).fillna("absent")
    is_missing = np.isnan(columns["input_tokens"]) | np.isnan(columns["output_tokens"])
    is_over, status = ~columns["standing"].isin(["running"]), columns["http_status"]
    # `token_estimates.has_answer` for a column.
    rows = np.flatnonzero(is_missing & is_over & (status >= 200) & (status < 300))
    estimated = _fill_rows(columns, rows, source) if len(rows) else {}
    bounds: CountBounds = {}
    for count in BOUNDED_COUNTS:
        low, high = columns[count].copy(), columns[count].copy()
        if count in estimated:
            low[rows], high[rows] = estimated[count]
        bounds[count] = low, high
    _widen_contradictory(columns, bounds)
    return bounds


def _widen_contradictory(columns: ColumnArrays, bounds: CountBounds) -> None:
    """Widen the bounds of calls whose reported total is not input and output together, in place."""
    inputs, outputs, total = (columns[count] for count in (*BOUNDED_COUNTS, "total_tokens"))
    is_known = np.isfinite(inputs + outputs + total) & (columns["total_tokens_source"] == "reported")
    for count in BOUNDED_COUNTS:
        is_known &= columns[f"{count}_source"] != "estimated"
    rows = np.flatnonzero(is_known & (inputs + outputs != total))
    if len(rows):
        parts = token_estimates.parts_by_total(inputs[rows], outputs[rows], total[rows], ARRAYS)
        for count, (low, high) in zip(BOUNDED_COUNTS, parts, strict=True):
            bounds[count][0][rows], bounds[count][1][rows] = low, high


def _fill_rows(columns: ColumnArrays, rows: Rows, source: Ledger) -> CountBounds:
    """Fill in the counts of these rows; return the bounds of each row's input and output."""
    names = ("input_tokens", "output_tokens", "total_tokens", "input_chars", "output_chars", "hidden_cap")
    input_tokens, output_tokens, total_tokens, input_chars, output_chars, hidden_cap = (
        columns[name][rows] for name in names
    )
    # What is missing is NaN, which is not >= anything: so the total and the other count are there.
    input_derived = np.isnan(input_tokens) & (total_tokens >= output_tokens)
    output_derived = np.isnan(output_tokens) & (total_tokens >= input_tokens)
    input_tokens[input_derived] = (total_tokens - output_tokens)[input_derived]
    output_tokens[output_derived] = (total_tokens - input_tokens)[output_derived]
    _store(columns, "input_tokens", rows, input_tokens, input_derived, "derived")
    _store(columns, "output_tokens", rows, output_tokens, output_derived, "derived")

    fit = _fit_of_rows(columns, rows, source)
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
    return {"input_tokens": (inputs[1], inputs[2]), "output_tokens": (outputs[1], outputs[2])}


def _store(
    columns: ColumnArrays, count: str, rows: Rows, values: FloatColumn, mask: npt.NDArray[np.bool_], source: str
) -> None:
    """Write those values of a count that `mask` marks to these rows, and where they come from."""
    columns[count][rows[mask]] = values[mask]
    columns[f"{count}_source"][rows[mask]] = source


def _fit_of_rows(columns: ColumnArrays, rows: Rows, source: Ledger) -> TokenFit:
    """Tokens per character of each row's model and service, as one fit whose ratios are arrays."""
    models, services = columns["model"], columns["service"]
    pairs = np.stack([models.codes[rows], services.codes[rows]])
    # A fit is a query and a median over hundreds of calls, so once for each model and service, not for each call.
    distinct, pair_of_row = np.unique(pairs, axis=1, return_inverse=True)
    fits_by_model: dict[str | None, Any] = {}
    fits = []
    for model_code, service_code in distinct.T:
        # The code -1 of a missing word points at the None at the end.
        model, service = [*models.categories, None][model_code], [*services.categories, None][service_code]
        if model not in fits_by_model:
            fits_by_model[model] = source.fits(model)
        fits.append(fits_by_model[model].get(service, TokenFit()))

    def expand(ratios: list[TokenRatio]) -> TokenRatio:
        # NumPy 2.0 gives the inverse of an `axis` another shape than 2.1 and 1.x.
        mid, low, high = (
            np.array([getattr(ratio, end) for ratio in ratios])[pair_of_row.ravel()] for end in ("mid", "low", "high")
        )
        return TokenRatio(mid, low, high)

    return TokenFit(
        input=expand([fit.input for fit in fits]),
        output=expand([fit.output for fit in fits]),
        reasoned=expand([fit.reasoned for fit in fits]),
    )
