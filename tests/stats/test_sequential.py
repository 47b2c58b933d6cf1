"""Levels of several looks at growing data: against published bounds."""

from __future__ import annotations

import pytest
from scipy import special

from famnb import stats
from famnb.stats.sequential import LAN_DEMETS, MIXTURE


def bound(look: stats.Look) -> float:
    return float(special.ndtri((1 + look.nominal) / 2))


def test_bounds_of_five_looks_are_those_that_are_published():
    """Lan and DeMets, two-sided 5 %, equal steps: 4.877, 3.357, 2.680, 2.290, 2.031."""
    bounds = [bound(stats.look([20.0 * k for k in range(1, number + 1)], looks=5)) for number in range(1, 6)]
    assert bounds == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=0.003)


def test_a_single_look_at_the_whole_plan_costs_nothing():
    assert stats.look([60]) == stats.Look(1, None, 0.95, 0.95)


@pytest.mark.parametrize(
    ("shares", "looks", "method"),
    [
        ([0.5, 1.0], None, LAN_DEMETS),
        ([1.0, 1.0], None, MIXTURE),
        ([1.0, 1.0], 2, LAN_DEMETS),
        ([1.0, 1.0], 1, MIXTURE),
    ],
)
def test_what_was_planned_is_spent_and_beyond_it_a_confidence_sequence_holds(shares, looks, method):
    look = stats.look([30, 60], shares, looks=looks)
    assert (look.number, look.method) == (2, method)
    assert 0.95 < look.nominal < 1


def test_sizes_that_do_not_grow_are_refused():
    with pytest.raises(ValueError, match="expected numbers of values above 0 that grow"):
        stats.look([10, 10])
