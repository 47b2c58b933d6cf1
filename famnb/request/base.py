"""`Request`, the base of the four request models: strict, immutable, sent with exactly the fields that were set.

`describe_fields` has their fields as text, for `help(famnb.MessagesRequest)` and `famnb.MessagesRequest?`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import textwrap
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, TypeAlias, Union, get_args, get_origin

import msgspec
import pydantic
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, PrivateAttr
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from famnb.errors import InvalidRequest
from famnb.formatting import shorten
from famnb.reply import Reply
from famnb.request.neutral import FieldPath, FormatPaths, GenerationSettings, PromptTurn
from famnb.request.types import PATTERNS, StrictModel

Heading: TypeAlias = Literal[
    "", "Sampling", "Reasoning", "Output form", "Tools", "Images", "Conversation", "Stream", "Metadata", "More"
]
"""A heading in the form of a request; fields under the empty one come first, without a heading."""
SHARED_GROUPS: Mapping[str, Heading] = {"model": "", "temperature": "Sampling", "top_p": "Sampling", "stream": "Stream"}
"""The headings of the fields that every endpoint has."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestTraits:
    """What the requests of one endpoint can carry; declared beside the model, so that no code matches on endpoints."""

    roles: tuple[str, ...]
    """The roles that a message can have."""
    system_field: str | None
    """The field of the system text; None where the system text is a message of the conversation."""
    documents_images: bool
    """Whether the API's document names images as content."""
    returns_thinking: bool
    """Whether the thinking of an earlier answer can be sent back."""
    thinking: Literal["budget", "effort"] | None
    """How a thinking budget is carried: in tokens, as the nearest reasoning effort, or (None) not at all."""
    format: FormatPaths | None
    """Where the format of the answer is set; None if it cannot be."""
    usage_fields: Mapping[str, Any]
    """The fields that ask for usage in a stream; empty if it is always there, or never."""
    has_cache_writes: bool
    """Whether input can be written to the service's cache at a price of its own; if so, replies report how much was."""
    stores_replies: bool
    """Whether the service can keep a reply, to be retrieved at `{path}/{id}` and continued."""
    groups: Mapping[str, Heading]
    """The heading in the form for each field, by name; fields that are not listed come under `More`."""
    implied: Mapping[FieldPath, tuple[FieldPath, str]]
    """For a field without effect on its own: the field that must be set with it, and its value."""


_FIELDS_HEAD = "\n\nThe fields:\n\n"


class Request(StrictModel, ABC):
    """One request to one endpoint; an unset field is not sent, so the service's own default applies."""

    # Pydantic compares, copies and pickles private attributes, but not slots: what is cached in one is no part of the
    # request's value, and a copy with other fields begins without it.
    __slots__ = ("_body_json", "_key")

    endpoint: ClassVar[str]
    """The endpoint's name, a key of `endpoints.ENDPOINTS`."""
    cap: ClassVar[str]
    """The name of the field that limits generated tokens."""
    cap_fields: ClassVar[tuple[str, ...]] = ()
    """All its names where it has several."""
    prompt_field: ClassVar[str]
    """The name of the field that carries the conversation."""

    model: str
    """The model that answers."""

    _losses: tuple[str, ...] = PrivateAttr(default=())

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except pydantic.ValidationError as error:
            raise InvalidRequest(explain(type(self), error)) from None

    # Only construction comes through here: validation that did would lose `extra` and the places of the faults.
    # Pydantic (2.14) calls `__init__` while it validates, unless the function says that it is BaseModel's own.
    __init__.__dict__["__pydantic_base_init__"] = True

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        # Pydantic gives a field's docstring to its schema alone; `help` and `?` show that of the class.
        summary = inspect.cleandoc(cls.__doc__ or "").partition(_FIELDS_HEAD)[0].rstrip()
        cls.__doc__ = f"{summary}{_FIELDS_HEAD}{describe_fields(cls)}\n"

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        # In a schema each field has its own description.
        schema["description"] = schema["description"].partition(_FIELDS_HEAD)[0]
        return schema

    @property
    def losses(self) -> tuple[str, ...]:
        """What `compose` was given and this endpoint cannot carry, a sentence each."""
        return self._losses

    def with_losses(self, losses: tuple[str, ...]) -> Self:
        """Return the same request, saying what it could not carry."""
        copy = self.model_copy()
        copy._losses = losses
        return copy

    def replace(self, **fields: Any) -> Self:
        """Return the same request with some fields changed; a field given as None is unset."""
        values = {name: value for name, value in {**self.body(), **fields}.items() if value is not None}
        return type(self)(**values)

    def body(self) -> dict[str, Any]:
        """The JSON body, for the caller to keep: the fields that were set, in the order of the document."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def given_fields(self) -> dict[str, Any]:
        """The fields that were set, as JSON values by which the model makes the same request."""
        return self.body()

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Return the request that has this JSON body. Raises InvalidRequest if none has."""
        return cls(**body)

    def body_json(self) -> bytes:
        """The JSON body as it is sent; encoded once."""
        try:
            cached: bytes = self._body_json  # type: ignore[attr-defined]
        except AttributeError:
            cached = _encode(self.body())
            Request._body_json.__set__(self, cached)  # type: ignore[attr-defined]
        return cached

    def key(self) -> str:
        """Return a hash of endpoint and body, the same in a plan as in a record; computed once."""
        try:
            cached: str = self._key  # type: ignore[attr-defined]
        except AttributeError:
            canonical = msgspec.json.encode([self.endpoint, self.body()], order="sorted")
            cached = hashlib.sha256(canonical).hexdigest()[:32]
            Request._key.__set__(self, cached)  # type: ignore[attr-defined]
        return cached

    @property
    def streams(self) -> bool:
        """Whether the reply is asked for as a stream."""
        return bool(getattr(self, "stream", False))

    # What each endpoint implements in its own way.

    @classmethod
    @abstractmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        """Return this endpoint's request for a prompt."""

    @classmethod
    @abstractmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        """Return a text or parts as the content of a user's message; parts get this endpoint's type names."""

    @classmethod
    @abstractmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        """Return an earlier reply as messages of the conversation, as far as they carry it; none if it is empty."""

    @classmethod
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return a function as an item of this endpoint's `tools`; `parameters` is a JSON Schema."""
        return {
            "type": "function",
            "function": {"name": name, "description": description, "parameters": parameters},
        }

    @abstractmethod
    def turns(self) -> tuple[PromptTurn, ...]:
        """The conversation, oldest first, without the system text that has a field of its own."""

    @abstractmethod
    def settings(self) -> GenerationSettings:
        """Return the settings of the generation, with the endpoint's defaults filled in."""

    # What only some endpoints have; these are the answers of the others.

    @property
    def sets_cap(self) -> bool:
        """Whether the request sets the limit of generated tokens itself."""
        return not self.model_fields_set.isdisjoint(self.cap_fields or (self.cap,))

    @property
    def references(self) -> tuple[str, ...]:
        """The ids of items of stored replies that stand in the conversation."""
        return ()

    def with_referenced(self, items: Mapping[str, Any]) -> Self:  # noqa: ARG002 - most endpoints store nothing
        """Return this request with the items themselves in place of their ids."""
        return self

    @property
    def system_turn(self) -> PromptTurn | None:
        """The system text that has a field of its own, if it is set."""
        return None

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        """What else the model reads: tools, and the form of the answer."""
        return ()

    @property
    def asks_for_usage(self) -> bool:
        """Whether a stream is asked to say its usage where it otherwise would not."""
        return False

    @property
    def stores_reply(self) -> bool:
        """Whether the service is asked to keep the reply, so that a later request can continue it."""
        return False

    @property
    def continues(self) -> str | None:
        """The id of the stored reply that this request continues."""
        return None

    def continue_stored(self, reply_id: str) -> Self | None:  # noqa: ARG002 - most endpoints store nothing
        """Return the last message of this request as one that continues a stored reply; None where none are stored."""
        return None

    def with_tool_results(self, reply: Reply, results: Sequence[str]) -> Self:  # noqa: ARG002 - most take no tools
        """Return the request of the next round: this one, the reply that called tools, and a result for each call."""
        raise InvalidRequest(f"tools: {self.endpoint} takes no tools, so no result can be sent back")

    def hints(self) -> list[str]:
        """Return a sentence about each setting that is allowed but probably not meant."""
        return self.sampling_hints()

    def sampling_hints(self) -> list[str]:
        """Return the hint about setting both `temperature` and `top_p`, which every endpoint has."""
        if not {"temperature", "top_p"} <= self.model_fields_set:
            return []
        return ["`temperature` and `top_p` both narrow the choice of words; change one and leave the other."]

    def with_earlier(self, messages: Sequence[Mapping[str, Any]]) -> Self:
        """Return this request with earlier messages of the conversation before its last one."""
        prompt = self.body()[self.prompt_field]
        lead, last = ([], self.user_message(prompt)) if isinstance(prompt, str) else (prompt[:-1], prompt[-1])
        return self.replace(**{self.prompt_field: [*lead, *messages, last]})

    def with_content(self, content: Sequence[Mapping[str, Any]]) -> Self:
        """Return this request with parts as its last message."""
        prompt = self.body()[self.prompt_field]
        lead = [] if isinstance(prompt, str) else prompt[:-1]
        return self.replace(**{self.prompt_field: [*lead, self.user_message(content)]})

    @classmethod
    def user_message(cls, content: str | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A text or list of parts as a user's message."""
        return {"role": "user", "content": cls.user_content(content)}


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # half a character in a schema or a tool's parameters: JSON has an escape for it
        return json.dumps(body, separators=(",", ":")).encode()


def write_rounds(reply: Reply, write: Callable[[Reply, Sequence[str]], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rounds of tool calls that led to a reply, each as `write` makes it of its reply and results."""
    return [
        message
        for round_ in reply.rounds
        for message in write(round_.reply, [result.content for result in round_.results])
    ]


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


def explain(model: type[BaseModel], error: pydantic.ValidationError) -> str:
    """Return the message for a validation error: each field with what is wrong, what was given, what is expected."""
    lines = [
        f"{format_location(fault['loc']) or 'the request'}: {describe_fault(fault)}"
        for fault in error.errors(include_url=False, include_context=True)
    ]
    known = ", ".join(model.model_fields)
    if any(fault["type"] == "extra_forbidden" for fault in error.errors(include_url=False)):
        lines.append(f"fields of {model.__name__}: {known}")
    return f"{model.__name__}: " + "; ".join(dict.fromkeys(lines))


def format_location(location: tuple[int | str, ...]) -> str:
    """Return the path to a fault in a body, such as `messages[0].content`."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier():
            path += f".{shorten(step)}" if path else shorten(step)
        # Tags of unions such as `<text>`, and pydantic's own such as `[key]`, are no fields.
        elif not step.startswith(("<", "[")):
            path += f"[{shorten(repr(step))}]"
    return path


def describe_fault(fault: Any, *, show: Callable[[Any], str] = repr) -> str:
    """Return one pydantic fault as a sentence that shows what was given, shortened; `show` makes a text of it."""
    # What was given may be as long as a whole body.
    given = shorten(show(fault.get("input")))
    # Pydantic says "List should have at least 1 item after validation, not 0".
    message = fault["msg"].partition(" after validation")[0]
    match fault["type"]:
        case "missing":
            return "required, but missing"
        case "extra_forbidden":
            return "no such field"
        case "value_error":
            return str(fault["ctx"]["error"])
        case "model_type" | "dict_type":
            return f"input should be an object, got {given}"
        case "string_pattern_mismatch" if form := PATTERNS.get(fault["ctx"]["pattern"]):
            return f"expected {form}, got {given}"
        case _:
            return f"{message[:1].lower()}{message[1:]}, got {given}"


_HELP_WIDTH = 100


def describe_fields(model: type[BaseModel]) -> str:
    """Return every field of a model with its type, limits, default and meaning, two lines a field."""
    return "\n".join(line for name, field in model.model_fields.items() for line in _describe_field(name, field))


def _describe_field(name: str, field: FieldInfo) -> Iterator[str]:
    facts = [_name_type(field.annotation), *_describe_limits(field.metadata)]
    if field.is_required():
        facts.append("required")
    elif field.default is not None:
        facts.append(f"default {field.default!r}")
    yield f"{name} ({', '.join(facts)})"
    text = " ".join((field.description or "").split())
    yield from textwrap.wrap(text, _HELP_WIDTH, initial_indent="    ", subsequent_indent="    ")


def _describe_limits(metadata: list[Any]) -> Iterator[str]:
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
