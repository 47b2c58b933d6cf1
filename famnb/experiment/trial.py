"""The machine of an experiment: plan, run and frame; what needs widgets or figures is added above."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cached_property
from typing import Any

import pandas as pd

from famnb.client import Client
from famnb.client.caller import CONCURRENCY
from famnb.client.fanout import FEW, watched
from famnb.errors import InvalidRequest
from famnb.experiment import checks
from famnb.experiment.alone import Alone
from famnb.experiment.budget import Purse, amount, worst_cases
from famnb.experiment.checks import count, named
from famnb.experiment.cluster import OnDask
from famnb.experiment.executor import ByClient, Executor
from famnb.experiment.forecast import forecast
from famnb.experiment.foreseen import Forecast
from famnb.experiment.job import Job
from famnb.experiment.judge import Judge
from famnb.experiment.past import history
from famnb.experiment.plan import Cell, cells_of, model_of, plan_frame
from famnb.experiment.progress import RunReport, follow
from famnb.experiment.prompts import Prompt, Source, prompts_of
from famnb.experiment.results import joined
from famnb.experiment.runner import Run
from famnb.experiment.scorers import Scorer, scorers_of
from famnb.experiment.standing import standing, writable
from famnb.experiment.summary import Summary, summary
from famnb.experiment.tables import counted
from famnb.experiment.variants import Variant, Variants, checked, variants_of
from famnb.record import Ledger


class Trial:
    """Prompts times variants times repeats; the name and the content identify it when it resumes."""

    _runs: type[Run] = Run
    """What a run under way is; a floor above can have it show itself."""

    def __init__(
        self,
        prompts: Source,
        variants: Variants | None = None,
        repeats: int = 1,
        scorers: Iterable[Any] = (),
        *,
        name: str,
        client: Client | None = None,
        seed: int = 0,
        warmup: int = 0,
        template: str | None = None,
        keep: str | Iterable[str] = (),
        **fields: Any,
    ) -> None:
        """See `famnb.Experiment`."""
        self.name = named("name", name, what="a name for the experiment, which finds it when it resumes")
        self.prompts: tuple[Prompt, ...] = prompts_of(prompts, template=template, keep=keep)
        self.fields = dict(fields)
        """The fields of every request that its variant does not say otherwise."""
        self.variants: tuple[Variant, ...] = variants_of(variants, shared=self.fields)
        self.repeats = count("repeats", repeats, least=1)
        self.warmup = count("warmup", warmup, least=0)
        self.seed = count("seed", seed)
        self.scorers: tuple[Scorer | Judge, ...] = scorers_of(scorers)
        self._client = client
        self._run: Run | None = None
        self._replayed: dict[str, str] = {}
        """Cells that recorded calls answered, and which; the ledger has no further row of these."""
        for loss in {loss: None for variant in self.variants for loss in checked(variant, self.fields).losses}:
            warnings.warn(f"{self.name}: {loss}", stacklevel=2)

    def __repr__(self) -> str:
        counts = (len(self.prompts), "prompt"), (len(self.variants), "variant"), (self.repeats, "repeat")
        return f"<Experiment {self.name}: {' × '.join(counted(*each) for each in counts)}>"

    @property
    def client(self) -> Client:
        """The client that carries the calls; InvalidRequest without one."""
        if self._client is None:
            raise InvalidRequest("client: there is none; give the one that is to carry the calls")
        return self._client

    @property
    def ledger(self) -> Ledger:
        """The ledger that its client records in; InvalidRequest for a client without one."""
        found = getattr(self.client, "ledger", None)
        if not isinstance(found, Ledger):
            raise InvalidRequest("client: an experiment needs a client that records, such as famnb.connect() makes")
        return found

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every planned call, in its order."""
        return cells_of(
            self.prompts,
            self.variants,
            repeats=self.repeats,
            warmup=self.warmup,
            seed=self.seed,
            shared=self.fields,
        )

    def plan(self) -> pd.DataFrame:
        """One row a planned call, in order; nothing is sent.

        The columns: order, cell (its key), prompt_id, prompt, variant, endpoint, model, each varied field, repeat (from
        0), warmup.
        """
        return plan_frame(self.cells, self.variants, shared=self.fields)

    def forecast(self, *, concurrency: int = CONCURRENCY) -> Forecast:
        """What the calls that a run would still make will take: tokens, USD and seconds, as 95 % intervals.

        Made of the ledger's answered calls of the same model, endpoint and settings, or of those nearest to them: each
        row says of which and of how many. The ceiling is caps times prices, whatever the answers are. What is not known
        says so. Nothing is sent; LedgerError if the ledger cannot be read.
        """
        count("concurrency", concurrency, least=1)
        stands = standing(self.ledger, self.name)
        settled = {cell.key for cell in self.cells if stands.settled(cell.key, retry_failed=False)}
        past = history(self.ledger, {model_of(cell.request) for cell in self.cells})
        at_once = min(concurrency, self.client.connections)
        labels = [variant.label for variant in self.variants]
        return forecast(self.cells, past, done=settled | self._replayed.keys(), variants=labels, concurrency=at_once)

    def run(
        self,
        *,
        concurrency: int = CONCURRENCY,
        budget_usd: float | str | Decimal | None = None,
        rate: float | None = None,
        retry_failed: bool = False,
        wait: bool = True,
        progress: bool | None = None,
        on: Any = None,
        worker_key: Callable[[], str] | None = None,
    ) -> RunReport | Run:
        """Run what is not answered yet, and say what it came to; with `wait=False` return the `Run` at once.

        At most `concurrency` calls are in flight, fewer while a service throttles, never more than the client has
        connections; at most `rate` are started a second. With `budget_usd`, an amount for this experiment, no call is
        started that could pass it: earlier runs count, calls in flight at their worst case. What failed is tried again
        only with `retry_failed`. `progress` shows a bar; by default where somebody is looking. Running again resumes,
        also in another process or after a crash.
        `on` is a `dask.distributed.Client` whose workers carry the calls, `concurrency` of them in all; what decides,
        counts and writes the ledger stays here. Workers use a key of their own: FAM_API_KEY in their environment (for
        the embedded service its own key, which workers started after `famnb.connect()` on this machine inherit), or
        what `worker_key()` returns there. A cell whose worker is lost is run again, twice at most.
        Raises BudgetExceeded where not even one call fits the budget, InvalidRequest for a budget where a price is not
        known, for `on` without the `scale` extra and while another run of this experiment is under way, CredentialError
        where a worker has no key, LedgerError where calls cannot be recorded, Interrupted after an interrupt has
        stopped the run.
        """
        run = self._started(concurrency, budget_usd, rate, retry_failed, on, worker_key)
        if not wait:
            return run
        shown = progress if progress is not None else len(self.cells) > FEW and watched()
        try:
            follow(run, shown=shown)
        except KeyboardInterrupt:
            raise run.interrupted() from None
        return run.wait()

    def stop(self) -> None:
        """Stop the run under way, if there is one; from any thread. What had come is kept."""
        if self._run is not None:
            self._run.stop()

    def frame(self) -> pd.DataFrame:
        """One row a planned cell, in order: the plan's columns, `status`, then the columns of `famnb.calls`.

        `status` is `planned` where there is no call yet, else that of the cell's completed call, else of its latest.
        LedgerError if the ledger cannot be read.
        """
        return joined(self.plan(), ledger=self.ledger, name=self.name, replayed=dict(self._replayed))

    def summary(self, *, level: float = 0.95) -> Summary:
        """What has been answered so far shows: figures of each variant, paired comparisons, and both in plain words.

        Intervals are of `level`. The words claim a difference only where n carries it, and where it stays clear when
        all comparisons are allowed for. LedgerError if the ledger cannot be read.
        """
        return summary(self.frame(), level=level)

    def _started(
        self,
        concurrency: int,
        budget_usd: float | str | Decimal | None,
        rate: float | None,
        retry_failed: bool,
        on: Any,
        worker_key: Callable[[], str] | None,
    ) -> Run:
        concurrency = count("concurrency", concurrency, least=1)
        rate = checks.rate(rate)
        limit = None if budget_usd is None else amount(budget_usd)
        worst = {} if limit is None else worst_cases(self.cells)
        writable(self.ledger)
        alone = Alone(self.ledger.path, self.name)
        with contextlib.ExitStack() as at_end:
            at_end.callback(alone.release)
            stands = standing(self.ledger, self.name)
            settled = {cell.key for cell in self.cells if stands.settled(cell.key, retry_failed=retry_failed)}
            todo = [cell for cell in self.cells if cell.key not in settled | self._replayed.keys()]
            purse = None if limit is None else Purse(limit, worst=worst, spent=stands.counted(worst, self.ledger))
            if purse is not None and todo:
                purse.expect(todo[0].key)
            executor: Executor
            if on is None:
                at_once = self._at_once(concurrency)
                executor = ByClient(self.client, concurrency=concurrency)
            else:
                at_once = concurrency
                executor = OnDask(on, client=self.client, recorder=self.ledger, concurrency=concurrency, key=worker_key)
                at_end.callback(executor.close)
            job = Job(
                name=self.name,
                todo=todo,
                planned=len(self.cells),
                failed_before=sum(map(stands.failed, settled)),
                variants=[variant.label for variant in self.variants],
                executor=executor,
                concurrency=at_once,
                rate=rate,
                purse=purse,
                replayed=self._replayed,
                unrecorded=lambda: self.ledger.behind,
                finish=at_end.pop_all().close,
            )
        self._run = self._runs(job)
        return self._run

    def _at_once(self, concurrency: int) -> int:
        """As many as are asked for, but no more than there are connections, for which the others would only wait."""
        most = self.client.connections
        if concurrency > most:
            said = f"concurrency: {concurrency}, but the client uses {most} connections at most"
            warnings.warn(f"{said}; make it with connections={concurrency}", stacklevel=4)
        return min(concurrency, most)
