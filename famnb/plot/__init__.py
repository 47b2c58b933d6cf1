"""Frame in, figure out: matplotlib figures that show themselves in a notebook, or draw into the caller's axes."""

from famnb.plot.figure import Figure
from famnb.plot.money import cost
from famnb.plot.spread import latency
from famnb.plot.waterfall import timeline

__all__ = ["Figure", "cost", "latency", "timeline"]
