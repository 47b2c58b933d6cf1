"""How judges are asked: within a budget, recorded, nothing sent again that was paid for; what is asked is `judge`'s."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from tqdm.auto import tqdm

from famnb.client.batch import FEW, watched
from famnb.client.client import BlockingClient
from famnb.errors import InvalidRequest
from famnb.experiment.budget import Budget, Outcome, ceiling, counted
from famnb.experiment.judge import Judge
from famnb.experiment.resume import COLUMNS, recorded, worst_of, writable
from famnb.frame.calls import calls
from famnb.record import Ledger
from famnb.reply import Reply
from famnb.request import Request

TAG = "judge"
"""What a judge's calls are tagged with."""
ROUNDS = 8
"""Calls that are sent in one go, for each that may be in flight."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Jury:
    """What carries the calls of an experiment's judges."""

    name: str
    """The experiment's."""
    ledger: Ledger
    client: BlockingClient
    """Carries the calls of judges that bring no client of their own."""
    again: bool
    """Whether to send also what was answered before."""
    budget: Decimal | None
    """USD that all judges of the experiment may cost, earlier rounds counted; None: no limit."""
    concurrency: int
    progress: bool | None
    unpaid: Counter[str] = dataclasses.field(default_factory=Counter)
    """For each judge, the requests that the budget left unsent."""

    def ask(self, judge: Judge, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """A judge's replies with the places of their requests; one that was paid for earlier is not sent again."""
        client = judge.client or self.client
        labels = {"tag": TAG, "judge": judge.name, "judges": self.name}
        shown = self.progress if self.progress is not None else len(requests) > FEW and watched()
        waiting: list[int] = []
        with tqdm(total=len(requests), unit="verdict", desc=judge.name, disable=not shown) as bar:
            for place, request in enumerate(requests):
                earlier = None if self.again else self.ledger.recall(request)
                if earlier is not None:
                    bar.update()
                    yield place, dataclasses.replace(earlier.reply, call_id=earlier.id)
                else:
                    waiting.append(place)
            purse = self._purse(requests, waiting)
            while waiting:
                writable(self.ledger)
                some = _affordable(purse, waiting, ROUNDS * self.concurrency)
                if not some:
                    self.unpaid[judge.name] += len(waiting)
                    return
                replies = client.send_many(
                    [requests[place] for place in some],
                    concurrency=self.concurrency,
                    labels=labels,
                    progress=False,
                )
                for place, reply in zip(some, replies, strict=True):
                    if purse is not None:
                        purse.settle(str(place), _outcome_of(reply))
                    bar.update()
                    yield place, reply

    def _purse(self, requests: Sequence[Request], places: Sequence[int]) -> Budget | None:
        """The budget of judges, with what they have cost so far; None without one."""
        if self.budget is None:
            return None
        worst = {str(place): _worst(requests[place]) for place in places}
        return Budget(self.budget, worst=worst, spent=self._spent())

    def _spent(self) -> Decimal:
        """What this experiment's judges have cost at most, a call of unknown cost at its worst."""
        found = calls(self.ledger, tag=TAG, columns=COLUMNS)
        own = found[found["call_id"].isin(judge_calls(self.ledger, self.name))]
        return sum((counted(made, worst_of(made, self.ledger)) for _, made in recorded(own)), Decimal())


def judge_calls(ledger: Ledger, name: str) -> list[str]:
    """The ids of the calls that judged an experiment, however they ended."""
    where = "tag = ? AND json_valid(labels) AND json_extract(labels, '$.judges') = ?"
    return [row["id"] for row in ledger.select(where, (TAG, name))]


def _worst(request: Request) -> Decimal:
    """The most that a judge's call can cost; InvalidRequest, saying what to do, where that is not known."""
    found = ceiling(request)
    if found.usd is None:
        raise InvalidRequest(f"budget_usd: a judge cannot be kept to one: {found.why}")
    return found.usd


def _affordable(purse: Budget | None, waiting: list[int], most: int) -> list[int]:
    """Take from those waiting what may be sent together, and set its worst case aside."""
    some: list[int] = []
    while waiting and len(some) < most and (purse is None or purse.fits(str(waiting[0]))):
        if purse is not None:
            purse.reserve(str(waiting[0]))
        some.append(waiting.pop(0))
    return some


def _outcome_of(reply: Reply) -> Outcome:
    """How a judge's call ended, for the budget; one without an answer counts at its worst, unless it was refused."""
    return Outcome(
        status=reply.status,
        call_id=reply.call_id,
        high=getattr(reply.cost, "high", None),
        http_status=getattr(reply.error, "status", None),
        attempts=1,
        error=None if reply.error is None else type(reply.error).__name__,
        replayed=reply.replayed,
    )
