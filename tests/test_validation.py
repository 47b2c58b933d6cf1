"""Checks of arguments: what passes comes back, anything else is refused with what was expected."""

import math
from typing import Any

import numpy as np
import pytest

from famnb.errors import InvalidRequest
from famnb.validation import check_index, check_integer, check_number, check_text


@pytest.mark.parametrize(("value", "integer"), [(3, 3), (np.int64(3), 3), (1, 1)])
def test_an_integer_passes_and_becomes_an_int(value: Any, integer: int):
    checked = check_integer("n", value, minimum=1)
    assert (checked, type(checked)) == (integer, int)


@pytest.mark.parametrize("value", [0, True, 1.0, "1", None, [1]])
def test_anything_else_is_refused_as_an_integer_of_at_least_1(value: Any):
    with pytest.raises(InvalidRequest) as refused:
        check_integer("n", value, minimum=1)
    assert str(refused.value) == f"n: expected an integer of at least 1, got {value!r}"


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "5", None])
def test_a_number_is_finite_and_within_its_bounds(value: Any):
    with pytest.raises(InvalidRequest, match="rate: expected a number above 0, got "):
        check_number("rate", value, above=0, expected="a number above 0")
    assert check_number("wait", math.inf, above=0, finite=False, expected="a number above 0") == math.inf
    assert check_number("wait", np.float32(0), minimum=0, expected="a number from 0 up") == 0


@pytest.mark.parametrize(("value", "index"), [(0, 0), (2, 2), (-1, 2), (-3, 0)])
def test_an_index_counts_from_the_end_when_negative(value: int, index: int):
    assert check_index("turn", value, 3) == index


@pytest.mark.parametrize("value", [3, -4, True, "0", None])
def test_an_index_outside_the_list_is_refused(value: Any):
    with pytest.raises(InvalidRequest, match=f"turn: there is no {value!r} among 3; expected an index from 0"):
        check_index("turn", value, 3)


@pytest.mark.parametrize("value", ["", " \n", None, 5])
def test_a_blank_text_is_refused(value: object):
    with pytest.raises(InvalidRequest, match="name: expected a name, got "):
        check_text("name", value, expected="a name")
    with pytest.raises(InvalidRequest) as refused:
        check_text("name", [0] * 10_000, expected="a name")
    assert len(str(refused.value)) < 120
