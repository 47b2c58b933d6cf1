"""One round of scoring of recorded answers: what has no score yet gets one, and each score is kept at once.

Judges are asked within a budget, their calls are recorded, and a request that was answered before is not sent again.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

import pandas as pd
from tqdm.auto import tqdm

from famnb.client.batch import FEW_CALLS, is_watched
from famnb.client.client import BaseClient
from famnb.errors import Interrupted
from famnb.experiment import votes
from famnb.experiment.budget import NO_BUDGET, Budget, CallOutcome, worst_case
from famnb.experiment.fingerprint import score_keys
from famnb.experiment.judge import Judge, Letter
from famnb.experiment.plan import Cell
from famnb.experiment.prompts import EXPECTED_SLOT
from famnb.experiment.resume import ANSWERED, OUTCOME_COLUMNS, check_writable, counted_costs, outcomes_of
from famnb.experiment.score import Score
from famnb.experiment.scorers import Scorer, apply_scorer
from famnb.experiment.services import is_simulated, service_of
from famnb.frame.calls import calls
from famnb.record import Ledger, ratings
from famnb.record.ratings import RecordedScore, RecordedVote
from famnb.reply import Reply
from famnb.request import Request

JUDGE_TAG = "judge"
"""The tag of judges' calls in the ledger."""
ROUNDS_PER_BATCH = 8
"""Calls sent in one batch, for each that may be in flight.

More would leave more verdicts in memory before they are kept; fewer would wait more often for the slowest of a batch.
"""
BATCH = 200
"""Scores that are written in one transaction: an interrupt loses none, and a long round does not wait for each."""


@dataclasses.dataclass(frozen=True, slots=True)
class AnsweredCell:
    """A cell of an experiment with the call that answered it."""

    cell: Cell
    call_id: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReport:
    """The result of a round of scoring; each mapping is by the scorer's name."""

    scored: Mapping[str, int]
    """Answers (for a judge of pairs: verdicts) that it scored in this round."""
    missing: Mapping[str, int]
    """Of these, those that came to nothing; `again=True` tries them again."""
    trouble: Mapping[str, str]
    """For each judge whose calls failed, why the last one did; the next round tries them again."""
    unpaid: Mapping[str, int]
    """For each judge, the verdicts that the budget left unasked."""
    consistency: Mapping[str, votes.Consistency]
    """For each judge of pairs, how far its choices depend on the position."""
    agreement: Mapping[str, votes.JudgeAgreement]
    """For each judge, how far it agrees with people, where both judged the same pairs."""

    def __str__(self) -> str:
        lines = []
        for name, scored in self.scored.items():
            missing = f", {self.missing[name]:,} of them came to nothing" if self.missing[name] else ""
            trouble = f"; calls failed: {self.trouble[name]}" if name in self.trouble else ""
            unpaid = f"; {self.unpaid[name]:,} more could pass the budget" if name in self.unpaid else ""
            lines.append(f"{name}: {scored:,} scored now{missing}{trouble}{unpaid}")
        lines = lines or ["there are no scorers"]
        return "\n".join([*lines, *map(str, self.consistency.values()), *map(str, self.agreement.values())])

    __repr__ = __str__


@dataclasses.dataclass(slots=True, kw_only=True)
class Scoring:
    """One round of scoring of an experiment's answers."""

    answers: Sequence[AnsweredCell]
    name: str
    """The experiment's name."""
    ledger: Ledger
    client: BaseClient
    """Carries the calls of judges that have no client of their own."""
    again: bool
    """Whether to score what came to nothing once more, and to send requests that were answered before."""
    budget_usd: Decimal | None
    """USD that all judges of the experiment may cost, earlier rounds counted; None for no limit."""
    concurrency: int
    progress: bool | None
    """Whether to show a bar; None to show it for many requests if somebody is watching."""
    _scored: Counter[str] = dataclasses.field(default_factory=Counter)
    _missing: Counter[str] = dataclasses.field(default_factory=Counter)
    _unpaid: Counter[str] = dataclasses.field(default_factory=Counter)
    _trouble: dict[str, str] = dataclasses.field(default_factory=dict)

    def score(self, scorers: Iterable[Scorer | Judge]) -> ScoreReport:
        """Have every scorer score what it has not scored yet, with `again` also what came to nothing."""
        scorers = tuple(scorers)
        judges = [scorer for scorer in scorers if isinstance(scorer, Judge)]
        # First those that cost nothing: an interrupt or an empty budget while judges are asked leaves them done.
        recorded = read_scores(self.ledger, self.answers)
        for name, score in score_locally(self.ledger, scorers, self.answers, recorded, again=self.again):
            self._count(name, is_missing=score.value is None)
        for judge in judges:
            (self._compare if judge.pairwise else self._grade)(judge)
        votes_cast = ratings.read_votes(self.ledger, self.name) if judges else []
        recorded = read_scores(self.ledger, self.answers) if judges else []
        cells = [answer.cell for answer in self.answers]
        return ScoreReport(
            scored={scorer.name: self._scored[scorer.name] for scorer in scorers},
            missing={scorer.name: self._missing[scorer.name] for scorer in scorers},
            trouble=self._trouble,
            unpaid=dict(self._unpaid),
            consistency={
                judge.name: votes.consistency(votes_cast, cells, voter=judge.voter)
                for judge in judges
                if judge.pairwise
            },
            agreement=judge_agreements(judges, self.answers, recorded, votes_cast),
        )

    def _grade(self, judge: Judge) -> None:
        """Have a judge grade each answer that it has not graded."""
        recorded = read_scores(self.ledger, self.answers)
        todo = _find_unscored([judge], self.answers, recorded, again=self.again)[judge.name]
        answers, texts = list(todo), self._read_texts(todo)
        requests = [judge.grading(answer.cell.prompt, texts[answer.call_id]) for answer in answers]
        for index, reply in self._ask(judge, requests):
            score, answer = judge.grade(reply), answers[index]
            self._count(judge.name, is_missing=score.value is None)
            if self._is_verdict(judge, reply):
                key, call_id = todo[answer], reply.call_id
                # At once, since it was paid for.
                ratings.save(self.ledger, [_to_record(answer.call_id, key, score, judge_call_id=call_id)])

    def _compare(self, judge: Judge) -> None:
        """Have a judge compare each pair of answers, both ways round, of which there is no verdict on this request.

        Equal answers are a tie without being asked about.
        """
        answers = {answer.cell.key: answer for answer in self.answers}
        verdicts = {
            (vote.left_cell, vote.right_cell): vote.judge_call_id
            for vote in ratings.read_votes(self.ledger, self.name)
            if vote.voter == judge.voter and not (self.again and vote.winner == "skip")
        }
        # Votes are kept by cell, and a cell's key does not hold `expected`, which the judge is shown and the user may
        # correct: only the request itself tells whether such a verdict still stands.
        pairs = [
            (answers[left.key], answers[right.key])
            for first, second in votes.pairs(answer.cell for answer in self.answers)
            for left, right in ((first, second), (second, first))
            if (left.key, right.key) not in verdicts or EXPECTED_SLOT in left.prompt.slots
        ]
        texts = self._read_texts(answer for pair in pairs for answer in pair)
        rows = self.ledger.select("tag = ?", (JUDGE_TAG,)) if pairs else []
        request_keys = {row["id"]: row["request_key"] for row in rows}
        make_vote = functools.partial(RecordedVote, experiment=self.name, voter=judge.voter)
        todo, requests, ties = [], [], []
        for left, right in pairs:
            cells = left.cell.key, right.cell.key
            if texts[left.call_id] == texts[right.call_id]:
                if cells not in verdicts:
                    ties.append(make_vote(left_cell=cells[0], right_cell=cells[1], winner="tie", detail=votes.EQUAL))
                continue
            request = judge.comparing(left.cell.prompt, texts[left.call_id], texts[right.call_id])
            # A verdict whose call was pruned counts as one on this request.
            if cells not in verdicts or request_keys.get(verdicts[cells] or "", request.key()) != request.key():
                todo.append(cells)
                requests.append(request)
        if ties:
            ratings.save(self.ledger, ties)
            self._scored[judge.name] += len(ties)
        winners: dict[Letter | None, ratings.VoteWinner] = {"A": "left", "B": "right", "tie": "tie", None: "skip"}
        for index, reply in self._ask(judge, requests):
            letter, reason = judge.choice(reply)
            self._count(judge.name, is_missing=letter is None)
            if self._is_verdict(judge, reply):
                (left_cell, right_cell), winner, call_id = todo[index], winners[letter], reply.call_id
                vote = make_vote(
                    left_cell=left_cell, right_cell=right_cell, winner=winner, detail=reason, judge_call_id=call_id
                )
                # At once, as with a grade.
                ratings.save(self.ledger, [vote])

    def _ask(self, judge: Judge, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Yield the judge's replies, each with the index of its request; one that was answered before is not sent."""
        client = judge.client or self.client
        # Not under the label `experiment`: judges' calls are not among its cells.
        labels = {"tag": JUDGE_TAG, "judge": judge.name, "judges": self.name}
        shown = self.progress if self.progress is not None else len(requests) > FEW_CALLS and is_watched()
        waiting: list[int] = []
        with tqdm(total=len(requests), unit="verdict", desc=judge.name, disable=not shown) as bar:
            for index, request in enumerate(requests):
                simulated = is_simulated(service_of(client, request.endpoint))
                profile = client.profile.name
                earlier = None if self.again else self.ledger.recall(request, profile=profile, simulated=simulated)
                if earlier is not None:
                    bar.update()
                    yield index, dataclasses.replace(earlier.reply, call_id=earlier.id)
                else:
                    waiting.append(index)
            budget = self._make_budget(client, {index: requests[index] for index in waiting})
            while waiting:
                check_writable(self.ledger)
                batch: list[int] = []
                while waiting and len(batch) < ROUNDS_PER_BATCH * self.concurrency and budget.fits(waiting[0]):
                    budget.reserve(waiting[0])
                    batch.append(waiting.pop(0))
                if not batch:
                    self._unpaid[judge.name] += len(waiting)
                    return
                calls = client.engine.start_batch(
                    [requests[index] for index in batch], self.concurrency, labels, progress=False
                )
                for index, reply in zip(batch, calls.replies(), strict=True):
                    # Counted as one try: one that was never sent has an error that bills nothing.
                    http_status = getattr(reply.error, "status", None)
                    outcome = CallOutcome.from_reply(reply, http_status=http_status, attempts=1)
                    budget.settle(budget.worst_of(index), outcome)
                    bar.update()
                    yield index, reply

    def _make_budget(self, client: BaseClient, requests: Mapping[int, Request]) -> Budget:
        """The budget of all judges with what they have cost so far counted."""
        if self.budget_usd is None:
            return NO_BUDGET
        fault = "a judge cannot be kept to one"
        worst = {key: worst_case(request, client.profile.name, fault) for key, request in requests.items()}
        # As with an experiment's own calls: what was simulated was not billed, and counts in a rehearsal alone.
        simulated = is_simulated(service_of(self.client, next(iter(self.client.endpoints))))
        outcomes = outcomes_of(read_judge_calls(self.ledger, self.name, columns=OUTCOME_COLUMNS))
        return Budget(self.budget_usd, worst.get, spent=counted_costs(outcomes, self.ledger, simulated=simulated))

    def _read_texts(self, answers: Iterable[AnsweredCell]) -> dict[str, str]:
        """The texts of answers, by the ids of their calls."""
        call_ids = dict.fromkeys(answer.call_id for answer in answers)
        return {call.call_id: call.reply.text for call in self.ledger.each(call_ids)}

    def _count(self, name: str, *, is_missing: bool) -> None:
        self._scored[name] += 1
        self._missing[name] += is_missing

    def _is_verdict(self, judge: Judge, reply: Reply) -> bool:
        """Whether a judge's call was answered; if not, there is nothing to keep, and the next round asks again."""
        if reply.status in ANSWERED:
            return True
        self._trouble[judge.name] = str(reply.error or reply.status)
        return False


def judge_call_ids(ledger: Ledger, name: str) -> list[str]:
    """The ids of all calls of an experiment's judges, however they ended."""
    where = "tag = ? AND json_valid(labels) AND json_extract(labels, '$.judges') = ?"
    return [row["id"] for row in ledger.select(where, (JUDGE_TAG, name))]


def read_judge_calls(ledger: Ledger, name: str, *, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """The calls of an experiment's judges as `famnb.calls` has them; `columns` has call_id."""
    rows = calls(ledger, tag=JUDGE_TAG, columns=columns)
    return rows[rows["call_id"].isin(judge_call_ids(ledger, name))].reset_index(drop=True)


def _to_record(call_id: str, key: str, score: Score, *, judge_call_id: str | None = None) -> RecordedScore:
    return RecordedScore(
        call_id=call_id, scorer=key, value=score.value, detail=score.detail, judge_call_id=judge_call_id
    )


def read_scores(ledger: Ledger, answers: Iterable[AnsweredCell]) -> list[RecordedScore]:
    """The recorded scores of answers, of whatever scorer. LedgerError if the ledger cannot be read."""
    return list(ratings.read_scores(ledger, [answer.call_id for answer in answers]))


def _find_unscored(
    scorers: Sequence[Scorer | Judge],
    answers: Sequence[AnsweredCell],
    recorded: Iterable[RecordedScore],
    *,
    again: bool,
) -> dict[str, dict[AnsweredCell, str]]:
    """The answers that each scorer has not scored, with the key of the score to make, by the scorer's name."""
    present = {(score.scorer, score.call_id) for score in recorded if not (again and score.value is None)}
    keys = score_keys(scorers, [answer.cell.prompt for answer in answers])
    todo: dict[str, dict[AnsweredCell, str]] = {scorer.name: {} for scorer in scorers}
    for scorer, answer in itertools.product(scorers, answers):
        key = keys[scorer.name, answer.cell.prompt.id]
        if (key, answer.call_id) not in present:
            todo[scorer.name][answer] = key
    return todo


def score_locally(
    ledger: Ledger,
    scorers: Iterable[Scorer | Judge],
    answers: Sequence[AnsweredCell],
    recorded: Iterable[RecordedScore],
    *,
    again: bool = False,
) -> list[tuple[str, RecordedScore]]:
    """Apply the scorers that need no call to what they have not scored; return the new scores, each after its name.

    They are kept at once, and each reply is read once for all of them. Raises Interrupted after an interrupt.
    """
    local_scorers = [scorer for scorer in scorers if not isinstance(scorer, Judge)]
    todo = _find_unscored(local_scorers, answers, recorded, again=again)
    by_call = {answer.call_id: answer for keys in todo.values() for answer in keys}
    scores: list[tuple[str, RecordedScore]] = []
    saved = 0
    try:
        for call in ledger.each(by_call) if by_call else ():
            answer = by_call[call.call_id]
            for scorer in (scorer for scorer in local_scorers if answer in todo[scorer.name]):
                score = apply_scorer(scorer, call.reply, answer.cell.prompt)
                scores.append((scorer.name, _to_record(call.call_id, todo[scorer.name][answer], score)))
            if len(scores) - saved >= BATCH:
                ratings.save(ledger, [record for _, record in scores[saved:]])
                saved = len(scores)
    except KeyboardInterrupt:
        raise Interrupted(f"{len(scores):,} scores were made and are kept; the others follow") from None
    finally:
        if scores[saved:]:
            ratings.save(ledger, [record for _, record in scores[saved:]])
    return scores


def scores_by_cell(
    scorers: Iterable[Scorer | Judge],
    answers: Sequence[AnsweredCell],
    recorded: Iterable[RecordedScore],
    votes_cast: Sequence[RecordedVote],
) -> dict[str, dict[str, float]]:
    """Each score, by its name, by the cell's key; those that people's votes and grades make if there are any."""
    scorers = tuple(scorers)
    cells = [answer.cell for answer in answers]
    keys = score_keys(scorers, [cell.prompt for cell in cells])
    values = {(score.scorer, score.call_id): score.value for score in recorded if score.value is not None}

    def find_scores(scorer_keys: Iterable[str]) -> dict[str, float]:
        """The score of each answer that is kept under the scorer's key for it, by the cell's key."""
        places = ((answer.cell.key, key, answer.call_id) for answer, key in zip(answers, scorer_keys, strict=True))
        return {cell: values[key, call_id] for cell, key, call_id in places if (key, call_id) in values}

    scores = {}
    for scorer in scorers:
        if isinstance(scorer, Judge) and scorer.pairwise:
            scores[scorer.name] = votes.shares(votes.duels(votes_cast, cells, voter=scorer.voter))
        else:
            scores[scorer.name] = find_scores(keys[scorer.name, cell.prompt.id] for cell in cells)
    people = votes.shares(votes.duels(votes_cast, cells))
    by_hand = {votes.VOTES_SCORE: people, votes.GRADE_SCORE: find_scores([votes.GRADE_SCORE] * len(answers))}
    # A scorer of that name stands before people's.
    return {name: values for name, values in by_hand.items() if values} | scores


def judge_agreements(
    judges: Sequence[Judge],
    answers: Sequence[AnsweredCell],
    recorded: Iterable[RecordedScore],
    votes_cast: Sequence[RecordedVote],
) -> dict[str, votes.JudgeAgreement]:
    """How far each judge agrees with people's votes, by its name; without those that have no pair in common."""
    cells = [answer.cell for answer in answers]
    people = votes.duels(votes_cast, cells)
    if not judges or not people:
        return {}
    grades = scores_by_cell([judge for judge in judges if not judge.pairwise], answers, recorded, votes_cast)
    agreements = {}
    for judge in judges:
        verdicts = (
            votes.duels(votes_cast, cells, voter=judge.voter)
            if judge.pairwise
            else votes.duels_of_grades(grades[judge.name], cells)
        )
        agreements[judge.name] = votes.agree_with_people(judge.name, verdicts, people)
    return {name: agreement for name, agreement in agreements.items() if agreement.votes}
