"""What the simulated engine says: the blocks and counts of a reply, before `sim` speaks it at its pace.

MERGED: Text as token pieces: the simulated engine's own tokenizer, so that what it counts is exactly what it sends.
MERGED: The simulated engine: deterministic answers that say how the request was understood, at a lifelike pace.

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
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import Any

from famnb.events import Closed, Delta, Done, Ended, Event, Opened, Started, Usage
from famnb.request.neutral import PromptTurn
from famnb.request.types import MINI_CONTEXT_TOKENS, MINI_MODELS
from famnb.request.web import Function
from famnb.service.engines import sample_text
from famnb.service.engines.latency_model import EFFORT_TOKENS, TokenPacer, profile
from famnb.service.engines.sample_json import Unsatisfiable, instance
from famnb.service.errors import ServiceError
from famnb.service.prompt import GenerationPrompt
from famnb.service.request_body import LARGE, beside

PIECE = re.compile(
    r"[\u2e80-\u9fff\uac00-\ud7af]"  # scripts written without spaces: a character each
    r"| ?[^\W\d_]{1,8}| ?\d{1,3}| ?[^\w\s]{1,3}"
    r"|\n+|\s{1,8}|.",
    re.DOTALL,
)
"""One token: about four characters of English, with the space before it."""


def pieces(chunks: Iterable[str]) -> Iterator[str]:
    """The tokens of a text that comes in chunks, as they come; they do not depend on where it was cut."""
    held = ""
    for chunk in chunks:
        # The next chunk may go on with the last token; all others are final.
        *final, held = PIECE.findall(held + chunk) or [""]
        yield from final
    if held:
        yield held


def count(text: str) -> int:
    """How many tokens a text has; never builds the list, since a body may hold megabytes."""
    return sum(1 for _ in PIECE.finditer(text))


TURN_TOKENS = 4
"""What each message costs beside its text."""
IMAGE_TOKENS = 256
"""What each image counts as; it is never opened."""
_LONGEST_THOUGHT = 20_000
"""The most thinking tokens that are typical, however large the budget."""
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
class PlannedBlock:
    """A block of the answer before it is spoken."""

    at: tuple[int, int]
    kind: str
    pieces: Iterator[str]
    id: str = ""
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ReplyPlan:
    """A reply before it is spoken."""

    read: int
    """The prompt's tokens."""
    cached: int
    """How many of them an earlier response had shown the engine already."""
    reasoning: int
    """Tokens thought before the answer, shown or not."""
    blocks: list[PlannedBlock]
    identity: bytes
    """The same for the same model, request and seed."""


def plan_reply(prompt: GenerationPrompt, *, seed: int) -> ReplyPlan:
    """The whole reply; raises Refusal beyond the context window, and where a schema leaves no way to answer."""
    read, cached = _read(prompt)
    # The answer's variety follows from what is the same on every endpoint, whatever its defaults are.
    turns = [(turn.role, turn.words, turn.images) for turn in prompt.turns]
    content = repr([seed, prompt.system, turns, prompt.verbosity, prompt.form.schema])
    digest = hashlib.sha256(content.encode()).hexdigest()
    blocks = list(_said(prompt, read, seeded(f"{digest} answer")))
    reasoning = min(_reasoning(prompt, seeded(f"{digest} reasoning")), prompt.cap - 1)
    if reasoning and prompt.thinking is not None:
        thoughts = pieces(sample_text.thoughts(prompt, rng=seeded(f"{digest} thoughts")))
        blocks.insert(0, PlannedBlock((0, 0), "thinking", itertools.islice(thoughts, reasoning)))
    own = (prompt.model, prompt.cap, prompt.effort, prompt.thinking, prompt.temperature, prompt.top_p)
    identity = hashlib.blake2b(repr((digest, own, prompt.tools)).encode(), digest_size=16).digest()
    return ReplyPlan(read, cached, reasoning, blocks, identity)


def _read(prompt: GenerationPrompt) -> tuple[int, int]:
    """The prompt's tokens and how many of them are cached; raises Refusal beyond the model's context window."""
    read, cached = counted(prompt)
    if prompt.model in MINI_MODELS and read > MINI_CONTEXT_TOKENS:
        raise ServiceError(
            400,
            f"the prompt has {read:,} tokens, and {prompt.model} reads at most {MINI_CONTEXT_TOKENS:,}; shorten it",
            code="context_length_exceeded",
            param=prompt.prompt_field,
        )
    return read, cached


def counted(prompt: GenerationPrompt) -> tuple[int, int]:
    """The tokens of a prompt, and how many of them an earlier response had shown the engine already."""

    def cost(turns: Iterable[PromptTurn]) -> int:
        return sum(count(turn.words) + TURN_TOKENS + IMAGE_TOKENS * len(turn.images) for turn in turns)

    system = count(prompt.system) + TURN_TOKENS if prompt.system else 0
    tools = sum(count(tool.model_dump_json(exclude_unset=True)) + TURN_TOKENS for tool in prompt.tools)
    known = cost(prompt.turns[: prompt.repeated])
    return system + tools + known + cost(prompt.turns[prompt.repeated :]), system + known if known else 0


def _reasoning(prompt: GenerationPrompt, rng: random.Random) -> int:
    """How many tokens are thought before the answer, shown or not."""
    varied = rng.uniform(0.8, 1.2)
    if prompt.thinking is not None:
        return min(prompt.thinking, int(varied * min(40 + prompt.thinking // 12, _LONGEST_THOUGHT)))
    return int(varied * EFFORT_TOKENS.get(prompt.effort or "none", 0))


def _said(prompt: GenerationPrompt, read: int, rng: random.Random) -> Iterator[PlannedBlock]:
    """The blocks of the answer; raises Refusal when a schema leaves no way to answer."""
    called = _called(prompt)
    words = tuple(re.findall(r"(?<=\s)[A-Z][a-z]+", prompt.turns[-1].text)) if called and prompt.turns else ()
    for index, tool in enumerate(called):
        arguments = json.dumps(_arguments(tool, words), ensure_ascii=False)
        id_ = f"call_{rng.getrandbits(96):024x}"
        yield PlannedBlock((1, index), "tool_call", pieces([arguments]), id_, tool.name)
    if called:
        return
    if prompt.form.schema is not None:
        answer: Iterable[str] = [_pretty(_instance(prompt.form.schema, prompt.form.at))]
    elif prompt.form.json:
        facts = {"simulated": True, "model": prompt.model, "prompt_tokens": read, "turns": len(prompt.turns)}
        answer = [_pretty(facts)]
    else:
        answer = sample_text.answer(prompt, prompt_tokens=read, rng=rng)
    yield PlannedBlock((0, int(prompt.thinking is not None)), "text", pieces(answer))


def _called(prompt: GenerationPrompt) -> list[Function]:
    """The tools that the answer calls: those it must, else those that the last question clearly asks for."""
    if prompt.forced_tool:
        return [tool for tool in prompt.tools if tool.name == prompt.forced_tool][:1]
    last = prompt.turns[-1] if prompt.turns else PromptTurn("system", "")
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
        raise ServiceError(400, f"{at}: {error}", code="invalid_value", param=at) from None


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def seeded(seed: int | str) -> random.Random:
    """A source of chance that repeats itself."""
    return random.Random(seed)  # noqa: S311 - to repeat itself is its purpose; nothing secret comes of it


_REMEMBERED = 10_000
"""Of how many requests it is known how often each came."""
_TURN_SIZE = 30
"""What a turn adds to the size of a prompt beside its text, in characters that take as long to count."""


class SimulatedEngine:
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

    async def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        arrived = self._clock()
        plan = await beside(lambda: plan_reply(prompt, seed=self._seed), size=_size(prompt))
        blocks, reasoning = plan.blocks, plan.reasoning
        shown = blocks[0].kind == "thinking"
        latency = profile(prompt.model, None if shown else prompt.effort, prompt_tokens=plan.read, cap=prompt.cap)
        pace = TokenPacer(since=arrived, scale=self._scale, rng=self._luck(plan), clock=self._clock, sleep=self._sleep)
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

    def _luck(self, plan: ReplyPlan) -> random.Random:
        """What the waits of a reply are drawn from: the request, and how often it came before."""
        times = self._times.pop(plan.identity, 0) + 1
        self._times[plan.identity] = times
        if len(self._times) > _REMEMBERED:
            del self._times[next(iter(self._times))]
        return seeded(f"{plan.identity.hex()} {times}")


def _size(prompt: GenerationPrompt) -> int:
    """About how many characters a prompt has, a turn counting as some; not looked at one by one where they are many."""
    turns = len(prompt.turns) * _TURN_SIZE
    return turns if turns > LARGE else turns + len(prompt.system) + sum(len(turn.text) for turn in prompt.turns)
