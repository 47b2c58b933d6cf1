"""Sends the requests of judges: within a budget, recorded, and none again that was answered before."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from tqdm.auto import tqdm

from famnb.client.batch import FEW_CALLS, is_watched
from famnb.client.client import BlockingClient
from famnb.experiment.budget import Budget, CallOutcome, counted_cost, worst_case
from famnb.experiment.judge import Judge
from famnb.experiment.resume import OUTCOME_COLUMNS, check_writable, outcomes_of, past_worst_case
from famnb.experiment.services import is_simulated, service_of
from famnb.frame.calls import calls
from famnb.record import Ledger
from famnb.record.price import service_names
from famnb.reply import Reply
from famnb.request import Request

TAG = "judge"
"""The tag of judges' calls in the ledger."""
ROUNDS = 8
"""Calls sent in one batch, for each that may be in flight.

More would leave more verdicts in memory before they are kept; fewer would wait more often for the slowest of a batch.
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRunner:
    """Sends the calls of an experiment's judges."""

    name: str
    """The experiment's name."""
    ledger: Ledger
    client: BlockingClient
    """Carries the calls of judges that have no client of their own."""
    again: bool
    """Whether to send requests that were answered before, too."""
    budget_usd: Decimal | None
    """USD that all judges of the experiment may cost, earlier rounds counted; None for no limit."""
    concurrency: int
    progress: bool | None
    """Whether to show a bar; None to show it for many requests if somebody is watching."""
    unpaid: Counter[str] = dataclasses.field(default_factory=Counter)
    """Number of requests that the budget left unsent, by the judge's name."""

    def ask(self, judge: Judge, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Yield the judge's replies, each with the index of its request; one that was answered before is not sent."""
        client = judge.client or self.client
        # Not under the label `experiment`: judges' calls are none of its cells.
        labels = {"tag": TAG, "judge": judge.name, "judges": self.name}
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
            budget = self._budget(client, requests, waiting)
            while waiting:
                check_writable(self.ledger)
                batch = _take_affordable(budget, waiting, ROUNDS * self.concurrency)
                if not batch:
                    self.unpaid[judge.name] += len(waiting)
                    return
                replies = client.send_many(
                    [requests[index] for index in batch],
                    concurrency=self.concurrency,
                    labels=labels,
                    progress=False,
                )
                for index, reply in zip(batch, replies, strict=True):
                    if budget is not None:
                        # Counted as one try: one that was never sent has an error that bills nothing.
                        http_status = getattr(reply.error, "status", None)
                        outcome = CallOutcome.from_reply(reply, http_status=http_status, attempts=1)
                        budget.settle(str(index), outcome)
                    bar.update()
                    yield index, reply

    def _budget(self, client: BlockingClient, requests: Sequence[Request], indexes: Sequence[int]) -> Budget | None:
        """The budget of all judges with what they have cost so far counted; None without a limit."""
        if self.budget_usd is None:
            return None
        worst = {}
        for index in indexes:
            request = requests[index]
            names = service_names(client.base_url(request.endpoint), client.profile.name)
            worst[str(index)] = worst_case(request, names, "a judge cannot be kept to one")
        return Budget(self.budget_usd, worst=worst, spent=self._cost_so_far())

    def _cost_so_far(self) -> Decimal:
        """What this experiment's judges have cost in USD, a call of unknown cost at its worst case."""
        judged = calls(self.ledger, tag=TAG, columns=OUTCOME_COLUMNS)
        own = judged[judged["call_id"].isin(judge_calls(self.ledger, self.name))]
        # As with an experiment's own calls: what was simulated was not billed, and counts in a rehearsal alone.
        simulated = is_simulated(service_of(self.client, next(iter(self.client.endpoints))))
        costs = (
            counted_cost(outcome, past_worst_case(outcome, self.ledger))
            for _, outcome in outcomes_of(own)
            if outcome.simulated == simulated
        )
        return sum(costs, Decimal())


def judge_calls(ledger: Ledger, name: str) -> list[str]:
    """The ids of all calls of an experiment's judges, however they ended."""
    where = "tag = ? AND json_valid(labels) AND json_extract(labels, '$.judges') = ?"
    return [row["id"] for row in ledger.select(where, (TAG, name))]


def _take_affordable(budget: Budget | None, waiting: list[int], limit: int) -> list[int]:
    """Remove up to `limit` requests from `waiting` that the budget allows together, and reserve their cost."""
    batch: list[int] = []
    while waiting and len(batch) < limit and (budget is None or budget.fits(str(waiting[0]))):
        if budget is not None:
            budget.reserve(str(waiting[0]))
        batch.append(waiting.pop(0))
    return batch
