"""The simulated engine: deterministic replies that describe how the request was understood, at a lifelike pace.

prompt ── plan_reply: tokens counted, blocks chosen ── generate: one piece, one event, at the pace of latency_model

reply    thinking or reasoning ── text │ JSON │ tool calls
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
from famnb.request.neutral import Function, PromptTurn
from famnb.request.types import MINI_CONTEXT_TOKENS, MINI_MODELS
from famnb.service.engines import sample_text
from famnb.service.engines.base import Engine, StopMatcher
from famnb.service.engines.latency_model import EFFORT_TOKENS, LogNormal, latency_profile
from famnb.service.engines.sample_json import Unsatisfiable, sample_value
from famnb.service.errors import ServiceError
from famnb.service.prompt import GenerationPrompt

# About what the chat templates of real models put around a message: its role and the marks of its start and end.
TURN_TOKENS = 4
"""The tokens that each message counts beside its text."""
IMAGE_TOKENS = 256
"""The tokens that each image counts; it is never opened."""
_MAX_THINKING = 20_000
"""The maximum of thinking tokens, however large the budget."""
_GENERIC_WORDS = frozenset(
    "get set find list search look up fetch run do make create current the to for".split()  # noqa: SIM905 - shorter than 20 strings
)
"""Words of a tool's name that do not show that a prompt asks for it."""


class SimulatedEngine(Engine):
    """Answers without a model; the same model, prompt and seed give the same answer."""

    name = "sim"
    takes_any_model = False

    def __init__(
        self,
        *,
        seed: int = 0,
        time_scale: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`time_scale` multiplies every wait; `clock` and `sleep` are in seconds."""
        self._seed = seed
        self._scale = time_scale
        self._clock = clock
        self._sleep = sleep
        self._rng = create_rng(seed)
        """For the waits, which differ from call to call."""

    async def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        due = self._clock()

        def wait(distribution: LogNormal) -> Awaitable[None]:
            """Wait for the next token, by a timetable, so that being late once does not delay what follows."""
            nonlocal due
            # Even without a wait the event loop gets a turn, so that each event is written by itself.
            if not self._scale:
                return self._sleep(0.0)
            due += distribution.sample(self._rng) * self._scale
            return self._sleep(max(due - self._clock(), 0.0))

        prompt.left_out.extend(prompt.sampling)
        plan = plan_reply(prompt, seed=self._seed)
        blocks = plan.blocks
        shows_thinking = blocks[0].kind == "thinking"
        # Thinking that is shown takes its time token by token, hidden reasoning before the first token.
        hidden_effort = None if shows_thinking else prompt.effort
        latency = latency_profile(prompt.model, hidden_effort, prompt_tokens=plan.prompt_tokens, cap=prompt.cap)
        # Before the first wait: errors of the plan are an error response, and a stream is opened at once.
        yield Started(model=prompt.model, input_tokens=plan.prompt_tokens)
        # Hidden reasoning is spent already; thinking that is shown is counted piece by piece.
        spent = 0 if shows_thinking else plan.reasoning_tokens
        is_first_token = True
        await wait(latency.ttft)
        stop_sequence: str | None = None
        finish_reason = "tool_calls" if blocks[-1].kind == "tool_call" else "stop"
        for block in blocks:
            opened_at = self._clock()
            yield Opened(block.at, block.kind, block.id, block.name)
            stops = StopMatcher(prompt.stop if block.kind == "text" else ())
            for piece in stops.cut(block.pieces):
                if spent == prompt.cap:
                    finish_reason = "length"
                    break
                if not is_first_token:
                    await wait(latency.gap)
                is_first_token = False
                spent += 1
                yield Delta(block.at, block.kind, piece)
            duration = self._clock() - opened_at
            yield Closed(block.at, latency_ms=round(duration * 1000) if block.kind == "thinking" else None)
            if finish_reason == "length":
                break
            if stops.stop:
                finish_reason, stop_sequence = "stop_sequence", stops.stop
        yield Ended(finish_reason, stop_sequence=stop_sequence)
        yield Usage(
            input_tokens=plan.prompt_tokens,
            output_tokens=spent,
            reasoning_tokens=plan.reasoning_tokens,
            cached_tokens=plan.cached_tokens,
            cache_write_tokens=0,
            total_tokens=plan.prompt_tokens + spent,
        )
        yield Done()

    async def aclose(self) -> None:
        """Close nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedBlock:
    """A block of a reply before it is streamed."""

    at: tuple[int, int]
    kind: str
    pieces: Iterator[str]
    """The tokens of its text."""
    id: str = ""
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ReplyPlan:
    """A reply before it is streamed."""

    prompt_tokens: int
    cached_tokens: int
    """How many of the prompt's tokens an earlier response had shown the engine already."""
    reasoning_tokens: int
    """Tokens of thinking before the answer, whether part of the reply or not."""
    blocks: list[PlannedBlock]


def plan_reply(prompt: GenerationPrompt, *, seed: int) -> ReplyPlan:
    """Return the whole reply to a prompt. ServiceError 400 if it is too long, or no answer can satisfy its schema."""
    prompt_tokens, cached_tokens = count_prompt_tokens(prompt)
    if prompt.model in MINI_MODELS and prompt_tokens > MINI_CONTEXT_TOKENS:
        raise ServiceError(
            400,
            f"the prompt has {prompt_tokens:,} tokens, and {prompt.model} reads at most {MINI_CONTEXT_TOKENS:,}; "
            "shorten it",
            code="context_length_exceeded",
            param=prompt.prompt_field,
        )
    # The answer's variety follows from what is the same on every endpoint, whatever its defaults are.
    turns = [(turn.role, turn.full_text, turn.images) for turn in prompt.turns]
    content = repr([seed, prompt.system, turns, prompt.verbosity, prompt.answer_format.schema])
    digest = hashlib.sha256(content.encode()).hexdigest()
    blocks = list(_plan_answer(prompt, prompt_tokens, create_rng(f"{digest} answer")))
    # A small budget is used up, of a large one about a twelfth. At least one token is left for the answer.
    if prompt.thinking is None:
        usual, most = EFFORT_TOKENS.get(prompt.effort or "none", 0), prompt.cap - 1
    else:
        usual, most = min(40 + prompt.thinking // 12, _MAX_THINKING), min(prompt.thinking, prompt.cap - 1)
    # To make random numbers takes longer than all else here.
    variation = create_rng(f"{digest} reasoning").uniform(0.8, 1.2) if usual else 0
    reasoning_tokens = min(int(variation * usual), most)
    if reasoning_tokens and prompt.thinking is not None:
        thoughts = split_tokens(sample_text.thoughts(prompt, rng=create_rng(f"{digest} thoughts")))
        blocks.insert(0, PlannedBlock((0, 0), "thinking", itertools.islice(thoughts, reasoning_tokens)))
    return ReplyPlan(prompt_tokens, cached_tokens, reasoning_tokens, blocks)


def _plan_answer(prompt: GenerationPrompt, prompt_tokens: int, rng: random.Random) -> Iterator[PlannedBlock]:
    """Yield the blocks of the answer. Raises ServiceError 400 if none can satisfy the request's schema."""
    tools = _choose_tools(prompt)
    # Names in the question become arguments: a weather tool is called with the city that was asked about.
    names = tuple(re.findall(r"(?<=\s)[A-Z][a-z]+", prompt.turns[-1].text)) if tools and prompt.turns else ()
    for index, tool in enumerate(tools):
        # As near to the schema as can be: like a model's, they may not satisfy it.
        try:
            values = sample_value({"type": "object", **(tool.parameters or {})}, words=names, approximate=True)
        except Unsatisfiable:
            values = {}
        arguments = json.dumps(values, ensure_ascii=False)
        id_ = f"call_{rng.getrandbits(96):024x}"
        yield PlannedBlock((1, index), "tool_call", split_tokens([arguments]), id_, tool.name)
    if tools:
        return
    if prompt.answer_format.schema is not None:
        try:
            answer: Iterable[str] = [_indent_json(sample_value(prompt.answer_format.schema))]
        except Unsatisfiable as error:
            field = prompt.answer_format.field
            raise ServiceError(400, f"{field}: {error}", code="invalid_value", param=field) from None
    elif prompt.answer_format.json:
        facts = {"simulated": True, "model": prompt.model, "prompt_tokens": prompt_tokens, "turns": len(prompt.turns)}
        answer = [_indent_json(facts)]
    else:
        answer = sample_text.answer(prompt, prompt_tokens=prompt_tokens, rng=rng)
    yield PlannedBlock((0, int(prompt.thinking is not None)), "text", split_tokens(answer))


def _choose_tools(prompt: GenerationPrompt) -> list[Function]:
    """Return the tools that the answer calls: those it must, else those that the last question clearly asks for."""
    if prompt.forced_tool:
        return [tool for tool in prompt.tools if tool.name == prompt.forced_tool][:1]
    last = prompt.turns[-1] if prompt.turns else PromptTurn("system", "")
    # After a tool's result the answer is a text, else the same call would be made for ever.
    if not prompt.tools or prompt.tool_choice == "none" or (last.role != "user" and prompt.tool_choice == "auto"):
        return []
    words = set(re.findall(r"\w+", last.text.lower()))

    def is_requested(name: str) -> bool:
        # The question names the tool, or has every specific word of its name.
        specific = {word for word in re.split(r"[_-]+", name) if word} - _GENERIC_WORDS
        return name in words or (bool(specific) and specific <= words)

    requested = [tool for tool in prompt.tools if is_requested(tool.name.lower())]
    if prompt.parallel_tool_calls is False:
        requested = requested[:1]
    return requested if requested or prompt.tool_choice == "auto" else list(prompt.tools[:1])


def _indent_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


TOKEN = re.compile(
    r"[\u2e80-\u9fff\uac00-\ud7af]"  # scripts written without spaces: a character each
    r"| ?[^\W\d_]{1,8}| ?\d{1,3}| ?[^\w\s]{1,3}"
    r"|\n+|\s{1,8}|.",
    re.DOTALL,
)
"""One token: about four characters of English, with the space before it."""


def split_tokens(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the tokens of a text that comes in chunks, as they come; they do not depend on where it was cut."""
    rest = ""
    for chunk in chunks:
        # The next chunk may go on with the last token; all others are final.
        *final, rest = TOKEN.findall(rest + chunk) or [""]
        yield from final
    if rest:
        yield rest


def count_tokens(text: str) -> int:
    """Return how many tokens a text has; never builds the list, since a body may hold megabytes."""
    return sum(1 for _ in TOKEN.finditer(text))


def count_prompt_tokens(prompt: GenerationPrompt) -> tuple[int, int]:
    """Return the tokens of a prompt, and how many of them an earlier response had shown the engine already."""

    def count_turns(turns: Iterable[PromptTurn]) -> int:
        return sum(count_tokens(turn.full_text) + TURN_TOKENS + IMAGE_TOKENS * len(turn.images) for turn in turns)

    system = count_tokens(prompt.system) + TURN_TOKENS if prompt.system else 0
    tools = sum(count_tokens(tool.model_dump_json(exclude_unset=True)) + TURN_TOKENS for tool in prompt.tools)
    seen = count_turns(prompt.turns[: prompt.seen_turns])
    new = count_turns(prompt.turns[prompt.seen_turns :])
    return system + tools + seen + new, system + seen if seen else 0


def create_rng(seed: int | str) -> random.Random:
    """Return random numbers that repeat for the same seed."""
    return random.Random(seed)  # noqa: S311 - repetition is the purpose, and nothing secret depends on it
