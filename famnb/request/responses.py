"""The request of `POST {alt_base_url}/v1/responses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args

from pydantic import Discriminator, Field, SerializeAsAny, Tag, model_validator

from famnb.reply import Reply
from famnb.request.base import SHARED_GROUPS, Request, RequestTraits, any_shape
from famnb.request.message_parts import Content, Reasoning, effort_of, format_hints, images, plain_text
from famnb.request.neutral import AnswerFormat, FormatPaths, GenerationSettings, PromptTurn
from famnb.request.types import NON_EMPTY, UNUSED, Metadata, ProModel, StrictModel, Temperature, Text, Tokens, TopP


class InputItem(StrictModel):
    """A message of the conversation."""

    type: Literal["message"] = "message"
    """Only `message`."""
    role: Literal["user", "assistant", "system", "developer"]
    """Who speaks."""
    content: Content
    """What is said."""


def _shape(value: Any) -> str | None:
    return "<text>" if isinstance(value, str) else "<items>" if isinstance(value, list | tuple) else None


# As `Content` in message_parts.py: written by its class, without the discriminator.
Input: TypeAlias = SerializeAsAny[
    Annotated[
        Annotated[Text, Tag("<text>")] | Annotated[list[InputItem], NON_EMPTY, Tag("<items>")],
        Discriminator(
            _shape, custom_error_type="input_type", custom_error_message="Input should be a text or a list of items"
        ),
    ]
]


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


_FORMAT = FormatPaths(("text", "format"), ("text", "format"))

TRAITS = RequestTraits(
    roles=get_args(InputItem.model_fields["role"].annotation),
    system_field="instructions",
    documents_images=True,
    returns_thinking=False,
    thinking="effort",
    format=_FORMAT,
    usage_fields={},
    has_cache_writes=False,
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
    metadata: Annotated[Metadata | None, UNUSED] = None
    """Up to 16 pairs; keys of at most 64 characters, values of at most 512."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if system:
            fields.setdefault("instructions", system)
        if thinking is not None:
            fields.setdefault("reasoning", Reasoning.for_budget(thinking))
        return cls(input=prompt, **fields)

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        return {"type": "input_text", "text": content} if isinstance(content, str) else [*map(_input_part, content)]

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        content = {"type": "output_text", "text": reply.text}
        return [{"role": "assistant", "content": content}] if reply.text else []

    def turns(self) -> tuple[PromptTurn, ...]:
        if isinstance(self.input, str):
            return (PromptTurn("user", self.input),)
        return tuple(PromptTurn(item.role, plain_text(item.content), images(item.content)) for item in self.input)

    def settings(self) -> GenerationSettings:
        return GenerationSettings(
            cap=self.max_output_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            effort=effort_of(self.reasoning),
            answer_format=_answer_format(self.text.format if self.text else None),
            verbosity=self.text.verbosity if self.text else None,
        )

    @property
    def system_turn(self) -> PromptTurn | None:
        return PromptTurn("system", self.instructions) if self.instructions else None

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        return () if self.text is None else (self.text,)

    @property
    def stores_reply(self) -> bool:
        return self.store

    @property
    def continues(self) -> str | None:
        return self.previous_response_id

    def continue_stored(self, reply_id: str) -> Self:
        last = self.input if isinstance(self.input, str) else self.body()["input"][-1:]
        return self.replace(input=last, previous_response_id=reply_id)

    def hints(self) -> list[str]:
        hints = []
        if self.reasoning and self.max_output_tokens is not None and not self.sets_cap:
            hints.append(
                f"max_output_tokens counts reasoning too; its default of {self.max_output_tokens:,} "
                "may leave little for the answer."
            )
        if self.text and (form := self.text.format):
            hints += format_hints(form.type, form.name, form.schema_)
        if self.previous_response_id and not self.instructions:
            hints.append(
                "`previous_response_id` does not carry the earlier instructions over: write the system text again."
            )
        return [*hints, *self.sampling_hints()]


def _input_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part under the names that this endpoint has for it; an unknown one stays as it is."""
    match part:
        case {"type": "text", "text": text}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": url}}:
            return {"type": "input_image", "image_url": url}
        case _:
            return part


def _answer_format(form: TextFormat | None) -> AnswerFormat:
    """The form of the answer that `text.format` asks for."""
    if form is None or form.type == "text":
        return AnswerFormat()
    schema = form.schema_ if form.type == "json_schema" else None
    return AnswerFormat(True, schema, ".".join(_FORMAT.schema), form.name or "", form.strict)
