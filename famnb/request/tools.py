"""A typed, documented Python function as a tool: its JSON Schema, and a model's arguments read as its parameters.

`endpoints.compose` puts tools into a request, `client.ask` runs their functions.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints, overload

import pydantic
import pydantic_core

from famnb.errors import InvalidRequest
from famnb.request.base import describe_fault, format_location
from famnb.request.structured_output import rewrite_schema

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class FunctionTool:
    """A Python function that a model may call; in Python it is called like the function itself."""

    def __init__(self, function: Callable[..., Any], *, name: str | None = None, description: str | None = None):
        self.name = name or str(getattr(function, "__name__", ""))
        """Its name for the model: a-z, A-Z, 0-9, underscore and dash, at most 64 characters."""
        if not _NAME.fullmatch(self.name):
            raise InvalidRequest(
                f"tool: {self.name!r} is not a name for a tool; expected up to 64 of a-z, A-Z, 0-9, _ and -: "
                "give one with @famnb.tool(name=...)"
            )
        functools.update_wrapper(self, function)
        self._function = function
        # Loaded late: most first calls have no tools.
        import docstring_parser

        docstring = docstring_parser.parse(inspect.getdoc(function) or "")
        self.description = (description or docstring.description or "").strip()
        """The description that the model reads."""
        if not self.description:
            raise InvalidRequest(
                f"tool {self.name}: it has no docstring, which is what a model reads to know when to call it; "
                "write one, or give @famnb.tool(description=...)"
            )
        descriptions = {parameter.arg_name: parameter.description or "" for parameter in docstring.params}
        signature = _keyword_signature(self.name, function, descriptions)
        try:
            self._reader: pydantic.TypeAdapter[dict[str, Any]] = pydantic.TypeAdapter(signature)
            schema = self._reader.json_schema()
        except (pydantic.PydanticUserError, pydantic_core.SchemaError) as error:
            message = str(error).partition("\n")[0]
            raise InvalidRequest(
                f"tool {self.name}: a parameter has a type without a JSON form ({message}); "
                "use str, int, float, bool, list, dict, Literal, an Enum or a pydantic model"
            ) from None
        schema = rewrite_schema(schema, lambda node: {key: node[key] for key in node if key != "title"})
        self.parameters: dict[str, Any] = {"type": "object", **schema, "properties": schema.get("properties", {})}
        """The JSON Schema of its parameters."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join(self.parameters['properties'])})>"

    def bind(self, arguments: str) -> dict[str, Any]:
        """Return the keyword arguments in a model's JSON text. Raises ValueError with a message for the model."""
        try:
            return self._reader.validate_json(arguments or "{}")
        except pydantic.ValidationError as error:
            known = ", ".join(self.parameters["properties"]) or "none"
            messages = [_describe_argument_fault(fault, known) for fault in error.errors(include_url=False)]
            raise ValueError("; ".join(dict.fromkeys(messages))) from None


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a function a tool that web chat can call; use it as `@famnb.tool` or `@famnb.tool(name=..., …)`.

        @famnb.tool
        def weather(city: str) -> dict:
            '''The weather of a city right now.'''
            return {"city": city, "celsius": 4}

        client.ask("What is the weather in Oslo?", tools=[weather], auto=True).rounds

    Every parameter needs a type annotation that pydantic knows: str, int, bool, list, dict, Literal, Enum, Optional, a
    model. The docstring becomes the description, its section on the parameters theirs (Google, NumPy, Sphinx style).
    Raises InvalidRequest, saying what to change, for a function without types or docstring.
    """
    if function is None:
        return functools.partial(FunctionTool, name=name, description=description)
    return as_tool(function)


def as_tool(function: Callable[..., Any]) -> FunctionTool:
    """Return a function as a tool; a tool stays as it is."""
    return function if isinstance(function, FunctionTool) else FunctionTool(function)


def _keyword_signature(name: str, function: Callable[..., Any], descriptions: dict[str, str]) -> Any:
    """Return a function that pydantic takes to have the same parameters, all by name, and that returns them."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidRequest(f"tool {name}: a type annotation is not known ({error}); define it first") from None

    def arguments(**named: Any) -> dict[str, Any]:
        return named

    signature: Any = arguments
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidRequest(
                f"tool {name}: `{parameter}` cannot be called by name; give each parameter a name and a type of its own"
            )
        if parameter.name not in hints:
            raise InvalidRequest(
                f"tool {name}: parameter {parameter.name!r} has no type; write `{parameter.name}: str`, or what it is"
            )
        hint = hints[parameter.name]
        if description := descriptions.get(parameter.name):
            hint = Annotated[hint, pydantic.Field(description=description)]
        parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint))
    signature.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    signature.__signature__ = inspect.Signature(parameters)
    return signature


def _describe_argument_fault(fault: Any, known: str) -> str:
    """Return the message about one fault of the arguments, for the model."""
    location = format_location(fault["loc"]) or "the arguments"
    match fault["type"]:
        case "missing_keyword_only_argument":
            return f"{location}: required, but missing"
        case "unexpected_keyword_argument":
            return f"{location}: no such parameter; the parameters are {known}"
        case _:
            return f"{location}: {describe_fault(fault)}"
