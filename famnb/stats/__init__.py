"""Statistics: means, percentiles, shares, differences and rankings, each with its interval and its n.

Pure functions of numbers. They take anything that pandas takes for numbers, drop missing values, and raise ValueError
for infinite ones.
"""

from famnb.stats.bradley_terry import Ranking, bradley_terry
from famnb.stats.differences import Difference, holm, paired, unpaired
from famnb.stats.intervals import Interval, carries, mean, median, percentile, proportion, summary
from famnb.stats.sample_size import percentile_size, sample_size

__all__ = [
    "Difference",
    "Interval",
    "Ranking",
    "bradley_terry",
    "carries",
    "holm",
    "mean",
    "median",
    "paired",
    "percentile",
    "percentile_size",
    "proportion",
    "sample_size",
    "summary",
    "unpaired",
]
