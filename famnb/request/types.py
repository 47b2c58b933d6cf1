"""The model that every part of a request is made from, and the limits of the document, each written once, as a type."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import linecache
import re
import sys
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


class StrictModel(BaseModel):
    """Base of all models of a request: strict (`"0.5"` is not a number, `true` not an integer), no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    not_offered: ClassVar[tuple[str, ...]] = ()
    """Fields of the models above this one that it does not have: they cannot be given, and read as their defaults."""

    # Not pydantic's (2.12) own `use_attribute_docstrings`: it looks for the source of each class by itself, which took
    # a sixth of the time until a first client was ready.
    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        # Pydantic collects the fields of each class anew from all those above it, so each has to leave them out again.
        for name in {name for base in cls.__mro__ for name in vars(base).get("not_offered", ())}:
            setattr(cls, name, cls.__pydantic_fields__.pop(name).default)
        for name, text in _find_attribute_docstrings(cls.__module__).get(cls.__name__, {}).items():
            field = cls.__pydantic_fields__.get(name)
            if field is not None and field.description is None:
                field.description = text

    def idle_fields(self) -> tuple[str, ...]:
        """Return the paths of fields that are set and have no effect beside others of the model."""
        return ()


# From its head to its first method: to parse the methods, too, takes three times as long.
_find_class_starts = re.compile(
    r"^class [^\n]*\n.*?(?=^    (?:@|def |async def )|^[^\s)\]}#]|\Z)", re.MULTILINE | re.DOTALL
).findall


@functools.cache
def _find_attribute_docstrings(module: str) -> dict[str, dict[str, str]]:
    """The texts that stand under the attributes of a module's classes, by class and attribute; none without source.

    Of those alone that stand before a class's first method.
    """
    path = sys.modules[module].__file__
    source = "".join(linecache.getlines(path, vars(sys.modules[module]))) if path else ""
    texts: dict[str, dict[str, str]] = {}
    for node in ast.parse("".join(_find_class_starts(source))).body:
        if isinstance(node, ast.ClassDef):
            for statement, text in itertools.pairwise(node.body):
                match statement, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                        texts.setdefault(node.name, {})[name] = inspect.cleandoc(doc)
    return texts


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
