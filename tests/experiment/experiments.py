"""Small experiments on the local service, and how their cells stand."""

import collections

import famnb

GRID = famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages")


def small_experiment(client, *, prompts=3, repeats=2, name="exp", **options):
    texts = [f"Question {number}" for number in range(prompts)]
    return famnb.Experiment(texts, GRID, repeats, name=name, client=client, max_tokens=16, **options)


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


def kill_process(process):
    process.kill()
    process.join()
