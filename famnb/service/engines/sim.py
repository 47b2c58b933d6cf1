"""The simulated engine: deterministic answers that say how the request was understood, at a lifelike pace.

thinking or reasoning ── text │ JSON │ tool calls
└ every piece is one token; all of them count towards the cap
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from famnb.events import Closed, Delta, Done, Ended, Event, Opened, Started, Usage
from famnb.service.beside import LARGE, beside
from famnb.service.engines.pace import Pace, profile
from famnb.service.engines.planning import Plan, planned, seeded
from famnb.service.prompt import Prompt

_REMEMBERED = 10_000
"""Of how many requests it is known how often each came."""
_TURN_SIZE = 30
"""What a turn adds to the size of a prompt beside its text, in characters that take as long to count."""


class Sim:
    """Answers without a model; the same model, prompt and seed give the same answer.

    So do they give the same waits, the second time others than the first, and so on: repeats of one request would else
    have no spread. What else is asked meanwhile changes nothing.
    """

    name = "sim"

    def __init__(
        self,
        *,
        seed: int = 0,
        time_scale: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seed = seed
        self._scale = time_scale
        self._clock = clock
        self._sleep = sleep
        self._times: dict[bytes, int] = {}

    async def generate(self, prompt: Prompt, /) -> AsyncGenerator[Event]:
        arrived = self._clock()
        plan = await beside(lambda: planned(prompt, seed=self._seed), size=_size(prompt))
        blocks, reasoning = plan.blocks, plan.reasoning
        shown = blocks[0].kind == "thinking"
        latency = profile(prompt.model, None if shown else prompt.effort, prompt_tokens=plan.read, cap=prompt.cap)
        pace = Pace(since=arrived, scale=self._scale, rng=self._luck(plan), clock=self._clock, sleep=self._sleep)
        yield Started(model=prompt.model)
        spent = 0 if shown else reasoning
        waited = True
        await pace.token(latency.ttft)
        finish = "tool_calls" if blocks[-1].kind == "tool_call" else "stop"
        for block in blocks:
            began = self._clock()
            yield Opened(block.at, block.kind, block.id, block.name)
            for piece in block.pieces:
                if spent == prompt.cap:
                    finish = "length"
                    break
                if not waited:
                    await pace.token(latency.gap)
                waited = False
                spent += 1
                yield Delta(block.at, block.kind, piece)
            thought_s = self._clock() - began
            yield Closed(block.at, latency_ms=round(thought_s * 1000) if block.kind == "thinking" else None)
            if finish == "length":
                break
        yield Ended(finish)
        yield Usage(
            input_tokens=plan.read,
            output_tokens=spent,
            reasoning_tokens=reasoning,
            cached_tokens=plan.cached,
            cache_write_tokens=0,
            total_tokens=plan.read + spent,
        )
        yield Done()

    async def state(self) -> dict[str, Any]:
        return {}

    async def aclose(self) -> None:
        pass

    def _luck(self, plan: Plan) -> random.Random:
        """What the waits of a reply are drawn from: the request, and how often it came before."""
        times = self._times.pop(plan.identity, 0) + 1
        self._times[plan.identity] = times
        if len(self._times) > _REMEMBERED:
            del self._times[next(iter(self._times))]
        return seeded(f"{plan.identity.hex()} {times}")


def _size(prompt: Prompt) -> int:
    """About how many characters a prompt has, a turn counting as some; not looked at one by one where they are many."""
    turns = len(prompt.turns) * _TURN_SIZE
    return turns if turns > LARGE else turns + len(prompt.system) + sum(len(turn.text) for turn in prompt.turns)
