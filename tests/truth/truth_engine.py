"""An engine of which everything is known: latencies, tokens, accuracy, failures; and two ways to call it.

draw(model, variant, prompt, repeat) ── TrueReply ── `serve`         service ── sockets ── client ── ledger
                                                  └─ `record_cells`  endpoint's writer and reader ─┘

Served, all is real but the model: the service's endpoints, the bytes, the client's clock, the waits. Recorded without
a service, replies are written and read in their endpoint's own form, so that what an endpoint cannot report stays
unreported, and only the sockets are left out: the times are those drawn, and seconds of waiting cost none. What is
drawn follows from the seed and the names alone, never from the order or the time of calls.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import math
import random
import socket
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import uvicorn

from famnb.client.engine import new_call_id
from famnb.client.exchange import Exchange
from famnb.client.response_reader import reply_from_reads
from famnb.endpoints import endpoint
from famnb.events import Closed, Delta, Done, Ended, Event, Opened, Started, Usage
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.plan import Cell
from famnb.service.app import create_app
from famnb.service.errors import ServiceError
from famnb.service.prompt import GenerationPrompt, build_prompt
from famnb.service.settings import Options
from famnb.service.shutdown import Shutdown
from famnb.service.store import ResponseStore
from famnb.timing import Read
from famnb.wire import sse
from tests.support.waiting import wait_until

KEY = "truth-" + "k" * 20
RIGHT, WRONG = "yes", "no"
"""The first word of a right and of a wrong answer."""
TEXT_AT = (0, 0)
TURN_TOKENS = 8
"""Tokens of the input beside its text: the marks of a system text and a turn."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrueModel:
    """What one variant truly is. Every median is multiplied by a log-normal factor of its prompt and one of the call.

    The factor of a prompt is the same for every variant and repeat, as a long question is long for all models.
    """

    first_token_s: float = 0.3
    """Median seconds to the first token."""
    token_s: float = 0.01
    """Seconds a token."""
    output_tokens: int = 60
    """Median of visible tokens."""
    hidden_tokens: int = 0
    """Median of tokens of reasoning that is billed and never shown."""
    cached_share: float = 0.0
    """Share of the input that comes from the cache."""
    chars_per_token: float = 4.0
    """Of prompts; of answers the median over calls."""
    spread: float = 0.3
    """Standard deviation of the logarithm of a call's factor."""
    prompt_spread: float = 0.5
    """Standard deviation of the logarithm of a prompt's factor."""
    accuracy: float = 0.8
    """Share of prompts, over many, that are answered right; hard prompts are hard for all variants."""
    failure_rate: float = 0.0
    """Share of streams that break off in the middle."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrueReply:
    """What one reply truly is, whatever of it an endpoint reports."""

    text: str
    first_token_s: float
    e2e_s: float
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    """Hidden ones included."""
    hidden_tokens: int
    is_right: bool
    breaks_off: bool

    def time_events(self, model: str) -> Iterator[tuple[float, Event]]:
        """Yield its events, each with its time in seconds; one that breaks off ends after half of its text."""
        half = len(self.text) // 2
        yield 0.0, Started(id="r1", model=model, created=1)
        yield self.first_token_s, Opened(TEXT_AT, "text")
        yield self.first_token_s, Delta(TEXT_AT, "text", self.text[:half])
        if self.breaks_off:
            return
        yield (self.first_token_s + self.e2e_s) / 2, Delta(TEXT_AT, "text", self.text[half:])
        yield self.e2e_s, Closed(TEXT_AT)
        yield self.e2e_s, Ended("stop")
        yield (
            self.e2e_s,
            Usage(
                input_tokens=self.input_tokens,
                output_tokens=self.output_tokens,
                reasoning_tokens=self.hidden_tokens,
                cached_tokens=self.cached_tokens,
                cache_write_tokens=0,
                total_tokens=self.input_tokens + self.output_tokens,
            ),
        )
        yield self.e2e_s, Done()


class TruthEngine:
    """Draws replies of known truth; an engine of the service. A variant is known by its system text."""

    name = "truth"

    def __init__(self, variants: Mapping[str, TrueModel], *, seed: int = 0) -> None:
        self._variants = variants
        self._seed = seed
        self._repeats: Counter[tuple[str, str]] = Counter()

    def draw(self, variant: str, prompt: str, repeat: int) -> TrueReply:
        """Return what the variant answers to the prompt, the `repeat`-th time from 0."""
        model = self._variants[variant]
        of_prompt = random.Random(f"{self._seed}/{prompt}")
        of_call = random.Random(f"{self._seed}/{prompt}/{variant}/{repeat}")
        length, pace, hardness = of_prompt.gauss(), of_prompt.gauss(), of_prompt.random()

        def factor(of_its_prompt: float) -> float:
            return math.exp(model.prompt_spread * of_its_prompt + model.spread * of_call.gauss())

        visible = max(2, round(model.output_tokens * factor(length)))
        hidden = round(model.hidden_tokens * factor(length))
        first_token_s = model.first_token_s * factor(pace)
        # Half of what decides is the prompt, half the call.
        is_right = (hardness + of_call.random()) / 2 < _median_sum_quantile(model.accuracy)
        word = RIGHT if is_right else WRONG
        chars = round(visible * model.chars_per_token * math.exp(0.1 * of_call.gauss()))
        input_tokens = TURN_TOKENS + math.ceil((len(variant) + len(prompt)) / model.chars_per_token)
        return TrueReply(
            text=f"{word} ".ljust(chars, "x"),
            first_token_s=first_token_s,
            e2e_s=first_token_s + model.token_s * visible,
            input_tokens=input_tokens,
            cached_tokens=round(input_tokens * model.cached_share),
            output_tokens=visible + hidden,
            hidden_tokens=hidden,
            is_right=is_right,
            breaks_off=of_call.random() < model.failure_rate,
        )

    def draw_cell(self, cell: Cell) -> TrueReply:
        """Return what a cell's call is answered."""
        prompt = build_prompt(cell.request)
        return self.draw(prompt.system, prompt.turns[-1].text, cell.repeat)

    async def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        key = prompt.system, prompt.turns[-1].text
        repeat = self._repeats[key]
        self._repeats[key] += 1
        reply, since = self.draw(*key, repeat), asyncio.get_running_loop().time()
        for at_s, event in reply.time_events(prompt.model):
            await asyncio.sleep(max(0.0, since + at_s - asyncio.get_running_loop().time()))
            yield event
        if reply.breaks_off:
            raise ServiceError(500, "the model broke off")

    async def state(self) -> dict[str, Any]:
        return {}

    async def aclose(self) -> None:
        pass


def _median_sum_quantile(p: float) -> float:
    """The p-quantile of the mean of two uniform numbers."""
    return math.sqrt(p / 2) if p <= 0.5 else 1 - math.sqrt((1 - p) / 2)


@contextlib.contextmanager
def serve(engine: TruthEngine) -> Iterator[str]:
    """Serve an engine on every endpoint, in a thread of this process; yields its address. The key is `KEY`."""
    shutdown, listener = Shutdown(), socket.create_server(("127.0.0.1", 0))
    app = create_app(Options(), keys=(KEY,), engine=engine, store=ResponseStore(), shutdown=shutdown)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        shutdown.begin()
        server.should_exit = True
        thread.join()


def record_cells(exp: BaseExperiment, engine: TruthEngine) -> dict[str, TrueReply]:
    """Record a reply to every cell in the experiment's ledger, without a service and without waiting.

    Returns what each cell is truly answered, by the cell's key.
    """
    replies = {cell.key: engine.draw_cell(cell) for cell in exp.cells}
    for cell in exp.cells:
        exp.ledger.on_close(_exchange(cell, replies[cell.key], exp.name))
    exp.ledger.flush()
    return replies


def _exchange(cell: Cell, reply: TrueReply, experiment: str) -> Exchange:
    """The call that a cell's reply makes, as the client has it when it is over."""
    request, target = cell.request, endpoint(cell.request.endpoint)
    writer = target.dialect.writer(include_usage=request.asks_for_usage)
    reads = []
    for at_s, events in itertools.groupby(reply.time_events(cell.request.model), key=lambda timed: timed[0]):
        blocks = b"".join(block for _, event in events for block in writer.write(event))
        if data := sse.Decoder().feed(blocks):
            reads.append(Read(round(at_s * 1e9), tuple(data)))
    exchange = Exchange(
        id=new_call_id(),
        started_at=datetime.now(UTC),
        request=request,
        endpoint=target,
        url="http://127.0.0.1:1/v1",
        labels=cell.labels(experiment),
        attempts=1,
    )
    exchange.http_status, exchange.service, exchange.streamed = 200, TruthEngine.name, True
    exchange.reads, exchange.headers_ns, exchange.end_ns = reads, 0, reads[-1].t_ns
    exchange.reply = reply_from_reads(target, streamed=True, reads=reads, headers_ns=0, end_ns=reads[-1].t_ns)
    return exchange
