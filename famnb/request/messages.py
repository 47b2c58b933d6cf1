"""The request of `POST {alt_base_url}/v1/messages`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from famnb.reply import Block, Reply
from famnb.request.base import SHARED_GROUPS, Request, RequestTraits
from famnb.request.message_parts import Content, chat_part, images, plain_text
from famnb.request.neutral import GenerationSettings, PromptTurn
from famnb.request.types import NON_EMPTY, ProModel, StrictModel, Temperature, Tokens, TopP


class Message(StrictModel):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    """Who speaks."""
    content: Content
    """What is said."""


class Thinking(StrictModel):
    """Whether to think, and how much."""

    type: Literal["enabled", "disabled"]
    """`enabled` turns thinking on."""
    budget_tokens: Tokens | None = None
    """At most this many tokens of thinking, held under `max_tokens`."""


TRAITS = RequestTraits(
    roles=get_args(Message.model_fields["role"].annotation),
    system_field="system",
    documents_images=False,
    returns_thinking=True,
    thinking="budget",
    format=None,
    usage_fields={},
    has_cache_writes=True,
    stores_replies=False,
    groups={**SHARED_GROUPS, "thinking": "Reasoning", "system": "Conversation"},
    implied={("thinking", "budget_tokens"): (("thinking", "type"), "enabled")},
)


class MessagesRequest(Request):
    """Messages: content blocks, with thinking shown as a block of its own."""

    endpoint: ClassVar[str] = "messages"
    cap: ClassVar[str] = "max_tokens"
    prompt_field: ClassVar[str] = "messages"

    model: ProModel
    """`fam-2-5-pro` or `fam-2-5-mini`."""
    messages: Annotated[list[Message], NON_EMPTY]
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
        return cls(**{"messages": [cls.user_message(prompt)], **fields})

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return [{"type": "text", "text": content}] if isinstance(content, str) else [*map(chat_part, content)]

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        content = [part for block in reply.blocks for part in _block_parts(block)]
        return [{"role": "assistant", "content": content}] if content else []

    def turns(self) -> tuple[PromptTurn, ...]:
        return tuple(
            PromptTurn(message.role, plain_text(message.content), images(message.content)) for message in self.messages
        )

    def settings(self) -> GenerationSettings:
        enabled = self.thinking if self.thinking and self.thinking.type == "enabled" else None
        return GenerationSettings(
            cap=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            thinking=(enabled.budget_tokens or self.max_tokens) if enabled else None,
        )

    @property
    def system_turn(self) -> PromptTurn | None:
        return PromptTurn("system", plain_text(self.system), images(self.system)) if self.system else None

    def idle_fields(self) -> tuple[str, ...]:
        thinking = self.thinking
        is_idle = thinking is not None and thinking.type == "disabled" and thinking.budget_tokens is not None
        return ("thinking.budget_tokens",) if is_idle else ()

    def hints(self) -> list[str]:
        thinking = self.thinking
        hints = []
        if thinking and thinking.budget_tokens is not None:
            if thinking.type == "disabled":
                hints.append("The thinking budget has no effect while `thinking.type` is disabled.")
            elif thinking.budget_tokens >= self.max_tokens:
                hints.append(
                    f"The thinking budget of {thinking.budget_tokens:,} is not below max_tokens "
                    f"({self.max_tokens:,}), which counts thinking too."
                )
        return [*hints, *self.sampling_hints()]


def _block_parts(block: Block) -> list[dict[str, Any]]:
    """A block of an answer as this endpoint takes it back: thinking as it was, with its signature."""
    match block.kind:
        case "thinking":
            signature = {"signature": block.signature} if block.signature else {}
            return [{"type": "thinking", "thinking": block.text, **signature}]
        case "redacted_thinking":
            return [{"type": "redacted_thinking", "data": block.signature}]
        case _:
            return [{"type": "text", "text": block.text}] if block.text and block.kind == "text" else []
