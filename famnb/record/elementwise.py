"""The operations of a formula that is written once and holds for single numbers and for NumPy arrays alike.

A call is priced and estimated alone when it ends, and by the hundred thousand in a frame. A length-one array would do
for the first, but NumPy's overhead (2.4.6) makes the cost formula alone take 45 µs, where all of a call's cost takes
9 with plain numbers; and a single cost is exact, in Decimals, while a frame's is a float.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Elementwise(NamedTuple):
    """What a formula needs beside + − × ÷, comparisons, & and |, all of which numbers and arrays share."""

    maximum: Callable[[Any, Any], Any]
    minimum: Callable[[Any, Any], Any]
    where: Callable[[Any, Any, Any], Any]
    """Of a condition and two values, the first where it holds, else the second; both are computed."""
    is_missing: Callable[[Any], Any]
    or_zero: Callable[[Any], Any]
    """The value, 0 where it is missing."""
    logical_not: Callable[[Any], Any]
    floor: Callable[[Any], Any]
    ceil: Callable[[Any], Any]
    round: Callable[[Any], Any]
    """To the nearest integer, halves to the even one."""


def _choose(condition: bool, value: Any, alternative: Any) -> Any:
    return value if condition else alternative


NUMBERS = Elementwise(
    maximum=max,
    minimum=min,
    where=_choose,
    is_missing=lambda value: value is None,
    or_zero=lambda value: value or 0,
    logical_not=operator.not_,
    floor=math.floor,
    ceil=math.ceil,
    round=round,
)
"""For single integers and Decimals; None is missing."""

ARRAYS = Elementwise(
    maximum=np.maximum,
    minimum=np.minimum,
    where=np.where,
    is_missing=np.isnan,
    or_zero=np.nan_to_num,
    logical_not=np.logical_not,
    floor=np.floor,
    ceil=np.ceil,
    round=np.rint,
)
"""For arrays of floats; NaN is missing."""
