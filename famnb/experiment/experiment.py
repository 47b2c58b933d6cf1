"""The machine of an experiment: plan, run and frame; what needs widgets or figures is added above.

MERGED: An experiment with its scores and votes: the machine of `trial`, and what is thought of its answers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

import pandas as pd

from famnb import stats
from famnb.client.batch import FEW, watched
from famnb.client.client import CONCURRENCY, BlockingClient
from famnb.errors import InvalidRequest
from famnb.experiment import votes
from famnb.experiment.budget import Budget, amount, worst_cases
from famnb.experiment.dask.executor import DaskExecutor
from famnb.experiment.executor import ByClient, Executor
from famnb.experiment.forecast import Forecast, forecast
from famnb.experiment.forecast_history import history
from famnb.experiment.judge import Judge
from famnb.experiment.judge_runner import TAG, Jury, judge_calls
from famnb.experiment.plan import Cell, cells_of, model_of, plan_frame
from famnb.experiment.progress import RunReport, follow
from famnb.experiment.prompts import Prompt, Source, prompts_of
from famnb.experiment.resume import ANSWERED, joined, standing, writable
from famnb.experiment.run_lock import RunLock
from famnb.experiment.runner import Job, Run
from famnb.experiment.score import YES_NO
from famnb.experiment.scorers import Scorer, scorers_of
from famnb.experiment.scoring import Answer, ScoreReport, Scoring, scores_of, voter_of
from famnb.experiment.summary import Summary, summary
from famnb.experiment.variants import Variant, Variants, checked, variants_of
from famnb.formatting import format_count, format_usd
from famnb.frame.calls import calls
from famnb.record import Ledger, ratings
from famnb.validation import check_integer, check_number, check_text


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
        client: BlockingClient | None = None,
        seed: int = 0,
        warmup: int = 0,
        template: str | None = None,
        keep: str | Iterable[str] = (),
        **fields: Any,
    ) -> None:
        """See `famnb.Experiment`."""
        self.name = check_text("name", name, expected="a name for the experiment, which finds it when it resumes")
        self.prompts: tuple[Prompt, ...] = prompts_of(prompts, template=template, keep=keep)
        self.fields = dict(fields)
        """The fields of every request that its variant does not say otherwise."""
        self.variants: tuple[Variant, ...] = variants_of(variants, shared=self.fields)
        self.repeats = check_integer("repeats", repeats, minimum=1)
        self.warmup = check_integer("warmup", warmup, minimum=0)
        self.seed = check_integer("seed", seed)
        self.scorers: tuple[Scorer | Judge, ...] = scorers_of(scorers)
        self._client = client
        self._run: Run | None = None
        self._replayed: dict[str, str] = {}
        """Cells that recorded calls answered, and which; the ledger has no further row of these."""
        for loss in {loss: None for variant in self.variants for loss in checked(variant, self.fields).losses}:
            warnings.warn(f"{self.name}: {loss}", stacklevel=2)

    def __repr__(self) -> str:
        counts = (len(self.prompts), "prompt"), (len(self.variants), "variant"), (self.repeats, "repeat")
        return f"<Experiment {self.name}: {' × '.join(format_count(*each) for each in counts)}>"

    @property
    def client(self) -> BlockingClient:
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
        check_integer("concurrency", concurrency, minimum=1)
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
        concurrency = check_integer("concurrency", concurrency, minimum=1)
        if rate is not None:
            rate = check_number("rate", rate, above=0, expected="a number of calls a second above 0")
        limit = None if budget_usd is None else amount(budget_usd)
        worst = {} if limit is None else worst_cases(self.cells)
        writable(self.ledger)
        alone = RunLock(self.ledger.path, self.name)
        with contextlib.ExitStack() as at_end:
            at_end.callback(alone.release)
            stands = standing(self.ledger, self.name)
            settled = {cell.key for cell in self.cells if stands.settled(cell.key, retry_failed=retry_failed)}
            todo = [cell for cell in self.cells if cell.key not in settled | self._replayed.keys()]
            purse = None if limit is None else Budget(limit, worst=worst, spent=stands.counted(worst, self.ledger))
            if purse is not None and todo:
                purse.expect(todo[0].key)
            executor: Executor
            if on is None:
                at_once = self._at_once(concurrency)
                executor = ByClient(self.client, concurrency=concurrency)
            else:
                at_once = concurrency
                executor = DaskExecutor(
                    on, client=self.client, recorder=self.ledger, concurrency=concurrency, key=worker_key
                )
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


class Judged(Trial):
    """A trial whose answers are scored as its scorers say, and voted on."""

    def score(
        self,
        *,
        again: bool = False,
        budget_usd: float | str | Decimal | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
    ) -> ScoreReport:
        """Score the answers that are recorded, with every scorer, judges included; says what it came to.

        Each score is kept in the ledger and not made again; with `again` those that came to nothing are, such as a
        verdict that could not be read. A judge's calls cost money: `judge_cost()` says how much so far, and a verdict
        that was paid for is never paid for twice. With `budget_usd` none is sent that could pass it, all earlier
        rounds of this experiment's judges counted, its own calls not. Warm-up calls are not scored.
        LedgerError if the ledger cannot be read, or not written while judges are to be asked, InvalidRequest for a
        budget where a price is not known, Interrupted after an interrupt, with what had come kept.
        """
        budget = None if budget_usd is None else amount(budget_usd)
        scoring = self._scoring(again=again, budget=budget, concurrency=concurrency, progress=progress)
        return scoring.score(self.scorers)

    def frame(self) -> pd.DataFrame:
        """One row a planned cell, in order: the plan's columns, `status`, the columns of `famnb.calls`, then scores.

        `status` is `planned` where there is no call yet, else that of the cell's completed call, else of its latest.
        `score_<name>` is a scorer's score, `score_votes` the share of its pairs that an answer won in people's votes;
        missing where there is none. Scorers that need no call score what has come since; judges are asked by `score`.
        LedgerError if the ledger cannot be read.
        """
        frame = super().frame()
        answers = self._answers(frame)
        plain = [one for one in self.scorers if not isinstance(one, Judge)]
        if plain:
            self._scoring(answers).score(plain)
        for name, scores in scores_of(self.ledger, self.name, self.scorers, answers).items():
            frame[f"score_{name}"] = pd.array([scores.get(cell) for cell in frame["cell"]], dtype="Float64")
        return frame

    def answers(self) -> tuple[Answer, ...]:
        """The cells that are answered, each with the id of its call; without warm-ups."""
        return self._answers(super().frame())

    def summary(self, *, level: float = 0.95) -> Summary:
        """What has been answered so far shows: figures of each variant, paired comparisons, and both in plain words.

        Intervals are of `level`. The words claim a difference only where n carries it, and where it stays clear when
        all comparisons are allowed for; they end with how far judges may be trusted and what they cost, which is in
        none of the figures. LedgerError if the ledger cannot be read.
        """
        spans = {f"score_{one.name}": found for one in self.scorers if (found := getattr(one, "span", None))}
        found = summary(self.frame(), level=level, spans={f"score_{votes.PEOPLE}": YES_NO, **spans})
        return dataclasses.replace(found, findings=(*found.findings, *self._on_judges()))

    def votes(self) -> pd.DataFrame:
        """One row a vote, oldest first, those of judges included.

        The columns: voter (empty for a person who gave no name; `judge:…` for a model), prompt_id, repeat, left and
        right (the variants as they were shown), winner (left, right, tie or skip), better (the variant that won;
        missing for a tie), detail (a judge's reason), at (UTC), left_cell, right_cell, judge_call_id.
        LedgerError if the ledger cannot be read.
        """
        return votes.table(ratings.votes(self.ledger, self.name), self.cells)

    def ranking(self, voter: str | None = None, *, level: float = 0.95) -> stats.Ranking:
        """Bradley–Terry strengths of the variants with intervals, from people's votes; see `famnb.stats.Ranking`.

        `voter` is one of the voters in `votes()`, or the name of a judge of pairs; None: all people.
        ValueError where the votes do not suffice, saying what is missing.
        """
        judges = {one.name: voter_of(one) for one in self.scorers if isinstance(one, Judge) and one.pairwise}
        chosen = voter if voter is None else judges.get(voter, voter)
        cast = ratings.votes(self.ledger, self.name)
        if chosen is not None and cast and chosen not in (voters := {vote.voter for vote in cast}):
            raise ValueError(
                f"voter: there are no votes of {voter!r}; there are of {', '.join(map(repr, sorted(voters)))}"
            )
        return votes.ranking(votes.duels(cast, self.cells, voter=chosen), level=level)

    def judge_calls(self) -> pd.DataFrame:
        """The calls of this experiment's judges, as `famnb.calls` has them; they are none of its cells."""
        ids = judge_calls(self.ledger, self.name)
        found = calls(self.ledger, tag=TAG)
        return found[found["call_id"].isin(ids)].reset_index(drop=True)

    def judge_cost(self) -> pd.Series[Any]:
        """What its judges have cost: calls, cost_usd, cost_low_usd, cost_high_usd (USD), unpriced_calls.

        A cost is missing where no call has one; `unpriced_calls` are in none of the sums.
        """
        found = self.judge_calls()
        sums = {name: found[name].sum(min_count=1) for name in ("cost_usd", "cost_low_usd", "cost_high_usd")}
        return pd.Series({"calls": len(found), **sums, "unpriced_calls": int(found["cost_usd"].isna().sum())})

    def _on_judges(self) -> list[str]:
        """How far judges may be trusted, and what they cost, a sentence each; none where no judge was asked."""
        cast, cells = ratings.votes(self.ledger, self.name), self.cells
        pairwise = [one for one in self.scorers if isinstance(one, Judge) and one.pairwise]
        found = [votes.consistency(cast, cells, voter=voter_of(one)) for one in pairwise]
        made = self.judge_calls()
        lines = [f"Judge {each}." for each in found if each.pairs]
        if not len(made):
            return lines
        known = made["cost_usd"].dropna()
        cost = format_usd(float(known.sum())) if len(known) else "not known"
        unpriced = f" ({len(made) - len(known):,} without a known price)" if 0 < len(known) < len(made) else ""
        lines.append(f"Calls of judges: {len(made):,}; cost {cost}{unpriced}, in none of the figures above.")
        simulated = made["simulated"].fillna(False).any()
        return lines + (["Some verdicts were simulated: no model judged."] if simulated else [])

    def _answers(self, frame: pd.DataFrame) -> tuple[Answer, ...]:
        rows = zip(self.cells, frame["status"], frame["call_id"], strict=True)
        return tuple(Answer(cell, call_id) for cell, status, call_id in rows if status in ANSWERED and not cell.warmup)

    def _scoring(
        self,
        answers: Sequence[Answer] | None = None,
        *,
        again: bool = False,
        budget: Decimal | None = None,
        concurrency: int = CONCURRENCY,
        progress: bool | None = None,
    ) -> Scoring:
        jury = Jury(
            name=self.name,
            ledger=self.ledger,
            client=self.client,
            again=again,
            budget=budget,
            concurrency=check_integer("concurrency", concurrency, minimum=1),
            progress=progress,
        )
        found = self.answers() if answers is None else answers
        return Scoring(found, name=self.name, ledger=self.ledger, again=again, jury=jury)
