"""What a run is given: cells, who carries their calls, and within which limits; running them is left to `runner`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, MutableMapping, Sequence

from famnb.experiment.budget import Purse
from famnb.experiment.executor import Executor
from famnb.experiment.plan import Cell


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run, and how."""

    name: str
    """The experiment."""
    todo: Sequence[Cell]
    """The cells to run, in their order."""
    planned: int
    """Cells of the whole plan."""
    failed_before: int = 0
    """Of the cells that are left alone, those that failed earlier."""
    variants: Sequence[str] = ()
    """Labels in the order in which they are shown; of others, the order of their cells."""
    executor: Executor
    concurrency: int
    """Calls in flight at most."""
    rate: float | None
    """Calls started a second at most; None does not limit."""
    purse: Purse | None
    """The budget; None does not limit."""
    replayed: MutableMapping[str, str] = dataclasses.field(default_factory=dict)
    """Where to note which recorded call answered a cell."""
    unrecorded: Callable[[], int] = lambda: 0
    """How many records could not be written: while there are some no call starts, since it would be paid for again."""
    finish: Callable[[], object] = lambda: None
    """Called on the schedule's thread once nothing runs any more."""
