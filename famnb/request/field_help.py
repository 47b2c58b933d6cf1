"""The fields of a request as text, for `help(famnb.MessagesRequest)` and `famnb.MessagesRequest?`."""

from __future__ import annotations

import textwrap
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_WIDTH = 100


def describe_fields(model: type[BaseModel]) -> str:
    """Return every field of a model with its type, limits, default and meaning, two lines a field."""
    return "\n".join(line for name, field in model.model_fields.items() for line in _describe(name, field))


def _describe(name: str, field: FieldInfo) -> Iterator[str]:
    facts = [_name_type(field.annotation), *_limits(field.metadata)]
    if field.is_required():
        facts.append("required")
    elif field.default is not None:
        facts.append(f"default {field.default!r}")
    yield f"{name} ({', '.join(facts)})"
    text = " ".join((field.description or "").split())
    yield from textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _limits(metadata: list[Any]) -> Iterator[str]:
    for constraint in metadata:
        if hasattr(constraint, "ge"):
            yield f"at least {constraint.ge}"
        if hasattr(constraint, "le"):
            yield f"at most {constraint.le}"


def _name_type(annotation: Any) -> str:
    """Return a type in words: `text or list of Message`, the choices of a literal, the fields of a model."""
    arguments = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Literal:
            return " | ".join(map(repr, arguments))
        case origin if origin in (Union, types.UnionType):
            return " or ".join(_name_type(argument) for argument in arguments if argument is not type(None))
        case origin if origin is list:
            return f"list of {_name_type(arguments[0])}"
        case None if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return f"{annotation.__name__} {{{', '.join(annotation.model_fields)}}}"
        case None if isinstance(annotation, type):
            return "text" if annotation is str else annotation.__name__
        # `Annotated`, whose first argument is the type itself, and mappings.
        case _ if hasattr(annotation, "__metadata__"):
            return _name_type(arguments[0])
        case origin:
            return getattr(origin, "__name__", str(annotation))
