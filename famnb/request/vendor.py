"""Requests in the vendors' own dialects: what most of them take, to which each profile adds its fields.

They accept any model, and a field that none of them names in `extra_body`, which is sent as it is. Unlike the models of
the document they have no defaults of a service's own, since those differ from vendor to vendor. A profile names
those of their fields that its vendor does not have:

    class GeminiChatRequest(VendorChatRequest):
        not_offered: ClassVar[tuple[str, ...]] = ("reasoning", "user")
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag

from famnb.reply import Block, Reply
from famnb.request.base import Request, write_rounds
from famnb.request.chat import prompt_messages, round_messages
from famnb.request.compat import (
    CompatChatRequest,
    CompatMessage,
    CompatMessagesRequest,
    CompatResponsesRequest,
    ImageBlock,
    InputSchemaTool,
    ToolResultBlock,
    ToolUseBlock,
    content_shape,
)
from famnb.request.message_parts import Content, ContentPart, Reasoning, ResponseFormat, images, plain_text
from famnb.request.neutral import GenerationSettings, PromptTurn
from famnb.request.responses import TextFormat, TextOptions
from famnb.request.types import NON_EMPTY, StrictModel, Temperature, Text, Tokens, TopP

# More than models generate unless they are asked to; a plan of what a call costs at most needs some number.
UNCAPPED_TOKENS = 128_000
"""The output tokens that a request without a cap counts as."""
# The vendor insists on a cap; this is enough for a page or two, and the user sees it in the request.
MESSAGES_TOKENS = 4096
"""The cap of a messages request that is composed without one."""

VendorEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_ExtraBody: TypeAlias = dict[str, Any]


class VendorRequest(Request):
    """What the requests of all vendors have in common."""

    extra_body: _ExtraBody | None = None
    """Fields that are not listed here, sent as they are; one that is listed is replaced."""

    def body(self) -> dict[str, Any]:
        fields = self.given_fields()
        extra = fields.pop("extra_body", None) or {}
        return {**fields, **extra}

    def given_fields(self) -> dict[str, Any]:
        return super().body()

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        known = {field.alias or name for name, field in cls.model_fields.items()}
        # Our field is never sent; what has this name in a body is the vendor's own, such as Gemini's.
        known.remove("extra_body")
        fields = {name: value for name, value in body.items() if name in known}
        if extra := {name: value for name, value in body.items() if name not in known}:
            fields["extra_body"] = extra
        return cls(**fields)

    def replace(self, **fields: Any) -> Self:
        values = {name: value for name, value in {**self.given_fields(), **fields}.items() if value is not None}
        return type(self)(**values)

    def hints(self) -> list[str]:
        unknown = [name for name in self.extra_body or {} if name not in type(self).model_fields]
        notes = [f"`{name}` is sent as it is: famnb does not know it." for name in unknown]
        return [*notes, *super().hints()]


# Below, what the document gives a default has none at a vendor, or allows more or less: pydantic takes such a change of
# a field's type, mypy does not, hence each `type: ignore[assignment]`.


class VendorReasoning(Reasoning):
    """How much to reason, and whether to sum it up."""

    effort: VendorEffort | None = None  # type: ignore[assignment]
    """How much reasoning effort."""
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Whether a summary of the reasoning is wanted."""


class VendorResponseFormat(ResponseFormat):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    """`text`, any JSON (`json_object`), or JSON by a schema."""


class VendorChatRequest(VendorRequest, CompatChatRequest):
    """Chat completions, as nearly every vendor and engine takes them."""

    reasoning: VendorReasoning | None = None
    """How much to reason."""
    reasoning_effort: VendorEffort | None = None  # type: ignore[assignment]
    """How much to reason."""
    response_format: VendorResponseFormat | None = None
    """Text or JSON."""
    max_tokens: Tokens | None = None
    """Upper bound on generated tokens."""
    temperature: Temperature | None = None
    """Sampling temperature."""
    top_p: TopP | None = None
    """Nucleus sampling."""
    seed: int | None = None
    """For answers that repeat, as far as the vendor can."""
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    """Above 0 against saying the same words again, by how often they were said."""
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    """Above 0 against saying the same words again at all."""
    parallel_tool_calls: bool | None = None
    """Whether one reply may call several tools."""
    logprobs: bool | None = None
    """Whether to return the probabilities of the tokens."""
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    """How many alternatives of each token to return with `logprobs`."""
    user: str | None = None
    """A name for the end user, which some vendors want for their own limits."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is not None:
            fields.setdefault("reasoning_effort", Reasoning.for_budget(thinking).effort)
        return cls(**{"messages": prompt_messages(prompt, system), **fields})

    def settings(self) -> GenerationSettings:
        return _with_cap(self, super().settings())

    def with_tool_results(self, reply: Reply, results: Sequence[str]) -> Self:
        return self.replace(
            messages=[*self.body()["messages"], *round_messages(reply, results)], **_free_choice(self.tool_choice)
        )

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        return (*(self.tools or ()), *super().input_parts)


class VendorTextFormat(TextFormat):
    """The form of the reply."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    """`text`, any JSON (`json_object`), or JSON by a schema."""


class VendorTextOptions(TextOptions):
    """The form and length of the reply."""

    format: VendorTextFormat | None = None
    """Text or JSON."""


class VendorResponsesRequest(VendorRequest, CompatResponsesRequest):
    """Responses, as the vendor who invented them takes them, and who follows that."""

    max_output_tokens: Tokens | None = None  # type: ignore[assignment]
    """Upper bound, counting visible and reasoning tokens."""
    temperature: Temperature | None = None  # type: ignore[assignment]
    """Sampling temperature."""
    top_p: TopP | None = None  # type: ignore[assignment]
    """Nucleus sampling."""
    reasoning: VendorReasoning | None = None
    """How much to reason."""
    text: VendorTextOptions | None = None
    """The form and length of the reply."""
    store: bool | None = None  # type: ignore[assignment]
    """Whether the response is kept, to be retrieved and continued."""
    parallel_tool_calls: bool | None = None
    """Whether one reply may call several tools."""
    include: list[Text] | None = None
    """What else the reply shall hold, such as `reasoning.encrypted_content`."""
    truncation: Literal["auto", "disabled"] | None = None
    """Whether a conversation that is too long is cut."""
    user: str | None = None
    """A name for the end user."""

    def settings(self) -> GenerationSettings:
        return _with_cap(self, super().settings())

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is not None:
            fields.setdefault("reasoning", {"effort": Reasoning.for_budget(thinking).effort})
        return super().compose(prompt, system=system, thinking=None, **fields)

    @property
    def stores_reply(self) -> bool:
        # Most servers keep none unless they are told to, and some ignore what they would have to look up.
        return self.store is True

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        # Vendors take a text or a list, but not one part, as the document does.
        return content if isinstance(content, str) else super().user_content(content)

    @classmethod
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "function", "name": name, "description": description, "parameters": parameters}

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        return [*write_rounds(reply, cls._round_items), *_answer_items(reply)]

    def with_tool_results(self, reply: Reply, results: Sequence[str]) -> Self:
        prompt = self.body()["input"]
        items = [self.user_message(prompt)] if isinstance(prompt, str) else prompt
        return self.replace(input=[*items, *self._round_items(reply, results)], **_free_choice(self.tool_choice))

    @classmethod
    def _round_items(cls, reply: Reply, results: Sequence[str]) -> list[dict[str, Any]]:
        """Return a reply that called tools, and their results, as input items."""
        calls = [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.text or "{}"}
            for call in reply.tool_calls
        ]
        outputs = [
            {"type": "function_call_output", "call_id": call.id, "output": result}
            for call, result in zip(reply.tool_calls, results, strict=True)
        ]
        return [*_answer_items(reply), *calls, *outputs]

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        return (*(self.tools or ()), *super().input_parts)


class StatelessResponsesRequest(VendorResponsesRequest):
    """Responses of a service that keeps none: each request has the whole conversation."""

    not_offered: ClassVar[tuple[str, ...]] = ("previous_response_id", "store")


class CacheControl(StrictModel):
    """Marks the end of what the vendor shall keep in its cache."""

    type: Literal["ephemeral"]
    """Only `ephemeral`."""
    ttl: Literal["5m", "1h"] | None = None
    """How long it is kept; five minutes unless set."""


class _Cacheable(StrictModel):
    """What may end what is kept in the cache."""

    cache_control: CacheControl | None = None
    """Keep all up to here."""


class CacheablePart(_Cacheable, ContentPart):
    """A text, or the thinking of an earlier answer."""


class CacheableImage(_Cacheable, ImageBlock):
    """An image."""


class CacheableToolUse(_Cacheable, ToolUseBlock):
    """A call that an earlier message made."""


class CacheableToolResult(_Cacheable, ToolResultBlock):
    """The result of a call."""


class DocumentBlock(_Cacheable):
    """A document, such as a PDF."""

    type: Literal["document"]
    """Only `document`."""
    source: dict[str, Any]
    """`{"type": "base64", "media_type": "application/pdf", "data": …}`, or a `url`, or a `text`."""
    title: str | None = None
    """Its title, for the model."""
    context: str | None = None
    """What the model should know of it and not cite."""
    citations: dict[str, Any] | None = None
    """`{"enabled": true}` where the answer shall cite it."""


def _block_type(block: Any) -> str | None:
    type_ = block.get("type") if isinstance(block, Mapping) else getattr(block, "type", None)
    return f"<{type_}>" if type_ in ("image", "tool_use", "tool_result", "document") else "<part>"


_VendorBlocks: TypeAlias = Annotated[
    list[
        Annotated[
            Annotated[CacheablePart, Tag("<part>")]
            | Annotated[CacheableImage, Tag("<image>")]
            | Annotated[CacheableToolUse, Tag("<tool_use>")]
            | Annotated[CacheableToolResult, Tag("<tool_result>")]
            | Annotated[DocumentBlock, Tag("<document>")],
            Discriminator(_block_type),
        ]
    ],
    NON_EMPTY,
]


_VendorContent: TypeAlias = Annotated[
    Annotated[Content, Tag("<content>")] | Annotated[_VendorBlocks, Tag("<blocks>")], Discriminator(content_shape)
]


class VendorMessage(CompatMessage):
    """A message whose content may hold images, documents, calls, their results, and marks for the cache."""

    content: _VendorContent  # type: ignore[assignment]


class CacheableTool(InputSchemaTool):
    """A function that the model may call."""

    cache_control: CacheControl | None = None
    """Keep all tools up to this one in the cache."""


class VendorMessagesRequest(VendorRequest, CompatMessagesRequest):
    """Messages, as the vendor who invented them takes them, and who follows that."""

    # An earlier name of `output_config.format`, which only a beta of the API had.
    not_offered: ClassVar[tuple[str, ...]] = ("output_format",)

    max_tokens: Tokens
    """Maximum tokens to generate, thinking included."""
    messages: Annotated[list[VendorMessage], NON_EMPTY]  # type: ignore[assignment]
    """The conversation so far."""
    system: _VendorContent | None = None  # type: ignore[assignment]
    """System text."""
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None  # type: ignore[assignment]
    """Sampling temperature."""
    top_p: TopP | None = None  # type: ignore[assignment]
    """Nucleus sampling."""
    top_k: Annotated[int, Field(ge=0)] | None = None
    """Only from so many of the likeliest tokens."""
    tools: list[CacheableTool] | None = None  # type: ignore[assignment]
    """Functions the model may call."""
    cache_control: CacheControl | None = None
    """Keep the whole prompt in the cache."""
    metadata: dict[str, Any] | None = None
    """`user_id`, a name for the end user."""
    service_tier: Literal["auto", "standard_only"] | None = None
    """Whether capacity that was bought ahead is used."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        # The thinking budget must stay under the cap.
        fields.setdefault("max_tokens", MESSAGES_TOKENS + (thinking or 0))
        return super().compose(prompt, system=system, thinking=thinking, **fields)

    @classmethod
    def user_content(cls, content: str | Sequence[Mapping[str, Any]]) -> Any:
        parts = super().user_content(content)
        return [_image_block(part) for part in parts]

    @classmethod
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": name, "description": description, "input_schema": parameters}

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        return [*write_rounds(reply, cls._round_messages), *super().answer_messages(reply)]

    def with_tool_results(self, reply: Reply, results: Sequence[str]) -> Self:
        choice = self.tool_choice
        free = {} if choice is None or choice.type == "none" else {"tool_choice": None}
        return self.replace(messages=[*self.body()["messages"], *self._round_messages(reply, results)], **free)

    @classmethod
    def _round_messages(cls, reply: Reply, results: Sequence[str]) -> list[dict[str, Any]]:
        """Return a reply that called tools, and their results, as messages."""
        said = [block for message in super().answer_messages(reply) for block in message["content"]]
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _read_arguments(call)}
            for call in reply.tool_calls
        ]
        answers = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(reply.tool_calls, results, strict=True)
        ]
        return [{"role": "assistant", "content": [*said, *calls]}, {"role": "user", "content": answers}]

    @property
    def system_turn(self) -> PromptTurn | None:
        if not self.system:
            return None
        return PromptTurn("system", plain_text(self.system), images(self.system))

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        return (*(self.tools or ()), *super().input_parts)


def _answer_items(reply: Reply) -> list[dict[str, Any]]:
    """Return what an earlier reply said as input items of responses; none if it said nothing."""
    return [{"role": "assistant", "content": reply.text}] if reply.text else []


def _with_cap(request: Request, settings: GenerationSettings) -> GenerationSettings:
    """Return the settings with the cap of a request that does not set one."""
    return settings if request.sets_cap else dataclasses.replace(settings, cap=UNCAPPED_TOKENS)


def _free_choice(choice: Any) -> dict[str, None]:
    """Return the change that lets a model answer after its tools have run."""
    # A tool that must be called would be called in every round, for ever.
    return {} if choice == "none" else {"tool_choice": None}


def _read_arguments(call: Block) -> Any:
    """Return a call's arguments as an object, which this dialect wants back; as an empty one if they are no JSON."""
    try:
        return json.loads(call.text or "{}")
    except ValueError:
        return {}


def _image_block(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an image part in this dialect; any other part as it is."""
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "image_url", "image_url": str(url)}:
            pass
        case _:
            return part
    head, _, data = url.partition(";base64,")
    if not data:
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}}
