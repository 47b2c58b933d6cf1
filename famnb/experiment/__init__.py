"""Experiments: prompts times variants times repeats, planned, run within a budget, resumed, and framed.

prompts ┐
        ├── plan (cells, each with its key) ── run (budget, resume, progress) ── ledger ── frame
grid  ──┘
"""

from famnb.experiment import scorers
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.forecast import Forecast
from famnb.experiment.plan import Cell
from famnb.experiment.progress import Progress, RunReport
from famnb.experiment.prompts import Prompt
from famnb.experiment.runner import Run
from famnb.experiment.summary import Summary
from famnb.experiment.variants import Variant, grid

__all__ = [
    "BaseExperiment",
    "Cell",
    "Forecast",
    "Progress",
    "Prompt",
    "Run",
    "RunReport",
    "Summary",
    "Variant",
    "grid",
    "scorers",
]
