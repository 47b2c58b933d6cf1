"""Statistics: means, percentiles, shares, differences and rankings, each with its interval and its n.

Pure functions of numbers. They take anything that pandas takes for numbers, drop missing values, and raise ValueError
for infinite ones.
"""

from famnb.stats.agreement import Agreement, agreement
from famnb.stats.bradley_terry import Ranking, bradley_terry
from famnb.stats.differences import (
    Difference,
    holm,
    paired,
    paired_bounds,
    paired_percentile,
    paired_share,
    unpaired,
)
from famnb.stats.front import Front, Objective, front
from famnb.stats.goodput import meets_slo
from famnb.stats.intervals import (
    Interval,
    carries,
    mean,
    median,
    min_values,
    percentile,
    proportion,
    share,
    summary,
)
from famnb.stats.sample_size import percentile_size, sample_size

__all__ = [
    "Agreement",
    "Difference",
    "Front",
    "Interval",
    "Objective",
    "Ranking",
    "agreement",
    "bradley_terry",
    "carries",
    "front",
    "holm",
    "mean",
    "median",
    "meets_slo",
    "min_values",
    "paired",
    "paired_bounds",
    "paired_percentile",
    "paired_share",
    "percentile",
    "percentile_size",
    "proportion",
    "sample_size",
    "share",
    "summary",
    "unpaired",
]
