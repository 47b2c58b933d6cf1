"""Figures of calls: a frame goes in, a matplotlib figure comes out that shows itself in a notebook.

Each figure is in the module of its name. It prepares its rows, opens a `facets.Chart`, and draws on each
`canvas.Canvas` that the chart gives it: one, or one for each panel.
"""

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
