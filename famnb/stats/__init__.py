"""Statistics of calls: values with their intervals and their n; pure functions of numbers, frames are read elsewhere.

All take anything that pandas takes for numbers; missing values are dropped, infinite ones refused.
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
