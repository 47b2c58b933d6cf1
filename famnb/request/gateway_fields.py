"""What the local service takes with `--compat`, beyond the document: the fields that vendors' SDKs send.

A request that has only the document's fields means the same in either model; a field of the document counts before
another name for it.

    cap          max_tokens, max_completion_tokens on the chat endpoints
    tools        on every endpoint, in the form that its vendor has: nested, flat, with an `input_schema`; `strict`,
                 and whether several may be called at once
    tool calls   and their results, as messages, items or blocks of content
    stop         stop, stop_sequences
    effort       reasoning_effort on the chat endpoints, output_config.effort on messages
    format       output_config.format on messages
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from famnb.request.base import Request
from famnb.request.chat import ChatRequest
from famnb.request.fields import Row, Table, build_request, document_fields
from famnb.request.message_parts import (
    CONTENT_SHAPE,
    IMAGE_TYPES,
    TEXT_TYPES,
    THINKING_TYPES,
    ContentPart,
    images,
    plain_text,
)
from famnb.request.messages import MessagesRequest
from famnb.request.neutral import PromptToolCall, PromptTurn
from famnb.request.responses import INPUT_SHAPE, LOGPROBS, InputItem, ResponsesRequest
from famnb.request.tool_forms import (
    CheckedFlatToolChoice,
    CheckedMessagesToolChoice,
    CheckedToolChoice,
    FlatTool,
    InputSchemaTool,
    StrictTool,
)
from famnb.request.types import (
    BY_SHAPE,
    MINI_MODELS,
    MINI_OUTPUT_TOKENS,
    NON_EMPTY,
    UNUSED,
    ByShape,
    Effort,
    StrictModel,
    Text,
    Tokens,
    Unused,
)
from famnb.request.web import StreamOptions, WebChatRequest

StopTexts: TypeAlias = Annotated[Text | list[Text], BY_SHAPE]
Penalty: TypeAlias = Annotated[float, Field(ge=-2, le=2)]


def _check_cap(cap: int, info: ValidationInfo) -> int:
    model = info.data.get("model")
    if model in MINI_MODELS and cap > MINI_OUTPUT_TOKENS:
        raise ValueError(f"{model} generates at most {MINI_OUTPUT_TOKENS:,} tokens, got {cap:,}")
    return cap


_ChatTokens: TypeAlias = Annotated[Tokens, AfterValidator(_check_cap)]
_MODEL: Table = {"model": Row(Text, "The model that answers.", "", ...)}
_CHOICE = "`none`: a message; `auto`: a message or calls; `required`: one or more calls; or the one tool to call."
_ALTERNATIVES = Row(Annotated[int, Field(ge=0, le=20)], "How many alternatives of each token, with probabilities.")
_CHAT: Table = {
    "stream_options": Row(StreamOptions, "Options of the stream.", "Stream"),
    "tools": Row(list[StrictTool], "Functions the model may call.", "Tools"),
    "tool_choice": Row(CheckedToolChoice, _CHOICE, "Tools", "auto"),
    "parallel_tool_calls": Row(bool, "Whether one reply may call several tools.", "Tools"),
    "stop": Row(StopTexts, "A text, or a list of them, before which the answer ends.", "Sampling"),
    "reasoning_effort": Row(Effort, "How much reasoning effort.", "Reasoning"),
    "seed": Row(int, "For answers that repeat, as far as the service can.", "Sampling"),
    "frequency_penalty": Row(Penalty, "Above 0 against words that were said often.", "Sampling"),
    "presence_penalty": Row(Penalty, "Above 0 against words that were said at all.", "Sampling"),
    "logit_bias": Row(dict[str, float], "By token, from -100 for never to 100 for always.", "Sampling"),
    "top_k": Row(int, "Only from so many of the likeliest tokens.", "Sampling"),
    "min_p": Row(float, "Only tokens at least so likely, relative to the likeliest.", "Sampling"),
    "logprobs": Row(bool, "Whether to return the probabilities of the tokens."),
    "top_logprobs": _ALTERNATIVES,
}
CHAT: Table = {
    **document_fields(ChatRequest),
    **_MODEL,
    "max_tokens": Row(_ChatTokens, "Upper bound on generated tokens."),
    "max_completion_tokens": Row(_ChatTokens, "The same as `max_tokens`."),
    **_CHAT,
}
"""Chat completions on the first endpoint."""
WEB: Table = {
    **document_fields(WebChatRequest),
    **_MODEL,
    "max_completion_tokens": Row(Tokens, "The same as `max_new_tokens`."),
    "max_tokens": Row(Tokens, "The same as `max_new_tokens`."),
    **_CHAT,
}
"""Web chat."""


class GatewayMessageItem(InputItem):
    """A message, also one that the service has sent."""

    id: str | None = None
    status: str | None = None


class FunctionCallItem(StrictModel):
    """A call that an earlier response made."""

    type: Literal["function_call"]
    id: str | None = None
    call_id: Text
    """The id that the result refers to."""
    name: Text
    arguments: str = ""
    """The arguments as JSON text."""
    status: str | None = None

    def turns(self) -> Iterable[PromptTurn]:
        return [PromptTurn("assistant", "", (), (PromptToolCall(self.call_id, self.name, self.arguments),))]


class BaseCallOutput(StrictModel):
    """The result of a call, whatever its content may be."""

    type: Literal["function_call_output"]
    id: str | None = None
    call_id: Text
    """The call that it answers."""
    output: Any
    status: str | None = None

    def turns(self) -> Iterable[PromptTurn]:
        return [PromptTurn("tool", plain_text(self.output), images(self.output), (), self.call_id)]


class FunctionCallOutput(BaseCallOutput):
    """The result of a call."""

    output: Annotated[str | list[ContentPart], BY_SHAPE]


class ItemReference(StrictModel):
    """An item of a stored response, by its id."""

    type: Literal["item_reference"] = "item_reference"
    id: Text


class ReasoningItem(StrictModel):
    """Reasoning of an earlier response, which is taken back and not used."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: Annotated[list[Any] | None, UNUSED] = None
    content: Annotated[list[Any] | None, UNUSED] = None
    encrypted_content: Annotated[str | None, UNUSED] = None
    status: str | None = None


_Item: TypeAlias = Annotated[
    GatewayMessageItem | FunctionCallItem | FunctionCallOutput | ItemReference | ReasoningItem,
    ByShape(
        "Input should be an item of type message, function_call, function_call_output, item_reference or reasoning"
    ),
]
_Input: TypeAlias = Annotated[Text | Annotated[list[_Item], NON_EMPTY], INPUT_SHAPE]
RESPONSES: Table = {
    **document_fields(ResponsesRequest),
    **_MODEL,
    "input": Row(_Input, "The prompt, or a list of items: messages, tool calls and their results.", default=...),
    "tools": Row(list[FlatTool], "Functions the model may call.", "Tools"),
    "tool_choice": Row(CheckedFlatToolChoice, _CHOICE, "Tools", "auto"),
    "parallel_tool_calls": Row(bool, "Whether one reply may call several tools.", "Tools"),
    "include": Row(Annotated[list[str], Unused(((LOGPROBS,),))], f"What else the reply shall hold: `{LOGPROBS}`."),
    "top_logprobs": _ALTERNATIVES,
}
"""Responses."""


class ImageSource(StrictModel):
    """An image in base64, or by its address."""

    type: Literal["base64", "url"]
    media_type: str | None = None
    data: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _require_image(self) -> Self:
        if self.type == "base64" and not (self.media_type and self.data):
            raise ValueError("an image in base64 needs `media_type` and `data`")
        if self.type == "url" and not self.url:
            raise ValueError("an image by its address needs a `url`")
        return self

    def idle_fields(self) -> tuple[str, ...]:
        others = ("url",) if self.type == "base64" else ("media_type", "data")
        return tuple(name for name in others if getattr(self, name) is not None)


class ImageBlock(StrictModel):
    """An image."""

    type: Literal["image"]
    source: ImageSource

    @property
    def image(self) -> str:
        """Its address; a data URL for an image in base64."""
        source = self.source
        return source.url if source.type == "url" and source.url else f"data:{source.media_type};base64,{source.data}"


class ToolUseBlock(StrictModel):
    """A call that an earlier message made."""

    type: Literal["tool_use"]
    id: Text
    name: Text
    input: Any = Field(default_factory=dict)


class ToolResultBlock(StrictModel):
    """The result of a call."""

    type: Literal["tool_result"]
    tool_use_id: Text
    content: Annotated[str | list[Annotated[ContentPart | ImageBlock, BY_SHAPE]], BY_SHAPE] = ""
    is_error: Annotated[bool | None, UNUSED] = None


_Block: TypeAlias = Annotated[ContentPart | ImageBlock | ToolUseBlock | ToolResultBlock, BY_SHAPE]


class BlockMessage(StrictModel):
    """A message whose content may hold images, calls and their results."""

    role: Any
    content: Any

    def turns(self) -> Iterable[PromptTurn]:
        """Yield the message as turns: results of tools are turns of their own, before what the user says to them."""
        rest = []
        for block in self.content if isinstance(self.content, list | tuple) else [self.content]:
            if isinstance(block, ToolResultBlock):
                yield PromptTurn("tool", plain_text(block.content), images(block.content), (), block.tool_use_id)
            else:
                rest.append(block)
        calls = tuple(
            PromptToolCall(block.id, block.name, json.dumps(block.input, ensure_ascii=False))
            for block in rest
            if isinstance(block, ToolUseBlock)
        )
        if rest:
            yield PromptTurn(self.role, plain_text(rest), images(rest), calls)


class GatewayMessage(BlockMessage):
    """A message whose content may hold images, calls and their results; agents put system text there, too."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[Text | ContentPart | Annotated[list[_Block], NON_EMPTY], CONTENT_SHAPE]


class OutputFormat(StrictModel):
    """The form of the answer."""

    type: Literal["json_schema"]
    """Only `json_schema`."""
    schema_: dict[str, Any] = Field(alias="schema")
    """The JSON Schema that the answer must satisfy."""


class EffortConfig(StrictModel):
    """How much effort the answer is worth."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How much effort."""


class OutputConfig(EffortConfig):
    """The form of the answer, and how much effort it is worth."""

    format: OutputFormat | None = None


class GatewayThinking(StrictModel):
    """Whether to think, and how much."""

    type: Literal["enabled", "disabled", "adaptive"]
    """Whether to think; `adaptive` leaves it to the model."""
    budget_tokens: Tokens | None = None
    """At most this many tokens of thinking, for type `enabled`."""
    display: Annotated[str | None, UNUSED] = None
    """How thinking is shown, such as `summarized` or `omitted`."""


MESSAGES: Table = {
    **document_fields(MessagesRequest),
    **_MODEL,
    "messages": Row(Annotated[list[GatewayMessage], NON_EMPTY], "The conversation so far.", default=...),
    "thinking": dataclasses.replace(document_fields(MessagesRequest)["thinking"], type=GatewayThinking),
    "tools": Row(list[InputSchemaTool], "Functions the model may call.", "Tools"),
    "tool_choice": Row(CheckedMessagesToolChoice, "Whether tools are called.", "Tools"),
    "top_k": Row(int, "Only from so many of the likeliest tokens.", "Sampling"),
    "stop_sequences": Row(list[Text], "Texts before which the answer ends.", "Sampling"),
    "output_config": Row(OutputConfig, "The form of the answer, and how much effort it is worth.", "Output form"),
    "output_format": Row(OutputFormat, "The earlier name of `output_config.format`."),
}
"""Messages."""


_TABLES: Mapping[type[Request], Table] = {
    ChatRequest: CHAT,
    ResponsesRequest: RESPONSES,
    WebChatRequest: WEB,
    MessagesRequest: MESSAGES,
}
GATEWAY_MODELS: Mapping[type[Request], type[Request]] = {
    model: build_request(
        f"Gateway{model.__name__}",
        f"{model.__name__}, as a vendor's SDK sends it.",
        table,
        like=model,
        # On messages thinking is asked for.
        traits=dataclasses.replace(model.traits, shows_reasoning=model is not MessagesRequest),
        module=__name__,
    )
    for model, table in _TABLES.items()
}
"""For each model of the document the one that accepts the vendors' fields as well."""


def referenced_ids(request: Request) -> tuple[str, ...]:
    """Return the ids of items of stored replies that stand in the conversation."""
    items = request.get("input")
    return tuple(item.id for item in items if isinstance(item, ItemReference)) if isinstance(items, list) else ()


def resolve_references(request: Request, items: Mapping[str, Any]) -> Request:
    """Return a request with the items themselves, given by id, in place of their ids."""
    body = request.body()
    body["input"] = [items[item["id"]] if item.get("type") == "item_reference" else item for item in body["input"]]
    return type(request).model_validate(body, extra="ignore")


_ITEM_TYPES = ("message", "function_call", "function_call_output", "item_reference", "reasoning")
_BLOCK_TYPES = ("image", "tool_use", "tool_result", *TEXT_TYPES, *IMAGE_TYPES, *THINKING_TYPES)


def leave_out_foreign(body: dict[str, Any], prompt_field: str) -> tuple[dict[str, Any], list[str]]:
    """Return a body without the tools, items and blocks of vendors' own that no engine has, and the path of each.

    So command-line agents, which offer such tools beside their functions, work with an engine that has functions alone.
    """
    left_out: dict[str, None] = {}

    def keep(items: Any, types: tuple[str, ...], path: str) -> Any:
        if not isinstance(items, list):
            return items
        kept = []
        for item in items:
            type_ = item.get("type") if isinstance(item, dict) else None
            if not isinstance(type_, str) or type_ in types:
                kept.append(item)
            else:
                left_out[f"{path}[].{type_}"] = None
        return kept

    fields = dict(body)
    tools = fields.get("tools")
    if isinstance(tools, list):
        # An Anthropic function may say that it is `custom`; the type of that name at OpenAI has a text as its input.
        has_schemas = any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)
        fields["tools"] = keep(tools, ("function", "custom") if has_schemas else ("function",), "tools")
    turns = fields.get(prompt_field)
    if prompt_field == "input":
        fields[prompt_field] = keep(turns, _ITEM_TYPES, prompt_field)
    elif isinstance(turns, list):
        fields[prompt_field] = []
        for turn in turns:
            content = None
            # Only of answers: what a user says is refused rather than left out. So would a message without content be.
            if isinstance(turn, dict) and turn.get("role") == "assistant":
                content = keep(turn.get("content"), _BLOCK_TYPES, f"{prompt_field}[].content")
            if content != []:
                fields[prompt_field].append(turn if content is None else {**turn, "content": content})
    if not left_out:
        return body, []
    choice = fields.get("tool_choice")
    known_choices = ("function", "tool", "auto", "any", "none")
    if fields.get("tools") == [] or (isinstance(choice, dict) and choice.get("type") not in known_choices):
        fields.pop("tool_choice", None)
    return fields, [*left_out]
