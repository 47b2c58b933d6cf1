"""Runs benchmarks: `famnb bench` starts this folder as a program; the benchmarks are the modules `bench_*.py`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import harness


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
    if options.list:
        for name in known:
            print(f"{name:<14}{harness.load_benchmark(name).TITLE}")
        return 0
    report = {"facts": harness.facts(), "quick": options.quick, "results": []}
    for name, value in report["facts"].items():
        print(f"{name}: {value}")
    for name in options.names or known:
        benchmark = harness.load_benchmark(name)
        result = benchmark.run(options.quick)
        if options.quick:
            result = harness.without_verdicts(result)
        harness.show(result, title=f"{name}: {benchmark.TITLE}")
        sys.stdout.flush()
        report["results"].append(harness.as_json(result, name=name, title=benchmark.TITLE))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
