"""The level of one of several looks at growing data, so that all looks together are wrong no more often than one.

With a plan, the probability of an error is spent by the function of Lan and DeMets (1983) that gives the bounds of
O'Brien and Fleming: next to nothing at early looks, and nearly all at the last. Beyond the plan, or without one, the
bound is that of a confidence sequence, Robbins' normal mixture (1970), which holds at any number of looks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize, special

from famnb.errors import InvalidRequest
from famnb.stats.intervals import Values, check_share

LAN_DEMETS = "group-sequential, O'Brien and Fleming by Lan and DeMets"
MIXTURE = "confidence sequence, Robbins' normal mixture"
_POINTS = 401
"""Points at which the density of results without a claim so far is kept."""
_MAX_BOUND = 12.0
"""A bound in standard errors that no result passes by chance."""
# The mixture is then tightest at some three times the data of the first look.
_MIXTURE_SHARE = 1 / 3
"""The variance of the mixture, as one over this share of the first look's data."""


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """One look at growing data, and the level at which it has to judge."""

    number: int = 1
    """From 1."""
    planned: int | None = None
    """How many looks were declared, if any were."""
    level: float = 0.95
    """Of all looks together."""
    nominal: float = 0.95
    """Of this look by itself: its intervals and tests at this level make all looks together keep `level`."""
    method: str = ""
    """How the one follows from the other; empty for a single look."""


def look(
    sizes: Sequence[float], shares: Sequence[float] | None = None, *, looks: int | None = None, level: float = 0.95
) -> Look:
    """Return the last of several looks at `sizes` values each, which grow.

    `looks` is how many were planned; else `shares` says which share of the planned data each look had, 1 by default:
    a single look at all that was planned judges at `level`. ValueError without a look, and for sizes that do not grow.
    """
    level, amounts = check_share("level", level), np.asarray(sizes, dtype=float)
    if not len(amounts) or (amounts <= 0).any() or (np.diff(amounts) <= 0).any():
        raise InvalidRequest(f"sizes: expected numbers of values above 0 that grow; got {list(sizes)!r:.80}")
    number = len(amounts)
    fractions = np.arange(1, number + 1) / looks if looks else np.asarray(shares or [1.0] * number, dtype=float)
    has_plan = number == 1 or (fractions[-1] <= 1 and (np.diff(fractions) > 0).all())
    if has_plan and fractions[-1] >= 1 and number == 1:
        return Look(number, looks, level, level)
    if has_plan:
        bound = _spending_bound(amounts, np.minimum(fractions, 1), level)
    else:
        ratio = amounts[-1] / (_MIXTURE_SHARE * amounts[0])
        bound = math.sqrt((1 + 1 / ratio) * (math.log1p(ratio) - 2 * math.log(1 - level)))
    nominal = 1 - 2 * float(special.ndtr(-bound))
    return Look(number, looks, level, nominal, LAN_DEMETS if has_plan else MIXTURE)


def _spending_bound(sizes: Values, fractions: Values, level: float) -> float:
    """How many standard errors from 0 a result has to be at the last look of a plan: each spends what its share allows.

    Sums of values with a variance of 1 go on from where the look before left them within its bound (Armitage,
    McPherson and Rowe, 1969): their density is integrated look by look.
    """
    # Half of it on either side.
    spent = 4 * special.ndtr(-special.ndtri(1 - (1 - level) / 4) / np.sqrt(fractions))
    points, density, bound = np.zeros(1), np.ones(1), _MAX_BOUND
    for size, step, share in zip(sizes, np.diff(sizes, prepend=0), np.diff(spent, prepend=0), strict=True):
        error = math.sqrt(step)

        def excess(
            bound: float, size: float = size, error: float = error, share: float = share,
            points: Values = points, density: Values = density,
        ) -> float:  # fmt: skip
            reach = bound * math.sqrt(size)
            beyond = special.ndtr((points - reach) / error) + special.ndtr((-points - reach) / error)
            return float(density @ beyond - share)

        bound = float(optimize.brentq(excess, 0, _MAX_BOUND)) if excess(_MAX_BOUND) < 0 else _MAX_BOUND
        ends = bound * math.sqrt(size)
        grid = np.linspace(-ends, ends, _POINTS)
        kernel = np.exp(-(((grid[:, None] - points) / error) ** 2) / 2) / (error * math.sqrt(2 * math.pi))
        # Weights of the trapezoidal rule, so that a sum over the density is its integral.
        weights = np.full(_POINTS, grid[1] - grid[0])
        weights[[0, -1]] /= 2
        points, density = grid, kernel @ density * weights
    return bound
