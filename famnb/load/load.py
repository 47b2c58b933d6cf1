"""`famnb.Load`, a load on a service in steps.

run()        ── each step not measured yet ── step.run_step ── the ledger ── measure.measure_step ── LoadReport
find_peak()  ── double until the objective is missed ── halve the distance until the ends are close ── Peak
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, cast, get_args

import numpy as np
import pandas as pd

from famnb.client.batch import is_watched
from famnb.client.client import BaseClient
from famnb.client.connected import default_client
from famnb.errors import BudgetExceeded, Interrupted, InvalidRequest
from famnb.experiment.budget import Budget, parse_budget, worst_case
from famnb.experiment.progress import SIMULATED
from famnb.experiment.prompts import Source, parse_prompts
from famnb.formatting import (
    format_count,
    format_number,
    format_share,
    format_table,
    format_usd,
    html_paragraphs,
    html_table,
)
from famnb.frame.calls import calls
from famnb.load.arrivals import Arrivals, Trace, draw_arrivals, draw_lengths, parse_duration, read_trace
from famnb.load.dask_step import run_step_on_workers
from famnb.load.measure import OF_STREAMS, STEP_COLUMNS, StepResult, add_load_columns, measure_step, step_rows
from famnb.load.search import search_peak
from famnb.load.step import EndReason, MakeRequest, Step, run_step
from famnb.request import Request
from famnb.stats.intervals import check_share
from famnb.validation import check_integer, check_number

# One token in four characters of English; a word of this text is one token of most vocabularies.
FILLER = "one two three four five six seven eight nine ten of and to in is it on as at by"
TALKS = 10
"""How many talks go on at once where a load has several turns."""
TURN_TOKENS = 100
"""The length of an answer earlier in a talk, in words, where none is asked for."""
CLOSED_LENGTHS = 10_000
"""How many lengths are drawn for a closed load, whose number of calls is not known; they are used again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Peak:
    """The highest load that keeps an objective."""

    value: float
    """Calls a second, or calls at once in a closed load; NaN if none was found."""
    low: float
    """The highest load that kept it for certain; 0 if none did."""
    high: float
    """The lowest load that missed it for certain; infinity if none did."""
    unit: str
    steps: tuple[StepResult, ...]
    """The steps of the search, in their order."""
    objective: str
    """What was to be kept, in words."""

    def __str__(self) -> str:
        if math.isnan(self.value):
            reason = self.steps[-1].note or "the lowest step missed it"
            return f"No load was found that keeps {self.objective}: {reason}."
        if math.isinf(self.high):
            return f"At least {format_number(self.value)}{self.unit} keep {self.objective}; no step missed it."
        ends = f"between {format_number(self.low)} and {format_number(self.high)}{self.unit}"
        return f"About {format_number(self.value)}{self.unit} keep {self.objective} ({ends})."

    def _repr_html_(self) -> str:
        return html_paragraphs([str(self)]) + html_table(STEP_COLUMNS, step_rows(self.steps))


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class LoadReport:
    """What the steps of a load met; prints as a sentence and a table."""

    name: str
    steps: tuple[StepResult, ...]
    objective: str
    """What was to be kept, in words; empty without an objective."""
    skipped: int
    """Steps that an earlier run had measured."""
    spent_usd: Decimal
    """What the calls of this run count for."""
    is_simulated: bool
    """Whether a simulation answered, which bills nothing and whose speed is that of no model."""

    @property
    def sentences(self) -> list[str]:
        """What they say, one claim each."""
        lines = []
        if self.objective:
            passed = [step for step in self.steps if step.verdict == "met"]
            missed = [step for step in self.steps if step.verdict in ("missed", "growing")]
            best = max(passed, key=lambda step: step.amount, default=None)
            worst = min(missed, key=lambda step: step.amount, default=None)
            lines += [
                f"{best.label} keeps {self.objective}." if best else f"No step keeps {self.objective} for certain."
            ]
            if worst is not None:
                share = f" ({format_share(worst.share.value)} of calls do)" if worst.share else ""
                lines += [f"{worst.label} does not{share}."]
        lines += [f"{step.label}: {step.note}." for step in self.steps if step.note]
        if self.skipped:
            lines += [f"{format_count(self.skipped, 'step')} had been measured before; run(again=True) measures anew."]
        if self.is_simulated:
            lines += [SIMULATED]
        elif self.spent_usd:
            lines += [f"This run spent at most {format_usd(self.spent_usd)}."]
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.sentences, "", format_table(STEP_COLUMNS, step_rows(self.steps))]).strip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_paragraphs(self.sentences) + html_table(STEP_COLUMNS, step_rows(self.steps))


class Load:
    """Calls that begin when they are due, whatever becomes of those before them; what a service bears that way.

        load = famnb.Load("questions.csv", rate=[1, 2, 4, 8], duration="60s", slo={"ttft_s": 0.5}, model="fam-mini")
        load.run(budget_usd=1)               # a step a rate: who kept the objective, and where calls piled up
        load.find_peak(budget_usd=2)         # the highest rate at which 95 % of the calls keep it
        famnb.plot.load(load.frame())

    `requests` is a request, several, or prompts as `Experiment` takes them, which `endpoint` and the other keyword
    arguments make into requests; they are sent in turn. A service with a prompt cache answers a repeated one sooner:
    give as many as there are calls, or read the figures so.
    `rate` are calls a second, a step each of `duration`, without the first `warmup` (a tenth unless given). `arrivals`
    are "poisson", as of users who do not know of each other, "constant", or "closed": then `rate` are calls at once,
    and a call begins when one ends, which hides from the figures how long others would have waited. `trace` is a `.csv`
    or `.jsonl` file, a frame or seconds, of calls as they came elsewhere: `timestamp`, and `input_tokens` and
    `output_tokens`, by which prompts are padded and answers capped.
    `input_tokens` and `output_tokens` do that without a trace: a number, several to draw from, or a distribution such
    as `scipy.stats.lognorm(0.5, scale=200)`. With `turns` each call but the first of a talk repeats the turns before
    it, as a prompt cache is there for; since no call waits for another, the answers in between are filler.
    `slo` are the most that columns of `famnb.calls` may be, `share` how many calls are to keep them; times to first
    token and end count from when a call was due. Calls are not retried. After the last one has begun, `drain` is how
    long the others may take. A step in which more calls begin than end is ended early, and one in which this process
    itself was late says nothing of the service, and says so.
    `name` finds the calls in the ledger: steps that were measured are not repeated. Raises InvalidRequest.
    """

    def __init__(
        self,
        requests: Request | Sequence[Request] | Source,
        *,
        rate: float | Iterable[float] = (),
        arrivals: Arrivals = "poisson",
        trace: Any = None,
        input_tokens: Any = None,
        output_tokens: Any = None,
        turns: int = 1,
        duration: float | str = "30s",
        warmup: float | str | None = None,
        drain: float | str = "60s",
        slo: Mapping[str, float] | None = None,
        share: float = 0.95,
        name: str | None = None,
        client: BaseClient | None = None,
        seed: int = 0,
        endpoint: str | None = None,
        **fields: Any,
    ) -> None:
        if arrivals not in get_args(Arrivals):
            raise InvalidRequest(f"arrivals: expected one of {', '.join(get_args(Arrivals))}; got {arrivals!r}")
        self.arrivals: Arrivals = arrivals
        rates = list(rate) if isinstance(rate, Iterable) else [rate]
        self.rates = tuple(float(check_number("rate", value, above=0, expected="numbers above 0")) for value in rates)
        if arrivals == "closed":
            for value in rates:
                check_integer("rate", int(value) if float(value).is_integer() else value, minimum=1)
        self.trace: Trace | None = None if trace is None else read_trace(trace)
        self.duration_s = parse_duration("duration", duration) if self.trace is None else float(self.trace.times[-1])
        self.warmup_s = (
            self.duration_s / 10 if warmup is None else parse_duration("warmup", warmup) if warmup != 0 else 0.0
        )
        if self.trace is None and self.warmup_s >= self.duration_s:
            raise InvalidRequest(f"warmup: expected less than the duration of {self.duration_s:g} s; got {warmup!r}")
        self.drain_s = parse_duration("drain", drain)
        self.turns = check_integer("turns", turns, minimum=1)
        self._lengths = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        sample = [
            draw_lengths(name, source, 8, np.random.default_rng(0)).tolist()
            for name, source in self._lengths.items()
            if source is not None
        ]
        if sample and self.trace is not None:
            raise InvalidRequest("input_tokens, output_tokens: a trace has lengths of its own; leave them out")
        self._shape = (self.turns, sample)
        """What of the requests' lengths tells one load from another."""
        self.slo = dict(slo or {})
        self.share = check_share("share", share)
        self.seed = check_integer("seed", seed)
        self._client = client
        self._source, self._endpoint, self._fields = requests, endpoint, fields
        self._ends: dict[str, EndReason] = {}
        """Why steps of this object ended early, by their labels."""
        self._next_step_s = 0.0
        """Before when, by the monotonic clock, no step begins."""
        self._name = name

    @property
    def client(self) -> BaseClient:
        """The client that carries the calls; without one, that of `connect`."""
        if self._client is None:
            self._client = default_client()
        return self._client

    @cached_property
    def requests(self) -> tuple[Request, ...]:
        """The requests that are sent in turn. Raises InvalidRequest."""
        source = self._source
        given = [source] if isinstance(source, Request) else source
        if isinstance(given, list | tuple) and given and all(isinstance(item, Request) for item in given):
            if self._fields or self._endpoint:
                names = ", ".join([*self._fields, *(["endpoint"] if self._endpoint else [])])
                raise InvalidRequest(f"{names}: fields go with prompts; requests have their own")
            return tuple(given)
        endpoint = self._endpoint or next(iter(self.client.endpoints))
        fields = {"stream": True, **self._fields}
        return tuple(
            self.client.compose(endpoint, prompt.text, **fields) for prompt in parse_prompts(cast(Source, source))
        )

    @property
    def name(self) -> str:
        """What finds its calls in the ledger: the given name, or one that the content makes."""
        if self._name is None:
            content = [request.body_json() for request in self.requests]
            settings = self.arrivals, self.duration_s, self.warmup_s, self.seed, self.client.base_url(), self._shape
            self._name = f"load-{hashlib.sha256(b''.join([*content, repr(settings).encode()])).hexdigest()[:8]}"
        return self._name

    @property
    def objective(self) -> str:
        """What is to be kept, in words; empty without an objective."""
        limits = " and ".join(f"{column} ≤ {limit:g}" for column, limit in self.slo.items())
        return f"{limits} in {format_share(self.share)} of calls" if limits else ""

    def run(
        self,
        *,
        budget_usd: float | str | Decimal | None = None,
        again: bool = False,
        progress: bool | None = None,
        on: Any = None,
        key: Callable[[], str] | None = None,
    ) -> LoadReport:
        """Carry out the steps that have not been measured yet, or all of them (`again`), and return what they met.

        Calls are started when they are due, whether or not earlier ones have been answered. A step in which more calls
        begin than end is ended early. `budget_usd` is held against the most that the calls in flight can cost. An
        interrupt keeps what has come; running again goes on with the step that it cut off. `on` is a Dask client: its
        workers start the calls together, each from a common moment on and with its own API key, as `key()` returns it
        there or its environment has it. Raises InvalidRequest, BudgetExceeded if not one call fits.
        """
        self._check_objective()
        steps = self._steps()
        budget = self._make_budget(budget_usd)
        frame = self.frame()
        measured = {step.label for step in steps if not again and self._is_measured(step, frame)}
        todo = [step for step in steps if step.label not in measured]
        for step in todo:
            if self._carry(step, budget, progress, on, key) == "budget":
                break
        frame = self.frame() if todo else frame
        results = tuple(self._measure(step, frame) for step in steps if (frame["step"] == step.label).any())
        return LoadReport(
            self.name, results, self.objective, len(measured), budget.counted, bool(frame["simulated"].any())
        )

    def find_peak(
        self,
        slo: Mapping[str, float] | None = None,
        *,
        share: float | None = None,
        start: float | None = None,
        tolerance: float = 0.05,
        budget_usd: float | str | Decimal | None = None,
        progress: bool | None = None,
        on: Any = None,
        key: Callable[[], str] | None = None,
    ) -> Peak:
        """Search the highest rate, or number of calls at once in a closed load, that keeps an objective.

        `slo` are the most that columns may be, such as {"ttft_s": 0.5}, since each call was due; `share` of the calls
        are to keep them. From `start`, else the first rate, the load doubles until it is missed, or halves until it is
        kept; then the distance is halved until the ends are within `tolerance`. `on` and `key` are those of `run`.
        Raises InvalidRequest without an objective, or if this client was the bottleneck.
        """
        self.slo, self.share = dict(slo or self.slo), check_share("share", self.share if share is None else share)
        check_number("tolerance", tolerance, above=0, expected="how far apart the ends may be, such as 0.05")
        if not self.slo:
            raise InvalidRequest("slo: find_peak needs an objective, such as slo={'ttft_s': 0.5}")
        self._check_objective()
        if self.trace is not None:
            raise InvalidRequest("trace: a trace has a rate of its own; give rate= instead to search for a peak")
        is_closed, budget = self.arrivals == "closed", self._make_budget(budget_usd)
        results: dict[float, StepResult] = {}

        def keeps(amount: float) -> bool:
            step = self._step(amount)
            end = self._carry(step, budget, progress, on, key)
            if end == "budget":
                raise BudgetExceeded(
                    f"budget_usd: {format_usd(budget.counted)} are spent after {format_count(len(results), 'step')} of "
                    "the search; give more, or shorter steps (duration=)"
                )
            frame = self.frame()
            results[amount] = result = self._measure(step, frame)
            if result.verdict == "invalid":
                raise InvalidRequest(f"{step.label}: {result.note}")
            return result.keeps

        first = start or (self.rates[0] if self.rates else 1.0)
        kept, missed = search_peak(keeps, first, tolerance=tolerance, is_whole=is_closed)
        sure = [amount for amount, result in results.items() if result.verdict == "met"]
        surely_missed = [amount for amount, result in results.items() if result.verdict in ("missed", "growing")]
        # Of whole numbers the one that kept it is the peak; of rates it lies between the two.
        value = kept if math.isinf(missed) or is_closed else math.sqrt(kept * missed)
        return Peak(
            value or math.nan,
            max((amount for amount in sure if amount <= value), default=0.0),
            min((amount for amount in surely_missed if amount >= value), default=math.inf),
            self._unit,
            tuple(results.values()),
            self.objective,
        )

    def frame(self) -> pd.DataFrame:
        """One row a call, of the newest run of each step, with times since the call was due.

        The columns of `famnb.calls`, `variant` as `step`, and `due_s`, `late_s` (this process's own), `first_s`,
        `latency_s`, `end_s` in seconds, and `met`, missing without an objective.
        """
        recorded = calls(self.client.ledger, experiment=self.name)
        for column in ("due_s", "late_s"):
            if column not in recorded:
                recorded[column] = pd.array([], dtype="Float64")
        return add_load_columns(pd.DataFrame(recorded), self.slo)

    def __repr__(self) -> str:
        steps = format_count(len(self.rates), "step") if self.trace is None else "a trace"
        return f"<Load {self.name}: {steps} of {self.duration_s:g} s, {self.arrivals}>"

    @property
    def _unit(self) -> str:
        return " at once" if self.arrivals == "closed" else "/s"

    def _steps(self) -> list[Step]:
        if self.trace is not None:
            mean = len(self.trace.times) / max(self.duration_s, 1e-9)
            return [Step("trace", mean, self.trace.times, self.duration_s, 0.0, self.drain_s)]
        if not self.rates:
            raise InvalidRequest("rate: expected calls a second, such as rate=[1, 2, 4], or a trace=")
        return [self._step(rate) for rate in self.rates]

    def _step(self, amount: float) -> Step:
        due = None
        if self.arrivals != "closed":
            # Each step has times of its own that do not depend on the other steps.
            rng = np.random.default_rng([self.seed, round(amount * 1000)])
            due = draw_arrivals(amount, self.duration_s, self.arrivals, rng)
        return Step(f"{amount:.6g}{self._unit}", amount, due, self.duration_s, self.warmup_s, self.drain_s)

    def _carry(
        self, step: Step, budget: Budget, progress: bool | None, on: Any, key: Callable[[], str] | None
    ) -> EndReason:
        recorded = calls(self.client.ledger, experiment=self.name, variant=step.label, columns=["repeat"])["repeat"]
        attempt = 0 if recorded.empty else int(recorded.max()) + 1
        labels = {"experiment": self.name, "variant": step.label, "repeat": str(attempt)}
        try:
            time.sleep(max(self._next_step_s - time.monotonic(), 0.0))
        except KeyboardInterrupt:
            raise Interrupted(f"{step.label}: no call was started; run() again goes on with this step") from None
        self._ends.pop(step.label, None)
        make_request = self._prepare_requests(step)
        if on is None:
            is_shown = is_watched() if progress is None else progress
            reason, pause_s = run_step(step, make_request, self.client, labels, budget, progress=is_shown)
        else:
            reason, pause_s = run_step_on_workers(step, make_request, self.client, labels, budget, on, key)
        self._ends[step.label], self._next_step_s = reason, time.monotonic() + pause_s
        if reason == "budget" and not budget.counted:
            raise BudgetExceeded(
                "budget_usd: not even one call fits; give more, or a lower cap on the tokens of an answer"
            )
        return reason

    def _prepare_requests(self, step: Step) -> MakeRequest:
        """The function that gives the n-th request: in turn, with the lengths asked for, after those of its talk."""
        requests, trace, words = self.requests, self.trace, FILLER.split()
        count = CLOSED_LENGTHS if step.due is None else len(step.due)
        rng = np.random.default_rng([self.seed, round(step.amount * 1000), 1])
        lengths = {
            name: None if source is None else draw_lengths(name, source, count, rng)
            for name, source in self._lengths.items()
        }
        inputs = lengths["input_tokens"] if trace is None else trace.input_tokens
        outputs = lengths["output_tokens"] if trace is None else trace.output_tokens

        def find_turn(number: int) -> tuple[int, int]:
            """Return which prompt a call has, and which turn of its talk it is."""
            # Talks take turns, so that an answer has time to end before its talk goes on.
            block, rest = divmod(number, self.turns * TALKS)
            turn, talk = divmod(rest, TALKS)
            return (block * TALKS + talk) * self.turns + turn, turn

        def fill(number: int, tokens: int) -> str:
            # It begins with its number: no two are one to a prompt cache.
            return " ".join([str(number), *(words[index % len(words)] for index in range(tokens - 1))])

        def make_turn(number: int) -> Request:
            request = requests[find_turn(number)[0] % len(requests)]
            return request if inputs is None else request.with_content(fill(number, int(inputs[number % len(inputs)])))

        def make_request(number: int) -> Request:
            request, turn = make_turn(number), find_turn(number)[1]
            earlier: list[dict[str, Any]] = []
            for before in range(number - turn * TALKS, number, TALKS):
                tokens = TURN_TOKENS if outputs is None else int(outputs[before % len(outputs)])
                text = make_turn(before).turns()[-1].text
                earlier += [request.user_message(text), {"role": "assistant", "content": fill(before, tokens)}]
            if earlier:
                request = request.with_earlier(earlier)
            return request if outputs is None else request.replace(**{request.cap: int(outputs[number % len(outputs)])})

        return make_request

    def _check_objective(self) -> None:
        """Raise InvalidRequest for an objective that whole replies cannot be held to: each would count as a miss."""
        of_streams = [name for name in self.slo if name in OF_STREAMS]
        if of_streams and not all(request.streams for request in self.requests):
            raise InvalidRequest(
                f"slo: {', '.join(of_streams)} is known of streams alone, and some requests ask for whole replies; "
                "take e2e_s, or let them stream"
            )

    def _make_budget(self, budget_usd: float | str | Decimal | None) -> Budget:
        limit = None if budget_usd is None else parse_budget(budget_usd)
        profile = self.client.profile.name
        return Budget(limit, lambda request: worst_case(request, profile, "the load cannot be kept to one"))

    def _is_measured(self, step: Step, frame: pd.DataFrame) -> bool:
        """Whether an earlier run has measured a step whole."""
        rows = frame[frame["step"] == step.label]
        if rows.empty:
            return False
        if self._ends.get(step.label) == "growing":
            return True
        # Before the time that its last calls have, nothing but an interrupt stops a call.
        stopped = rows["end_s"][rows["status"].eq("cancelled")]
        if (stopped < step.duration_s + step.drain_s).any():
            return False
        return len(rows) >= len(step.due) if step.due is not None else rows["due_s"].max() >= 0.9 * step.duration_s

    def _measure(self, step: Step, frame: pd.DataFrame) -> StepResult:
        rows = frame[frame["step"] == step.label]
        return measure_step(step, rows, has_slo=bool(self.slo), wanted=self.share, end=self._ends.get(step.label, ""))
