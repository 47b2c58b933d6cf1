"""`GenerationPrompt`: a request of any endpoint in one neutral form, so that engines know nothing of endpoints."""

from __future__ import annotations

import dataclasses

import msgspec

from famnb.endpoints import ENDPOINTS
from famnb.request import Request
from famnb.request.neutral import GenerationSettings, PromptTurn


@dataclasses.dataclass(frozen=True, slots=True)
class PriorConversation:
    """The conversation that a request continues; empty for a new one."""

    turns: tuple[PromptTurn, ...] = ()
    """All turns, those with system text in the `input` among them, but not the `instructions`."""
    system: str = ""
    """The system text under which the engine saw them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPrompt(GenerationSettings):
    """What an engine is to generate, whichever endpoint the request came through."""

    model: str
    prompt_field: str = "messages"
    """The request field that holds the conversation, for error messages."""
    streams: bool = False
    """Whether the caller wants the answer as it comes."""
    system: str = ""
    """The system text; empty if there is none."""
    turns: tuple[PromptTurn, ...]
    """The conversation without its system text, oldest first."""
    shows_thinking: bool = False
    """Whether the answer shows the engine's thinking."""
    explicit: frozenset[str] = frozenset()
    """Which of `cap`, `temperature` and `top_p` the request sets; the others are the endpoint's defaults."""
    enforced_cap: int | None = None
    """The cap if the request or the document sets one; None where the engine's own is in force."""
    seen_turns: int = 0
    """How many leading turns the engine has seen before, under the same system text: they count as cached tokens."""
    left_out: list[str] = dataclasses.field(default_factory=list, compare=False)
    """What the engine has left out of it, in its own words; filled in by the engine before it starts to answer."""


def read_turns(request: Request) -> tuple[PromptTurn, ...]:
    """Return the turns that a request itself carries, system turns included; a developer's text is system text."""
    # Many servers behind the upstream engine refuse the role `developer`.
    return tuple(
        turn if turn.role != "developer" else msgspec.structs.replace(turn, role="system") for turn in request.turns()
    )


def build_prompt(request: Request, prior: PriorConversation = PriorConversation()) -> GenerationPrompt:
    """Return the prompt of a request that continues `prior`."""
    turns = (*prior.turns, *read_turns(request))
    own_system = [request.system_turn.text] if request.system_turn else []
    system = "\n\n".join(filter(None, [*own_system, *(turn.text for turn in turns if turn.role == "system")]))
    settings = request.settings()
    # The document's default is meant for its own models: a gateway's others have a limit of their own.
    is_documented = request.model in ENDPOINTS[request.endpoint].models
    has_default_cap = is_documented and type(request).model_fields[request.cap].default is not None
    explicit = request.model_fields_set & {"temperature", "top_p"}
    return GenerationPrompt(
        model=request.model,
        prompt_field=request.prompt_field,
        turns=tuple(turn for turn in turns if turn.role != "system"),
        system=system,
        streams=request.streams,
        shows_thinking=settings.thinking is not None or request.traits.shows_reasoning,
        enforced_cap=settings.cap if request.set_caps or has_default_cap else None,
        explicit=frozenset(explicit | {"cap"} if request.set_caps else explicit),
        # Under another system text nothing that the engine computed before can be used again.
        seen_turns=sum(turn.role != "system" for turn in prior.turns) if prior.system == system else 0,
        **{field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)},
    )
