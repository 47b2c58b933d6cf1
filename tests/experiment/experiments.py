"""Small experiments on the local service, and how their cells stand."""

import collections
import itertools

import famnb
from famnb.experiment.plan import plan_cells
from famnb.experiment.prompts import parse_prompts
from famnb.experiment.variants import parse_variants

GRID = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")


def small_experiment(client, *, prompts=3, repeats=2, name="exp", **options):
    texts = [f"Question {number}" for number in range(prompts)]
    return famnb.Experiment(texts, GRID, repeats, name=name, client=client, max_tokens=16, **options)


def make_plan(texts, variants=None, **options):
    """The cells of a plan without a client."""
    options = {"repeats": 1, "warmup": 0, "seed": 0, "shared": {}} | options
    return plan_cells(parse_prompts(texts), parse_variants(variants, shared=options["shared"]), **options)


def statuses(exp):
    return {status: count for status, count in exp.frame()["status"].value_counts().items() if count}


def standings_by_cell(ledger):
    """How the calls of each cell stand, by the cell's key."""
    standings = collections.defaultdict(list)
    for row in ledger.select():
        standings[row["cell"]].append(row["standing"])
    return standings


def count_answers(standings):
    return sum(standing in ("completed", "incomplete") for standing in standings)


def assert_each_is_answered_once(ledger, cells, *, interrupted):
    """Each of so many cells has one answer, and all its other calls, at most so many, were cut off."""
    standings = standings_by_cell(ledger)
    assert len(standings) == cells
    assert set(map(count_answers, standings.values())) == {1}
    others = collections.Counter(itertools.chain(*standings.values()))
    assert set(others) <= {"completed", "incomplete", "interrupted"}
    assert others["interrupted"] <= interrupted


def kill_process(process):
    process.kill()
    process.join()
