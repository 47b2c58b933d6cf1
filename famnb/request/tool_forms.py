"""Declared tools in the form that each dialect has for them, and the choice among them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, ValidationInfo, model_validator

from famnb.request.neutral import Function
from famnb.request.types import BY_SHAPE, Foreign, StrictModel, ToolName

ChoiceWord: TypeAlias = Literal["none", "auto", "required"]


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


class StrictFunction(Function):
    """A function the model may call."""

    strict: bool | None = None
    """Whether its arguments must keep to the schema."""


class StrictTool(Tool):
    """A tool the model may use."""

    function: StrictFunction


class FlatTool(Function):
    """A function that the model may call, with its type beside its name."""

    type: Literal["function"]
    strict: bool | None = None
    """Whether its arguments must keep to the schema."""


class NamedFlatTool(StrictModel):
    """A tool that must be called."""

    type: Literal["function"]
    name: ToolName


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


def read_function(tool: Tool | FlatTool | InputSchemaTool) -> Function:
    """Return a tool's function, in which only is set what is given: engines get the others not even as null."""
    if isinstance(tool, Tool):
        return tool.function
    parameters = tool.parameters if isinstance(tool, FlatTool) else tool.input_schema
    fields = {"name": tool.name, "description": tool.description, "parameters": parameters, "strict": tool.strict}
    return StrictFunction.model_validate({field: value for field, value in fields.items() if value is not None})


def read_choice(choice: Any) -> tuple[ChoiceWord, str | None]:
    """Return whether tools are called, and the name of the one that must be."""
    match choice:
        case NamedTool():
            return "required", choice.function.name
        case NamedFlatTool() | MessagesToolChoice(type="tool"):
            return "required", choice.name
        case "required" | MessagesToolChoice(type="any"):
            return "required", None
        case "none" | MessagesToolChoice(type="none"):
            return "none", None
        case _:
            return "auto", None


def require_chosen_tool(choice: Any, info: ValidationInfo) -> Any:
    """Validate the field `tool_choice` behind `tools`: return it, or raise ValueError if there is no such tool."""
    if "tools" not in info.data:
        return choice  # an error of `tools` itself is reported by that field
    tools = info.data["tools"] or ()
    names = [tool.function.name if isinstance(tool, Tool) else getattr(tool, "name", tool.type) for tool in tools]
    word, name = read_choice(choice)
    if name is not None and name not in names:
        raise ValueError(f"`tool_choice` names {name!r}, which is not one of `tools` ({', '.join(names) or 'none'})")
    if word == "required" and not tools:
        raise ValueError(f"`tool_choice` is `{getattr(choice, 'type', choice)}`, but `tools` is empty")
    return choice


CheckedToolChoice: TypeAlias = Annotated[ChoiceWord | NamedTool, BY_SHAPE, AfterValidator(require_chosen_tool)]
"""The choice on the chat endpoints, where it must be one of `tools`."""
CheckedFlatToolChoice: TypeAlias = Annotated[ChoiceWord | NamedFlatTool, BY_SHAPE, AfterValidator(require_chosen_tool)]
"""The same on responses."""
CheckedMessagesToolChoice: TypeAlias = Annotated[MessagesToolChoice, AfterValidator(require_chosen_tool)]
"""The same on messages."""


def shared_settings(request: Any) -> dict[str, Any]:
    """Return the settings of the generation that requests of all endpoints have in the same fields."""
    word, name = read_choice(request.get("tool_choice"))
    functions = tuple(read_function(tool) for tool in request.get("tools") or () if not isinstance(tool, Foreign))
    sampling = {field: request.get(field) for field in ("temperature", "top_p")}
    return {"cap": request.output_tokens, **sampling, "tools": functions, "tool_choice": word, "forced_tool": name}
