"""An executor whose calls end as a test says, and the outcomes they end with."""

import threading
from decimal import Decimal

from famnb.experiment.budget import CallOutcome


def call_outcome(status="completed", *, high="1", http_status=200, attempts=1, error=None, replayed=False):
    high = None if high is None else Decimal(high)
    return CallOutcome(status, "call", high, http_status, attempts, error, replayed)


class ScriptedExecutor:
    """Carries calls that end when the test says so, or at once with a given outcome."""

    def __init__(self, outcome: CallOutcome | None = None, *, when_stopped: CallOutcome | None = None) -> None:
        self.outcome = outcome
        self.when_stopped = when_stopped or call_outcome("cancelled", high=None)
        self.started: list = []
        self.open: dict = {}
        self.most = 0
        self.grew = threading.Condition()

    def start(self, cell, *, labels, on_done):
        with self.grew:
            self.started.append(cell)
            self.open[cell.key] = on_done
            self.most = max(self.most, len(self.open))
            self.grew.notify_all()
        if self.outcome is not None:
            self.end(cell, self.outcome)
        return lambda: self.end(cell, self.when_stopped)

    def limit(self, _cell):
        return None

    def end(self, cell, outcome):
        with self.grew:
            on_done = self.open.pop(cell.key)
        on_done(outcome)

    def until(self, count):
        with self.grew:
            assert self.grew.wait_for(lambda: len(self.started) >= count, 10)
