"""An experiment whose runs have a clock of their own, on which pauses take no time."""

import queue
import threading

import famnb

REAL_WAIT_S = 60
"""How long a call in flight has to end."""


class SteppedTime:
    """Time that stands still while a call is in flight, and else goes on at once; `seconds` are those gone by."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.in_flight = 0
        # Held while an outcome is handed over: a call whose outcome the run has is in flight no more.
        self.lock = threading.Lock()

    def wait(self, outcomes, timeout):
        with self.lock:
            stands_still = self.in_flight or timeout is None
        try:
            return outcomes.get(timeout=REAL_WAIT_S if stands_still else 0)
        except queue.Empty:
            self.seconds += timeout or 0
            raise


class SteppedExecutor:
    """Counts the calls that an executor has in flight."""

    def __init__(self, executor, time_steps: SteppedTime) -> None:
        self.limit = executor.limit
        self.executor = executor
        self.time_steps = time_steps

    def start(self, cell, *, labels, on_done):
        def hand_over(outcome):
            with self.time_steps.lock:
                on_done(outcome)
                self.time_steps.in_flight -= 1

        with self.time_steps.lock:
            self.time_steps.in_flight += 1
        return self.executor.start(cell, labels=labels, on_done=hand_over)


class SteppedExperiment(famnb.Experiment):
    """Its runs go by `time_steps`."""

    time_steps: SteppedTime

    def make_run(self, todo, report, executor, **options):
        clock = {"now": lambda: self.time_steps.seconds, "wait": self.time_steps.wait}
        return super().make_run(todo, report, SteppedExecutor(executor, self.time_steps), **clock, **options)
