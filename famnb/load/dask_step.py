"""One step of a load from several machines: each Dask worker starts its share of the calls from a common moment on.

this process ── a share of the calls, a moment ──► worker: run_step, into a ledger of its own
    ledger   ◄── the calls, as a ledger ──────────
"""

from __future__ import annotations

import dataclasses
import functools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from famnb.client.client import BaseClient
from famnb.client.dask_worker import read_credential
from famnb.errors import Interrupted, InvalidRequest
from famnb.experiment.budget import Budget
from famnb.experiment.dask_executor import worker_settings
from famnb.load.step import MakeRequest, Step, StepEnd, run_step
from famnb.record.ledger import Ledger
from famnb.request import Request

# A worker has loaded everything by then, and needs little more than to read its share.
START_IN_S = 1.0
"""Seconds until the calls begin; clocks of several machines should agree far better."""
CLOSED_REQUESTS = 1000
"""How many requests a worker gets in a closed load, which it sends in turn."""


def run_step_on_workers(
    step: Step,
    make_request: MakeRequest,
    client: BaseClient,
    labels: dict[str, str],
    budget: Budget,
    dask_client: Any,
    key: Callable[[], str] | None,
) -> StepEnd:
    """Carry one step from every worker of a cluster and return how it ended, as `run_step` does.

    `key` tells the API key on a worker; None reads it from the environment there. Every worker may spend an equal share
    of the budget. Raises InvalidRequest without a worker, CredentialError if one has no key, Interrupted at the end of
    a step in which this process was interrupted.
    """
    settings, variable = worker_settings(dask_client, client)
    addresses = sorted(dask_client.nthreads())
    if not step.is_open:
        addresses = addresses[: int(step.amount)]
    if not addresses:
        raise InvalidRequest("on: the cluster has no worker yet: dask_client.wait_for_workers(1)")
    dask_client.run(is_ready, workers=addresses)
    limit = None if budget.limit is None else (budget.limit - budget.counted) / len(addresses)
    shares = []
    for index in range(len(addresses)):
        due = None if step.due is None else step.due[index :: len(addresses)]
        count = CLOSED_REQUESTS if due is None else len(due)
        requests = tuple(make_request(index + number * len(addresses)) for number in range(count))
        worst = () if limit is None else tuple(map(budget.worst_of, requests))
        amount = step.amount / len(addresses) if step.is_open else len(range(index, int(step.amount), len(addresses)))
        part = dataclasses.replace(step, due=due, amount=amount)
        share = functools.partial(carry_share, part, requests, labels, worst, limit, settings, variable, key)
        shares.append(share)
    at = time.time() + START_IN_S
    futures = [
        # On another worker if this one is lost: its calls are then too late, which makes the step invalid.
        dask_client.submit(share, at, workers=[address], allow_other_workers=True, pure=False)
        for address, share in zip(addresses, shares, strict=True)
    ]
    is_interrupted = False
    try:
        outcomes = dask_client.gather(futures)
    except KeyboardInterrupt:
        # A task that runs cannot be stopped, and what its calls cost must be recorded.
        is_interrupted, outcomes = True, dask_client.gather(futures)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.sqlite"
        for _, spent, data in outcomes:
            budget.counted += spent
            if data:
                path.write_bytes(data)
                client.ledger.load(path)
    if is_interrupted:
        raise Interrupted(f"{step.label} was carried to its end on the workers; run() again goes on with what follows")
    reasons, pauses_s = zip(*(end for end, _, _ in outcomes), strict=True)
    return next(filter(None, reasons), ""), max(pauses_s)


def is_ready() -> bool:
    """Whether a worker has loaded what it needs: to call this function loads it."""
    return True


def carry_share(
    step: Step,
    requests: Sequence[Request],
    labels: dict[str, str],
    worst: Sequence[Decimal | None],
    limit: Decimal | None,
    settings: Mapping[str, Any],
    variable: str,
    key: Callable[[], str] | None,
    at: float,
) -> tuple[StepEnd, Decimal, bytes]:
    """Carry a share of a step, on a worker, from a moment on in seconds since the epoch.

    `requests` are sent in their order, to be begun again at the end; `worst` is the most that each can cost in USD,
    empty without a `limit`, the most that all of them may cost. `settings` are those of the client, `variable` is the
    environment variable of the key, unless the function `key` tells it.
    Returns how it ended, what it counts for in USD, and its calls, as a ledger file; no bytes if there are none.
    """
    worst_by_id = dict(zip(map(id, requests), worst, strict=False))
    budget = Budget(limit, lambda request: worst_by_id[id(request)])
    credential = read_credential(variable, key, settings)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "share.sqlite")
        client = BaseClient(**settings, api_key=credential, ledger=ledger)
        try:
            end = run_step(
                step,
                lambda number: requests[number % len(requests)],
                client,
                labels,
                budget,
                progress=False,
                start=time.monotonic() + at - time.time(),
            )
            ledger.flush()
            path = Path(folder) / "calls.sqlite"
            count = ledger.export(path)
            return end, budget.counted, path.read_bytes() if count else b""
        finally:
            client.engine.shut_down().result()
            ledger.close()
