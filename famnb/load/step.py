"""One step of a load: starts its calls when they are due, and ends early where more begin than end.

due ── fits the budget? ── started, never waiting for an answer ── over, recorded
        └ no: the step ends                                        └ stopped: the step has ended early, or been too long
                                                                     ── a pause, since the service may go on with these

A call is late by what passed between the time it was due and the time it was started. That is this process's own
doing; it is recorded with the call and counts as its latency, as a user would count it.
"""

from __future__ import annotations

import array
import dataclasses
import json
import math
import queue
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Literal, TypeAlias

import numpy as np
from tqdm.auto import tqdm

from famnb.client.client import BaseClient
from famnb.client.live_call import Stream
from famnb.client.retry import Retries
from famnb.errors import Interrupted
from famnb.experiment.budget import Budget
from famnb.experiment.runner import outcome_of
from famnb.load.arrivals import LIKELY_Z, Times, is_growing
from famnb.record.serialize import PROMPT_TAGS
from famnb.request import Request

EndReason: TypeAlias = Literal["", "growing", "connections", "budget", "drain"]
"""Why a step ended before its last call had: none, more calls began than ended, the client had no connection left, the
budget was reached, the last calls took too long."""
LOOK_S = 0.25
"""Seconds between two looks at the calls in flight."""
# Longer than a pause of the service, or of this process, takes to be made up for.
GROWTH_S = 2.0
"""Seconds for which the calls in flight must be seen to grow before a step is ended for it."""
# What a call is sent again for is load that nobody asked for.
ONCE = Retries(tries=1)
MakeRequest: TypeAlias = Callable[[int], Request]
"""Returns the request of the n-th call of a step."""
# A service may go on with calls that were stopped, and the next step's would wait behind them.
StepEnd: TypeAlias = tuple[EndReason, float]
"""Why a step ended early, and the seconds to wait before another: as many as its stopped calls would have taken."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """What one step is to be."""

    label: str
    """Its name in the ledger, such as "8/s"; the column `variant` of its calls."""
    amount: float
    """Calls a second, or calls at once in a closed load."""
    due: Times | None
    """When calls begin, in seconds; None in a closed load."""
    duration_s: float
    """Seconds in which calls begin."""
    warmup_s: float
    """Seconds at its start whose calls are not counted."""
    drain_s: float
    """Seconds that its last calls may take once no further one begins."""

    @property
    def is_open(self) -> bool:
        """Whether calls begin without waiting for others."""
        return self.due is not None


def run_step(
    step: Step,
    make_request: MakeRequest,
    client: BaseClient,
    labels: dict[str, str],
    budget: Budget,
    *,
    progress: bool,
    start: float | None = None,
    now: Callable[[], float] = time.monotonic,
) -> StepEnd:
    """Carry one step and return how it ended; all of its calls are over and recorded then.

    It begins at `start` by the clock `now`, which may be yet to come; None begins at once. An interrupt stops the calls
    in flight, waits until they are recorded, and is raised as Interrupted.
    """
    over: queue.SimpleQueue[int] = queue.SimpleQueue()
    running: dict[int, tuple[Stream, Decimal | None]] = {}
    begun, ended = array.array("d"), array.array("d")
    reason: EndReason = ""
    connections = client.engine.connections
    # A call of a closed load is due at once while fewer are in flight than there are to be.
    slots = iter(lambda: 0.0 if len(running) < step.amount else math.inf, None)
    due = slots if step.due is None else iter(step.due)
    next_due = next(due, math.inf)
    start = now() if start is None else start
    next_look, growing_since, pause_s = LOOK_S, math.inf, 0.0

    def begin(at: float, request: Request) -> None:
        number, late_s = len(begun), now() - start - at
        tags = json.dumps({"due_s": round(at, 6), "late_s": round(late_s, 6)})
        warmup = "true" if at < step.warmup_s else "false"
        stream = client.engine.start(request, labels={**labels, "warmup": warmup, PROMPT_TAGS: tags}, retries=ONCE)
        begun.append(at)
        running[number] = stream, budget.reserve(request)
        stream.add_done_callback(lambda _: over.put(number))

    total = None if step.due is None else len(step.due)
    try:
        with tqdm(total=total, unit="call", desc=step.label, disable=not progress) as bar:
            while running or next_due < math.inf:
                passed = now() - start
                # One at a time: where starting them takes longer than they are apart, what ends is seen all the same.
                if next_due <= passed:
                    request = make_request(len(begun))
                    if budget.fits(request):
                        begin(next_due if step.is_open else passed, request)
                        next_due = next(due, math.inf)
                    else:
                        reason = "budget"
                if passed >= next_look:
                    next_look = passed + LOOK_S
                    bar.set_postfix_str(f"{len(running):,} in flight", refresh=False)
                    is_behind = step.is_open and is_growing(np.array(begun), np.array(ended), passed)
                    growing_since = min(growing_since, passed) if is_behind else math.inf
                    if not reason and passed - growing_since >= GROWTH_S:
                        reason = "growing"
                    elif not reason and len(running) > connections:
                        is_behind = step.is_open and is_growing(np.array(begun), np.array(ended), passed, LIKELY_Z)
                        reason = "growing" if is_behind else "connections"
                    elif not reason and passed > step.duration_s + step.drain_s:
                        reason = "drain"
                if reason in ("growing", "connections", "drain"):
                    pause_s = pause_s or min(len(running) * passed / max(len(ended), 1), step.drain_s)
                    _stop(running)
                if reason:
                    next_due = math.inf
                try:
                    number = over.get(timeout=max(0.0, min(next_due, next_look) - (now() - start)))
                    while True:
                        stream, worst = running.pop(number)
                        ended.append(now() - start)
                        budget.settle(worst, outcome_of(stream.exchange))
                        bar.update()
                        number = over.get_nowait()
                except queue.Empty:
                    pass
                if not step.is_open and next_due == math.inf and not reason:
                    next_due = next(due, math.inf) if now() - start < step.duration_s else math.inf
    except KeyboardInterrupt:
        _stop(running)
        for stream, _ in running.values():
            stream.wait()
        raise Interrupted(
            f"{step.label}: {len(begun):,} calls were started; run() again repeats this step and those after it"
        ) from None
    return reason, pause_s


def _stop(running: dict[int, tuple[Stream, Decimal | None]]) -> None:
    # Backwards, so that no call that waits for a connection gets that of one that was stopped.
    for stream, _ in reversed(list(running.values())):
        stream.stop()
