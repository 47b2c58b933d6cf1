"""The request of `POST {alt_base_url}/v1/responses`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, model_validator

from famnb.events import Address
from famnb.reply import Reply
from famnb.request.base import SHARED_GROUPS, Request, RequestTraits
from famnb.request.message_parts import Content, Reasoning, answer_format, images, nearest_effort, plain_text
from famnb.request.neutral import FormatPaths, GenerationSettings, PromptTurn
from famnb.request.tool_forms import shared_settings
from famnb.request.types import (
    NON_EMPTY,
    UNUSED,
    ByShape,
    Metadata,
    ProModel,
    StrictModel,
    Temperature,
    Text,
    Tokens,
    TopP,
    any_shape,
)


class BaseInputItem(StrictModel):
    """What every message of the conversation is, whatever its content may be."""

    type: Literal["message"] = "message"
    """Only `message`."""
    role: Literal["user", "assistant", "system", "developer"]
    """Who speaks."""
    content: Any

    def turns(self) -> Iterable[PromptTurn]:
        return [PromptTurn(self.role, plain_text(self.content), images(self.content))]


class InputItem(BaseInputItem):
    """A message of the conversation."""

    content: Content
    """What is said."""


LOGPROBS = "message.output_text.logprobs"
"""What `include` asks for to get log-probabilities."""
INPUT_SHAPE = ByShape("Input should be a text or a list of items")
Input: TypeAlias = Annotated[Text | Annotated[list[InputItem], NON_EMPTY], INPUT_SHAPE]


class TextFormat(StrictModel):
    """The form of the reply."""

    model_config = any_shape(
        {"type": {"enum": ["text", "json", "json_object"]}},
        {"type": {"enum": ["json_schema"]}, "schema": {"type": "object"}},
    )

    type: Literal["text", "json", "json_object", "json_schema"] = "text"
    """`text`, any JSON (`json`, `json_object`), or JSON by a schema."""
    name: str | None = None
    """What the schema is called."""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """The JSON Schema; required for type `json_schema`."""
    strict: bool | None = None
    """Whether the schema must be followed exactly."""

    @model_validator(mode="after")
    def _require_schema(self) -> Self:
        if self.type == "json_schema" and self.schema_ is None:
            raise ValueError("type `json_schema` needs a `schema`")
        return self

    def idle_fields(self) -> tuple[str, ...]:
        if self.type == "json_schema":
            return ()
        values = {"name": self.name, "schema": self.schema_, "strict": self.strict}
        return tuple(name for name, value in values.items() if value is not None)


class TextOptions(StrictModel):
    """The form and length of the reply."""

    format: TextFormat | None = None
    """Text or JSON."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """How much to say."""


class BaseResponsesRequest(Request):
    """What all requests for responses share."""

    endpoint: ClassVar[str] = "responses"
    cap: ClassVar[str] = "max_output_tokens"
    prompt_field: ClassVar[str] = "input"

    input: Any
    """A text, which equals one user message, or a list of items."""

    @classmethod
    def write_prompt(cls, prompt: str, system: str | None) -> dict[str, Any]:
        return {"input": prompt, **({"instructions": system} if system else {})}

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return content if isinstance(content, str) else [*map(_input_part, content)]

    @classmethod
    def write_answer(cls, reply: Reply, results: Sequence[str] = ()) -> list[dict[str, Any]]:
        items = _write_items(cls.read_opaque(reply), reply, with_calls=bool(results))
        if not results:
            return items
        written = {item.get("call_id") for item in items}
        calls = [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.text or "{}"}
            for call in reply.tool_calls
            if call.id not in written
        ]
        outputs = [
            {"type": "function_call_output", "call_id": call.id, "output": result}
            for call, result in zip(reply.tool_calls, results, strict=True)
        ]
        return [*items, *calls, *outputs]

    @classmethod
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "function", "name": name, "description": description, "parameters": parameters}

    def turns(self) -> tuple[PromptTurn, ...]:
        if isinstance(self.input, str):
            return (PromptTurn("user", self.input),)
        turns: list[PromptTurn] = []
        for turn in (turn for item in self.input for turn in item.turns()):
            # Engines want the calls of one answer in one turn, beside its text.
            if turn.tool_calls and turns and turns[-1].role == "assistant":
                calls = (*turns[-1].tool_calls, *turn.tool_calls)
                turns[-1] = msgspec.structs.replace(turns[-1], tool_calls=calls)
            else:
                turns.append(turn)
        return tuple(turns)

    def settings(self) -> GenerationSettings:
        reasoning, text, count = self.get("reasoning"), self.get("text"), self.get("top_logprobs")
        wants_logprobs = bool(count) or LOGPROBS in (self.get("include") or ())
        return GenerationSettings(
            **shared_settings(self),
            effort=reasoning.effort if reasoning else None,
            parallel_tool_calls=self.get("parallel_tool_calls"),
            answer_format=answer_format(text.format if text else None, _FORMAT),
            verbosity=text.verbosity if text else None,
            # As in a chat completion.
            sampling={"logprobs": True, **({} if count is None else {"top_logprobs": count})} if wants_logprobs else {},
        )


_FORMAT = FormatPaths(("text", "format"), ("text", "format"))

TRAITS = RequestTraits(
    system_field="instructions",
    documents_images=True,
    thinking="effort",
    carry_thinking=lambda fields, tokens: ({"reasoning": Reasoning(effort=nearest_effort(tokens)), **fields}, ""),
    format=_FORMAT,
    stores_replies=True,
    groups={
        **SHARED_GROUPS,
        "reasoning": "Reasoning",
        "text": "Output form",
        "instructions": "Conversation",
        "previous_response_id": "Conversation",
        "store": "Metadata",
        "metadata": "Metadata",
    },
    implied={_FORMAT.schema: (_FORMAT.type, "json_schema")},
)


class ResponsesRequest(BaseResponsesRequest):
    """Responses: items in, items out, conversations kept by the service."""

    traits: ClassVar[RequestTraits] = TRAITS

    model: ProModel
    """`fam-2-5-pro` or `fam-2-5-mini`."""
    input: Input
    """A text, which equals one user message, or a list of items."""
    instructions: str | None = None
    """System or developer message; not carried over by `previous_response_id`."""
    previous_response_id: str | None = None
    """The earlier response that this one continues."""
    max_output_tokens: Tokens = 512
    """Upper bound, counting visible and reasoning tokens."""
    stream: bool = False
    """Server-sent events when true."""
    reasoning: Reasoning | None = None
    """How much to reason; counted in usage, not shown."""
    temperature: Temperature = 0.1
    """Sampling temperature."""
    top_p: TopP = 1.0
    """Nucleus sampling."""
    text: TextOptions | None = None
    """The form and length of the reply."""
    store: bool = True
    """Whether the response is kept, to be retrieved and continued."""
    metadata: Annotated[Metadata | None, UNUSED] = None
    """Up to 16 pairs; keys of at most 64 characters, values of at most 512."""

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return {"type": "input_text", "text": content} if isinstance(content, str) else super().user_content(content)

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        content = {"type": "output_text", "text": reply.text}
        return [{"role": "assistant", "content": content}] if reply.text else []


_KNOWN_ITEM_FIELDS = {
    "message": {"type", "id", "role", "status", "content"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
}
"""The fields of the items of which nothing has to go back but what blocks hold."""
_AWAITING_ITEMS = (
    *("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"),
    "mcp_approval_request",
)
"""Types of items that the service refuses in a conversation that does not answer them."""


def _write_items(opaque: Mapping[Address, dict[str, Any]], reply: Reply, *, with_calls: bool) -> list[dict[str, Any]]:
    """Return the items of an answer as the service sent them, and as a message the text of those that it has not."""
    items = [fields for (_, part), fields in sorted(opaque.items()) if part == -1]
    # Messages and calls alone are said in the shortest form, which every service takes.
    if all(_KNOWN_ITEM_FIELDS.get(item.get("type", "message"), set()) >= set(item) for item in items):
        items, opaque = [], {}
    if not with_calls:
        items = [item for item in items if item.get("type") not in _AWAITING_ITEMS]
    if reply.request is not None and reply.request.get("store") is False:
        # The service has not kept them, and the item alone does not hold them.
        items = [item for item in items if item.get("type") != "reasoning" or item.get("encrypted_content")]
    finished = {index for index, _ in opaque}
    text = "".join(block.text for block in reply.blocks if block.kind == "text" and block.at[0] not in finished)
    # Reasoning is refused without the item that it led to.
    while items and items[-1].get("type") == "reasoning" and not text:
        items.pop()
    return [*items, *([{"role": "assistant", "content": text}] if text else [])]


def _input_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part under the names that this endpoint has for it; an unknown one stays as it is."""
    match part:
        case {"type": "text", "text": text}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": url}}:
            return {"type": "input_image", "image_url": url}
        case _:
            return part
