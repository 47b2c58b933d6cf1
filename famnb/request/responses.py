"""The request of `POST {alt_base_url}/v1/responses`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from famnb.request.base import Part, Request, choices
from famnb.request.message_parts import Content, Reasoning
from famnb.request.types import SOME, Metadata, ProModel, Temperature, Text, Tokens, TopP


class InputItem(Part):
    """A message of the conversation."""

    type: Literal["message"] = "message"
    """Only `message`."""
    role: Literal["user", "assistant", "system", "developer"]
    """Who speaks."""
    content: Content
    """What is said."""


def _shape(value: Any) -> str | None:
    return "<text>" if isinstance(value, str) else "<items>" if isinstance(value, list | tuple) else None


Input: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[list[InputItem], SOME, Tag("<items>")],
    Discriminator(
        _shape, custom_error_type="input_type", custom_error_message="Input should be a text or a list of items"
    ),
]


class TextFormat(Part):
    """The form of the reply."""

    model_config = choices(
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
    def _has_schema(self) -> Self:
        if self.type == "json_schema" and self.schema_ is None:
            raise ValueError("type `json_schema` needs a `schema`")
        return self


class TextOptions(Part):
    """The form and length of the reply."""

    format: TextFormat | None = None
    """Text or JSON."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """How much to say."""


class ResponsesRequest(Request):
    """Responses: items in, items out, conversations kept by the service."""

    endpoint: ClassVar[str] = "responses"
    cap: ClassVar[str] = "max_output_tokens"
    prompt_field: ClassVar[str] = "input"

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
    metadata: Metadata | None = None
    """Up to 16 pairs; keys of at most 64 characters, values of at most 512."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if system:
            fields.setdefault("instructions", system)
        if thinking is not None:
            fields.setdefault("reasoning", Reasoning.for_budget(thinking))
        return cls(input=prompt, **fields)
