"""What the vendors' own requests have beyond the document: for each endpoint a model that accepts it as well.

The service reads its callers' requests with these models when it is told to. A request that has only the document's
fields means the same in either model; a field of the document counts before another name for it.

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
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import msgspec
from pydantic import Discriminator, Field, SerializeAsAny, Tag, field_validator, model_validator

from famnb.request.base import Request
from famnb.request.chat import ChatRequest
from famnb.request.message_parts import Content, ContentPart, images, plain_text
from famnb.request.messages import MessagesRequest
from famnb.request.neutral import AnswerFormat, Function, GenerationSettings, PromptToolCall, PromptTurn
from famnb.request.responses import InputItem, ResponsesRequest
from famnb.request.types import (
    MINI_MODELS,
    MINI_OUTPUT_TOKENS,
    NON_EMPTY,
    UNUSED,
    Effort,
    StrictModel,
    Text,
    Tokens,
    ToolName,
)
from famnb.request.web import NamedTool, StreamOptions, Tool, ToolChoice, WebChatRequest, require_chosen_tool

StopTexts: TypeAlias = Annotated[Text, Tag("<text>")] | Annotated[list[Text], Tag("<texts>")]


def _stop_texts(stop: str | list[str] | None) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


class CompatFunction(Function):
    """A function the model may call."""

    strict: bool | None = None
    """Whether its arguments must keep to the schema."""


class CompatTool(Tool):
    """A tool the model may use."""

    function: CompatFunction


class CompatChatRequest(ChatRequest):
    """Chat completions on the first endpoint, as the vendor's SDK sends them."""

    cap_fields: ClassVar[tuple[str, ...]] = ("max_tokens", "max_completion_tokens")

    model: Text
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    """The same as `max_tokens`."""
    stream_options: StreamOptions | None = None
    """Options of the stream."""
    tools: list[CompatTool] | None = None
    """Functions the model may call."""
    tool_choice: ToolChoice = "auto"
    """`none`: a message; `auto`: a message or calls; `required`: one or more calls; or the one tool to call."""
    parallel_tool_calls: bool | None = None
    """Whether one reply may call several tools."""
    stop: StopTexts | None = None
    """A text, or a list of them, before which the answer ends."""
    reasoning_effort: Effort | None = None
    """How much reasoning effort."""

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        cap = self.max_tokens or self.max_completion_tokens
        if self.model in MINI_MODELS and cap is not None and cap > MINI_OUTPUT_TOKENS:
            raise ValueError(f"{self.model} generates at most {MINI_OUTPUT_TOKENS:,} tokens, asked for {cap:,}")
        return self

    # Unchecked, since a profile may be without the field.
    _require_chosen_tool = field_validator("tool_choice", check_fields=False)(require_chosen_tool)

    def settings(self) -> GenerationSettings:
        settings = super().settings()
        return dataclasses.replace(
            settings,
            cap=self.max_tokens or self.max_completion_tokens or settings.cap,
            effort=settings.effort or self.reasoning_effort,
            stop=_stop_texts(self.stop),
            parallel_tool_calls=self.parallel_tool_calls,
            **_chat_tools(self.tools, self.tool_choice),
        )

    def idle_fields(self) -> tuple[str, ...]:
        return (*super().idle_fields(), *_idle_names(self, self.cap_fields), *_idle_effort(self))

    @property
    def asks_for_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


class CompatWebChatRequest(WebChatRequest):
    """Chat completions with tools, as the vendor's SDK sends them."""

    cap_fields: ClassVar[tuple[str, ...]] = ("max_new_tokens", "max_completion_tokens", "max_tokens")

    model: Text  # type: ignore[assignment]
    max_tokens: Tokens | None = None
    """The same as `max_new_tokens`."""
    max_completion_tokens: Tokens | None = None
    """The same as `max_new_tokens`."""
    tools: list[CompatTool] | None = None  # type: ignore[assignment]
    parallel_tool_calls: bool | None = None
    stop: StopTexts | None = None
    reasoning_effort: Effort | None = None

    def settings(self) -> GenerationSettings:
        settings = super().settings()
        is_set = self.cap in self.model_fields_set
        return dataclasses.replace(
            settings,
            cap=settings.cap if is_set else self.max_completion_tokens or self.max_tokens or settings.cap,
            effort=settings.effort or self.reasoning_effort,
            stop=_stop_texts(self.stop),
            parallel_tool_calls=self.parallel_tool_calls,
        )

    def idle_fields(self) -> tuple[str, ...]:
        return (*super().idle_fields(), *_idle_names(self, self.cap_fields), *_idle_effort(self))


def _idle_names(request: Request, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return which of a field's names are set to a value that another name, which counts before them, overrides."""
    first, *others = [name for name in names if name in request.model_fields_set] or [""]
    return tuple(name for name in others if getattr(request, name) != getattr(request, first))


def _idle_effort(request: CompatChatRequest | CompatWebChatRequest) -> tuple[str, ...]:
    """Return the other name of the effort if `reasoning` has a different one."""
    effort = request.reasoning and request.reasoning.effort
    return ("reasoning_effort",) if effort and request.reasoning_effort not in (None, effort) else ()


def _chat_tools(tools: Sequence[Tool] | None, choice: ToolChoice) -> dict[str, Any]:
    return {
        "tools": tuple(tool.function for tool in tools or ()),
        "tool_choice": "required" if isinstance(choice, NamedTool) else choice,
        "forced_tool": choice.function.name if isinstance(choice, NamedTool) else None,
    }


class CompatMessageItem(InputItem):
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


class FunctionCallOutput(StrictModel):
    """The result of a call."""

    type: Literal["function_call_output"]
    id: str | None = None
    call_id: Text
    """The call that it answers."""
    output: Annotated[str, Tag("<text>")] | Annotated[list[ContentPart], Tag("<parts>")]
    status: str | None = None


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


def _item_type(item: Any) -> str | None:
    fields = item if isinstance(item, Mapping) else getattr(item, "__dict__", {})
    type_ = fields.get("type")
    # Only an item of this type may leave it out, beside messages, which have a role.
    if type_ is None and "role" not in fields and "id" in fields:
        return "<item_reference>"
    return f"<{type_ or 'message'}>" if isinstance(type_ or "", str) else None


CompatItem: TypeAlias = Annotated[
    Annotated[CompatMessageItem, Tag("<message>")]
    | Annotated[FunctionCallItem, Tag("<function_call>")]
    | Annotated[FunctionCallOutput, Tag("<function_call_output>")]
    | Annotated[ItemReference, Tag("<item_reference>")]
    | Annotated[ReasoningItem, Tag("<reasoning>")],
    Discriminator(
        _item_type,
        custom_error_type="item_type",
        custom_error_message="Input should be an item of type message, function_call, function_call_output, "
        "item_reference or reasoning",
    ),
]


class FlatTool(CompatFunction):
    """A function that the model may call, with its type beside its name."""

    type: Literal["function"]


class NamedFlatTool(StrictModel):
    """A tool that must be called."""

    type: Literal["function"]
    name: ToolName


FlatToolChoice: TypeAlias = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("<word>")] | Annotated[NamedFlatTool, Tag("<tool>")],
    Discriminator(lambda choice: "<word>" if isinstance(choice, str) else "<tool>"),
]


class CompatResponsesRequest(ResponsesRequest):
    """Responses, as the vendor's SDK sends them."""

    model: Text  # type: ignore[assignment]
    input: SerializeAsAny[  # type: ignore[assignment]
        Annotated[
            Annotated[Text, Tag("<text>")] | Annotated[list[CompatItem], NON_EMPTY, Tag("<items>")],
            Discriminator(
                lambda value: (
                    "<text>" if isinstance(value, str) else "<items>" if isinstance(value, list | tuple) else None
                ),
                custom_error_type="input_type",
                custom_error_message="Input should be a text or a list of items",
            ),
        ]
    ]
    """The prompt, or a list of items: messages, tool calls and their results."""
    tools: list[FlatTool] | None = None
    """Functions the model may call."""
    tool_choice: FlatToolChoice = "auto"
    """`none`: a message; `auto`: a message or calls; `required`: one or more calls; or the one tool to call."""
    parallel_tool_calls: bool | None = None
    """Whether one reply may call several tools."""

    @model_validator(mode="after")
    def _require_chosen_tool(self) -> Self:
        _check_choice(self.tools, self.settings())
        return self

    def turns(self) -> tuple[PromptTurn, ...]:
        if isinstance(self.input, str):
            return super().turns()
        return tuple(_merge_calls(turn for item in self.input for turn in _item_turns(item)))

    def settings(self) -> GenerationSettings:
        choice = self.tool_choice
        return dataclasses.replace(
            super().settings(),
            tools=tuple(_function(tool, tool.parameters) for tool in self.tools or ()),
            tool_choice="required" if isinstance(choice, NamedFlatTool) else choice,
            forced_tool=choice.name if isinstance(choice, NamedFlatTool) else None,
            parallel_tool_calls=self.parallel_tool_calls,
        )

    @property
    def references(self) -> tuple[str, ...]:
        items = () if isinstance(self.input, str) else self.input
        return tuple(item.id for item in items if isinstance(item, ItemReference))

    def with_referenced(self, items: Mapping[str, Any]) -> Self:
        body = self.body()
        body["input"] = [items[item["id"]] if item.get("type") == "item_reference" else item for item in body["input"]]
        return type(self).model_validate(body, extra="ignore")


def _item_turns(item: Any) -> Iterable[PromptTurn]:
    match item:
        case InputItem():
            yield PromptTurn(item.role, plain_text(item.content), images(item.content))
        case FunctionCallItem():
            yield PromptTurn("assistant", "", (), (PromptToolCall(item.call_id, item.name, item.arguments),))
        case FunctionCallOutput():
            yield PromptTurn("tool", plain_text(item.output), images(item.output), (), item.call_id)
        case _:
            return


def _merge_calls(turns: Iterable[PromptTurn]) -> Iterable[PromptTurn]:
    """Yield the turns with the calls of one answer in one turn, as engines want them, beside its text."""
    last: PromptTurn | None = None
    for turn in turns:
        if last is not None and turn.tool_calls and last.role == "assistant":
            calls = (*last.tool_calls, *turn.tool_calls)
            last = msgspec.structs.replace(last, tool_calls=calls)
            continue
        if last is not None:
            yield last
        last = turn
    if last is not None:
        yield last


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

    @property
    def address(self) -> str:
        """The image as a URL, which holds the data itself where there is no other."""
        return self.url if self.type == "url" and self.url else f"data:{self.media_type};base64,{self.data}"


class ImageBlock(StrictModel):
    """An image."""

    type: Literal["image"]
    source: ImageSource


class ToolUseBlock(StrictModel):
    """A call that an earlier message made."""

    type: Literal["tool_use"]
    id: Text
    name: Text
    input: Any = Field(default_factory=dict)


def _block_type(block: Any) -> str | None:
    type_ = block.get("type") if isinstance(block, Mapping) else getattr(block, "type", None)
    own = ("image", "tool_use", "tool_result")
    return f"<{type_}>" if type_ in own else "<part>"


ResultBlock: TypeAlias = Annotated[
    Annotated[ContentPart, Tag("<part>")] | Annotated[ImageBlock, Tag("<image>")], Discriminator(_block_type)
]


class ToolResultBlock(StrictModel):
    """The result of a call."""

    type: Literal["tool_result"]
    tool_use_id: Text
    content: Annotated[str, Tag("<text>")] | Annotated[list[ResultBlock], Tag("<blocks>")] = ""
    is_error: Annotated[bool | None, UNUSED] = None


CompatBlock: TypeAlias = Annotated[
    Annotated[ContentPart, Tag("<part>")]
    | Annotated[ImageBlock, Tag("<image>")]
    | Annotated[ToolUseBlock, Tag("<tool_use>")]
    | Annotated[ToolResultBlock, Tag("<tool_result>")],
    Discriminator(_block_type),
]


def content_shape(content: Any) -> str:
    """Return the tag of a message's content: a list of blocks, or any other content."""
    return "<blocks>" if isinstance(content, list | tuple) else "<content>"


class CompatMessage(StrictModel):
    """A message whose content may hold images, calls and their results."""

    role: Literal["user", "assistant"]
    content: Annotated[
        Annotated[Content, Tag("<content>")] | Annotated[list[CompatBlock], NON_EMPTY, Tag("<blocks>")],
        Discriminator(content_shape),
    ]


class InputSchemaTool(StrictModel):
    """A function that the model may call."""

    type: Literal["custom"] | None = None
    name: ToolName
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


class MessagesToolChoice(StrictModel):
    """Whether tools are called."""

    type: Literal["auto", "any", "tool", "none"]
    """`none`: a message; `auto`: a message or calls; `any`: one or more calls; `tool`: the one that is named."""
    name: str | None = None
    """The one tool to call, for type `tool`."""
    disable_parallel_tool_use: bool | None = None
    """Whether a reply calls at most one tool."""

    @model_validator(mode="after")
    def _require_name(self) -> Self:
        if self.type == "tool" and not self.name:
            raise ValueError("type `tool` needs the `name` of one of `tools`")
        return self

    def idle_fields(self) -> tuple[str, ...]:
        return ("name",) if self.name is not None and self.type != "tool" else ()


class OutputFormat(StrictModel):
    """The form of the answer."""

    type: Literal["json_schema"]
    """Only `json_schema`."""
    schema_: dict[str, Any] = Field(alias="schema")
    """The JSON Schema that the answer must satisfy."""


class OutputConfig(StrictModel):
    """The form of the answer, and how much effort it is worth."""

    format: OutputFormat | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How much effort."""


class CompatThinking(StrictModel):
    """Whether to think, and how much."""

    type: Literal["enabled", "disabled", "adaptive"]
    """Whether to think; `adaptive` leaves it to the model."""
    budget_tokens: Tokens | None = None
    """At most this many tokens of thinking, for type `enabled`."""
    display: Annotated[str | None, UNUSED] = None
    """How thinking is shown, such as `summarized` or `omitted`."""


_EFFORT_BUDGETS = {"low": 512, "medium": 2048, "high": 8192}
"""The budget, in tokens, of thinking whose effort alone is given; that of a higher effort is all there is."""


class CompatMessagesRequest(MessagesRequest):
    """Messages, as the vendor's SDK sends them."""

    model: Text  # type: ignore[assignment]
    messages: Annotated[list[CompatMessage], NON_EMPTY]  # type: ignore[assignment]
    thinking: CompatThinking | None = None  # type: ignore[assignment]
    tools: list[InputSchemaTool] | None = None
    """Functions the model may call."""
    tool_choice: MessagesToolChoice | None = None
    """Whether tools are called."""
    stop_sequences: list[Text] | None = None
    """Texts before which the answer ends."""
    output_config: OutputConfig | None = None
    """The form of the answer, and how much effort it is worth."""
    output_format: OutputFormat | None = None
    """The earlier name of `output_config.format`."""

    @model_validator(mode="after")
    def _require_chosen_tool(self) -> Self:
        _check_choice(self.tools, self.settings())
        return self

    def turns(self) -> tuple[PromptTurn, ...]:
        return tuple(turn for message in self.messages for turn in _message_turns(message))

    def settings(self) -> GenerationSettings:
        choice = self.tool_choice
        word = choice.type if choice else "auto"
        form = (self.output_config and self.output_config.format) or self.output_format
        path = "output_config.format.schema" if self.output_config and self.output_config.format else "output_format"
        thinks = self.thinking is not None and self.thinking.type in ("enabled", "adaptive")
        budget = self.thinking.budget_tokens if self.thinking else None
        effort = self.output_config.effort if self.output_config else None
        if thinks and effort is not None:
            budget = budget or min(_EFFORT_BUDGETS.get(effort, self.max_tokens), self.max_tokens)
        if self.thinking is not None and not thinks:
            effort = None
        return dataclasses.replace(
            super().settings(),
            thinking=(budget or self.max_tokens) if thinks else None,
            effort="xhigh" if effort == "max" else effort,
            tools=tuple(_function(tool, tool.input_schema) for tool in self.tools or ()),
            tool_choice="required" if word in ("any", "tool") else "none" if word == "none" else "auto",
            forced_tool=choice.name if choice and choice.type == "tool" else None,
            parallel_tool_calls=_not(choice.disable_parallel_tool_use if choice else None),
            stop=tuple(self.stop_sequences or ()),
            answer_format=AnswerFormat(True, form.schema_, path) if form else AnswerFormat(),
        )

    def idle_fields(self) -> tuple[str, ...]:
        config = self.output_config or OutputConfig()
        are_idle = {
            "output_config.effort": bool(self.thinking and self.thinking.type == "disabled" and config.effort),
            "output_format": bool(self.output_format and config.format and self.output_format != config.format),
        }
        return (*super().idle_fields(), *(path for path, is_idle in are_idle.items() if is_idle))


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _message_turns(message: CompatMessage) -> Iterable[PromptTurn]:
    """Yield a message as turns: results of tools are turns of their own, before what the user says to them."""
    blocks = message.content if isinstance(message.content, list | tuple) else [message.content]
    for block in blocks:
        if isinstance(block, ToolResultBlock):
            yield PromptTurn("tool", _block_text(block.content), _block_images(block.content), (), block.tool_use_id)
    calls = tuple(
        PromptToolCall(block.id, block.name, json.dumps(block.input, ensure_ascii=False))
        for block in blocks
        if isinstance(block, ToolUseBlock)
    )
    rest = [block for block in blocks if not isinstance(block, ToolResultBlock)]
    if rest:
        yield PromptTurn(message.role, _block_text(rest), _block_images(rest), calls)


def _block_text(content: Any) -> str:
    return plain_text(content if isinstance(content, str) else list(content))


def _block_images(content: Any) -> tuple[str, ...]:
    blocks = () if isinstance(content, str) else content
    return tuple(
        url for block in blocks for url in ((block.source.address,) if isinstance(block, ImageBlock) else images(block))
    )


def _function(tool: FlatTool | InputSchemaTool, parameters: dict[str, Any] | None) -> CompatFunction:
    """Return a function in which only is set what is given: engines get the others not even as null."""
    fields = {"name": tool.name, "description": tool.description, "parameters": parameters, "strict": tool.strict}
    return CompatFunction.model_validate({field: value for field, value in fields.items() if value is not None})


def _check_choice(tools: Any, settings: GenerationSettings) -> None:
    """Raise ValueError for a choice of tool that there is not."""
    names = [tool.name for tool in tools or ()]
    if settings.forced_tool is not None and settings.forced_tool not in names:
        raise ValueError(
            f"`tool_choice` names {settings.forced_tool!r}, which is not one of `tools` ({', '.join(names) or 'none'})"
        )
    if settings.tool_choice == "required" and not names:
        raise ValueError("`tool_choice` wants a tool to be called, but `tools` is empty")


COMPAT_MODELS: Mapping[type[Request], type[Request]] = {
    ChatRequest: CompatChatRequest,
    ResponsesRequest: CompatResponsesRequest,
    WebChatRequest: CompatWebChatRequest,
    MessagesRequest: CompatMessagesRequest,
}
"""For each model of the document the one that accepts the vendor's own fields as well."""
