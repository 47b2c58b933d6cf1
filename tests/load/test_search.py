"""The search for a peak, on loads that a law keeps or misses."""

import math

import pytest

from famnb.load.search import search_peak
from tests.support.queue_server import share_within


@pytest.mark.parametrize("start", [0.5, 20, 1000])
@pytest.mark.parametrize("limit_s", [0.12, 0.2, 0.5])
def test_the_peak_of_a_queue_is_between_the_two_ends(start: float, limit_s: float):
    """90 % of the calls of an M/M/4 queue within a limit, from far below and far above."""
    tried = []

    def keeps(rate: float) -> bool:
        tried.append(rate)
        return share_within(limit_s, rate, 4, 0.05) >= 0.9

    kept, missed = search_peak(keeps, start, tolerance=0.03)
    assert share_within(limit_s, kept, 4, 0.05) >= 0.9 > share_within(limit_s, missed, 4, 0.05)
    assert kept < missed <= 1.03 * kept
    assert len(tried) == len(set(tried)) <= 16


@pytest.mark.parametrize("most", [1, 2, 7, 64])
def test_calls_at_once_are_whole_numbers(most: int):
    assert search_peak(lambda load: load <= most, 4, tolerance=0.01, is_whole=True) == (most, most + 1)


def test_what_is_never_missed_has_no_end_and_what_is_never_kept_no_peak():
    assert math.isinf(search_peak(lambda _: True, 1, tolerance=0.05)[1])
    assert search_peak(lambda _: False, 1, tolerance=0.05)[0] == 0
    assert search_peak(lambda _: False, 4, tolerance=0.05, is_whole=True) == (0, 1)
