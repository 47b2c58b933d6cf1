"""`Request`, the base of all requests: strict, immutable, sent with exactly the fields that were set.

    Request ─┬─ BaseChatRequest ────── ChatRequest, WebChatRequest
             ├─ BaseResponsesRequest ─ ResponsesRequest
             └─ BaseMessagesRequest ── MessagesRequest

Those on the right are the document's. Beside them stand the requests of the local service and of the vendors,
which `fields.build_request` makes of tables. A base writes and reads whichever fields its requests have.

`describe_fields` has the fields of a request as text, for `help(famnb.MessagesRequest)` and `famnb.MessagesRequest?`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import textwrap
import types
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, TypeAlias, Union, get_args, get_origin

import msgspec
import pydantic
from pydantic import BaseModel, GetJsonSchemaHandler, PrivateAttr
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from famnb.errors import InvalidRequest
from famnb.events import Address
from famnb.formatting import shorten
from famnb.reply import Reply
from famnb.request.message_parts import images, plain_text
from famnb.request.neutral import FieldPath, FormatPaths, GenerationSettings, PromptTurn
from famnb.request.types import MINI_MODELS, MINI_OUTPUT_TOKENS, PATTERNS, STRICT, StrictModel

Heading: TypeAlias = Literal[
    "", "Sampling", "Reasoning", "Output form", "Tools", "Conversation", "Stream", "Metadata", "More"
]
"""A heading in the form of a request; fields under the empty one come first, without a heading."""
SHARED_GROUPS: Mapping[str, Heading] = {"model": "", "temperature": "Sampling", "top_p": "Sampling", "stream": "Stream"}
"""The headings of the fields that all endpoints of the document have."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestTraits:
    """What the requests of one endpoint can carry; declared beside the model, so that no code matches on endpoints."""

    system_field: str | None = None
    """The field of the system text; None where the system text is a message of the conversation."""
    documents_images: bool = False
    """Whether the API's document names images as content."""
    returns_thinking: bool = False
    """Whether the thinking of an earlier answer can be sent back."""
    returns_opaque: bool = False
    """Whether what the service wants back with an earlier answer (`Reply.opaque`) is sent back, unchanged."""
    shows_reasoning: bool = False
    """Whether replies show the reasoning of an engine that shows it, also where no thinking is asked for."""
    thinking: Literal["budget", "effort"] | None
    """How a thinking budget is carried: in tokens, as the nearest reasoning effort, or (None) not at all."""
    carry_thinking: Callable[[dict[str, Any], int], tuple[dict[str, Any], str]]
    """Adds the budget, in tokens, to the fields of a request; the text says what else is lost by it, if anything."""
    format: FormatPaths | None = None
    """Where the format of the answer is set; None if it cannot be."""
    usage_fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The fields that ask for usage in a stream; empty if it is always there, or never."""
    has_cache_writes: bool = False
    """Whether input can be written to the service's cache at a price of its own; if so, replies report how much was."""
    stores_replies: bool = False
    """Whether the service keeps a reply by itself, to be retrieved at `{path}/{id}` and continued."""
    output_tokens: int = 0
    """What a request counts as that sets no cap, where the field has no default."""
    groups: Mapping[str, Heading]
    """The heading in the form for each field, by name; fields that are not listed come under `More`."""
    implied: Mapping[FieldPath, tuple[FieldPath, str]]
    """For a field without effect on its own: the field that must be set with it, and its value."""


_FIELDS_HEAD = "\n\nThe fields:\n\n"


class Request(BaseModel):
    """One request to one endpoint; an unset field is not sent, so the service's own default applies."""

    model_config = STRICT

    endpoint: ClassVar[str]
    """The endpoint's name, a key of `endpoints.ENDPOINTS`."""
    traits: ClassVar[RequestTraits]
    """What it can carry."""
    cap: ClassVar[str]
    """The name of the field that limits generated tokens."""
    other_caps: ClassVar[tuple[str, ...]] = ()
    """Further names that this field may have, in the order in which they count."""
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

    # For construction alone: validation through it would drop `extra` and the locations of the errors.
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

    # The request as a value.

    def get(self, field: str) -> Any:
        """The value of a field; None if requests of this class have no such field."""
        # Pydantic takes ten times as long to find that there is no such attribute.
        return self.__dict__.get(field)

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
        values = {name: value for name, value in {**self.given_fields(), **fields}.items() if value is not None}
        return type(self)(**values)

    def given_fields(self) -> dict[str, Any]:
        """The fields that were set, as JSON values by which the model makes the same request."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def body(self) -> dict[str, Any]:
        """The JSON body, for the caller to keep: the fields that were set, in the order of the document."""
        fields = self.given_fields()
        # In requests of the document this field is unknown.
        extra = dict(fields.pop("extra_body", None) or {})
        # A vendor's own tools stand beside the functions, rather than in their place.
        if isinstance(extra.get("tools"), list) and fields.get("tools"):
            extra["tools"] = [*fields["tools"], *(tool for tool in extra["tools"] if tool not in fields["tools"])]
        return {**fields, **extra}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Return the request that has this JSON body. Raises InvalidRequest if none has."""
        if "extra_body" not in cls.model_fields:
            return cls(**body)
        # Our field is never sent; what has this name in a body is the vendor's own, such as Gemini's.
        known = {field.alias or name for name, field in cls.model_fields.items()} - {"extra_body"}
        fields = {name: value for name, value in body.items() if name in known}
        extra = {name: value for name, value in body.items() if name not in known}
        try:
            return cls(**fields, **({"extra_body": extra} if extra else {}))
        except InvalidRequest:
            # Tools that are not functions may have been given in `extra_body`, from where they stand beside these.
            tools = fields.get("tools") or []
            functions = [tool for tool in tools if {"function", "name"} & {*tool}]
            if len(functions) == len(tools):
                raise
            extra["tools"] = [tool for tool in tools if tool not in functions]
            return cls(**{**fields, "tools": functions or None}, extra_body=extra)

    def body_json(self) -> bytes:
        """The JSON body as it is sent."""
        try:
            return msgspec.json.encode(self.body())
        except UnicodeEncodeError:  # half a character in a schema or a tool's parameters: JSON has an escape for it
            return json.dumps(self.body(), separators=(",", ":")).encode()

    def key(self) -> str:
        """Return a hash of endpoint and body, the same in a plan as in a record."""
        canonical = msgspec.json.encode([self.endpoint, self.body()], order="sorted")
        return hashlib.sha256(canonical).hexdigest()[:32]

    # How a conversation is written, for each endpoint in its own way.

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        """Return this endpoint's request for a prompt."""
        loss = ""
        if thinking is not None:
            fields, loss = cls.traits.carry_thinking(fields, thinking)
        request = cls(**{**cls.write_prompt(prompt, system), **fields})
        return request.with_losses((loss,)) if loss else request

    @classmethod
    @abstractmethod
    def write_prompt(cls, prompt: str, system: str | None) -> dict[str, Any]:
        """Return the fields that hold a prompt and a system text."""

    @classmethod
    @abstractmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        """Return a text or parts as the content of a user's message; parts get this endpoint's type names."""

    @classmethod
    def user_message(cls, content: str | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A text or list of parts as a user's message."""
        return {"role": "user", "content": cls.user_content(content)}

    @classmethod
    @abstractmethod
    def write_answer(cls, reply: Reply, results: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return a reply as messages of the conversation, with the results of its tool calls; none if it is empty."""

    @classmethod
    def read_opaque(cls, reply: Reply) -> dict[Address, dict[str, Any]]:
        """Return what the service wants back with a reply, by address; nothing if another kind of service sent it."""
        if not cls.traits.returns_opaque or not isinstance(reply.request, cls):
            return {}
        return {item.at: json.loads(item.text) for item in reply.opaque}

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        """Return a reply, and the rounds of tool calls that led to it, as messages, as far as they carry them."""
        rounds = [
            message
            for round_ in reply.rounds
            for message in cls.write_answer(round_.reply, [result.content for result in round_.results])
        ]
        return [*rounds, *cls.write_answer(reply)]

    @classmethod
    @abstractmethod
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return a function as an item of this endpoint's `tools`; `parameters` is a JSON Schema."""

    def with_earlier(self, messages: Sequence[Mapping[str, Any]]) -> Self:
        """Return this request with earlier messages of the conversation before its last one."""
        *lead, last = self._messages()
        return self.replace(**{self.prompt_field: [*lead, *messages, last]})

    def with_content(self, content: str | Sequence[Mapping[str, Any]]) -> Self:
        """Return this request with a text or parts as its last message."""
        *lead, _ = self._messages()
        return self.replace(**{self.prompt_field: [*lead, self.user_message(content)]})

    def with_tool_results(self, reply: Reply, results: Sequence[str]) -> Self:
        """Return the request of the next round: this one, the reply that called tools, and a result for each call.

        Without results it has the service go on with a reply that it has paused.
        """
        if "tools" not in type(self).model_fields:
            raise InvalidRequest(f"tools: {self.endpoint} takes no tools, so no result can be sent back")
        # A tool that must be called would be called in every round, for ever.
        choice = {} if self.settings().tool_choice == "none" else {"tool_choice": None}
        return self.replace(**{self.prompt_field: [*self._messages(), *self.write_answer(reply, results)]}, **choice)

    def continue_stored(self, reply_id: str) -> Self | None:
        """Return the last message of this request as one that continues a stored reply; None where none are stored."""
        if "previous_response_id" not in type(self).model_fields:
            return None
        prompt = self.body()[self.prompt_field]
        last = prompt if isinstance(prompt, str) else prompt[-1:]
        return self.replace(**{self.prompt_field: last, "previous_response_id": reply_id})

    def _messages(self) -> list[dict[str, Any]]:
        """The conversation as JSON; a plain text is a user's message."""
        prompt = self.body()[self.prompt_field]
        return [self.user_message(prompt)] if isinstance(prompt, str) else prompt

    # How it is read, in terms that all endpoints share.

    @abstractmethod
    def turns(self) -> tuple[PromptTurn, ...]:
        """The conversation, oldest first, without the system text that has a field of its own."""

    @abstractmethod
    def settings(self) -> GenerationSettings:
        """Return the settings of the generation, with the endpoint's defaults filled in."""

    @property
    def system_turn(self) -> PromptTurn | None:
        """The system text that has a field of its own, if it is set."""
        content = self.get(self.traits.system_field) if self.traits.system_field else None
        return PromptTurn("system", plain_text(content), images(content)) if content else None

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        """What else the model reads: tools, and the form of the answer."""
        forms = (self.get("response_format"), self.get("text"))
        return (*(self.get("tools") or ()), *(form for form in forms if form is not None))

    @property
    def set_caps(self) -> tuple[str, ...]:
        """The names under which the request sets the limit of generated tokens itself; the first counts."""
        names = dict.fromkeys((self.cap, *self.other_caps))
        return tuple(name for name in names if name in self.model_fields_set and self.get(name) is not None)

    @property
    def output_tokens(self) -> int:
        """The limit of generated tokens."""
        return self.get((*self.set_caps, self.cap)[0]) or self.traits.output_tokens

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that can be generated for it; None if nothing limits them."""
        limit: int | None = self.get((*self.set_caps, self.cap)[0])
        if limit is None and self.get("model") in MINI_MODELS:
            limit = MINI_OUTPUT_TOKENS
        # Each of several choices may be as long as the limit allows.
        return limit and limit * (self.get("n") or 1)

    @property
    def streams(self) -> bool:
        """Whether the reply is asked for as a stream."""
        return bool(self.get("stream"))

    @property
    def asks_for_usage(self) -> bool:
        """Whether a stream is asked to say its usage where it otherwise would not."""
        options = self.get("stream_options")
        return bool(options and options.include_usage)

    @property
    def stores_reply(self) -> bool:
        """Whether the service is asked to keep the reply, so that a later request can continue it."""
        if "previous_response_id" not in type(self).model_fields:
            return False
        return self.traits.stores_replies if self.get("store") is None else bool(self.get("store"))

    @property
    def continues(self) -> str | None:
        """The id of the stored reply that this request continues."""
        continued: str | None = self.get("previous_response_id")
        return continued

    def idle_fields(self) -> tuple[str, ...]:
        """Return the paths of fields that are set and have no effect beside others of the request."""
        return ()

    def hints(self) -> list[str]:
        """Return a sentence about each field of `extra_body`, which is checked by nobody before it is sent."""
        extra = self.get("extra_body") or {}
        unknown = [name for name in extra if name not in type(self).model_fields]
        replaced = [name for name in extra if name in self.model_fields_set and name != "tools"]
        hints = [f"`{name}` is sent as it is: famnb does not know it." for name in unknown]
        return hints + [f"`{name}` of extra_body is sent in place of the field that is set." for name in replaced]


def explain(model: type[BaseModel], error: pydantic.ValidationError) -> str:
    """Return the message for a validation error: each field with what is wrong, what was given, what is expected."""
    faults = error.errors(include_url=False)
    lines = [f"{format_location(fault['loc']) or 'the request'}: {describe_fault(fault)}" for fault in faults]
    kinds = {fault["type"] for fault in faults}
    if "extra_forbidden" in kinds:
        lines.append(f"fields of {model.__name__}: {', '.join(model.model_fields)}")
    if "extra_body" in model.model_fields and kinds & {"extra_forbidden", "literal_error"}:
        lines.append("what the service has beside these goes into extra_body={…}, which is sent as it is")
    return f"{model.__name__}: " + "; ".join(dict.fromkeys(lines))


def format_location(location: tuple[int | str, ...]) -> str:
    """Return the path to a fault in a body, such as `messages[0].content`."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier():
            path += f".{shorten(step)}" if path else shorten(step)
        # Tags of unions such as `<text>`, and pydantic's own such as `[key]`, are not fields.
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


def describe_fields(model: type[BaseModel]) -> str:
    """Return every field of a model with its type, limits, default and meaning, two lines a field."""
    lines = []
    for name, field in model.model_fields.items():
        facts = [_name_type(field.annotation)]
        # Those of a field that may be None stand in one of the alternatives of its type.
        alternatives = [info for kind in get_args(field.annotation) for info in getattr(kind, "__metadata__", ())]
        limits = [limit for info in (field, *alternatives) for limit in getattr(info, "metadata", ())]
        facts += [f"at least {limit.ge}" for limit in limits if hasattr(limit, "ge")]
        facts += [f"at most {limit.le}" for limit in limits if hasattr(limit, "le")]
        if field.is_required():
            facts.append("required")
        elif field.default is not None:
            facts.append(f"default {field.default!r}")
        text = " ".join((field.description or "").split())
        lines += [f"{name} ({', '.join(facts)})"]
        lines += textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


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
