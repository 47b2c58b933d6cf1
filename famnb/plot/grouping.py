"""Columns of a frame as figures need them: present, as numbers, as times, and as a few groups."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from famnb import model_colours
from famnb.errors import InvalidRequest, UnknownName
from famnb.formatting import format_count

# Beyond this a legend has more rows than one compares by eye; the palette has styles for more (28 lines, 21 areas).
MAX_GROUPS = 12
"""Groups that are shown one by one; of more, the smallest become one group."""
NO_VALUE = "(none)"
"""The name of the group of rows without a value."""


def select_calls(frame: pd.DataFrame, *, of_use: bool = False) -> tuple[pd.DataFrame, list[str]]:
    """Return the calls that a figure is of, and the footnote for what it leaves out: warm-ups, if there are any.

    Planned cells of an experiment go without a word, since they are no calls yet. A figure `of_use`, of what was spent
    or used up, leaves warm-ups out of an experiment's frame alone: in any other they are part of what was used.
    A model whose name several vendors have is called by name and vendor, since these are two models.
    """
    if "status" in frame:
        is_planned = (frame["status"] == "planned").fillna(False).to_numpy(dtype=bool)
        # To select all of a million rows copies them.
        frame = frame[~is_planned] if is_planned.any() else frame
    frame = _name_vendors(frame)
    if "warmup" not in frame or (of_use and "order" not in frame):
        return frame, []
    is_warmup = frame["warmup"].eq(True).fillna(False).to_numpy(dtype=bool)
    count = int(is_warmup.sum())
    if not count:
        return frame, []
    return frame[~is_warmup], [f"{format_count(count, 'warm-up call')} {'is' if count == 1 else 'are'} left out."]


def _name_vendors(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its profile in the name of each model that calls of several profiles were made to."""
    if not {"model", "profile"} <= set(frame.columns) or frame["profile"].nunique() < 2:
        return frame
    vendors = frame.groupby("model", observed=True)["profile"].nunique()
    is_shared = frame["model"].isin(vendors.index[vendors > 1]) & frame["profile"].notna()
    if not is_shared.any():
        return frame
    full_names = frame["model"].astype(str) + " · " + frame["profile"].astype(str)
    return frame.assign(model=frame["model"].astype(object).mask(is_shared, full_names))


PROMPT_COLUMNS = ("prompt_id", "prompt_hash", "prompt")
"""Columns that say which calls asked the same."""


def prompt_column(frame: pd.DataFrame) -> str | None:
    """The column that says which calls asked the same prompt; None if there is none, or all of it is missing.

    Ids of prompts are an experiment's own, so that of calls of several the hash tells.
    """
    is_one_experiment = "experiment" not in frame or frame["experiment"].nunique(dropna=False) <= 1
    for name in PROMPT_COLUMNS[0 if is_one_experiment else 1 :]:
        if name in frame and frame[name].notna().any():
            return name
    return None


def require_columns(frame: pd.DataFrame, *columns: str | None) -> None:
    """Raise KeyError naming the first of the columns that the frame does not have; None is ignored."""
    for column in columns:
        if column is not None and column not in frame.columns:
            known = list(map(str, frame.columns))
            close = difflib.get_close_matches(str(column), known, 1)
            # At the end, which is what one sees of a message that names seventy columns.
            hint = f". Did you mean {close[0]!r}?" if close else ""
            raise UnknownName(f"the frame has no column {column!r}; it has {', '.join(known)}{hint}")


def numeric_column(frame: pd.DataFrame, column: str, expected: str) -> np.ndarray[Any, Any]:
    """Return a column as floats, NaN where missing. Raises ValueError, saying what was expected, for anything else."""
    try:
        values: np.ndarray[Any, Any] = frame[column].to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        raise InvalidRequest(f"the column {column!r} holds no numbers; {expected}") from None
    if np.isinf(values).any():
        raise InvalidRequest(f"the column {column!r} has infinite numbers; leave them out, or mark them as missing")
    return values


def time_column(frame: pd.DataFrame, column: str = "started_at") -> pd.Series[Any]:
    """Return a column as times in its own zone, texts in ISO 8601 in UTC. Raises ValueError if it holds no times."""
    values = frame[column]
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return values
    try:
        # pandas would take numbers for nanoseconds since 1970 and draw everything at one moment.
        if pd.api.types.is_numeric_dtype(values.dtype) and len(values):
            raise TypeError
        return pd.to_datetime(values, utc=True, format="ISO8601")
    except (TypeError, ValueError):
        raise InvalidRequest(f"the column {column!r} holds no times; expected datetimes, or text in ISO 8601") from None


def natural_key(name: str) -> list[tuple[int, str]]:
    """What to sort names by, so that numbers in them count as numbers: v2 before v10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def group_rows(values: pd.Series[Any], most: int | None = None) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Return each row's group as an index, and the groups' names in order.

    Of more than MAX_GROUPS, or of more than `most`, the smallest are one group, which is called by how many they are.
    """
    most = max(min(MAX_GROUPS, MAX_GROUPS if most is None else most), 2)
    codes, names = pd.factorize(values.astype(object).where(values.notna(), NO_VALUE).map(str))
    shown = list(names)
    if len(names) > most:
        sizes = np.bincount(codes)
        shown = [names[code] for code in np.argsort(-sizes, kind="stable")[: most - 1]]
    # A column's own order, such as that of an experiment's variants; else by name, v2 before v10. Not by size: the same
    # groups have the same place in every figure.
    # The categories of an experiment's variants are in its order, though nothing says that one is less than the next.
    has_order = getattr(values.dtype, "ordered", False) or (values.name == "variant" and hasattr(values, "cat"))
    categories = list(map(str, values.cat.categories)) if has_order else []
    positions = {name: position for position, name in enumerate(categories)}
    shown.sort(key=lambda name: (positions.get(name, len(positions)), natural_key(name)))
    index = np.array([shown.index(name) if name in shown else len(shown) for name in names], dtype=int)
    others = len(names) - len(shown)
    return index[codes], [*shown, f"{others} others"] if others else shown


def group_looks(by: str, groups: Sequence[str]) -> dict[str, Any]:
    """Return what decides how the groups of a column look, as fields of a `Palette`: the same in every figure.

    The two kinds of a model's replies have one colour, and differ by their dashes.
    """
    endings = {", streamed": "streamed", ", whole": "whole"}
    kinds = [next((kind for ending, kind in endings.items() if group.endswith(ending)), "") for group in groups]
    models = [group.removesuffix(f", {kind}") for group, kind in zip(groups, kinds, strict=True)]
    if by == "streamed":
        kinds = [{"True": "streamed", "False": "whole"}.get(group, "") for group in groups]
    names = [name for name in dict.fromkeys(models) if not name.endswith(" others")]
    slots = dict(zip(names, model_colours.group_slots(by, names), strict=True))
    # What stands for the rest is no group, and comes last.
    rest = next(slot for slot in itertools.count() if slot not in slots.values())
    return {
        "slots": tuple(slots.get(name, rest) for name in models),
        "kinds": tuple(kinds),
        "colours": model_colours.part_colours(by, groups),
    }
