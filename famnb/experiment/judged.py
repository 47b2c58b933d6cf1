"""An experiment with its scores and votes: the machine of `trial`, and what is thought of its answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pandas as pd

from famnb import stats
from famnb.client.caller import CONCURRENCY
from famnb.experiment import votes
from famnb.experiment.budget import amount
from famnb.experiment.checks import count
from famnb.experiment.judge import Judge
from famnb.experiment.jury import TAG, Jury, judge_calls
from famnb.experiment.measures import YES_NO
from famnb.experiment.scoring import Answer, ScoreReport, Scoring, scores_of, voter_of
from famnb.experiment.standing import ANSWERED
from famnb.experiment.summary import Summary, summary
from famnb.experiment.trial import Trial
from famnb.frame import calls
from famnb.record import marks
from famnb.record.price import dollars


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
        return votes.table(marks.votes(self.ledger, self.name), self.cells)

    def ranking(self, voter: str | None = None, *, level: float = 0.95) -> stats.Ranking:
        """Bradley–Terry strengths of the variants with intervals, from people's votes; see `famnb.stats.Ranking`.

        `voter` is one of the voters in `votes()`, or the name of a judge of pairs; None: all people.
        ValueError where the votes do not suffice, saying what is missing.
        """
        judges = {one.name: voter_of(one) for one in self.scorers if isinstance(one, Judge) and one.pairwise}
        chosen = voter if voter is None else judges.get(voter, voter)
        cast = marks.votes(self.ledger, self.name)
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
        cast, cells = marks.votes(self.ledger, self.name), self.cells
        pairwise = [one for one in self.scorers if isinstance(one, Judge) and one.pairwise]
        found = [votes.consistency(cast, cells, voter=voter_of(one)) for one in pairwise]
        made = self.judge_calls()
        lines = [f"Judge {each}." for each in found if each.pairs]
        if not len(made):
            return lines
        known = made["cost_usd"].dropna()
        cost = dollars(Decimal(str(round(float(known.sum()), 12)))) if len(known) else "not known"
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
            concurrency=count("concurrency", concurrency, least=1),
            progress=progress,
        )
        found = self.answers() if answers is None else answers
        return Scoring(found, name=self.name, ledger=self.ledger, again=again, jury=jury)
