"""Which calls meet service-level objectives, for `share` and `paired_share` to count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from famnb.errors import InvalidRequest, UnknownName
from famnb.stats.intervals import as_floats


def meets_slo(frame: pd.DataFrame, slo: Mapping[str, float], *, failed: Any) -> pd.Series[Any]:
    """Return whether each call keeps every limit of `slo`, such as {"ttft_s": 0.5, "e2e_s": 5}; a boolean Series.

    `failed` says which calls failed: they miss. A call that is over one limit misses; else, where a limited value is
    not known, such as the first token of a reply that came whole, so is the answer (missing). ValueError without
    limits, for a limit that is no number, KeyError for a column that is not there.
    """
    if not slo:
        raise InvalidRequest('slo: expected limits, such as {"ttft_s": 0.5, "e2e_s": 5}; got none')
    absent = [name for name in slo if name not in frame]
    if absent:
        raise UnknownName(f"slo: there is no column {', '.join(map(repr, absent))}")
    for name, limit in slo.items():
        if isinstance(limit, bool) or not isinstance(limit, int | float | np.number) or not math.isfinite(limit):
            raise InvalidRequest(f"slo: expected a number as the limit of {name}; got {limit!r}")
    values = np.column_stack([as_floats(frame[name]) for name in slo])
    misses = (values > np.array(list(slo.values()), dtype=float)).any(axis=1)
    misses |= pd.Series(failed, dtype="boolean").fillna(False).to_numpy(dtype=bool)
    met = pd.Series(~misses, index=frame.index, dtype="boolean")
    return met.mask(~misses & np.isnan(values).any(axis=1))
