"""What every benchmark shares: the machine's facts, child processes, tables with ratios, and the JSON.

A benchmark is a module `bench_<name>.py` beside this file with `TITLE` and `run(quick: bool) -> Result`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = ("famnb", "openai", "httpx", "aiohttp", "msgspec", "uvloop", "starlette", "uvicorn")
"""Packages whose versions belong to the facts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows of figures; all rows have the same keys, which say their units."""

    title: str
    rows: Sequence[Mapping[str, Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """A claim with a limit, and what was measured; `value` None means that it could not be measured."""

    claim: str
    limit: float
    value: float | None
    at_least: bool = False
    """Whether the limit is a lower one."""

    @property
    def is_met(self) -> bool | None:
        """Whether the measurement keeps the limit."""
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one benchmark found."""

    tables: Sequence[Table]
    goals: Sequence[Goal] = ()
    notes: Sequence[str] = ()
    """How to read the figures, and what was left out and why."""


def list_benchmarks() -> list[str]:
    """The names of the benchmarks in this folder."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def facts() -> dict[str, Any]:
    """The machine and the versions that figures depend on; the load is the one before measuring."""
    with Path("/proc/cpuinfo").open() as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES if find_spec(name.replace("-", "_"))},
    }


def run_child(command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float = 300) -> Any:
    """Run a child, and return the last line that it printed, decoded; raises RuntimeError if it fails."""
    child = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(env), timeout=timeout_s
    )
    if child.returncode:
        raise RuntimeError(f"{list(command)} ended with {child.returncode}: {child.stderr[-2000:]}")
    return json.loads(child.stdout.splitlines()[-1])


def peak_rss_mb() -> float:
    """The peak of this process's memory so far.

    From /proc where there is one: `ru_maxrss` of a child begins at its parent's peak.
    """
    with contextlib.suppress(OSError), Path("/proc/self/status").open() as lines:
        return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without proxies and without the settings of famnb and of the peers."""
    # What pip installs is compiled; a checkout of famnb must be allowed to be, too.
    ours = ("FAM_", "FAMNB_LEDGER", "OPENAI_", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours) and not k.lower().endswith("_proxy")}
    return {**kept, **(extra or {})}


@contextlib.contextmanager
def run_server(command: Sequence[str], *, env: Mapping[str, str] | None = None) -> Iterator[tuple[Any, int]]:
    """A server in its own process while the block runs: its first line, one JSON value, and its process id."""
    with tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, env=environment(env)
        )
        assert child.stdout is not None
        try:
            line = child.stdout.readline()
            if not line.strip():
                err.seek(0)
                raise RuntimeError(f"{list(command)} did not start: {err.read().decode(errors='replace')[-2000:]}")
            yield json.loads(line), child.pid
        finally:
            child.kill()
            child.communicate()


def give_precedence(pid: int) -> bool:
    """Have a process run as soon as it is ready, however busy the machine is; return whether this user may say so.

    For one that sleeps most of the time: what computes would keep a core from everything else.
    """
    # Linux has it, for root and who else has CAP_SYS_NICE.
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
        return True
    return False


def rotate(items: Sequence[Any], repeats: int) -> Iterator[Any]:
    """Yield every item once a round, each round beginning with another one, so that no item is always first."""
    for turn in range(repeats):
        shift = turn % len(items)
        yield from [*items[shift:], *items[:shift]]


def median(values: Sequence[float | None]) -> float | None:
    """The median of what was measured; None of nothing."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def quantile(values: Sequence[float], p: float) -> float | None:
    """The p-quantile, the nearest rank; None when there are too few values for it."""
    ranked = sorted(values)
    return ranked[min(int(len(ranked) * p), len(ranked) - 1)] if len(ranked) >= 1 / (1 - p) else None


def ratio(figure: float | None, base: float | None) -> float | None:
    """How many times `base` a figure is."""
    return None if figure is None or not base else figure / base


def without_verdicts(result: Result) -> Result:
    """A result of sizes too small to judge by: no goal is met or missed, and no figure is a multiple of another."""
    return dataclasses.replace(
        result,
        goals=[dataclasses.replace(goal, value=None) for goal in result.goals],
        tables=[
            dataclasses.replace(
                table,
                rows=[{name: None if "×" in name else value for name, value in row.items()} for row in table.rows],
            )
            for table in result.tables
        ],
    )


def as_json(result: Result, *, name: str, title: str) -> dict[str, Any]:
    """A result as JSON: `name`, `title`, `tables` with their rows, `goals` with what was met, `notes`."""
    goals = [{**dataclasses.asdict(goal), "met": goal.is_met} for goal in result.goals]
    tables = [{"title": table.title, "rows": [dict(row) for row in table.rows]} for table in result.tables]
    return {"name": name, "title": title, "tables": tables, "goals": goals, "notes": list(result.notes)}
