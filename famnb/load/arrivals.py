"""When the calls of a load begin, and whether those in flight grow without end: rules without a thread or a clock.

An open load begins its calls at times that do not depend on the answers, as users do who do not know of each other. A
closed one begins a call when one ends, so that a slow service gets fewer calls and its latencies look better than any
user would find them (coordinated omission).
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from famnb.errors import InvalidRequest
from famnb.experiment.prompts import read_rows
from famnb.validation import check_number

Arrivals: TypeAlias = Literal["poisson", "constant", "closed"]
"""At random with a mean rate, evenly, or whenever a call ends."""
Times: TypeAlias = npt.NDArray[np.float64]
"""Seconds since a step began, in order."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)\s*")
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
TRACE_COLUMNS = {
    "time_s": ("timestamp", "time_s", "time", "arrived_at"),
    "input_tokens": ("input_tokens", "input_length", "num_prefill_tokens", "ContextTokens"),
    "output_tokens": ("output_tokens", "output_length", "num_decode_tokens", "GeneratedTokens"),
}
"""The names that published traces have for the columns of ours."""
# A line that looks at its backlog a hundred times must not end early by chance: 1 in 30,000 for each look.
GROWTH_Z = 4.0
"""How many standard errors the calls in flight must have grown by for it to be no chance."""
# It has ended in any case, and this only says why.
LIKELY_Z = 2.0
"""The same for a step that was ended early."""
MIN_GROWTH = 10
"""Calls by which they must have grown at least."""
MIN_ENDED = 20
"""Calls that must have ended before it is judged."""


def parse_duration(name: str, value: Any) -> float:
    """Return a duration, such as "30s", "2min", "1h" or a number of seconds, in seconds. Raises InvalidRequest."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        value = float(match[1]) * _UNITS[match[2]]
    expected = "a duration above 0, such as '30s', '2min' or a number of seconds"
    return float(check_number(name, value, above=0, expected=expected))


def draw_arrivals(rate: float, duration_s: float, arrivals: Arrivals, rng: np.random.Generator) -> Times:
    """Return when the calls of an open load of `rate` calls a second begin."""
    if arrivals == "constant":
        return np.arange(math.ceil(rate * duration_s)) / rate
    # Far more gaps than can be needed, so that none is missing at the end.
    count = rate * duration_s
    times = rng.exponential(1 / rate, math.ceil(count + 10 * math.sqrt(count) + 10)).cumsum()
    return np.asarray(times[times < duration_s])


def draw_lengths(name: str, source: Any, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return `count` numbers of tokens: from those given, one or several, or from a distribution.

    That is a frozen one of `scipy.stats`, or a table such as `{"distribution": "lognorm", "s": 0.5, "scale": 200}`;
    what it draws below 1 becomes 1. Raises InvalidRequest.
    """
    expected = "numbers of at least 1, or a distribution of scipy.stats such as stats.lognorm(0.5, scale=200)"
    try:
        if isinstance(source, Mapping):
            parameters = {key: value for key, value in source.items() if key != "distribution"}
            source = getattr(stats, source["distribution"])(**parameters)
        if hasattr(source, "rvs"):
            values = np.maximum(source.rvs(size=count, random_state=rng), 1)
        else:
            values = rng.choice(np.atleast_1d(np.asarray(source, dtype=float)), count)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidRequest(f"{name}: expected {expected}; got {source!r:.80} ({error})") from None
    if not (values >= 1).all() or not np.isfinite(values).all():
        raise InvalidRequest(f"{name}: expected {expected}; got {source!r:.80}")
    return np.asarray(np.rint(values), dtype=np.int64)


def is_growing(begun: Times, ended: Times, now: float, z: float = GROWTH_Z) -> bool:
    """Whether more calls begin than end, by `z` standard errors, so that those in flight grow without end.

    `begun` and `ended` are when calls did either before `now`. What is counted is the second half of the time, in which
    a service that keeps up has begun to answer; in it the difference of two counts of independent events has their sum
    as its variance.
    """
    if len(ended) < MIN_ENDED:
        return False
    # A service that takes 10 s for an answer has 10 s of calls in flight before it can be judged. Its first answers say
    # how long it takes; the latest say how far it is behind.
    latency = float(np.median(ended[:MIN_ENDED] - begun[:MIN_ENDED]))
    since = now / 2
    if since < 2 * latency:
        return False
    begun_since = int((begun >= since).sum())
    growth = begun_since - int((ended >= since).sum())
    return growth >= MIN_GROWTH and growth > z * math.sqrt(2 * begun_since)


@dataclasses.dataclass(frozen=True, slots=True)
class Trace:
    """Calls as they were recorded elsewhere: when each began, and how long its prompt and its answer were."""

    times: Times
    """Seconds since the first."""
    input_tokens: npt.NDArray[np.int64] | None = None
    """Of each call's prompt; None if the trace does not say."""
    output_tokens: npt.NDArray[np.int64] | None = None
    """Of each call's answer; None if the trace does not say."""


def read_trace(source: str | os.PathLike[str] | pd.DataFrame | Sequence[float]) -> Trace:
    """Return a trace: a `.csv` or `.jsonl` file, a frame, or seconds.

    Columns: `timestamp` (seconds, milliseconds where they are whole numbers in a column that says so by its end `_ms`,
    or times with a date), `input_tokens` or `input_length`, `output_tokens` or `output_length`. Raises InvalidRequest.
    """
    if isinstance(source, pd.DataFrame):
        frame = source
    elif isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        if not path.is_file():
            raise InvalidRequest(f"trace: there is no file {path}; expected a .csv or .jsonl file")
        # Not pandas.read_json, which takes `timestamp_ms` for a date: then it is not in milliseconds.
        is_jsonl = path.suffix.lower() == ".jsonl"
        frame = pd.DataFrame([row for _, row in read_rows(path)]) if is_jsonl else pd.read_csv(path)
    else:
        frame = pd.DataFrame({"time_s": source})
    found = {
        column: next((name for name in (*names, f"{names[0]}_ms") if name in frame), None)
        for column, names in TRACE_COLUMNS.items()
    }
    if found["time_s"] is None:
        expected = ", ".join(TRACE_COLUMNS["time_s"])
        raise InvalidRequest(f"trace: expected a column of times ({expected}); got {', '.join(map(str, frame))}")
    times = frame[found["time_s"]]
    if not pd.api.types.is_numeric_dtype(times):
        dates = pd.to_datetime(times, utc=True, format="ISO8601")
        times = (dates - dates.min()).dt.total_seconds()
    seconds = times.to_numpy(dtype=float) / (1000 if str(found["time_s"]).endswith("_ms") else 1)
    if not len(seconds) or not np.isfinite(seconds).all():
        raise InvalidRequest("trace: expected at least one call, each with its time; some have none")
    order = np.argsort(seconds, kind="stable")
    lengths = {}
    for column in ("input_tokens", "output_tokens"):
        name = found[column]
        values = None if name is None else frame[name].to_numpy(dtype=float)[order]
        if values is not None and not (values >= 1).all():
            raise InvalidRequest(f"trace: expected numbers of at least 1 in {name!r}")
        lengths[column] = None if values is None else values.astype(np.int64)
    return Trace(seconds[order] - seconds.min(), **lengths)
