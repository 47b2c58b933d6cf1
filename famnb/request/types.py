"""The base of all models of a request, and the limits of the document, each written once, as a type."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema, core_schema

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True, use_attribute_docstrings=True)
"""The configuration of all models of a request: `"0.5"` is not a number, `true` not an integer, no unknown fields."""


class StrictModel(BaseModel):
    """Base of all parts of a request."""

    model_config = STRICT

    def idle_fields(self) -> tuple[str, ...]:
        """Return the paths of fields that are set and have no effect beside others of the model."""
        return ()

    def turns(self) -> Iterable[Any]:
        """Return a message or an item as turns of the conversation; none if it says nothing that is known here."""
        return ()


class Foreign(StrictModel, extra="allow"):
    """What a vendor has of its own, such as a file, audio, a search or an item of an earlier answer; sent as it is."""

    type: Annotated[str, StringConstraints(min_length=1)]
    """The vendor's word for it."""


@dataclasses.dataclass(frozen=True, slots=True)
class ByShape:
    """Tells the members of a union apart, in its annotation: a text, a list, and objects by the words of their `type`.

    An object of another type is the member that takes any type, else the first object; one without a type is the first
    that lacks no required field. A value that matches no member is refused with the message `error`; without one, it is
    validated as the first member, which says what is wrong with it.
    """

    error: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        members = [member for member in get_args(source) if member is not NoneType]
        # Angle brackets, by which `format_location` knows that they are no fields.
        shapes = {f"<{number}>": _shape(member) for number, member in enumerate(members)}
        models = {tag: shape for tag, shape in shapes.items() if issubclass(shape, BaseModel)}
        default = None if self.error else "<0>"
        words = {word: tag for tag, model in models.items() for word in _type_words(model)}
        any_type = [tag for tag, model in models.items() if "type" in model.model_fields and not _type_words(model)]
        unknown = default if self.error and len(models) > 1 else next(iter(models), default)
        required = {
            tag: {field.alias or name for name, field in model.model_fields.items() if field.is_required()}
            for tag, model in models.items()
        }

        def find_tag(value: Any) -> str | None:
            if isinstance(value, str | list | tuple):
                shape = str if isinstance(value, str) else list
                return next((tag for tag in shapes if shapes[tag] is shape), default)
            if not isinstance(value, Mapping | BaseModel):
                return default
            fields = value if isinstance(value, Mapping) else vars(value)
            type_ = fields.get("type")
            if isinstance(type_, str):
                return words.get(type_) or next(iter(any_type), unknown)
            return next(
                (tag for tag in models if type_ is None and required[tag] <= {*fields}), next(iter(models), default)
            )

        schema: CoreSchema = core_schema.tagged_union_schema(
            {tag: handler.generate_schema(member) for tag, member in zip(shapes, members, strict=True)},
            find_tag,
            custom_error_type="shape" if self.error else None,
            custom_error_message=self.error or None,
            # Written by its class: else this function in Python would run again for every part of a body.
            serialization=core_schema.simple_ser_schema("any"),
        )
        return core_schema.nullable_schema(schema) if len(members) < len(get_args(source)) else schema


BY_SHAPE = ByShape()


def _shape(member: Any) -> type:
    """Return the model of a member of a union, `list` for a list, and `str` for a text or one of some words."""
    if get_origin(member) is Annotated:
        member = get_args(member)[0]
    return member if isinstance(member, type) else list if get_origin(member) is list else str


def _type_words(model: type[BaseModel]) -> list[Any]:
    """Return the words that the field `type` of a model may be; none if it may be any, or if there is no such field."""
    field = model.model_fields.get("type")
    return [word for argument in get_args(field and field.annotation) for word in get_args(argument) or [argument]]


def any_shape(*alternatives: dict[str, dict[str, Any]]) -> ConfigDict:
    """Configuration of a model whose JSON Schema has alternatives, each with the fields it requires and their schemas.

    A validator of the model checks the same with better messages. A field with an `enum` (`type`, `role`) may be left
    out where it has a default.
    """
    schemas: Any = [
        {"properties": fields, "required": [name for name, field in fields.items() if "enum" not in field]}
        for fields in alternatives
    ]
    # Inside allOf, where it is a condition on the fields beside it rather than a choice of shapes.
    return ConfigDict(json_schema_extra={"allOf": [{"anyOf": schemas}]})


@dataclasses.dataclass(frozen=True, slots=True)
class Unused:
    """Marks a field, in its annotation, that the local service accepts and cannot follow: no engine has it."""

    neutral: tuple[Any, ...] = ()
    """Its values that have an effect or ask for nothing, beside false and empty ones; lists as tuples."""


UNUSED = Unused()
Temperature: TypeAlias = Annotated[float, Field(ge=0.0, le=2.0)]
TopP: TypeAlias = Annotated[float, Field(ge=0.0, le=1.0)]


def _integral(value: Any) -> Any:
    """Return a whole float as an integer: JSON has one kind of number, so 5.0 is an integer too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Tokens: TypeAlias = Annotated[int, Field(ge=1), BeforeValidator(_integral)]

MINI_OUTPUT_TOKENS = 16_384
"""The most tokens `fam-mini` generates."""
MINI_CONTEXT_TOKENS = 256_000
"""The context window of `fam-mini`: 256K."""
MiniTokens: TypeAlias = Annotated[int, Field(ge=1, le=MINI_OUTPUT_TOKENS), BeforeValidator(_integral)]

# `fail_fast`: a body of many malformed items would otherwise collect a fault, and a line of the message, for each.
NON_EMPTY = Field(min_length=1, fail_fast=True)
"""Constraint of a list that must have an item; validation stops at the first item at fault."""
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
"""A non-empty text."""
_TOOL_NAME = r"^[a-zA-Z0-9_-]+$"
ToolName: TypeAlias = Annotated[str, StringConstraints(pattern=_TOOL_NAME, min_length=1, max_length=64)]

MetadataKey: TypeAlias = Annotated[str, StringConstraints(max_length=64)]
MetadataValue: TypeAlias = Annotated[str, StringConstraints(max_length=512)]
Metadata: TypeAlias = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16, fail_fast=True)]

# ASCII only: what counts as a space beyond it differs between the regular expressions of Python, Rust and JavaScript.
_MINI_MODEL = r"^(fam-mini|[!-.0-~]+/[!-~]+)$"
MiniModel: TypeAlias = Annotated[str, StringConstraints(pattern=_MINI_MODEL)]
"""`fam-mini` or `<provider>/<model>`."""
ProModel: TypeAlias = Literal["fam-2-5-pro", "fam-2-5-mini"]
MINI_MODELS = ("fam-mini",)
PRO_MODELS = ("fam-2-5-pro", "fam-2-5-mini")

PATTERNS = {_TOOL_NAME: "only a-z, A-Z, 0-9, _ and -", _MINI_MODEL: "`fam-mini` or `<provider>/<model>`"}
"""What each pattern means, for an error message."""

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
