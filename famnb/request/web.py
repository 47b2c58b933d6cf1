"""The request of `POST {alt_base_url}/v1/web/chat/completions`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Discriminator, FailFast, Tag, ValidationInfo, field_validator

from famnb.request.base import Part, Request, choices
from famnb.request.chat import prompted
from famnb.request.message_parts import ChatMessage, Reasoning, ResponseFormat
from famnb.request.types import SOME, ProModel, Temperature, Tokens, ToolName, TopP


class Function(Part):
    """A function the model may call."""

    name: ToolName
    """a-z, A-Z, 0-9, underscore and dash; at most 64 characters."""
    description: str | None = None
    """What it does, for the model."""
    parameters: dict[str, Any] | None = None
    """Its parameters as a JSON Schema."""


class Tool(Part):
    """A tool the model may use."""

    type: Literal["function"]
    """Only `function`."""
    function: Function
    """The function."""


class NamedFunction(Part):
    """A function by name."""

    name: ToolName
    """The name of one of `tools`."""


class NamedTool(Part):
    """A tool that must be called."""

    type: Literal["function"]
    """Only `function`."""
    function: NamedFunction
    """Which function."""


class StreamOptions(Part):
    """Options of the stream."""

    include_usage: bool | None = None
    """One more chunk with the full usage before `[DONE]`."""


ToolChoice: TypeAlias = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("<word>")] | Annotated[NamedTool, Tag("<tool>")],
    Discriminator(lambda choice: "<word>" if isinstance(choice, str) else "<tool>"),
]


class WebChatRequest(Request):
    """Chat completions with tools."""

    model_config = choices(
        {"tool_choice": {"enum": ["none", "auto"]}},
        {"tools": {"type": "array", "minItems": 1}},
    )

    endpoint: ClassVar[str] = "web"
    cap: ClassVar[str] = "max_new_tokens"
    prompt_field: ClassVar[str] = "messages"

    model: ProModel
    """`fam-2-5-pro` or `fam-2-5-mini`."""
    messages: Annotated[list[ChatMessage], SOME]
    """The conversation so far."""
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

    @field_validator("tool_choice")
    @classmethod
    def _choice_has_tool(cls, choice: ToolChoice, info: ValidationInfo) -> ToolChoice:
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

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is not None:
            fields.setdefault("reasoning", Reasoning.for_budget(thinking))
        return cls(**{"messages": prompted(prompt, system), **fields})
