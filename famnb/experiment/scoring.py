"""Scoring recorded answers: what is not scored yet is, each score is kept at once, and a judge is never paid twice."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from famnb.errors import Interrupted
from famnb.experiment import votes
from famnb.experiment.fingerprint import Keys
from famnb.experiment.judge import Judge, Letter
from famnb.experiment.judge_runner import TAG, Jury
from famnb.experiment.plan import Cell
from famnb.experiment.prompts import KEPT
from famnb.experiment.resume import ANSWERED
from famnb.experiment.scorers import Scorer, scored
from famnb.record import Ledger, ratings
from famnb.record.ratings import Scored, Voted
from famnb.reply import Reply
from famnb.request import Request

BATCH = 200
"""Scores that are kept in one go."""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer of an experiment."""

    cell: Cell
    call_id: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReport:
    """What a round of scoring came to."""

    scored: Mapping[str, int]
    """For each scorer, the answers (for a judge of pairs the verdicts) that it scored in this round."""
    missing: Mapping[str, int]
    """Of these, those that came to nothing; `again=True` tries them again."""
    trouble: Mapping[str, str]
    """For each judge whose calls failed, why the last one did; the next round tries them again."""
    unpaid: Mapping[str, int]
    """For each judge, the verdicts that the budget left unasked."""
    consistency: Mapping[str, votes.Consistency]
    """For each judge of pairs, how far its choices depend on the position."""

    def __str__(self) -> str:
        lines = [self._line(name) for name in self.scored] or ["there are no scorers"]
        return "\n".join([*lines, *map(str, self.consistency.values())])

    __repr__ = __str__

    def _line(self, name: str) -> str:
        lost = f", {self.missing[name]:,} of them came to nothing" if self.missing[name] else ""
        why = f"; calls failed: {self.trouble[name]}" if name in self.trouble else ""
        left = f"; {self.unpaid[name]:,} more could pass the budget" if name in self.unpaid else ""
        return f"{name}: {self.scored[name]:,} scored now{lost}{why}{left}"


class Scoring:
    """One round of scoring of an experiment's answers."""

    def __init__(
        self,
        answers: Sequence[Answer],
        *,
        name: str,
        ledger: Ledger,
        again: bool,
        jury: Jury,
    ) -> None:
        self._answers = answers
        self._name = name
        self._ledger = ledger
        self._again = again
        self._jury = jury
        self._made: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._trouble: dict[str, str] = {}

    def score(self, scorers: Iterable[Scorer | Judge]) -> ScoreReport:
        """Have every scorer score what it has not scored yet, with `again` also what came to nothing."""
        given = tuple(scorers)
        judges = [one for one in given if isinstance(one, Judge)]
        self._plain([one for one in given if not isinstance(one, Judge)])
        for judge in judges:
            (self._compare if judge.pairwise else self._grade)(judge)
        found = ratings.votes(self._ledger, self._name) if judges else []
        cells = [answer.cell for answer in self._answers]
        return ScoreReport(
            scored={one.name: self._made[one.name] for one in given},
            missing={one.name: self._lost[one.name] for one in given},
            trouble=self._trouble,
            unpaid={name: count for name, count in self._jury.unpaid.items() if count},
            consistency={
                one.name: votes.consistency(found, cells, voter=voter_of(one)) for one in judges if one.pairwise
            },
        )

    def _plain(self, scorers: Sequence[Scorer]) -> None:
        """Scorers that need no call: each reply is read once for all of them."""
        todo = self._unscored(scorers)
        answers = {answer.call_id: answer for answer in self._answers if any(answer in some for some in todo.values())}
        kept: list[Scored] = []
        try:
            for call in self._ledger.each(answers):
                answer = answers[call.call_id]
                for one in (one for one in scorers if answer in todo[one.name]):
                    score = scored(one, call.reply, answer.cell.prompt)
                    self._count(one.name, score.value is None)
                    key = todo[one.name][answer]
                    kept.append(Scored(call_id=call.call_id, scorer=key, value=score.value, detail=score.detail))
                if len(kept) >= BATCH:
                    ratings.keep(self._ledger, kept)
                    kept = []
        except KeyboardInterrupt:
            raise Interrupted(f"{self._made.total():,} scores were made and are kept; the others follow") from None
        finally:
            if kept:
                ratings.keep(self._ledger, kept)

    def _grade(self, judge: Judge) -> None:
        keys = self._unscored([judge])[judge.name]
        todo = list(keys)
        texts = self._texts(todo)
        requests = [judge.grading(answer.cell.prompt, texts[answer.call_id]) for answer in todo]
        for place, reply in self._jury.ask(judge, requests):
            score = judge.grade(reply)
            self._count(judge.name, score.value is None)
            if self._failed(judge, reply):
                continue
            mark = Scored(
                call_id=todo[place].call_id,
                scorer=keys[todo[place]],
                value=score.value,
                detail=score.detail,
                judge_call_id=reply.call_id,
            )
            ratings.keep(self._ledger, [mark])

    def _compare(self, judge: Judge) -> None:
        voter = voter_of(judge)
        for (left, right), reply in self._verdicts(judge, voter):
            letter, reason = judge.choice(reply)
            self._count(judge.name, letter is None)
            if self._failed(judge, reply):
                continue
            vote = Voted(
                experiment=self._name,
                voter=voter,
                left_cell=left.cell.key,
                right_cell=right.cell.key,
                winner=_winner(letter),
                detail=reason,
                judge_call_id=reply.call_id,
            )
            ratings.keep(self._ledger, [vote])

    def _verdicts(self, judge: Judge, voter: str) -> Iterator[tuple[tuple[Answer, Answer], Reply]]:
        """The judge's replies on the pairs, both ways round, that it was not asked of in these very words."""
        by_key = {answer.cell.key: answer for answer in self._answers}
        known = {
            (vote.left_cell, vote.right_cell): vote.judge_call_id
            for vote in ratings.votes(self._ledger, self._name)
            if vote.voter == voter and not (self._again and vote.winner == "skip")
        }
        pairs = [
            (by_key[left.key], by_key[right.key])
            for first, second in votes.pairs(answer.cell for answer in self._answers)
            for left, right in ((first, second), (second, first))
            if (left.key, right.key) not in known or KEPT in left.prompt.slots
        ]
        texts = self._texts(answer for pair in pairs for answer in pair)
        requests = [judge.comparing(a.cell.prompt, texts[a.call_id], texts[b.call_id]) for a, b in pairs]
        asked = {row["id"]: row["request_key"] for row in self._ledger.select("tag = ?", (TAG,))} if pairs else {}

        def stands(pair: tuple[Answer, Answer], request: Request) -> bool:
            """Whether there is a verdict on this very request; one whose call is gone counts as such."""
            place = pair[0].cell.key, pair[1].cell.key
            return place in known and asked.get(known[place] or "", request.key()) == request.key()

        todo = [each for each in zip(pairs, requests, strict=True) if not stands(*each)]
        for place, reply in self._jury.ask(judge, [request for _, request in todo]):
            yield todo[place][0], reply

    def _unscored(self, scorers: Sequence[Scorer | Judge]) -> dict[str, dict[Answer, str]]:
        """For each scorer, by its name, the answers that it has not scored, each with the key of its score."""
        known = {
            (mark.scorer, mark.call_id)
            for mark in ratings.scores(self._ledger, [answer.call_id for answer in self._answers])
            if not (self._again and mark.value is None)
        }
        keys = Keys(scorers)
        keyed = {
            one.name: {answer: keys.key(one.name, answer.cell.prompt) for answer in self._answers} for one in scorers
        }
        return {
            name: {answer: key for answer, key in own.items() if (key, answer.call_id) not in known}
            for name, own in keyed.items()
        }

    def _texts(self, answers: Iterable[Answer]) -> dict[str, str]:
        """The texts of answers, by their calls."""
        wanted = dict.fromkeys(answer.call_id for answer in answers)
        return {call.call_id: call.reply.text for call in self._ledger.each(wanted)}

    def _count(self, name: str, lost: bool) -> None:
        self._made[name] += 1
        self._lost[name] += lost

    def _failed(self, judge: Judge, reply: Reply) -> bool:
        """Whether a judge's call came to no answer at all; that is no verdict to keep, and is tried the next time."""
        if reply.status in ANSWERED:
            return False
        self._trouble[judge.name] = str(reply.error or reply.status)
        return True


def scores_of(
    ledger: Ledger, name: str, scorers: Iterable[Scorer | Judge], answers: Sequence[Answer]
) -> dict[str, dict[str, float]]:
    """For each scorer the scores by cell; under `votes` those that people's votes make, where there are any."""
    given = tuple(scorers)
    found: dict[str, dict[str, float]] = {one.name: {} for one in given}
    keys = Keys(given)
    places = {
        (keys.key(one.name, answer.cell.prompt), answer.call_id): (one.name, answer.cell.key)
        for one in given
        for answer in answers
    }
    for mark in ratings.scores(ledger, [answer.call_id for answer in answers]):
        if (place := places.get((mark.scorer, mark.call_id))) and mark.value is not None:
            found[place[0]][place[1]] = mark.value
    cast, cells = ratings.votes(ledger, name), [answer.cell for answer in answers]
    for one in given:
        if isinstance(one, Judge) and one.pairwise:
            found[one.name] = votes.shares(votes.duels(cast, cells, voter=voter_of(one)))
    people = votes.shares(votes.duels(cast, cells))
    return found | ({votes.PEOPLE: people} if people else {})


def voter_of(judge: Judge) -> str:
    """The voter that a judge of pairs is."""
    return f"{votes.JUDGE}{judge.key}"


def _winner(letter: Letter | None) -> ratings.Outcome:
    outcomes: Mapping[Any, ratings.Outcome] = {"A": "left", "B": "right", "tie": "tie"}
    return outcomes.get(letter, "skip")
