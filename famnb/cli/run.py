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

With [load], the arguments of famnb.Load, it is a load, each of whose steps is to keep the slo.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from famnb.api import Client, connect
from famnb.errors import FamnbError, InvalidRequest
from famnb.experiment.check import Outcome, iterate_rows
from famnb.experiment.toml_file import ExperimentFile, make_scorer, read_experiment_file
from famnb.experiment.variants import grid
from famnb.experiment_api import Experiment
from famnb.formatting import format_count
from famnb.load import Load
from famnb.load.measure import Verdict

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
        print(json.dumps(ExperimentFile.model_json_schema(), indent=2))
        return 0
    if options.file is None:
        print("famnb: run: give a file, or --schema", file=sys.stderr)
        return 2
    # With the outcomes on standard output, what people read goes beside it.
    out = sys.stderr if options.json == "-" else sys.stdout
    try:
        file = read_experiment_file(options.file)
        if options.budget is not None:
            file.run.budget_usd = options.budget
        with contextlib.redirect_stdout(out), _make_client(file) as client:
            rows, summary = _run_load(file, client) if file.load is not None else _run_experiment(file, client, options)
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


def _run_experiment(file: ExperimentFile, client: Client, options: argparse.Namespace) -> tuple[list[Row], list[str]]:
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


def _run_load(file: ExperimentFile, client: Client) -> tuple[list[Row], list[str]]:
    load = _make_load(file, client)
    report = load.run(budget_usd=file.run.budget_usd)
    rows = [(step.label, "objective", _OF_VERDICT[step.verdict], step.note or step.verdict) for step in report.steps]
    return rows or [(load.name, "calls", "unknown", "no step was measured")], [str(report)]


def _make_client(file: ExperimentFile) -> Client:
    """Return the client that a file asks for. Raises InvalidRequest."""
    arguments = dict(file.client)
    if any(name.endswith("key") for name in arguments):
        raise InvalidRequest("client: a key does not belong into a file; put it into its environment variable")
    profile = arguments.pop("profile", None)
    try:
        return connect(profile, **arguments) if profile else connect(**arguments)
    except TypeError as error:
        raise InvalidRequest(f"client: {error}; expected what famnb.connect takes") from None


def make_experiment(file: ExperimentFile, client: Client) -> Experiment:
    """Return the experiment of a file. Raises InvalidRequest."""
    return Experiment(
        file.prompts,
        grid(**{"client": client, **file.grid}) if file.grid else file.variants or None,
        file.repeats,
        [make_scorer(item) for item in file.scorers],
        name=file.name,
        client=client,
        seed=file.seed,
        warmup=file.warmup,
        template=file.template,
        keep=file.keep,
        primary=file.primary,
        margin=file.margin,
        looks=file.looks,
        **file.fields,
    )


def _make_load(file: ExperimentFile, client: Client) -> Load:
    """Return the load of a file. Raises InvalidRequest."""
    try:
        return Load(file.prompts, name=file.name, client=client, **{**file.fields, **(file.load or {})})
    except TypeError as error:
        raise InvalidRequest(f"load: {error}; expected what famnb.Load takes") from None


def _make_junit(name: str, rows: list[Row]) -> bytes:
    """Return the outcomes as JUnit XML; what is not known is an error, so that it is no pass there either."""
    counts = {outcome: str(sum(row[2] == outcome for row in rows)) for outcome in STATUSES}
    suites = ElementTree.Element("testsuites")
    totals: dict[str, Any] = {"tests": str(len(rows)), "failures": counts["fail"], "errors": counts["unknown"]}
    suite = ElementTree.SubElement(suites, "testsuite", name=name, **totals)
    for variant, metric, outcome, why in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=variant, name=metric)
        if outcome != "pass":
            ElementTree.SubElement(case, "failure" if outcome == "fail" else "error", message=why).text = why
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))
