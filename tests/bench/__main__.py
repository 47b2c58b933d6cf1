"""Runs benchmarks: `famnb bench` starts this folder as a program; the benchmarks are the modules `bench_*.py`."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import harness

from famnb.formatting import format_table


def main() -> int:
    """Run the benchmarks named, or all; the exit status is 0 if all of them ran, goals met or not."""
    known = harness.list_benchmarks()
    parser = argparse.ArgumentParser(prog="famnb bench", description="Benchmarks, side by side with their peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (default: all): {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="sizes so small that the figures mean nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to a file")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    benchmarks = {name: importlib.import_module(f"bench_{name}") for name in options.names or known}
    if options.list:
        for name, benchmark in benchmarks.items():
            print(f"{name:<14}{benchmark.TITLE}")
        return 0
    report = {"facts": harness.facts(), "quick": options.quick, "results": []}
    for name, value in report["facts"].items():
        print(f"{name}: {value}")
    for name, benchmark in benchmarks.items():
        result = benchmark.run(options.quick)
        if options.quick:
            result = harness.without_verdicts(result)
        show(result, title=f"{name}: {benchmark.TITLE}")
        sys.stdout.flush()
        report["results"].append(harness.as_json(result, name=name, title=benchmark.TITLE))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1))
    return 0


def show(result: harness.Result, *, title: str) -> None:
    """Print a result."""
    print(f"\n{title}\n{'=' * len(title)}")
    for table in result.tables:
        print(f"\n{table.title}\n{format_table(list(table.rows[0]), [map(_text, row.values()) for row in table.rows])}")
    for goal in result.goals:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[goal.is_met]
        bound = "at least" if goal.at_least else "at most"
        print(f"goal: {goal.claim}: {bound} {goal.limit:g}; measured {_text(goal.value)}: {verdict}")
    for note in result.notes:
        print(f"note: {note}")


def _text(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
        case _:
            return str(value)


if __name__ == "__main__":
    sys.exit(main())
