"""The request of `POST {alt_base_url}/v1/web/chat/completions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self, TypeAlias, get_args

from pydantic import Discriminator, FailFast, Tag, ValidationInfo, field_validator

from famnb.reply import Reply
from famnb.request.base import SHARED_GROUPS, RequestTraits, any_shape
from famnb.request.chat import BaseChatRequest, round_messages
from famnb.request.message_parts import (
    RESPONSE_FORMAT,
    ChatMessage,
    Reasoning,
    ResponseFormat,
    answer_format,
    effort_of,
    response_format_hints,
)
from famnb.request.neutral import Function, GenerationSettings
from famnb.request.types import ProModel, StrictModel, Temperature, Tokens, ToolName, TopP


class Tool(StrictModel):
    """A tool the model may use."""

    type: Literal["function"]
    """Only `function`."""
    function: Function
    """The function."""


class NamedFunction(StrictModel):
    """A function by name."""

    name: ToolName
    """The name of one of `tools`."""


class NamedTool(StrictModel):
    """A tool that must be called."""

    type: Literal["function"]
    """Only `function`."""
    function: NamedFunction
    """Which function."""


class StreamOptions(StrictModel):
    """Options of the stream."""

    include_usage: bool | None = None
    """One more chunk with the full usage before `[DONE]`."""


ToolChoice: TypeAlias = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("<word>")] | Annotated[NamedTool, Tag("<tool>")],
    Discriminator(lambda choice: "<word>" if isinstance(choice, str) else "<tool>"),
]


def require_chosen_tool(choice: ToolChoice, info: ValidationInfo) -> ToolChoice:
    """Validate the field `tool_choice` behind `tools`: return it, or raise ValueError if there is no such tool."""
    if "tools" not in info.data:
        return choice  # `tools` itself is at fault, which is said already
    names = [tool.function.name for tool in info.data["tools"] or ()]
    match choice:
        case NamedTool(function=NamedFunction(name=name)) if name not in names:
            raise ValueError(
                f"`tool_choice` names {name!r}, which is not one of `tools` ({', '.join(names) or 'none'})"
            )
        case "required" if not names:
            raise ValueError("`tool_choice` is `required`, but `tools` is empty")
    return choice


TRAITS = RequestTraits(
    roles=get_args(ChatMessage.model_fields["role"].annotation),
    system_field=None,
    documents_images=False,
    returns_thinking=False,
    thinking="effort",
    format=RESPONSE_FORMAT,
    usage_fields={"stream_options": {"include_usage": True}},
    has_cache_writes=False,
    stores_replies=False,
    groups={
        **SHARED_GROUPS,
        "reasoning": "Reasoning",
        "response_format": "Output form",
        "tools": "Tools",
        "tool_choice": "Tools",
        "stream_options": "Stream",
    },
    implied={RESPONSE_FORMAT.schema: (RESPONSE_FORMAT.type, "json_schema")},
)


class WebChatRequest(BaseChatRequest):
    """Chat completions with tools."""

    model_config = any_shape(
        {"tool_choice": {"enum": ["none", "auto"]}},
        {"tools": {"type": "array", "minItems": 1}},
    )

    endpoint: ClassVar[str] = "web"
    cap: ClassVar[str] = "max_new_tokens"

    model: ProModel
    """`fam-2-5-pro` or `fam-2-5-mini`."""
    stream: bool = False
    """Server-sent events when true."""
    stream_options: StreamOptions | None = None
    """Options of the stream."""
    tools: Annotated[list[Tool] | None, FailFast()] = None
    """Functions the model may call."""
    tool_choice: ToolChoice = "auto"
    """`none`: a message; `auto`: a message or calls; `required`: one or more calls; or the one tool to call."""
    max_new_tokens: Tokens = 2048
    """Maximum tokens to generate."""
    reasoning: Reasoning | None = None
    """How much to reason; counted in usage, not shown."""
    response_format: ResponseFormat | None = None
    """Text or JSON; text unless set."""
    temperature: Temperature = 0.1
    """Sampling temperature."""
    top_p: TopP = 1.0
    """Nucleus sampling."""

    _require_chosen_tool = field_validator("tool_choice")(require_chosen_tool)

    def settings(self) -> GenerationSettings:
        choice = self.tool_choice
        return GenerationSettings(
            cap=self.max_new_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            effort=effort_of(self.reasoning),
            tools=tuple(tool.function for tool in self.tools or ()),
            tool_choice="required" if isinstance(choice, NamedTool) else choice,
            forced_tool=choice.function.name if isinstance(choice, NamedTool) else None,
            answer_format=answer_format(self.response_format),
        )

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        return (*(self.tools or ()), *(() if self.response_format is None else (self.response_format,)))

    @property
    def asks_for_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def with_tool_results(self, reply: Reply, results: Sequence[str]) -> Self:
        messages = [*self.body()["messages"], *round_messages(reply, results)]
        # A tool that must be called would be called in every round, for ever.
        free = {} if self.tool_choice == "none" else {"tool_choice": None}
        return self.replace(messages=messages, **free)

    def hints(self) -> list[str]:
        hints = response_format_hints(self.response_format)
        if not self.tools and "tool_choice" in self.model_fields_set:
            hints.append("`tool_choice` has no effect without `tools`.")
        if self.stream and not self.asks_for_usage:
            hints.append("A streamed web chat reply carries no usage unless stream_options.include_usage is yes.")
        elif not self.stream and self.stream_options:
            hints.append("`stream_options` has no effect unless the reply is streamed.")
        return [*hints, *self.sampling_hints()]
