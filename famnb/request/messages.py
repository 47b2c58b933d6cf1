"""The request of `POST {alt_base_url}/v1/messages`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from famnb.request.base import Part, Request
from famnb.request.message_parts import Content
from famnb.request.types import SOME, ProModel, Temperature, Tokens, TopP


class Message(Part):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    """Who speaks."""
    content: Content
    """What is said."""


class Thinking(Part):
    """Whether to think, and how much."""

    type: Literal["enabled", "disabled"]
    """`enabled` turns thinking on."""
    budget_tokens: Tokens | None = None
    """At most this many tokens of thinking, held under `max_tokens`."""


class MessagesRequest(Request):
    """Messages: content blocks, with thinking shown as a block of its own."""

    endpoint: ClassVar[str] = "messages"
    cap: ClassVar[str] = "max_tokens"
    prompt_field: ClassVar[str] = "messages"

    model: ProModel
    """`fam-2-5-pro` or `fam-2-5-mini`."""
    messages: Annotated[list[Message], SOME]
    """The conversation so far."""
    system: Content | None = None
    """System text."""
    max_tokens: Tokens = 512
    """Maximum tokens to generate, thinking included."""
    stream: bool = False
    """Server-sent events when true."""
    thinking: Thinking | None = None
    """Whether to think before answering."""
    temperature: Temperature = 0.1
    """Sampling temperature."""
    top_p: TopP = 1.0
    """Nucleus sampling."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if system:
            fields.setdefault("system", [{"type": "text", "text": system}])
        if thinking is not None:
            fields.setdefault("thinking", {"type": "enabled", "budget_tokens": thinking})
        said = {"role": "user", "content": [{"type": "text", "text": prompt}]}
        return cls(**{"messages": [said], **fields})
