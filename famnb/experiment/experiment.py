"""BaseExperiment: an experiment's plan, forecast, run, frame, scores, votes and summary.

`famnb.Experiment` in `experiment_api.py` adds what needs higher floors: ballot, report, a live view.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, TypeAlias

import pandas as pd

from famnb import stats
from famnb.client import connected
from famnb.client.auth import VARIABLE
from famnb.client.batch import CONCURRENCY, FEW_CALLS, is_watched
from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS
from famnb.errors import InvalidRequest
from famnb.experiment import services, votes
from famnb.experiment.baseline import check_frame, compare_frames, read_baseline, save_baseline
from famnb.experiment.budget import NO_BUDGET, Budget, parse_budget, worst_cases
from famnb.experiment.check import CheckResult, check_limits
from famnb.experiment.dask_executor import DaskExecutor
from famnb.experiment.forecast import Forecast, forecast, read_history
from famnb.experiment.judge import Judge
from famnb.experiment.metrics import DEFAULT_MARGIN, MEASURED_COLUMNS, Failed, Margin, check_margins, find_metric
from famnb.experiment.plan import Cell, model_of, plan_cells, plan_frame
from famnb.experiment.progress import RunReport, VariantProgress
from famnb.experiment.prompts import Prompt, Source, parse_prompts
from famnb.experiment.resume import (
    ANSWERED,
    ResumeState,
    check_writable,
    counted_costs,
    failures,
    join_calls,
    read_earlier,
    read_resume_state,
)
from famnb.experiment.run_lock import lock_run
from famnb.experiment.runner import Executor, LocalExecutor, Run, follow
from famnb.experiment.score import Span
from famnb.experiment.scorers import Scorer, parse_scorers
from famnb.experiment.scoring import (
    AnsweredCell,
    ScoreReport,
    Scoring,
    judge_agreements,
    judge_call_ids,
    read_judge_calls,
    read_scores,
    score_locally,
    scores_by_cell,
)
from famnb.experiment.shared import KEPT, read_shared
from famnb.experiment.summary import COST_COLUMNS, Summary, drop_warmups, format_costs, sum_costs, summary
from famnb.experiment.toml_file import write_experiment_file
from famnb.experiment.variants import Variant, Variants, parse_variants
from famnb.formatting import format_count
from famnb.frame.calls import CallsFrame
from famnb.profiles import DEFAULT, find_endpoints
from famnb.record import Ledger, ratings
from famnb.record.ratings import RecordedScore, RecordedVote
from famnb.record.shared import open_shared
from famnb.validation import check_integer, check_text

Earlier: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | BaseExperiment"
"""An experiment to compare with; a text is its name, or the path of a file that `save_baseline` wrote."""
_ARGUMENTS = ("repeats", "scorers", "seed", "warmup", "template", "keep", "client", "primary", "margin", "looks")
"""What a misspelled field may have been meant to be."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Recorded:
    """What the ledger has of an experiment at one moment."""

    frame: pd.DataFrame
    """See `BaseExperiment.frame`."""
    answers: tuple[AnsweredCell, ...]
    scores: tuple[RecordedScore, ...]
    """Those of the answers, of whatever scorer."""
    votes: Sequence[RecordedVote]


class BaseExperiment:
    """Prompts times variants times repeats; the name and the content identify it when it resumes."""

    def __init__(
        self,
        prompts: Source,
        variants: Variants | None = None,
        repeats: int = 1,
        scorers: Iterable[Any] = (),
        *,
        name: str,
        client: BaseClient | None = None,
        seed: int = 0,
        warmup: int = 0,
        template: str | None = None,
        keep: str | Iterable[str] = (),
        primary: str | None = None,
        margin: Margin | None = None,
        looks: int | None = None,
        **fields: Any,
    ) -> None:
        """See `famnb.Experiment`."""
        self.name = check_text("name", name, expected="a name for the experiment, which finds it when it resumes")
        self.prompts: tuple[Prompt, ...] = parse_prompts(prompts, template=template, keep=keep)
        self._endpoints = ENDPOINTS if client is None else client.endpoints
        self.fields = dict(fields)
        """Fields of every request; a variant's own fields win over them."""
        self.variants: tuple[Variant, ...] = parse_variants(
            variants,
            shared=self.fields,
            endpoints=self._endpoints,
            arguments=_ARGUMENTS,
        )
        self.repeats = check_integer("repeats", repeats, minimum=1)
        self.warmup = check_integer("warmup", warmup, minimum=0)
        self.seed = check_integer("seed", seed)
        self.scorers: tuple[Scorer | Judge, ...] = parse_scorers(scorers, endpoints=self._endpoints)
        self.primary = primary
        """The metric that decides, declared before; None if none was."""
        self.margin = margin
        """How much worse a variant may be, declared before; see `summary`."""
        check_margins(margin, primary or "e2e_s")
        self.looks = None if looks is None else check_integer("looks", looks, minimum=1)
        """How many looks at growing data were declared before."""
        self._client = client
        self._run: Run | None = None
        self._repeated: BaseExperiment | None = None
        """The further run that `repeat_run` began last."""
        self.replayed: dict[str, str] = {}
        """The recorded call that answered a cell, by the cell's key; the ledger has no further row of these."""
        self._opened: Ledger | None = None
        """The ledger of the file that it was opened from."""
        self._check_ledgers()
        for loss in dict.fromkeys(loss for variant in self.variants for loss in variant.losses):
            warnings.warn(f"{self.name}: {loss}", stacklevel=2)

    @classmethod
    def from_report(cls, data: bytes) -> Self:
        """Return the experiment in the data of a report: `famnb.open` reads them. Raises InvalidRequest."""
        shared = read_shared(data)
        experiment = cls.__new__(cls)
        for name in KEPT:
            setattr(experiment, name, getattr(shared, name))
        experiment.prompts, experiment.variants = tuple(shared.prompts), shared.plan_variants()
        experiment.scorers, experiment.margin = (*shared.scorers, *shared.judges), shared.margin
        experiment._endpoints = find_endpoints(shared.profile)
        experiment._client = experiment._run = experiment._repeated = None
        experiment._opened = open_shared(shared.record)
        for size, planned in shared.looked:
            ratings.record_look(experiment._opened, shared.name, size, planned)
        # As they were planned: what is asked of which service is not known without the clients.
        experiment.__dict__["cells"] = shared.plan_cells()
        return experiment

    def __repr__(self) -> str:
        counts = (len(self.prompts), "prompt"), (len(self.variants), "variant"), (self.repeats, "repeat")
        return f"<Experiment {self.name}: {' × '.join(format_count(n, noun) for n, noun in counts)}>"

    @property
    def client(self) -> BaseClient:
        """The client that carries the calls of variants without one of their own, and of judges.

        If none was given and each variant has its own, it is the first variant's. Raises InvalidRequest without any.
        """
        if self._client is None:
            clients = [variant.client for variant in self.variants if variant.client]
            if len(clients) == len(self.variants):
                self._client = clients[0]
            elif connected.connect is None:
                raise InvalidRequest("client: expected a client that carries the calls; call famnb.connect()")
            else:
                self._client = connected.connect()
            self._check_ledgers()
        return self._client

    @property
    def ledger(self) -> Ledger:
        """The ledger that its clients record in. Raises InvalidRequest for a client that does not record."""
        return self._opened or _ledger_of(self.client)

    def _check_ledgers(self) -> None:
        """Raise InvalidRequest unless all clients record in one ledger."""
        clients = [*([self._client] if self._client else []), *filter(None, map(attrgetter("client"), self.variants))]
        paths = dict.fromkeys(_ledger_of(client).path.resolve() for client in clients if clients[1:])
        if len(paths) > 1:
            raise InvalidRequest(
                "client: the clients of one experiment record in one ledger, but these in "
                f"{', '.join(map(str, paths))}: make them with the same ledger="
            )

    def _client_of(self, cell: Cell) -> BaseClient:
        return cell.variant.client or self.client

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every planned call, in order."""
        clients: dict[str, BaseClient | None] = {
            variant.fields["client"]: variant.client for variant in self.variants if variant.client
        }
        if not all(variant.client for variant in self.variants):
            # Planning starts nothing: without a key in the environment, a client would start the embedded service.
            clients[""] = self.client if os.getenv(VARIABLE) else self._client
        name_service = services.name_services(clients)
        return plan_cells(
            self.prompts,
            self.variants,
            repeats=self.repeats,
            warmup=self.warmup,
            seed=self.seed,
            shared=self.fields,
            service_of=lambda variant, endpoint: name_service(
                variant.fields["client"] if variant.client else "", endpoint
            ),
            endpoints=self._endpoints,
            profile=DEFAULT if self._client is None else self._client.profile.name,
        )

    def plan(self) -> pd.DataFrame:
        """One row a planned call, in order; nothing is sent.

        The columns: order, cell (its key, which holds what is asked and of which service), prompt_id, prompt, each tag
        of the prompts (`keep=`), variant, endpoint, model, each field in which variants differ (`client` by name),
        repeat (from 0), warmup.
        """
        return self._plan.copy()

    @cached_property
    def _plan(self) -> pd.DataFrame:
        return plan_frame(self.cells, self.variants, shared=self.fields)

    def forecast(self, *, concurrency: int = CONCURRENCY) -> Forecast:
        """Forecast the tokens, USD and seconds that the calls still to be made will take, as 95 % intervals.

        It is made from the ledger's calls that the same service answered, of the same model, endpoint and settings, or
        of the same model at least: each row says from which and how many. With fewer than five, or with answers that a
        lower cap cut short, only the ceiling is known, which is caps times prices; without a price there is no cost.
        Nothing is sent. Raises LedgerError if the ledger cannot be read.
        """
        check_integer("concurrency", concurrency, minimum=1)
        state = read_resume_state(self.ledger, self.name)
        done = {cell.key for cell in self.cells if state.is_done(cell.key, retry_failed=False)}
        return forecast(
            self.cells,
            read_history(self.ledger, {model_of(cell.request) for cell in self.cells}),
            done=done | self.replayed.keys(),
            variants=[variant.label for variant in self.variants],
            concurrency=min(concurrency, self._connections()),
        )

    def run(
        self,
        *,
        concurrency: int = CONCURRENCY,
        budget_usd: float | str | Decimal | None = None,
        retry_failed: bool = False,
        wait: bool = True,
        progress: bool | None = None,
        on: Any = None,
        worker_key: Callable[[], str] | None = None,
    ) -> RunReport | Run:
        """Run what is not answered yet and return a report; with `wait=False` return the `Run` at once.

        At most `concurrency` calls are in flight, fewer while a service throttles, never more than the client has
        connections. With `budget_usd`, an amount for this experiment, no call is started that could pass it: earlier
        runs count, calls in flight at their worst case. What failed is tried again only with `retry_failed`. `progress`
        shows a bar; by default where somebody is looking. Running again resumes, also in another process or after a
        crash; what another service answered, or a simulation, does not count. Only one run of an experiment goes at a
        time; none while the ledger cannot be written, since its calls would be paid for again. `exp.stop()` and the
        kernel's interrupt keep all that had come.
        A call's worst case is a token for each byte of its request, and its output cap. A call whose cost is not known
        counts at its worst, a refusal and a replayed reply as nothing, and so does a try that the client makes again.
        Trouble that keeps calls from being made is no failure of a model, and uses no cell up. Where a service cannot
        be reached, or answers 429, 503 or 529, its calls pause, as long as it asks; after six such failures in a row it
        is given up. With 401, 402 or 403 the run ends at once. The report says why, and running again goes on.
        `on` is a `dask.distributed.Client` whose workers carry the calls, `concurrency` in all, 400 at most; what
        decides, counts and writes the ledger stays here. Workers use a key of their own: FAM_API_KEY in their
        environment (for the embedded service its own key, which workers started after `famnb.connect()` on this machine
        inherit), or what `worker_key()` returns there; they need this version of famnb and the way to the service.
        Workers may come and go: the calls of a lost one are kept as `interrupted` and counted at their worst, and their
        cells are run again, twice at most.

            with distributed.LocalCluster(n_workers=4) as cluster, distributed.Client(cluster) as dask_client:
                exp.run(on=dask_client, concurrency=256, budget_usd=20)

        Raises BudgetExceeded where not even one call fits the budget, InvalidRequest for a budget where a price is not
        known, for `on` without the `scale` extra and while another run of this experiment is under way, CredentialError
        where a worker has no key, LedgerError where calls cannot be recorded, Interrupted after an interrupt has
        stopped the run.
        """
        # Everything that can be refused is checked before the first call, cheap checks first.
        if self._opened is not None:
            raise InvalidRequest(
                f"{self.name} was opened from a file, which holds what was recorded: to ask more, make the experiment "
                "again with famnb.Experiment(exp.prompts, exp.variants, name=…, client=…)"
            )
        concurrency = check_integer("concurrency", concurrency, minimum=1)
        if on is not None and any(variant.client for variant in self.variants):
            raise InvalidRequest("on: variants with clients of their own are run by this process; run without on=")
        limit = None if budget_usd is None else parse_budget(budget_usd)
        worst = {} if limit is None else worst_cases(self.cells)
        ledger = self.ledger
        check_writable(ledger)
        with contextlib.ExitStack() as cleanup:
            cleanup.enter_context(lock_run(ledger.path, self.name))
            # Under the lock, so that no other run answers a cell between this look and the first call.
            state = read_resume_state(ledger, self.name)
            done = {cell.key for cell in self.cells if state.is_done(cell.key, retry_failed=retry_failed)}
            todo = [cell for cell in self.cells if cell.key not in done | self.replayed.keys()]
            budget = NO_BUDGET if limit is None else self._budget(limit, worst, state)
            if todo:
                budget.check_fits(todo[0].key)
            report = RunReport(
                name=self.name,
                planned=len(self.cells),
                skipped=len(self.cells) - len(todo),
                failed_before=sum(map(state.has_failed, done)),
                other_service=state.count_other_service(cell.key for cell in self.cells),
                variants=tuple(VariantProgress(label=variant.label) for variant in self.variants),
            )
            executor: Executor
            if on is None:
                executor = LocalExecutor(self._client_of, concurrency=concurrency, replayed=self.replayed)
                # The others would wait for a connection and time out.
                if concurrency > (limit_of_client := self._connections()):
                    warnings.warn(
                        f"concurrency: {concurrency}, but the client uses {limit_of_client} connections at most; make "
                        f"it with connections={concurrency}",
                        stacklevel=2,
                    )
                    concurrency = limit_of_client
            else:
                dask_executor = DaskExecutor(
                    on, client=self.client, recorder=ledger, concurrency=concurrency, key=worker_key
                )
                executor = cleanup.enter_context(contextlib.closing(dask_executor))
            run = self._run = self.make_run(
                todo,
                report,
                executor,
                concurrency=concurrency,
                budget=budget,
                # The lock and the workers belong to the run from here on.
                finish=cleanup.pop_all().close,
            )
        if not wait:
            return run
        shown = progress if progress is not None else len(self.cells) > FEW_CALLS and is_watched()
        try:
            follow(run, shown=shown)
        except KeyboardInterrupt:
            raise run.interrupt() from None
        return run.wait()

    def stop(self) -> None:
        """Stop the run under way, if there is one; from any thread. What had come is kept."""
        for run in (self._run, self._repeated and self._repeated._run):
            if run is not None:
                run.stop()

    def runs(self) -> tuple[Self, ...]:
        """The runs of the whole plan that the ledger has, each as an experiment of its own; this one is the first."""
        return self, *map(self._as_run, ratings.list_runs(self.ledger, self.name))

    def repeat_run(self, **options: Any) -> RunReport | Run:
        """Run the whole plan once more, such as on another day; `options` are those of `run`.

        How runs differ by themselves is not in one of them. Of several, before a change and after it, `against` and
        `check(against=…)` make the run the unit. A run that was not carried to its end is continued. What it calls is
        recorded under a name of its own, such as "first (run 2)"; `runs()` has all, `frame()` that of the first.
        """
        latest = self.runs()[-1]
        frame = latest.frame()
        if (frame["status"].isin(ANSWERED) | failures(frame)).all():
            number = 2 if latest is self else int(latest.name.rpartition(" ")[2].rstrip(")")) + 1
            latest = self._as_run(f"{self.name} (run {number})")
        self._repeated = latest
        return latest.run(**options)

    def _as_run(self, name: str) -> Self:
        """The same experiment under another name, with no call of its own yet."""
        twin = copy.copy(self)
        twin.name, twin._run, twin.replayed, twin._repeated = name, None, {}, None
        return twin

    def frame(self) -> pd.DataFrame:
        """One row a planned cell, in order: the plan's columns, `status`, the columns of `famnb.calls`, then scores.

        `status` is `planned` where there is no call yet, else that of the cell's completed call, else of its latest.
        `score_<name>` is a scorer's score, `score_votes` the share of its pairs that an answer won in people's votes;
        both can be missing. Scorers that need no call score what has come since; judges are asked by `score`.
        Raises LedgerError if the ledger cannot be read.
        """
        return self._read_recorded().frame

    def answers(self) -> tuple[AnsweredCell, ...]:
        """The cells that are answered, each with the id of its call; without warm-ups."""
        replayed = dict(self.replayed)  # A run may be filling it.
        frame = join_calls(self._plan, ledger=self.ledger, name=self.name, replayed=replayed)
        return _list_answers(self.cells, frame)

    def summary(
        self,
        *,
        baseline: str | None = None,
        primary: str | None = None,
        metrics: Iterable[str] | None = None,
        slo: Mapping[str, float] | None = None,
        failed: Failed = "zero",
        margin: Margin | None = None,
        level: float = 0.95,
    ) -> Summary:
        """Summarise what has been answered: figures of each variant, paired comparisons, and both in plain words.

        Every variant is compared with the `baseline`, the first unless named. The `primary` metric decides and is
        judged alone at `level`, by Holm's method if there are several comparisons of it; all comparisons of the other
        metrics are judged together. Unnamed it is what `Experiment(primary=…)` declared, else the first of `metrics`,
        else the first score, else goodput if there is an `slo`, else `e2e_s`. One that is named here, and was not
        declared, is exploratory: it is judged together with all that could have been named.
        `margin` is how much worse a variant may be and still be as good, in the metric's unit or as a share such as
        "10%", of the primary metric or by metric: {"score_exact": 0.05}; unless given, what `Experiment(margin=…)`
        declared. Words, and `standing` in `.pairs`, then say what is not worse, or equivalent, by the whole interval.
        Looking again at data that have grown makes false claims likelier. Looks are counted in the ledger, and each
        judges so strictly that all keep `level`: as declared by `Experiment(looks=…)`, or by which share of the plan is
        done (Lan and DeMets); beyond both by a confidence sequence. Variants that were not asked at one time are
        compared without a claim.
        `metrics` are columns of times, tokens, costs and scores; "success", the share of calls that did not fail;
        and "goodput", the share answered within every limit of `slo`, such as {"ttft_s": 0.5, "e2e_s": 5}. By default
        they are the scores, goodput, times, output tokens and cost that the calls have, and success if a call failed.
        With `failed="zero"` a failed call has the lowest score there can be (the scorer's own lowest, else 0 or the
        lowest that came), since who asked got nothing; with "drop" it has none, which favours a variant that fails on
        what is hard. Times, tokens and costs are always of answered calls.
        What rests on estimated token counts is compared at its least favourable ends, and marked `≈`. If nothing is
        clear, the words say how many pairs would show a difference. `.headline`, `.table`, `.pairs` and `.lines` hold
        the parts. Repeats of a prompt are averaged. The words end with how far judges may be trusted and what they
        cost, which is in none of the figures.
        Raises InvalidRequest for an unknown variant or metric, LedgerError if the ledger cannot be read.
        """
        # Once, since both need it and it may be an iterator.
        metrics = None if metrics is None or isinstance(metrics, str) else list(metrics)
        # One opening of the ledger for all that is read.
        with self.ledger.sharing():
            recorded = self._read_recorded(MEASURED_COLUMNS)
            judge_findings = self._describe_judges(recorded)
            declared = self._declare(recorded.frame, primary, metrics, margin, level)
        result = summary(recorded.frame, baseline=baseline, slo=slo, failed=failed, **declared)
        return dataclasses.replace(result, findings=(*result.findings, *judge_findings))

    def against(
        self,
        earlier: Earlier | list[Earlier] | tuple[Earlier, ...],
        *,
        primary: str | None = None,
        metrics: Sequence[str] | None = None,
        slo: Mapping[str, float] | None = None,
        failed: Failed = "zero",
        margin: Margin | None = None,
        level: float = 0.95,
    ) -> Summary:
        """Compare this experiment with an earlier one over the prompts that both have, variant by variant.

        `earlier` is the name of an experiment in this experiment's ledger, whose answers this one's scorers score;
        another Experiment; what its `frame()` returned; the path of a file that `save_baseline` wrote; or a list of
        them, its runs. All runs of either side count, see `repeat_run`: how they differ is in the intervals then. With
        one run a side it is not, as the notes say, but for times, of which 10 % is assumed.
        The other arguments are those of `summary`, and so is what is returned.
        Raises InvalidRequest if they have no variant or no prompt in common, LedgerError if the ledger cannot be read.
        """
        before: list[pd.DataFrame] = []
        for source in earlier if isinstance(earlier, list | tuple) else [earlier]:
            match source:
                case BaseExperiment():
                    before += [run.frame().assign(experiment=run.name) for run in source.runs()]
                case pd.DataFrame():
                    before.append(check_frame("against", source))
                case str() if not Path(source).is_file():
                    names = [source, *ratings.list_runs(self.ledger, source)]
                    before += [self._earlier_frame(name) for name in names]
                case str() | os.PathLike():
                    before.append(read_baseline(source))
                case _:
                    raise InvalidRequest(
                        "against: expected the name of an experiment, an Experiment, what its frame() returned, or the "
                        f"path of a saved baseline; got {source!r:.80}"
                    )
        after = [run.frame().assign(experiment=run.name) for run in self.runs()]
        declared = self._declare(after[0], primary, metrics, margin, level)
        return compare_frames(before, after, slo=slo, failed=failed, **declared)

    def _declare(
        self,
        frame: pd.DataFrame,
        primary: str | None,
        metrics: Sequence[str] | None,
        margin: Margin | None,
        level: float,
    ) -> dict[str, Any]:
        """The options of a comparison that depend on what was declared before the calls; counts it as a look."""
        main = primary or self.primary
        return {
            "primary": main,
            "metrics": metrics,
            "level": level,
            "margin": self.margin if margin is None else margin,
            "spans": self.score_spans(),
            "look": self._look(frame, level),
            # Whether the primary metric was chosen after the calls.
            "exploratory": main != self.primary or bool(metrics and not main),
        }

    def _look(self, frame: pd.DataFrame, level: float) -> stats.Look:
        """Count this look at the data in the ledger, and return the level at which it judges."""
        rows = drop_warmups(frame)
        tried = rows["status"].isin(ANSWERED) | failures(rows)
        # By variant: one that is added adds nothing to what is known of the others.
        size, planned = (int(part.value_counts().max()) for part in (rows["variant"][tried], rows["variant"]))
        if not size:
            return stats.Look(level=level, nominal=level)
        looks = ratings.record_look(self.ledger, self.name, size, planned)
        shares = [look_size / look_planned for look_size, look_planned in looks]
        return stats.look([look_size for look_size, _ in looks], shares, looks=self.looks, level=level)

    def save_baseline(self, path: str | os.PathLike[str]) -> Path:
        """Write this experiment's frame to a JSON file that `against` takes, also on another machine; return its path.

        Replaces the file if it exists. All runs are in it, see `repeat_run`, and prompts, but no answers. Raises
        OSError where it cannot be written.
        """
        frames = [run.frame().assign(experiment=run.name) for run in self.runs()]
        if len(frames) > 1:
            frames = [frame.assign(run=number) for number, frame in enumerate(frames)]
        return save_baseline(pd.concat(frames, ignore_index=True) if frames[1:] else frames[0], path)

    def to_toml(self, path: str | os.PathLike[str]) -> Path:
        """Write this experiment as a file for `famnb run`, replacing it if it exists; return its path.

        Limits and a baseline are added there, see `famnb run --help`. Scorers of one's own, judges and variants with
        clients of their own cannot stand in a file: InvalidRequest. Raises OSError where it cannot be written.
        """
        return write_experiment_file(self, path)

    def check(
        self,
        *,
        max: Mapping[str, float] | None = None,
        min: Mapping[str, float] | None = None,
        margin: Margin | None = None,
        baseline: str | None = None,
        against: Earlier | list[Earlier] | tuple[Earlier, ...] | None = None,
        slo: Mapping[str, float] | None = None,
        failed: Failed = "zero",
        level: float = 0.95,
    ) -> CheckResult:
        """Check that every variant keeps limits: at most `max`, at least `min`, such as max={"ttft_s_p95": 0.8}.

        Metrics are those of `summary`: of times the median (s), of names that end in `_p95` the 95th percentile, of
        scores, tokens and `cost_usd` (USD a call) the mean over prompts, of `success` and `goodput` the share of calls.
        A limit is kept if the whole interval of `level` is within it, and broken if the whole interval is beyond;
        else, and if calls are not answered yet or have no known cost, the outcome is unknown.
        With a `margin`, by default the one that was declared, each variant is to be no worse than the `baseline`, or
        with `against` than it was before, by more than that; see `summary` and `against`. It fails if it is clearly
        worse and not within. With `against` alone, 10 % is allowed, but not of times with one run a side.
        The result is true for a pass only: `assert exp.check(min={"score_exact": 0.9})`; `.outcome` is pass, fail or
        unknown, `.lines` say why, `.table` has a row for each variant and limit.
        Raises InvalidRequest for an unknown metric, LedgerError if the ledger cannot be read.
        """
        frame = self._read_recorded(MEASURED_COLUMNS).frame
        allowed, compared = self.margin if margin is None else margin, None
        options: dict[str, Any] = {"slo": slo, "failed": failed, "level": level}
        if against is not None and allowed is None:
            # All that is better or worse is in the summary of a first look.
            pairs = self.against(against, **options).pairs
            is_run = ~((pairs["first_runs"] == 1) & (pairs["second_runs"] == 1)).fillna(False)
            metrics = {name: find_metric(name) for name in pairs["metric"][pairs["n"] > 0]}
            allowed = {
                name: DEFAULT_MARGIN
                for name, metric in metrics.items()
                if metric.better != "neither" and (is_run.all() or not metric.is_speed)
            }
        options |= {"margin": allowed, "metrics": list(allowed) if isinstance(allowed, Mapping) else None}
        if against is not None:
            compared = self.against(against, **options)
        elif allowed is not None and len(self.variants) > 1:
            compared = self.summary(baseline=baseline, **options)
        return check_limits(
            frame,
            max=max,
            min=min,
            slo=slo,
            failed=failed,
            level=level,
            spans=self.score_spans(),
            compared=compared,
            look=self._look(frame, level),
        )

    def score_spans(self) -> dict[str, Span]:
        """The lowest and highest value that scores can have, by the name of their column, as far as they are known."""
        spans = {f"score_{scorer.name}": getattr(scorer, "span", None) for scorer in self.scorers}
        return {name: span for name, span in spans.items() if span}

    def score(
        self,
        *,
        again: bool = False,
        budget_usd: float | str | Decimal | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
    ) -> ScoreReport:
        """Score the recorded answers with every scorer, judges included, and return a report.

        Each score is kept in the ledger and not made again; with `again` those that came to nothing are, such as a
        verdict that could not be read. A judge's calls cost money: `judge_cost()` says how much so far, and a verdict
        that was paid for is never paid for twice. With `budget_usd` no call is sent that could pass it; all earlier
        rounds of this experiment's judges count, its own calls do not. Warm-up calls are not scored.
        Raises LedgerError if the ledger cannot be read, or not written while judges are to be asked, InvalidRequest for
        a budget if a price is not known, Interrupted after an interrupt, with what had come kept.
        """
        scoring = Scoring(
            answers=self.answers(),
            name=self.name,
            ledger=self.ledger,
            client=self.client,
            again=again,
            budget_usd=None if budget_usd is None else parse_budget(budget_usd),
            concurrency=check_integer("concurrency", concurrency, minimum=1),
            progress=progress,
        )
        return scoring.score(self.scorers)

    def votes(self) -> pd.DataFrame:
        """One row a vote, oldest first, those of judges included.

        The columns: voter (empty for a person who gave no name; `judge:…` for a model), prompt_id, repeat, left and
        right (the variants as they were shown), winner (left, right, tie or skip), better (the variant that won;
        missing for a tie), detail (a judge's reason), at (UTC), left_cell, right_cell, judge_call_id.
        Raises LedgerError if the ledger cannot be read.
        """
        return votes.table(ratings.read_votes(self.ledger, self.name), self.cells)

    def ranking(self, voter: str | None = None, *, level: float = 0.95) -> stats.Ranking:
        """Bradley–Terry strengths of the variants with intervals, from people's votes; see `famnb.stats.Ranking`.

        `voter` is one of the voters in `votes()`, or the name of a judge of pairs; None: all people. The intervals
        are for new prompts: a prompt's votes go together, and if several people voted, `notes` says so.
        Raises ValueError if the votes do not suffice, saying what is missing.
        """
        judge_voters = {judge.name: judge.voter for judge in self._judges if judge.pairwise}
        chosen = voter if voter is None else judge_voters.get(voter, voter)
        votes_cast = ratings.read_votes(self.ledger, self.name)
        if chosen is not None and votes_cast and chosen not in (voters := {vote.voter for vote in votes_cast}):
            raise InvalidRequest(
                f"voter: there are no votes of {voter!r}; there are of {', '.join(map(repr, sorted(voters)))}"
            )
        return votes.ranking(votes.duels(votes_cast, self.cells, voter=chosen), level=level)

    def judge_calls(self) -> pd.DataFrame:
        """The calls of this experiment's judges, as `famnb.calls` has them; `frame()` has none of them."""
        return read_judge_calls(self.ledger, self.name)

    def judge_cost(self) -> pd.Series[Any]:
        """What its judges have cost: calls, cost_usd, cost_low_usd, cost_high_usd (USD), unpriced_calls.

        A cost is missing if no call has one; `unpriced_calls` were answered, and are in none of the sums.
        """
        rows = self.judge_calls()
        sums = sum_costs(rows)
        unpriced_calls = sums["unpriced"] + sums["uncounted"]
        return pd.Series(
            {"calls": len(rows), **{name: sums[name] for name in COST_COLUMNS}, "unpriced_calls": unpriced_calls}
        )

    def make_run(self, todo: Sequence[Cell], report: RunReport, executor: Executor, **options: Any) -> Run:
        """Begin a run of some cells; see `Run`. `famnb.Experiment` makes one that shows itself in a notebook."""
        return Run(todo, report, executor, **options)

    def _budget(self, limit: Decimal, worst: dict[str, Decimal], state: ResumeState) -> Budget:
        """The budget with what earlier runs cost counted; simulated calls count in it if all are simulated."""
        simulated = {cell.key for cell in self.cells if state.is_simulated(cell.service)}
        is_rehearsal = len(simulated) == len(self.cells)
        counted = worst if is_rehearsal else {key: usd for key, usd in worst.items() if key not in simulated}
        spent = counted_costs(state.outcomes, self.ledger, simulated=is_rehearsal, worst=worst)
        return Budget(limit, counted.get, spent=spent)

    def _connections(self) -> int:
        """How many calls its clients can carry at once, each of which may be asked for all of them."""
        return min(client.engine.connections for client in {self._client_of(cell) for cell in self.cells})

    def _read_recorded(self, columns: Iterable[str] | None = None) -> _Recorded:
        """Read what there is of the planned cells, and score what scorers that need no call have not scored.

        The frame has the columns of `famnb.calls` named by `columns`, or all.
        """
        with self.ledger.sharing():
            frame = join_calls(
                self._plan, ledger=self.ledger, name=self.name, replayed=dict(self.replayed), columns=columns
            )
            return self._score_recorded(frame, self.cells)

    def _score_recorded(self, frame: pd.DataFrame, cells: Iterable[Cell]) -> _Recorded:
        """Add a column for each score to the frame, of which each row is a call of one of the cells."""
        answers = _list_answers(cells, frame)
        scores = read_scores(self.ledger, answers)
        # A new score follows the one that it replaces.
        scores += [score for _, score in score_locally(self.ledger, self.scorers, answers, scores)]
        votes_cast = ratings.read_votes(self.ledger, self.name)
        for name, values in scores_by_cell(self.scorers, answers, scores, votes_cast).items():
            frame[f"score_{name}"] = pd.array([values.get(cell) for cell in frame["cell"]], dtype="Float64")
        # A frame that is made of another one has none of its attributes.
        shown = CallsFrame(frame)
        shown.attrs = frame.attrs | {"score_spans": self.score_spans()}
        return _Recorded(shown, answers, tuple(scores), votes_cast)

    def _earlier_frame(self, name: str) -> pd.DataFrame:
        """The calls of another experiment in the ledger, of prompts that this one has, with scores."""
        rows = read_earlier(self.ledger, name)
        if rows.empty:
            raise InvalidRequest(f"earlier: the ledger has no call of an experiment {name!r}; runs() lists what it has")
        by_prompt = {cell.prompt.id: cell for cell in self.cells}
        shared = rows[rows["prompt_id"].isin(list(by_prompt))].reset_index(drop=True)
        keys = zip(shared["cell"], shared["prompt_id"], strict=True)
        cells = [dataclasses.replace(by_prompt[prompt_id], key=key) for key, prompt_id in keys]
        return self._score_recorded(shared, cells).frame

    @property
    def _judges(self) -> list[Judge]:
        return [scorer for scorer in self.scorers if isinstance(scorer, Judge)]

    def _describe_judges(self, recorded: _Recorded) -> list[str]:
        """How far judges may be trusted, and what they cost, a sentence each; none if no judge was asked."""
        checks = [
            votes.consistency(recorded.votes, self.cells, voter=judge.voter) for judge in self._judges if judge.pairwise
        ]
        lines = [f"Judge {check}." for check in checks if check.pairs]
        agreements = judge_agreements(self._judges, recorded.answers, recorded.scores, recorded.votes)
        lines += [f"Judge {agreement}." for agreement in agreements.values()]
        if not judge_call_ids(self.ledger, self.name):
            return lines
        rows = self.judge_calls()
        spent = format_costs(sum_costs(rows))
        lines.append(f"Calls of judges: {len(rows):,}; cost {spent}, in none of the figures above.")
        simulated = int(rows["simulated"].fillna(False).sum())
        share = "All" if simulated == len(rows) else f"{simulated:,} of {len(rows):,}"
        return lines + ([f"{share} verdicts were simulated: no model gave them."] if simulated else [])


def _list_answers(cells: Iterable[Cell], frame: pd.DataFrame) -> tuple[AnsweredCell, ...]:
    """The cells, one a row of the frame, that are answered; without warm-ups."""
    rows = zip(cells, frame["status"], frame["call_id"], frame["warmup"], strict=True)
    return tuple(
        AnsweredCell(cell, call_id) for cell, status, call_id, warmup in rows if status in ANSWERED and not warmup
    )


def _ledger_of(client: BaseClient) -> Ledger:
    ledger = getattr(client, "ledger", None)
    if not isinstance(ledger, Ledger):
        raise InvalidRequest("client: an experiment needs a client that records, such as famnb.connect() makes")
    return ledger
