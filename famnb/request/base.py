"""What every request is: strict, immutable, and sent with exactly the fields that were set."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Self

import msgspec
import pydantic
from pydantic import BaseModel, ConfigDict, PrivateAttr

from famnb.errors import InvalidRequest
from famnb.request.types import PATTERNS


class Part(BaseModel):
    """A piece of a request: strict (`"0.5"` is no number, `true` is no integer), unknown names refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)


class Request(Part):
    """One request to one endpoint; an unset field is not sent, so the service's own default applies."""

    endpoint: ClassVar[str]
    """The endpoint's name: chat, responses, web or messages."""
    cap: ClassVar[str]
    """The name of the field that limits generated tokens."""
    prompt_field: ClassVar[str]
    """The name of the field that carries the conversation."""

    _losses: tuple[str, ...] = PrivateAttr(default=())

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except pydantic.ValidationError as error:
            raise InvalidRequest(explain(type(self), error)) from None

    # Only construction comes through here: validation that did would lose `extra` and the places of the faults.
    __init__.__dict__["__pydantic_base_init__"] = True

    @property
    def losses(self) -> tuple[str, ...]:
        """What `compose` was given and this endpoint cannot carry, a sentence each."""
        return self._losses

    def with_losses(self, losses: tuple[str, ...]) -> Self:
        """The same request, saying what it could not carry."""
        copy = self.model_copy()
        copy._losses = losses
        return copy

    def replace(self, **fields: Any) -> Self:
        """The same request with some fields changed; a field given as None is unset."""
        kept = {name: value for name, value in {**self.body(), **fields}.items() if value is not None}
        return type(self)(**kept)

    def body(self) -> dict[str, Any]:
        """The JSON body: the fields that were set, in the order of the document."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def key(self) -> str:
        """What identifies the request: equal for equal endpoint and body, in a plan as in a record."""
        canonical = msgspec.json.encode([self.endpoint, self.body()], order="sorted")
        return hashlib.sha256(canonical).hexdigest()[:32]

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        """This endpoint's request for a neutral prompt; what it cannot carry is named in `losses`."""
        raise NotImplementedError

    @property
    def streams(self) -> bool:
        """Whether the reply is asked for as a stream."""
        return bool(getattr(self, "stream", False))


def choices(*ways: dict[str, dict[str, Any]]) -> ConfigDict:
    """A part that has to be as one of these ways says, in its JSON Schema: fields that must be there, and as what.

    A validator says the same with better words; the field `type` or `role` may be left out where it has a default.
    """
    described: Any = [
        {"properties": fields, "required": [name for name, field in fields.items() if "enum" not in field]}
        for fields in ways
    ]
    # Inside allOf, where it is a condition on the fields beside it rather than a choice of shapes.
    return ConfigDict(json_schema_extra={"allOf": [{"anyOf": described}]})


def explain(model: type[BaseModel], error: pydantic.ValidationError) -> str:
    """A validation error in words: each field with what was wrong, what was given and what is expected."""
    lines = [
        f"{where(fault['loc']) or 'the request'}: {expected(fault)}"
        for fault in error.errors(include_url=False, include_context=True)
    ]
    known = ", ".join(model.model_fields)
    if any(fault["type"] == "extra_forbidden" for fault in error.errors(include_url=False)):
        lines.append(f"fields of {model.__name__}: {known}")
    return f"{model.__name__}: " + "; ".join(dict.fromkeys(lines))


def where(place: tuple[int | str, ...]) -> str:
    """A place in a body as one reads it, `messages[0].content`; the tags of unions, `<text>`, are left out."""
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier():
            path += f".{shortened(step)}" if path else shortened(step)
        elif not step.startswith(("<", "[")):
            path += f"[{shortened(repr(step))}]"
    return path


def shortened(words: str, limit: int = 60) -> str:
    """At most `limit` characters of what was given, for an error message."""
    return words if len(words) <= limit else words[: limit - 1] + "…"


def expected(fault: Any) -> str:
    """One pydantic fault as a sentence that shows what was given, shortened."""
    shown = shortened(repr(fault.get("input")))
    words = fault["msg"].partition(" after validation")[0]
    match fault["type"]:
        case "missing":
            return "required, but missing"
        case "extra_forbidden":
            return "no such field"
        case "value_error":
            return str(fault["ctx"]["error"])
        case "model_type" | "dict_type":
            return f"input should be an object, got {shown}"
        case "string_pattern_mismatch" if said := PATTERNS.get(fault["ctx"]["pattern"]):
            return f"expected {said}, got {shown}"
        case _:
            return f"{words[:1].lower()}{words[1:]}, got {shown}"
