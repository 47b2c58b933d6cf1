"""Frame in, figure out: matplotlib figures that show themselves in a notebook, or draw into the caller's axes."""

from famnb.plot.counts import tokens
from famnb.plot.figure import Figure
from famnb.plot.flow import throughput
from famnb.plot.front import pareto
from famnb.plot.money import cost
from famnb.plot.paired import compare
from famnb.plot.spread import latency
from famnb.plot.streams import gaps
from famnb.plot.waterfall import timeline

__all__ = ["Figure", "compare", "cost", "gaps", "latency", "pareto", "throughput", "timeline", "tokens"]
