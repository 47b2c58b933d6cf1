"""The request of `POST {base_url}/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from famnb.reply import Reply
from famnb.request.base import SHARED_GROUPS, Request, RequestTraits
from famnb.request.message_parts import (
    RESPONSE_FORMAT,
    ChatMessage,
    Reasoning,
    ResponseFormat,
    ToolCall,
    answer_format,
    chat_part,
    images,
    nearest_effort,
    plain_text,
)
from famnb.request.neutral import SAMPLING, GenerationSettings, PromptToolCall, PromptTurn
from famnb.request.tool_forms import shared_settings
from famnb.request.types import MINI_OUTPUT_TOKENS, NON_EMPTY, MiniModel, MiniTokens, Temperature, TopP

# Services refuse a conversation with a call that no tool message answers.
_NOT_RUN = '{"error":"this call was not run"}'
"""The result that is sent for a call that was not run."""


class BaseChatRequest(Request):
    """What the requests of both chat endpoints share."""

    endpoint: ClassVar[str] = "chat"
    cap: ClassVar[str] = "max_tokens"
    other_caps: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "max_tokens")
    prompt_field: ClassVar[str] = "messages"

    messages: Annotated[list[ChatMessage], NON_EMPTY]
    """The conversation so far."""

    @classmethod
    def write_prompt(cls, prompt: str, system: str | None) -> dict[str, Any]:
        first = [{"role": "system", "content": system}] if system else []
        return {"messages": [*first, {"role": "user", "content": prompt}]}

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return content if isinstance(content, str) else [*map(chat_part, content)]

    @classmethod
    def write_answer(cls, reply: Reply, results: Sequence[str] = ()) -> list[dict[str, Any]]:
        opaque = cls.read_opaque(reply)
        message = {"role": "assistant", "content": reply.text, **opaque.get((-1, 0), {})}
        calls = reply.tool_calls
        if not calls:
            return [message] if reply.text or opaque else []
        tool_calls, answers = [], []
        for number, (call, content) in enumerate(zip(calls, results or [_NOT_RUN] * len(calls), strict=True), start=1):
            id_ = call.id or f"call_{number}"
            function = {"name": call.name or "unknown", "arguments": call.text or "{}"}
            tool_calls.append({"id": id_, "type": "function", "function": function, **opaque.get(call.at, {})})
            answers.append({"role": "tool", "tool_call_id": id_, "content": content})
        return [{**message, "tool_calls": tool_calls}, *answers]

    @classmethod
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    def turns(self) -> tuple[PromptTurn, ...]:
        turns = []
        for message in self.messages:
            calls = tuple(
                PromptToolCall(call.id, call.function.name, call.function.arguments)
                for call in message.tool_calls or ()
                if isinstance(call, ToolCall)
            )
            text, pictures = plain_text(message.content), images(message.content)
            turns.append(
                PromptTurn(message.role, text, pictures, calls, message.tool_call_id or "", message.name or "")
            )
        return tuple(turns)

    def settings(self) -> GenerationSettings:
        reasoning, stop = self.get("reasoning"), self.get("stop")
        return GenerationSettings(
            **shared_settings(self),
            effort=(reasoning.effort if reasoning else None) or self.get("reasoning_effort"),
            parallel_tool_calls=self.get("parallel_tool_calls"),
            answer_format=answer_format(self.get("response_format"), RESPONSE_FORMAT),
            stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
            sampling={name: value for name in SAMPLING if (value := self.get(name)) is not None},
        )

    def idle_fields(self) -> tuple[str, ...]:
        # A value that is given again under another name has effect under either.
        caps = [name for name in self.set_caps if self.get(name) != self.output_tokens]
        reasoning, effort = self.get("reasoning"), self.get("reasoning_effort")
        is_idle = bool(effort and reasoning and reasoning.effort and reasoning.effort != effort)
        return (*caps, *(["reasoning_effort"] if is_idle else []))


TRAITS = RequestTraits(
    documents_images=True,
    thinking="effort",
    carry_thinking=lambda fields, tokens: ({"reasoning": Reasoning(effort=nearest_effort(tokens)), **fields}, ""),
    format=RESPONSE_FORMAT,
    output_tokens=MINI_OUTPUT_TOKENS,
    groups={**SHARED_GROUPS, "reasoning": "Reasoning", "response_format": "Output form"},
    implied={RESPONSE_FORMAT.schema: (RESPONSE_FORMAT.type, "json_schema")},
)


class ChatRequest(BaseChatRequest):
    """Chat completions on the first endpoint."""

    traits: ClassVar[RequestTraits] = TRAITS

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
