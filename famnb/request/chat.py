"""The request of `POST {base_url}/v1/chat/completions`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from famnb.request.base import Request
from famnb.request.message_parts import ChatMessage, Reasoning, ResponseFormat
from famnb.request.types import SOME, MiniModel, MiniTokens, Temperature, TopP


def prompted(prompt: str, system: str | None) -> list[dict[str, str]]:
    """The messages of a single prompt with an optional system text."""
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": prompt}]


class ChatRequest(Request):
    """Chat completions on the first endpoint."""

    endpoint: ClassVar[str] = "chat"
    cap: ClassVar[str] = "max_tokens"
    prompt_field: ClassVar[str] = "messages"

    model: MiniModel
    """`fam-mini`, or a provider-prefixed id `<provider>/<model>`."""
    messages: Annotated[list[ChatMessage], SOME]
    """The conversation so far."""
    stream: bool | None = None
    """Server-sent events when true."""
    max_tokens: MiniTokens | None = None
    """Upper bound on generated tokens."""
    reasoning: Reasoning | None = None
    """How much to reason; counted in usage, not shown."""
    response_format: ResponseFormat | None = None
    """Text or JSON."""
    temperature: Temperature | None = None
    """Sampling temperature; the document names no default here."""
    top_p: TopP | None = None
    """Nucleus sampling; the document names no default here."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is not None:
            fields.setdefault("reasoning", Reasoning.for_budget(thinking))
        return cls(**{"messages": prompted(prompt, system), **fields})
