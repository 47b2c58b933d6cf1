"""The request of `POST {alt_base_url}/v1/messages`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from famnb.reply import Block, Reply
from famnb.request.base import SHARED_GROUPS, Request, RequestTraits
from famnb.request.message_parts import Content, chat_part, images, plain_text
from famnb.request.neutral import AnswerFormat, GenerationSettings, PromptTurn
from famnb.request.tool_forms import shared_settings
from famnb.request.types import NON_EMPTY, ProModel, StrictModel, Temperature, Tokens, TopP


class Message(StrictModel):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    """Who speaks."""
    content: Content
    """What is said."""

    def turns(self) -> Iterable[PromptTurn]:
        return [PromptTurn(self.role, plain_text(self.content), images(self.content))]


class Thinking(StrictModel):
    """Whether to think, and how much."""

    type: Literal["enabled", "disabled"]
    """`enabled` turns thinking on."""
    budget_tokens: Tokens | None = None
    """At most this many tokens of thinking, held under `max_tokens`."""


# The vendor insists on a cap; this is enough for a page or two, and the user sees it in the request.
COMPOSED_TOKENS = 4096
"""The cap of a request that is composed without one, where one must be set; a thinking budget is added to it."""
_EFFORT_BUDGETS = {"low": 512, "medium": 2048, "high": 8192}
"""The budget, in tokens, of thinking whose effort alone is given; that of a higher effort is all there is."""


class BaseMessagesRequest(Request):
    """What all requests for messages share."""

    endpoint: ClassVar[str] = "messages"
    cap: ClassVar[str] = "max_tokens"
    prompt_field: ClassVar[str] = "messages"

    messages: list[Any]
    """The conversation so far."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if cls.model_fields[cls.cap].is_required():
            # The thinking budget must stay under the cap.
            fields.setdefault(cls.cap, COMPOSED_TOKENS + (thinking or 0))
        return super().compose(prompt, system=system, thinking=thinking, **fields)

    @classmethod
    def write_prompt(cls, prompt: str, system: str | None) -> dict[str, Any]:
        first = {"system": [{"type": "text", "text": system}]} if system else {}
        return {**first, "messages": [cls.user_message(prompt)]}

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return [{"type": "text", "text": content}] if isinstance(content, str) else [*map(_write_part, content)]

    @classmethod
    def write_answer(cls, reply: Reply, results: Sequence[str] = ()) -> list[dict[str, Any]]:
        opaque = cls.read_opaque(reply)
        blocks = {block.at: block for block in reply.blocks}
        content: list[dict[str, Any]] = []
        for at in sorted({*blocks, *opaque}):
            part = _write_block(blocks[at]) if at in blocks else {}
            # A call that has no result is left out, since the service would refuse it.
            if (part or at in opaque) and (results or part.get("type") != "tool_use"):
                content.append({**part, **opaque.get(at, {})})
        if not results:
            return [{"role": "assistant", "content": content}] if content else []
        answers = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(reply.tool_calls, results, strict=True)
        ]
        return [{"role": "assistant", "content": content}, {"role": "user", "content": answers}]

    @classmethod
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": name, "description": description, "input_schema": parameters}

    def turns(self) -> tuple[PromptTurn, ...]:
        return tuple(turn for message in self.messages for turn in message.turns())

    def settings(self) -> GenerationSettings:
        thinking, config, choice = self.get("thinking"), self.get("output_config"), self.get("tool_choice")
        form, path = getattr(config, "format", None), "output_config.format.schema"
        if not form:
            form, path = self.get("output_format"), "output_format"
        effort = config.effort if config else None
        budget = None
        if thinking and thinking.type == "disabled":
            effort = None
        elif thinking:
            budget = thinking.budget_tokens or min(
                _EFFORT_BUDGETS.get(effort or "", self.output_tokens), self.output_tokens
            )
        is_single = choice and choice.disable_parallel_tool_use
        return GenerationSettings(
            **shared_settings(self),
            thinking=budget,
            effort="xhigh" if effort == "max" else effort,
            parallel_tool_calls=None if is_single is None else not is_single,
            stop=tuple(self.get("stop_sequences") or ()),
            sampling={} if self.get("top_k") is None else {"top_k": self.get("top_k")},
            answer_format=AnswerFormat(True, form.schema_, path) if form else AnswerFormat(),
        )

    def idle_fields(self) -> tuple[str, ...]:
        thinking, config, form = self.get("thinking"), self.get("output_config"), self.get("output_format")
        is_disabled = bool(thinking and thinking.type == "disabled")
        config_form = getattr(config, "format", None)
        are_idle = {
            "thinking.budget_tokens": is_disabled and thinking.budget_tokens is not None,
            "output_config.effort": is_disabled and config and config.effort,
            "output_format": form and config_form and form != config_form,
        }
        return tuple(path for path, is_idle in are_idle.items() if is_idle)


TRAITS = RequestTraits(
    system_field="system",
    returns_thinking=True,
    thinking="budget",
    carry_thinking=lambda fields, tokens: ({"thinking": {"type": "enabled", "budget_tokens": tokens}, **fields}, ""),
    has_cache_writes=True,
    groups={**SHARED_GROUPS, "thinking": "Reasoning", "system": "Conversation"},
    implied={("thinking", "budget_tokens"): (("thinking", "type"), "enabled")},
)


class MessagesRequest(BaseMessagesRequest):
    """Messages: content blocks, with thinking shown as a block of its own."""

    traits: ClassVar[RequestTraits] = TRAITS

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
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return [{"type": "text", "text": content}] if isinstance(content, str) else [*map(chat_part, content)]

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        # The document has no blocks for calls and their results.
        return cls.write_answer(reply)


def _write_block(block: Block) -> dict[str, Any]:
    """Return a block of an answer as this endpoint takes it back, thinking with its signature; {} if it has no form."""
    match block.kind:
        case "thinking":
            signature = {"signature": block.signature} if block.signature else {}
            return {"type": "thinking", "thinking": block.text, **signature}
        case "redacted_thinking":
            return {"type": "redacted_thinking", "data": block.signature}
        case "tool_call":
            # An object is wanted back, also where the arguments are not JSON.
            return {
                "type": "tool_use",
                "id": block.id,
                "name": block.name,
                "input": block.arguments if block.valid else {},
            }
        case _:
            return {"type": "text", "text": block.text} if block.text and block.kind == "text" else {}


def _write_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part under the names that vendors have for it; an unknown one stays as it is."""
    match chat_part(part):
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "image_url", "image_url": str(url)}:
            head, _, data = url.partition(";base64,")
            if not data:
                return {"type": "image", "source": {"type": "url", "url": url}}
            media_type = head.removeprefix("data:")
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        case written:
            return written
