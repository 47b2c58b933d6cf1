"""One process's run of an experiment that several processes run, one after another or at once."""

from multiprocessing.connection import Connection

import distributed

import famnb

CELLS_PER_PROMPT = 4


def run(url: str, key: str, ledger: str, prompts: int, concurrency: int, on: str | None, say: Connection) -> None:
    """Run what is left of it, on the Dask cluster whose scheduler is at `on` if one is.

    Says "started", then how many cells it completed or why it could not run.
    """
    client = famnb.Client(base_url=url, api_key=key, ledger=ledger)
    exp = famnb.Experiment(
        [f"Question {number}" for number in range(prompts)],
        famnb.grid(model=["fam-2-5-pro", "fam-2-5-mini"], endpoint="messages"),
        repeats=2,
        name="shared",
        client=client,
        max_tokens=16,
        stream=False,
    )
    cluster = None if on is None else distributed.Client(on)
    say.send("started")
    try:
        report = exp.run(concurrency=concurrency, progress=False, on=cluster)
    except famnb.FamnbError as error:
        say.send(str(error))
    else:
        say.send(report.completed)
