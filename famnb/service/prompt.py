"""Any request as one neutral prompt, so that engines know nothing of endpoints; what to answer is left to them."""

from __future__ import annotations

import dataclasses

import msgspec

from famnb.request import Request
from famnb.request.neutral import GenerationSettings, PromptTurn


@dataclasses.dataclass(frozen=True, slots=True)
class PriorConversation:
    """The conversation that a request continues; empty for a new one."""

    turns: tuple[PromptTurn, ...] = ()
    """Every turn so far: system turns of the input are among them, `instructions` are not."""
    system: str = ""
    """The system text under which the engine saw them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPrompt(GenerationSettings):
    """What is asked, whichever endpoint it came through."""

    model: str
    prompt_field: str = "messages"
    """The request field that holds the conversation, for an error that names it."""
    streams: bool = False
    """Whether the caller wants the answer as it comes."""
    system: str = ""
    """The system text; empty when there is none."""
    turns: tuple[PromptTurn, ...]
    """The conversation without its system text, oldest first."""
    asked: frozenset[str] = frozenset()
    """Which of `cap`, `temperature` and `top_p` the request set itself rather than leave to the endpoint."""
    repeated: int = 0
    """How many leading turns the engine has seen before, under the same system text."""


def conversation(request: Request) -> tuple[PromptTurn, ...]:
    """The turns that a request itself carries, system turns included; a developer's text is a system text."""
    return tuple(
        turn if turn.role != "developer" else msgspec.structs.replace(turn, role="system") for turn in request.turns()
    )


def build_prompt(request: Request, earlier: PriorConversation = PriorConversation()) -> GenerationPrompt:
    """The neutral prompt of a request that continues an earlier conversation."""
    turns = (*earlier.turns, *conversation(request))
    own = [request.system_turn.text] if request.system_turn else []
    system = "\n\n".join(filter(None, [*own, *(turn.text for turn in turns if turn.role == "system")]))
    settings = request.settings()
    return GenerationPrompt(
        model=request.model,
        prompt_field=request.prompt_field,
        turns=tuple(turn for turn in turns if turn.role != "system"),
        system=system,
        streams=request.streams,
        asked=frozenset(
            neutral
            for neutral, field in {"cap": request.cap, "temperature": "temperature", "top_p": "top_p"}.items()
            if field in request.model_fields_set
        ),
        repeated=sum(turn.role != "system" for turn in earlier.turns) if earlier.system == system else 0,
        **{field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)},
    )
