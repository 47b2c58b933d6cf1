"""Missing token counts of many calls estimated at once; the same figures as `record.estimate` gives for one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from famnb.events import COUNTS
from famnb.frame.columnar_reader import ABSENT, Coded, Columns, Field
from famnb.record import Ledger, token_estimates
from famnb.record.parquet import Parquet

Floats = npt.NDArray[np.float64]

FIELDS: tuple[Field, ...] = (
    *(Field(count, "integer") for count in COUNTS),
    *(Field(f"{count}_source", "word") for count in COUNTS),
    *(Field(name, "integer") for name in ("input_chars", "output_chars", "thinking_chars", "hidden_cap")),
    Field("http_status", "integer"),
    *(Field(name, "word") for name in ("standing", "model", "service")),
)
"""What is needed of the ledger here."""

Bounds = dict[str, tuple[Floats, Floats]]


def fill(found: Columns, ledger: Ledger | Parquet) -> Bounds:
    """Estimate, in place, the counts missing of calls that ended with an answer; input and output at both ends.

    The ends are whole columns, NaN where the count is missing, and equal the count unless it was estimated here.
    """
    for count in COUNTS:
        source = found[f"{count}_source"]
        source.codes[source.codes < 0] = source.coded("absent")
    where = np.flatnonzero(_incomplete(found))
    ends = _estimated(found, where, ledger) if len(where) else {}
    bounds: Bounds = {}
    for count in ("input_tokens", "output_tokens"):
        low, high = floats(found[count]), floats(found[count])
        if count in ends:
            low[where], high[where] = ends[count]
        bounds[count] = low, high
    return bounds


def _incomplete(found: Columns) -> npt.NDArray[np.bool_]:
    """Which calls ended with an answer but without counts."""
    unknown = (found["input_tokens"] == ABSENT) | (found["output_tokens"] == ABSENT)
    standing, status = found["standing"], found["http_status"]
    missing: npt.NDArray[np.bool_] = (
        unknown & (standing.codes != standing.coded("running")) & (status >= 200) & (status < 300)
    )
    return missing


def _estimated(found: Columns, where: npt.NDArray[np.intp], ledger: Ledger | Parquet) -> Bounds:
    """Fill in these calls' counts; the ends of the input and the output of each."""
    some: dict[str, Floats] = {count: floats(found[count][where]) for count in COUNTS}
    chars = {name: floats(found[name][where]) for name in ("input_chars", "output_chars", "hidden_cap")}
    cap = np.where(found["thinking_chars"][where] > 0, np.nan, chars["hidden_cap"])
    derived = _derive(some)
    fits = _fits(found, where, ledger)
    ends = {count: (some[count].copy(), some[count].copy()) for count in ("input_tokens", "output_tokens")}
    guessed = {count: np.zeros(len(where), dtype=bool) for count in COUNTS}

    unknown = np.isnan(some["input_tokens"]) & (chars["input_chars"] > 0)
    _size(some["input_tokens"], ends["input_tokens"], unknown, chars["input_chars"], fits["input"])
    guessed["input_tokens"] = unknown

    unknown = np.isnan(some["output_tokens"]) & (chars["output_chars"] > 0)
    hidden = unknown & ~np.isnan(cap)
    ratio = [
        np.where(hidden, reasoned, plain) for plain, reasoned in zip(fits["output"], fits["reasoned"], strict=True)
    ]
    _size(some["output_tokens"], ends["output_tokens"], unknown, chars["output_chars"], ratio)
    lowest = np.minimum(fits["output"][1], fits["reasoned"][1])
    some["output_tokens"][hidden] = np.maximum(np.minimum(some["output_tokens"], cap), 1)[hidden]
    ends["output_tokens"][0][hidden] = np.maximum(np.floor(chars["output_chars"] * lowest), 1)[hidden]
    ends["output_tokens"][1][hidden] = np.maximum(cap, 1)[hidden]
    guessed["output_tokens"] = unknown

    total = some["input_tokens"] + some["output_tokens"]
    guessed["total_tokens"] = np.isnan(some["total_tokens"]) & ~np.isnan(total)
    guessed["total_tokens"] &= guessed["input_tokens"] | guessed["output_tokens"]
    some["total_tokens"] = np.where(guessed["total_tokens"], total, some["total_tokens"])
    for count in COUNTS:
        _store(found, count, where, some[count], {"estimated": guessed[count], **derived.get(count, {})})
    return ends


def _derive(some: dict[str, Floats]) -> dict[str, dict[str, npt.NDArray[np.bool_]]]:
    """One of input and output from the other and the total, in place; which were."""
    given, out, total = some["input_tokens"], some["output_tokens"], some["total_tokens"]
    from_output = np.isnan(given) & (total >= out)
    from_input = np.isnan(out) & (total >= given)
    given[from_output] = (total - out)[from_output]
    out[from_input] = (total - given)[from_input]
    return {"input_tokens": {"derived": from_output}, "output_tokens": {"derived": from_input}}


def _size(mid: Floats, ends: tuple[Floats, Floats], where: Any, chars: Floats, ratio: Iterable[Floats]) -> None:
    """Set a count that follows from a length, its middle and its ends."""
    middle, low, high = ratio
    mid[where] = np.maximum(np.rint(chars * middle), 1)[where]
    ends[0][where] = np.maximum(np.floor(chars * low), 1)[where]
    ends[1][where] = np.maximum(np.ceil(chars * high), 1)[where]


def _fits(found: Columns, where: npt.NDArray[np.intp], ledger: Ledger | Parquet) -> dict[str, list[Floats]]:
    """Middle, low and high tokens per character for each of these calls, by what they are of."""
    models, services = found["model"], found["service"]
    pairs = np.stack([models.codes[where], services.codes[where]])
    kinds, inverse = np.unique(pairs, axis=1, return_inverse=True)
    fits = []
    known: dict[str, Any] = {}
    for model_code, service_code in kinds.T:
        model, service = _word(models, model_code), _word(services, service_code)
        if model not in known:
            known[model] = ledger.fits(model)
        fits.append(known[model].get(service, token_estimates.Fit()))
    of = {name: [getattr(fit, name) for fit in fits] for name in ("input", "output", "reasoned")}
    return {
        name: [np.array([getattr(ratio, end) for ratio in ratios])[inverse.ravel()] for end in ("mid", "low", "high")]
        for name, ratios in of.items()
    }


def _word(coded: Coded, code: int) -> Any:
    return None if code < 0 else coded.words[code]


def floats(counts: npt.NDArray[np.int64]) -> Floats:
    """Counts with NaN where they are missing."""
    values = counts.astype(np.float64)
    values[counts == ABSENT] = np.nan
    return values


def _store(found: Columns, count: str, where: Any, values: Floats, sources: dict[str, Any]) -> None:
    """Write the counts that were filled in, and where they come from."""
    source = found[f"{count}_source"]
    for word, filled in sources.items():
        found[count][where[filled]] = values[filled].astype(np.int64)
        source.codes[where[filled]] = source.coded(word)
