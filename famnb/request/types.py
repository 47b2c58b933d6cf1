"""The base of all models of a request, and the limits of the document, each written once, as a type."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True, use_attribute_docstrings=True)
"""The configuration of all models of a request: `"0.5"` is not a number, `true` not an integer, no unknown fields."""


class StrictModel(BaseModel):
    """Base of all parts of a request."""

    model_config = STRICT

    def idle_fields(self) -> tuple[str, ...]:
        """Return the paths of fields that are set and have no effect beside others of the model."""
        return ()


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
    """Its values that ask for nothing, beside false and empty ones."""


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

METADATA_PAIRS = 16
MetadataKey: TypeAlias = Annotated[str, StringConstraints(max_length=64)]
MetadataValue: TypeAlias = Annotated[str, StringConstraints(max_length=512)]
Metadata: TypeAlias = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=METADATA_PAIRS, fail_fast=True)]

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
Summary: TypeAlias = Literal["none", "auto", "concise", "detailed"]
