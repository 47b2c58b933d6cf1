"""Models that several endpoints share: messages, their parts, tool calls, reasoning and the answer's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    FailFast,
    Field,
    Tag,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from famnb.request.neutral import AnswerFormat, FormatPaths
from famnb.request.types import NON_EMPTY, UNUSED, ByShape, Effort, StrictModel, Text, Unused, any_shape

TEXT_TYPES = ("text", "input_text", "output_text")
IMAGE_TYPES = ("image_url", "input_image")
THINKING_TYPES = ("thinking", "redacted_thinking")


class ImageUrl(StrictModel):
    """An image by address, in the object form."""

    url: Text
    """An http(s) or data URL; never fetched by the local service."""
    detail: Annotated[str | None, Unused(("auto",))] = None
    """How closely to look, where the engine knows it."""


class ContentPart(StrictModel):
    """One part of a message: a text or an image."""

    model_config = any_shape(
        {"type": {"enum": [*TEXT_TYPES]}, "text": {"type": "string", "minLength": 1}},
        {"type": {"enum": [*IMAGE_TYPES]}, "image_url": {"type": ["string", "object"], "minLength": 1}},
        {"type": {"enum": [*THINKING_TYPES]}},
    )

    type: Literal["text", "input_text", "output_text", "image_url", "input_image", "thinking", "redacted_thinking"]
    """What the part is; the three text types mean the same, so do the two image types."""
    text: str | None = None
    """The text of a text part."""
    image_url: Annotated[str, Tag("<url>")] | Annotated[ImageUrl, Tag("<object>")] | None = None
    """The address of an image part."""
    thinking: Annotated[str | None, UNUSED] = None
    """The text of a thinking part, as an earlier reply gave it."""
    signature: Annotated[str | None, UNUSED] = None
    """The signature of a thinking part, as an earlier reply gave it; some services want it back."""
    data: Annotated[str | None, UNUSED] = None
    """What a redacted thinking part holds, as an earlier reply gave it."""

    @model_validator(mode="after")
    def _require_fields(self) -> Self:
        if self.type in TEXT_TYPES and not self.text:
            raise ValueError("a text part needs a non-empty `text`")
        if self.type in IMAGE_TYPES and not self.image_url:
            raise ValueError("an image part needs an `image_url`")
        return self

    def idle_fields(self) -> tuple[str, ...]:
        return ("image_url",) if self.image_url is not None and self.type not in IMAGE_TYPES else ()

    @property
    def image(self) -> str | None:
        """The address of an image part."""
        if self.type not in IMAGE_TYPES:
            return None
        return self.image_url.url if isinstance(self.image_url, ImageUrl) else self.image_url


CONTENT_SHAPE = ByShape("Input should be a text, a part or a list of parts")
Content: TypeAlias = Annotated[Text | ContentPart | Annotated[list[ContentPart], NON_EMPTY], CONTENT_SHAPE]
"""A message's content: a text, one part, or a list of parts."""


def chat_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part with the chat and messages endpoints' names for its type; an unknown type stays as it is."""
    match part:
        case {"type": "input_text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return part


def plain_text(content: Any) -> str:
    """Return the text of a content, which may be parts that were read (JSON has none); images are left out."""
    match content:
        case str():
            return content
        case list() | tuple():
            return "\n".join(text for text in map(plain_text, content) if text)
        case _:
            return getattr(content, "text", None) or ""


def images(content: Any) -> tuple[str, ...]:
    """Return the image addresses in a content, which may be parts that were read."""
    if isinstance(content, list | tuple):
        return tuple(url for part in content for url in images(part))
    url = getattr(content, "image", None)
    return (url,) if url else ()


class FunctionCall(StrictModel):
    """The function an assistant message called."""

    name: Text
    """The function's name."""
    arguments: str = ""
    """Its arguments as JSON text."""


class ToolCall(StrictModel):
    """A tool call of an earlier assistant message."""

    id: Text
    """The id that the tool's result refers to."""
    type: Literal["function"]
    """Only `function`."""
    function: FunctionCall
    """What was called."""


def _allow_empty_text(content: dict[str, Any]) -> None:
    """Add the empty text to the schema of a content, which `any_shape` restricts by role."""
    content["anyOf"].append({"const": ""})


class BaseChatMessage(StrictModel):
    """What every message of the two chat endpoints is, whatever its content and its calls may be."""

    model_config = any_shape(
        {
            "role": {"enum": ["system", "developer", "user", "assistant"]},
            "content": {"type": ["string", "object", "array"], "minLength": 1},
        },
        {"role": {"enum": ["assistant"]}, "tool_calls": {"type": "array", "minItems": 1}},
        {"role": {"enum": ["tool"]}, "tool_call_id": {"type": "string", "minLength": 1}},
    )

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """Who speaks."""
    content: Any = None
    name: str | None = None
    """The speaker's name, where several share a role."""
    tool_calls: Any = None
    tool_call_id: str | None = None
    """The call that a tool message answers; required for role `tool`."""

    @field_validator("content", mode="wrap")
    @classmethod
    def _check_content(cls, content: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        may_be_empty = info.data.get("role") in ("assistant", "tool")
        return content if content == "" and may_be_empty else check(content)

    @model_validator(mode="after")
    def _require_content(self) -> Self:
        if self.lacks_content():
            raise ValueError("a message needs `content`")
        if self.role == "tool" and not self.tool_call_id:
            raise ValueError("a tool message needs the `tool_call_id` it answers")
        return self

    def lacks_content(self) -> bool:
        """Return whether it says nothing, and need not be there."""
        return not self.content and not (self.role == "assistant" and self.tool_calls) and self.role != "tool"


class ChatMessage(BaseChatMessage):
    """A message of the two chat endpoints."""

    content: Annotated[Content | None, Field(json_schema_extra=_allow_empty_text)] = None
    """What is said; may be empty only beside `tool_calls` or as a tool's result."""
    tool_calls: Annotated[list[ToolCall] | None, FailFast()] = None
    """Calls an assistant message made."""


class Reasoning(StrictModel):
    """How much to reason, and whether to sum it up."""

    effort: Effort | None = None
    """How much reasoning effort."""
    summary: Annotated[Literal["none", "auto", "concise", "detailed"] | None, Unused(("none",))] = None
    """Whether a summary of the reasoning is wanted."""


def nearest_effort(tokens: int) -> Effort:
    """Return the reasoning effort nearest to a thinking budget."""
    # The document relates no effort to a number of tokens; these steps are our choice.
    return "low" if tokens < 1024 else "medium" if tokens < 4096 else "high"


class JsonSchemaFormat(StrictModel):
    """A named JSON Schema."""

    name: str | None = None
    """What the schema is called."""
    schema_: dict[str, Any] = Field(alias="schema")
    """The JSON Schema that the reply must satisfy."""
    strict: bool | None = None
    """Whether the schema must be followed exactly."""


class ResponseFormat(StrictModel):
    """The form of the reply on the chat endpoints."""

    model_config = any_shape(
        {"type": {"enum": ["text", "json", "json_object"]}},
        {"type": {"enum": ["json_schema"]}, "json_schema": {"type": "object"}},
    )

    type: Literal["text", "json", "json_object", "json_schema"] = "text"
    """`text`, any JSON (`json`, `json_object`), or JSON by a schema."""
    json_schema: JsonSchemaFormat | None = None
    """The schema; required for type `json_schema`."""

    @model_validator(mode="after")
    def _require_schema(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("type `json_schema` needs a `json_schema` with a `schema`")
        return self

    def idle_fields(self) -> tuple[str, ...]:
        return ("json_schema",) if self.json_schema is not None and self.type != "json_schema" else ()


RESPONSE_FORMAT = FormatPaths(("response_format",), ("response_format", "json_schema"))
"""Where the chat endpoints have the form of the answer."""


def answer_format(form: Any, paths: FormatPaths) -> AnswerFormat:
    """Return the answer's format that `response_format` or `text.format` asks for."""
    if form is None or form.type == "text":
        return AnswerFormat()
    field = ".".join(paths.schema)
    if form.type != "json_schema":
        return AnswerFormat(True, None, field)
    inner: Any = form.json_schema if isinstance(form, ResponseFormat) else form
    return AnswerFormat(True, inner.schema_, field, inner.name or "", inner.strict)
