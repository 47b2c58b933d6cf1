"""An experiment whose runs have a clock of their own, on which pauses take no time."""

from __future__ import annotations

import queue

import famnb

REAL_WAIT_S = 0.05
"""How long a call in flight has to end before time goes on without it."""


class SteppedTime:
    """Time that stands still until a run waits; `seconds` are those that it waited in vain."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def wait(self, outcomes, timeout):
        try:
            return outcomes.get(timeout=None if timeout is None else REAL_WAIT_S)
        except queue.Empty:
            self.seconds += timeout
            raise


class SteppedExperiment(famnb.Experiment):
    """Its runs go by `time_steps`."""

    time_steps: SteppedTime

    def make_run(self, todo, report, executor, **options):
        now = lambda: self.time_steps.seconds  # noqa: E731 - one expression
        return super().make_run(todo, report, executor, now=now, wait=self.time_steps.wait, **options)
