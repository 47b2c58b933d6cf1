"""The request of `POST {base_url}/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, get_args

from famnb.reply import Reply
from famnb.request.base import SHARED_GROUPS, Request, RequestTraits, write_rounds
from famnb.request.message_parts import (
    RESPONSE_FORMAT,
    ChatMessage,
    Reasoning,
    ResponseFormat,
    answer_format,
    chat_part,
    effort_of,
    images,
    plain_text,
    response_format_hints,
)
from famnb.request.neutral import GenerationSettings, PromptToolCall, PromptTurn
from famnb.request.types import MINI_OUTPUT_TOKENS, NON_EMPTY, MiniModel, MiniTokens, StrictModel, Temperature, TopP

# Services refuse a conversation with a call that no tool message answers.
_NOT_RUN = '{"error":"this call was not run"}'
"""The result that is sent for a call that was not run."""


def prompt_messages(prompt: str, system: str | None) -> list[dict[str, str]]:
    """Return the messages of a single prompt with an optional system text."""
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": prompt}]


def chat_content(content: str | Sequence[Mapping[str, Any]]) -> str | list[Mapping[str, Any]]:
    """Return a text or list of parts as the content of a chat message."""
    return content if isinstance(content, str) else [chat_part(part) for part in content]


def chat_turn(message: ChatMessage) -> PromptTurn:
    """Return a chat message in terms that all endpoints share."""
    calls = tuple(
        PromptToolCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()
    )
    text, pictures = plain_text(message.content), images(message.content)
    return PromptTurn(message.role, text, pictures, calls, message.tool_call_id or "", message.name or "")


def reply_messages(reply: Reply) -> list[dict[str, Any]]:
    """Return a reply and the rounds of tool calls that led to it as chat messages."""
    return [*write_rounds(reply, round_messages), *round_messages(reply)]


def round_messages(reply: Reply, results: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a reply and the results of its tool calls as chat messages; without results its calls were not run."""
    calls = reply.tool_calls
    if not calls:
        return [{"role": "assistant", "content": reply.text}] if reply.text else []
    ids = [call.id or f"call_{number}" for number, call in enumerate(calls, start=1)]
    tool_calls = [
        {"id": id_, "type": "function", "function": {"name": call.name or "unknown", "arguments": call.text or "{}"}}
        for id_, call in zip(ids, calls, strict=True)
    ]
    contents = results or [_NOT_RUN] * len(calls)
    answers = [
        {"role": "tool", "tool_call_id": id_, "content": content} for id_, content in zip(ids, contents, strict=True)
    ]
    return [{"role": "assistant", "content": reply.text, "tool_calls": tool_calls}, *answers]


TRAITS = RequestTraits(
    roles=get_args(ChatMessage.model_fields["role"].annotation),
    system_field=None,
    documents_images=True,
    returns_thinking=False,
    thinking="effort",
    format=RESPONSE_FORMAT,
    usage_fields={},
    has_cache_writes=False,
    stores_replies=False,
    groups={**SHARED_GROUPS, "reasoning": "Reasoning", "response_format": "Output form"},
    implied={RESPONSE_FORMAT.schema: (RESPONSE_FORMAT.type, "json_schema")},
)


class BaseChatRequest(Request):
    """What the requests of both chat endpoints share."""

    prompt_field: ClassVar[str] = "messages"

    messages: Annotated[list[ChatMessage], NON_EMPTY]
    """The conversation so far."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is not None:
            fields.setdefault("reasoning", Reasoning.for_budget(thinking))
        return cls(**{"messages": prompt_messages(prompt, system), **fields})

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return chat_content(content)

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        return reply_messages(reply)

    def turns(self) -> tuple[PromptTurn, ...]:
        return tuple(map(chat_turn, self.messages))


class ChatRequest(BaseChatRequest):
    """Chat completions on the first endpoint."""

    endpoint: ClassVar[str] = "chat"
    cap: ClassVar[str] = "max_tokens"

    model: MiniModel
    """`fam-mini`, or a provider-prefixed id `<provider>/<model>`."""
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

    def settings(self) -> GenerationSettings:
        return GenerationSettings(
            cap=self.max_tokens or MINI_OUTPUT_TOKENS,
            temperature=self.temperature,
            top_p=self.top_p,
            effort=effort_of(self.reasoning),
            answer_format=answer_format(self.response_format),
        )

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        return () if self.response_format is None else (self.response_format,)

    def hints(self) -> list[str]:
        return [*response_format_hints(self.response_format), *self.sampling_hints()]
