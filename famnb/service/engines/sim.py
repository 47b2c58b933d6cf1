"""The simulated engine: deterministic answers that say how the request was understood, at a lifelike pace.

thinking or reasoning ── text │ JSON │ tool calls
└ every piece is one token; all of them count towards the cap
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import itertools
import json
import random
import re
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any

from famnb.events import Closed, Delta, Done, Ended, Event, Opened, Started, Usage
from famnb.request.limits import MINI_CONTEXT_TOKENS, MINI_MODELS
from famnb.request.web import Function
from famnb.service.engines import prose, tokens
from famnb.service.engines.instances import instance
from famnb.service.engines.pace import OTHER, PROFILES, Pace
from famnb.service.engines.schema import Unsatisfiable
from famnb.service.prompt import Prompt, Turn
from famnb.service.refusal import Refusal

TURN_TOKENS = 4
"""What each message costs beside its text."""
IMAGE_TOKENS = 256
"""What each image counts as; it is never opened."""
_LARGE = 100_000
"""Characters from which a prompt is counted in a thread, so that others are served meanwhile."""
_LONGEST_THOUGHT = 20_000
"""The most thinking tokens that are typical, however large the budget."""
_EFFORTS = {"minimal": 16, "low": 48, "medium": 112, "high": 224, "xhigh": 448}
"""Typical reasoning tokens for each effort."""
_VERBS = {
    "get",
    "set",
    "find",
    "list",
    "search",
    "look",
    "up",
    "fetch",
    "run",
    "do",
    "make",
    "create",
    "the",
    "to",
    "for",
}
"""Words of a tool's name that do not show that a prompt asks for it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """A block of the answer before it is spoken."""

    at: tuple[int, int]
    kind: str
    pieces: Iterator[str]
    id: str = ""
    name: str = ""


class Sim:
    """Answers without a model; the same model, prompt and seed give the same answer."""

    name = "sim"

    def __init__(self, *, seed: int = 0, time_scale: float = 1.0) -> None:
        self._seed = seed
        self._scale = time_scale
        # Latencies differ from call to call, as they do in life; repeats of one request would else have no spread.
        self._latency = _seeded(seed)

    async def generate(self, prompt: Prompt, /) -> AsyncGenerator[Event]:
        pace = Pace(PROFILES.get(prompt.model, OTHER), scale=self._scale, rng=self._latency)
        read, cached = await _read(prompt)
        reasoning, blocks = self._planned(prompt, read)
        yield Started(model=prompt.model)
        await pace.first(read)
        spent = 0
        if blocks[0].kind != "thinking" and reasoning:
            await pace.next(reasoning)
            spent = reasoning
        finish = "tool_calls" if blocks[-1].kind == "tool_call" else "stop"
        for block in blocks:
            began = time.monotonic()
            yield Opened(block.at, block.kind, block.id, block.name)
            for piece in block.pieces:
                if spent == prompt.cap:
                    finish = "length"
                    break
                if spent:
                    await pace.next()
                spent += 1
                yield Delta(block.at, block.kind, piece)
            thought_s = time.monotonic() - began
            yield Closed(block.at, latency_ms=round(thought_s * 1000) if block.kind == "thinking" else None)
            if finish == "length":
                break
        yield Ended(finish)
        yield Usage(
            input_tokens=read,
            output_tokens=spent,
            reasoning_tokens=reasoning,
            cached_tokens=cached,
            cache_write_tokens=0,
            total_tokens=read + spent,
        )
        yield Done()

    async def state(self) -> dict[str, Any]:
        return {}

    async def aclose(self) -> None:
        pass

    def _planned(self, prompt: Prompt, read: int) -> tuple[int, list[Said]]:
        """How many tokens are thought, and the blocks that are said; raises Refusal where a schema leaves no way."""
        # The answer's variety follows from what is the same on every endpoint, whatever its defaults are.
        turns = [(turn.role, turn.words, turn.images) for turn in prompt.turns]
        content = repr([self._seed, prompt.system, turns, prompt.verbosity, prompt.form.schema])
        digest = hashlib.sha256(content.encode()).hexdigest()
        blocks = list(_said(prompt, read, _seeded(f"{digest} answer")))
        reasoning = min(_reasoning(prompt, _seeded(f"{digest} reasoning")), prompt.cap - 1)
        if reasoning and prompt.thinking is not None:
            thoughts = tokens.pieces(prose.thoughts(prompt, rng=_seeded(f"{digest} thoughts")))
            blocks.insert(0, Said((0, 0), "thinking", itertools.islice(thoughts, reasoning)))
        return reasoning, blocks


async def _read(prompt: Prompt) -> tuple[int, int]:
    """The prompt's tokens and how many of them are cached; raises Refusal beyond the model's context window."""
    large = sum(len(turn.words) for turn in prompt.turns) + len(prompt.system) > _LARGE
    read, cached = await asyncio.to_thread(counted, prompt) if large else counted(prompt)
    if prompt.model in MINI_MODELS and read > MINI_CONTEXT_TOKENS:
        raise Refusal(
            400,
            f"the prompt has {read:,} tokens, and {prompt.model} reads at most {MINI_CONTEXT_TOKENS:,}; shorten it",
            code="context_length_exceeded",
            param="messages",
        )
    return read, cached


def _seeded(seed: int | str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - to repeat itself is its purpose; nothing secret comes of it


def counted(prompt: Prompt) -> tuple[int, int]:
    """The tokens of a prompt, and how many of them an earlier response had shown the engine already."""

    def cost(turns: Iterable[Turn]) -> int:
        return sum(tokens.count(turn.words) + TURN_TOKENS + IMAGE_TOKENS * len(turn.images) for turn in turns)

    system = tokens.count(prompt.system) + TURN_TOKENS if prompt.system else 0
    tools = sum(tokens.count(tool.model_dump_json(exclude_unset=True)) + TURN_TOKENS for tool in prompt.tools)
    known = cost(prompt.turns[: prompt.repeated])
    return system + tools + known + cost(prompt.turns[prompt.repeated :]), system + known if known else 0


def _reasoning(prompt: Prompt, rng: random.Random) -> int:
    """How many tokens are thought before the answer, shown or not."""
    varied = rng.uniform(0.8, 1.2)
    if prompt.thinking is not None:
        return min(prompt.thinking, int(varied * min(40 + prompt.thinking // 12, _LONGEST_THOUGHT)))
    return int(varied * _EFFORTS.get(prompt.effort or "none", 0))


def _said(prompt: Prompt, read: int, rng: random.Random) -> Iterator[Said]:
    """The blocks of the answer; raises Refusal when a schema leaves no way to answer."""
    called = _called(prompt)
    words = tuple(re.findall(r"(?<=\s)[A-Z][a-z]+", prompt.turns[-1].text)) if called and prompt.turns else ()
    for index, tool in enumerate(called):
        arguments = json.dumps(_arguments(tool, words), ensure_ascii=False)
        id_ = f"call_{rng.getrandbits(96):024x}"
        yield Said((1, index), "tool_call", tokens.pieces([arguments]), id_, tool.name)
    if called:
        return
    if prompt.form.schema is not None:
        answer: Iterable[str] = [_pretty(_instance(prompt.form.schema, prompt.form.at))]
    elif prompt.form.json:
        facts = {"simulated": True, "model": prompt.model, "prompt_tokens": read, "turns": len(prompt.turns)}
        answer = [_pretty(facts)]
    else:
        answer = prose.answer(prompt, prompt_tokens=read, rng=rng)
    yield Said((0, int(prompt.thinking is not None)), "text", tokens.pieces(answer))


def _called(prompt: Prompt) -> list[Function]:
    """The tools that the answer calls: those it must, else those that the last question clearly asks for."""
    if prompt.forced_tool:
        return [tool for tool in prompt.tools if tool.name == prompt.forced_tool][:1]
    last = prompt.turns[-1] if prompt.turns else Turn("system", "")
    if not prompt.tools or prompt.tool_choice == "none" or (last.role != "user" and prompt.tool_choice == "auto"):
        return []
    words = set(re.findall(r"\w+", last.text.lower()))
    asked = [tool for tool in prompt.tools if _asked_for(tool.name.lower(), words)]
    return asked if asked or prompt.tool_choice == "auto" else list(prompt.tools[:1])


def _asked_for(name: str, words: set[str]) -> bool:
    """Whether a tool is called by its name, or by all the telling words of its name."""
    telling = {word for word in re.split(r"[_-]+", name) if word} - _VERBS
    return name in words or (bool(telling) and telling <= words)


def _arguments(tool: Function, words: tuple[str, ...]) -> Any:
    """Arguments for a tool, as near to its schema as can be: like a model's, they are not certain to satisfy it."""
    try:
        return instance({"type": "object", **(tool.parameters or {})}, words=words, nearly=True)
    except Unsatisfiable:
        return {}


def _instance(schema: dict[str, Any], at: str) -> Any:
    """A value for a schema of the request; raises Refusal, naming the place, when none can be made."""
    try:
        return instance(schema)
    except Unsatisfiable as error:
        raise Refusal(400, f"{at}: {error}", code="invalid_value", param=at) from None


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
