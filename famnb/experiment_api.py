"""The public Experiment: BaseExperiment with a live view, ballot, report.

It is a module apart from `api` because it needs pandas and ipywidgets, which a script with a Client must not wait for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.plan import Cell
from famnb.experiment.progress import RunReport
from famnb.experiment.runner import Executor, Run
from famnb.report import report_html
from famnb.widget.experiment.ballot import Ballot
from famnb.widget.experiment.matrix import Matrix
from famnb.widget.experiment.run_view import ShownRun
from famnb.widget.html.page import write_page


class Experiment(BaseExperiment):
    """Prompts times variants times repeats, run within a budget, resumed wherever it stopped, and framed.

        exp = famnb.Experiment(
            "questions.csv",
            famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint=["messages", "web"], temperature=[0, 0.7]),
            repeats=5, name="first", client=client, template="Answer in one sentence: {question}", max_tokens=128,
        )
        exp.plan()                                      # one row a call, in order; nothing is sent
        exp.forecast()                                  # tokens, cost, time as intervals, and the most it can cost
        exp.run(concurrency=16, budget_usd=2.0)         # a bar with spend, time left, failures; returns a report
        exp.frame(); exp.summary(); exp.report("report.html")
        exp.against("earlier"); exp.check(max={"cost_usd": 0.01}, min={"score_exact": 0.9})
        exp.score(budget_usd=1); exp.vote(); exp.ranking()
        famnb.plot.pareto(exp.frame(), by="variant", score="score_votes")

    `prompts` is a list of texts, a list of rows, a frame, a dataset of Hugging Face, or a `.csv`, `.jsonl`, `.json`,
    `.parquet` or `.xlsx` file (the last two with `famnb[scale]`). A row has a `prompt`, or fills the `template`;
    `{name}` in it is filled with the row's value of that name, and `id` names the row. Values that no slot uses are an
    error unless they are `expected` or named in `keep`: those are for scorers. So is a value that is missing, as an
    empty one in a CSV file is. What `keep` names is a column of the frame too:
    `famnb.plot.latency(exp.frame(), by="topic")`.
    `variants` is what `famnb.grid` makes, a list of mappings, or a mapping of labels to mappings; a variant's `client`
    carries its calls instead of `client`, and all of them record in one ledger. All other keyword arguments are fields
    of every request, such as `system=` or `max_tokens=`; answers are streamed unless `stream=False`. Each request is
    made `repeats` times; before them come `warmup` calls of every variant, marked as such. Each prompt and repeat is a
    block with every variant in it, shuffled by `seed`.
    `primary` is the metric that decides, `margin` how much worse a variant may be and still be as good (0.05 or "10%"
    of the primary metric, or by metric), `looks` how often the data will be looked at while they grow: declared before,
    they decide how `summary`, `against` and `check` judge; see `summary`. `repeat_run` runs the plan again.
    `name`, together with what is asked and of which service, finds earlier calls in the ledger, so that running again
    resumes. A rehearsal on the simulation answers nothing of the real service's cells.
    What `run(wait=False)` returns shows itself in a notebook as a bar with spend, times, failures and Stop;
    `run.progress`, `run.stop()` and `run.wait()` are for cells. Without a `client`, `famnb.connect()` finds one when
    the first call is made or read. Raises InvalidRequest, naming the row or the variant, before anything is sent.
    """

    def make_run(self, todo: Sequence[Cell], report: RunReport, executor: Executor, **options: Any) -> Run:
        return ShownRun(todo, report, executor, **options)

    def vote(self, n: int | None = None, *, voter: str = "", seed: int | None = None) -> Ballot:
        """A ballot: `n` pairs of answers to the same prompt, or all, to be judged without knowing whose they are.

        Buttons, or keys once the ballot has the focus: left and right arrow or 1 and 2 for the better one, T tie,
        S skip, U undo, R results. Each vote is kept in the ledger at once, so that a ballot goes on where it was left;
        `votes()` and `ranking()` read them, also for several people who give their name as `voter`. `seed` decides
        which pairs, in which order, and which answer stands left; the experiment's own unless given.
        Raises InvalidRequest if there are no two answers to compare.
        """
        return Ballot(self, n=n, voter=voter, seed=seed)

    def matrix(self) -> Matrix:
        """A table of the answers, a row a prompt and a column a variant, to be read, graded and noted on by hand.

        A grade is pass, fail or a number; each is kept in the ledger at once, and is the score `score_grade`.
        """
        return Matrix(self)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write what there is of this experiment to one HTML file, replacing it if it exists; return its path.

        First the trade-off, as a sentence and a table of what each variant gained and lost; then findings, tables,
        figures, plan, settings, forecast and outcome, sample answers, failures, prices and versions. `options` are
        those of `summary`, such as `baseline=`, `primary=` and `slo=`. The file loads nothing and runs nothing, so that
        it can be sent, kept and printed; it is light or dark as its reader's system is. Raises OSError where it cannot
        be written, InvalidRequest for options that the experiment has not, LedgerError if the ledger cannot be read.
        """
        return write_page(path, report_html(self, **options))
