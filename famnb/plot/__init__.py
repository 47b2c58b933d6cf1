"""Frame in, figure out: matplotlib figures that show themselves in a notebook, or draw into the caller's axes."""

from famnb.plot.compare import compare
from famnb.plot.cost import cost
from famnb.plot.figure import Figure
from famnb.plot.gaps import gaps
from famnb.plot.latency import latency
from famnb.plot.pareto import pareto
from famnb.plot.throughput import throughput
from famnb.plot.timeline import timeline
from famnb.plot.tokens import tokens

__all__ = ["Figure", "compare", "cost", "gaps", "latency", "pareto", "throughput", "timeline", "tokens"]
