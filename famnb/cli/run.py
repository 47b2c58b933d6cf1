"""`famnb run`: carries out an experiment or a load of a TOML file, and says whether it keeps its limits.

Exit status: 0 if every limit is kept, 1 if one is broken, 2 if there is not enough to tell, which is never a pass:
calls that are not answered, a service that is down, intervals that hold a limit. Running again resumes.
`famnb run --schema` prints the JSON Schema of the file, for editors. A file with every table:

    name = "capitals"                        # what famnb.Experiment takes, under the same names
    prompts = "capitals.csv"                 # beside this file; or a list of texts or tables
    repeats = 3
    primary = "score_exact"                  # declared before: what decides, by how much it may be worse,
    margin = 0.05                            # and how often the data are looked at while they grow
    looks = 2
    scorers = ["exact", { contains = { expected = "Paris" } }]

    [fields]                                 # of every request
    max_tokens = 64
    [grid]                                   # or [[variants]]
    model = ["fam-2-5-pro", "fam-2-5-mini"]
    [client]                                 # what famnb.connect takes
    profile = "openai"
    [run]
    budget_usd = 1.0
    [check]                                  # what Experiment.check takes
    min = { score_exact = 0.9 }
    [against]                                # no worse than an earlier run, by more than a margin
    baseline = "capitals-baseline.json"      # or a list of them, its runs
    margin = { e2e_s = "10%", score_exact = 0.05 }

With [load] in place of what follows the prompts, it is a load, each of whose steps is to keep the slo:

    [load]                                   # what famnb.Load takes
    rate = [1, 2, 4]
    duration = "60s"
    slo = { ttft_s = 0.5 }
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from famnb import plot
from famnb.api import Client
from famnb.cli.run_file import LoadTable, RunFile, make_client, make_experiment, make_load, read_run_file
from famnb.errors import FamnbError, InvalidRequest
from famnb.experiment.check import Outcome, iterate_rows
from famnb.formatting import format_count, html_table
from famnb.load.measure import STEP_COLUMNS, Verdict, step_rows
from famnb.report import figure_html
from famnb.widget.html.page import PageSection, page_html, write_page
from famnb.widget.html.sanitize import SafeHtml

STATUSES: dict[Outcome, int] = {"pass": 0, "fail": 1, "unknown": 2}
"""The exit status of each outcome."""
_OF_VERDICT: dict[Verdict, Outcome] = {
    "met": "pass",
    "measured": "pass",
    "missed": "fail",
    "growing": "fail",
    "unclear": "unknown",
    "invalid": "unknown",
}
Row = tuple[str, str, Outcome, str]
"""Variant or step, metric, outcome, why."""
_LOAD_HEAD = SafeHtml("<p>Load report</p><h1>{name}</h1><ul class=lines>{lines}</ul>")
_LINE = SafeHtml("<li>{}</li>")


def declare(parser: argparse.ArgumentParser) -> None:
    """An experiment or a load of a TOML file; exit 0 pass, 1 fail, 2 not enough to tell."""
    parser.add_argument("file", nargs="?", type=Path, metavar="EXP.toml", help="what to run")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of such a file, and run nothing")
    parser.add_argument("--budget", metavar="USD", help="the most that the calls may cost, in place of the file's")
    parser.add_argument("--report", metavar="FILE.html", type=Path, help="write the report")
    parser.add_argument("--junit", metavar="FILE.xml", type=Path, help="write the outcomes as JUnit XML")
    parser.add_argument("--json", metavar="FILE", help="write the outcomes as JSON; - is standard output")
    parser.add_argument("--save-baseline", metavar="FILE.json", type=Path, help="keep the answers for [against]")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the file and return the exit status."""
    if options.schema:
        print(json.dumps(RunFile.model_json_schema(), indent=2))
        return 0
    if options.file is None:
        print("famnb: run: give a file, or --schema", file=sys.stderr)
        return 2
    # With the outcomes on standard output, what people read goes beside it.
    out = sys.stderr if options.json == "-" else sys.stdout
    try:
        file = read_run_file(options.file)
        if options.budget is not None:
            file.run.budget_usd = options.budget
        with contextlib.redirect_stdout(out), make_client(file) as client:
            if file.load is not None:
                rows, summary = _run_load(file, file.load, client, options)
            else:
                rows, summary = _run_experiment(file, client, options)
    except (FamnbError, OSError) as error:
        # Not 1, which says that a limit is broken.
        print(f"famnb: {error}", file=sys.stderr)
        return STATUSES["unknown"]
    outcomes = [outcome for _, _, outcome, _ in rows]
    outcome: Outcome = "fail" if "fail" in outcomes else "unknown" if "unknown" in outcomes else "pass"
    for line in summary:
        print(line, file=out)
    for variant, metric, result, why in rows:
        print(f"{result:<8}{variant}: {metric}: {why}", file=out)
    print(outcome if outcome != "unknown" else "not enough to tell", file=out)
    if options.junit is not None:
        options.junit.write_bytes(_make_junit(file.name, rows))
    if options.json:
        names = ("variant", "metric", "outcome", "why")
        table = [dict(zip(names, row, strict=True)) for row in rows]
        text = json.dumps({"name": file.name, "outcome": outcome, "rows": table})
        if options.json == "-":
            print(text)
        else:
            Path(options.json).write_text(f"{text}\n", encoding="utf-8")
    return STATUSES[outcome]


def _run_experiment(file: RunFile, client: Client, options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    experiment = make_experiment(file, client)
    report = experiment.run(**file.run.model_dump(exclude_none=True))
    experiment.score()
    frame = experiment.frame()
    answered = int(frame["status"].isin(["completed", "incomplete"]).sum())
    rows, total = list[Row](), format_count(len(frame), "call")
    if not answered:
        rows.append((experiment.name, "calls", "unknown", f"none of {total} was answered"))
    else:
        if file.check is not None:
            check = experiment.check(**file.check.model_dump())
            rows += iterate_rows(check.table)
        if file.against is not None:
            against = file.against.model_dump()
            earlier, margin = against.pop("baseline"), against.pop("margin") or None
            rows += iterate_rows(experiment.check(against=earlier, margin=margin, **against).table)
    if 0 < answered < len(frame):
        rows.append((experiment.name, "calls", "unknown", f"{answered:,} of {total} were answered"))
    if not rows:
        rows.append((experiment.name, "calls", "pass", f"all of {total} were answered"))
    if options.report is not None:
        experiment.report(options.report)
    if options.save_baseline is not None:
        experiment.save_baseline(options.save_baseline)
    return rows, [str(report)]


def _run_load(
    file: RunFile, table: LoadTable, client: Client, options: argparse.Namespace
) -> tuple[list[Row], list[str]]:
    if options.save_baseline is not None:
        raise InvalidRequest("--save-baseline: a load has no baseline; it is held to its slo")
    load = make_load(file, table, client)
    report = load.run(budget_usd=file.run.budget_usd)
    rows = list[Row]()
    for step in report.steps:
        answered, total = step.n - step.failed, format_count(step.n, "call")
        outcome, why = _OF_VERDICT[step.verdict], step.note or step.verdict
        if not answered:
            outcome, why = "unknown", f"none of {total} was answered"
        elif step.verdict == "measured" and step.failed:
            outcome, why = "unknown", f"{answered:,} of {total} were answered"
        rows.append((step.label, "objective", outcome, why))
    planned = max(len(load.rates), 1)
    if len(report.steps) < planned:
        rows.append((load.name, "steps", "unknown", f"{len(report.steps)} of {planned} were measured"))
    if options.report is not None:
        head = _LOAD_HEAD.format(name=load.name, lines=SafeHtml().join(map(_LINE.format, report.sentences)))
        sections = [
            PageSection("What each step met", SafeHtml(html_table(STEP_COLUMNS, step_rows(report.steps)))),
            PageSection("Plots", figure_html(plot.load(load.frame()))),
        ]
        write_page(options.report, page_html(load.name, head, sections))
    return rows, [str(report)]


def _make_junit(name: str, rows: list[Row]) -> bytes:
    """Return the outcomes as JUnit XML; what is not known is an error, so that it does not pass there either."""
    counts = {outcome: str(sum(row[2] == outcome for row in rows)) for outcome in STATUSES}
    suites = ElementTree.Element("testsuites")
    totals: dict[str, Any] = {"tests": str(len(rows)), "failures": counts["fail"], "errors": counts["unknown"]}
    suite = ElementTree.SubElement(suites, "testsuite", name=name, **totals)
    for variant, metric, outcome, why in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=variant, name=metric)
        if outcome != "pass":
            ElementTree.SubElement(case, "failure" if outcome == "fail" else "error", message=why).text = why
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))
