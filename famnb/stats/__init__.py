"""Statistics: means, percentiles, shares, differences and rankings, each with its interval and its n.

    percentile(frame["ttft_s"], 0.95)                  for more calls with these prompts; NaN where n is too small
    median(times, clusters=prompts)                    for new prompts: a prompt counts once; so do mean() and share()
    paired(first, second)                              Series by prompt: difference, ratio; repeats averaged
    paired_median(first, second)                       likewise, by the sign test, for few values and long tails
    paired_share(first, second)                        likewise, of yes and no
    paired_bounds(first, second)                       of costs with ends, and paired_ratio()
    share(meets_slo(frame, {"ttft_s": 0.5}, failed=failed), clusters=prompts)     goodput
    proportion(17, 20)                                 Wilson's interval
    sample_size(sd=0.4, sd_n=12, difference=0.1, comparisons=6)     pairs needed, by the rule that will judge
    bradley_terry([("a", "b", "a"), ("a", "b", None)], clusters=["p1", "p2"])     votes to strengths; None is a tie
    holm(p_values)                                     p-values adjusted where several pairs are compared
    look([20, 40, 60], looks=5).nominal                the level of the third of five looks at growing data

Pure functions of numbers. They take anything that pandas takes for numbers, drop missing values (`n` says how many are
left), and raise ValueError for infinite ones.
"""

from famnb.stats.bradley_terry import Ranking, bradley_terry
from famnb.stats.differences import (
    Difference,
    holm,
    paired,
    paired_bounds,
    paired_median,
    paired_ratio,
    paired_share,
    widen_for_runs,
)
from famnb.stats.intervals import Interval, carries, mean, median, meets_slo, min_values, percentile, proportion, share
from famnb.stats.sample_size import sample_size
from famnb.stats.sequential import Look, look

__all__ = [
    "Difference",
    "Interval",
    "Look",
    "Ranking",
    "bradley_terry",
    "carries",
    "holm",
    "look",
    "mean",
    "median",
    "meets_slo",
    "min_values",
    "paired",
    "paired_bounds",
    "paired_median",
    "paired_ratio",
    "paired_share",
    "percentile",
    "proportion",
    "sample_size",
    "share",
    "widen_for_runs",
]
