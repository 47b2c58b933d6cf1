"""Requests in the vendors' own dialects: what most of them take, to which each profile adds its fields.

They accept any model, and a field that none of them names in `extra_body`, which is sent as it is. Unlike the models of
the document they have no defaults of a service's own, since those differ from vendor to vendor.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag

from famnb.reply import Block, Reply
from famnb.request.base import Request, write_rounds
from famnb.request.chat import prompt_messages, round_messages
from famnb.request.compat import (
    CompatBlock,
    CompatChatRequest,
    CompatMessage,
    CompatMessagesRequest,
    CompatResponsesRequest,
    InputSchemaTool,
    content_shape,
)
from famnb.request.message_parts import Content, ContentPart, Reasoning, images, plain_text
from famnb.request.neutral import GenerationSettings, PromptTurn
from famnb.request.types import NON_EMPTY, StrictModel, Temperature, Text, Tokens, TopP

# More than models generate unless they are asked to; a plan of what a call costs at most needs some number.
UNCAPPED_TOKENS = 128_000
"""The output tokens that a request without a cap counts as."""
# The vendor insists on a cap; this is enough for a page or two, and the user sees it in the request.
MESSAGES_TOKENS = 4096
"""The cap of a messages request that is composed without one."""

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


class VendorChatRequest(VendorRequest, CompatChatRequest):
    """Chat completions, as nearly every vendor and engine takes them."""

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


# Below, what the document gives a default has none at a vendor, or allows more: pydantic takes such a change of a
# field's type, mypy does not, hence each `type: ignore[assignment]`.


class VendorResponsesRequest(VendorRequest, CompatResponsesRequest):
    """Responses, as the vendor who invented them takes them, and who follows that."""

    max_output_tokens: Tokens | None = None  # type: ignore[assignment]
    """Upper bound, counting visible and reasoning tokens."""
    temperature: Temperature | None = None  # type: ignore[assignment]
    """Sampling temperature."""
    top_p: TopP | None = None  # type: ignore[assignment]
    """Nucleus sampling."""
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
    def declare_tool(cls, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "function", "name": name, "description": description, "parameters": parameters}

    @classmethod
    def answer_messages(cls, reply: Reply) -> list[dict[str, Any]]:
        return [*write_rounds(reply, cls._round_items), *super().answer_messages(reply)]

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
        return [*super().answer_messages(reply), *calls, *outputs]

    @property
    def input_parts(self) -> tuple[StrictModel, ...]:
        return (*(self.tools or ()), *super().input_parts)


class CacheControl(StrictModel):
    """Marks the end of what the vendor shall keep in its cache."""

    type: Literal["ephemeral"]
    """Only `ephemeral`."""
    ttl: Literal["5m", "1h"] | None = None
    """How long it is kept; five minutes unless set."""


class CacheableBlock(ContentPart):
    """A text that may end what is kept in the cache."""

    cache_control: CacheControl | None = None
    """Keep all up to here."""


def _block_type(block: Any) -> str | None:
    fields = block if isinstance(block, Mapping) else getattr(block, "__dict__", {})
    return "<cacheable>" if fields.get("cache_control") is not None and fields.get("type") == "text" else "<block>"


_VendorBlocks: TypeAlias = Annotated[
    list[
        Annotated[
            Annotated[CacheableBlock, Tag("<cacheable>")] | Annotated[CompatBlock, Tag("<block>")],
            Discriminator(_block_type),
        ]
    ],
    NON_EMPTY,
]


_VendorContent: TypeAlias = Annotated[
    Annotated[Content, Tag("<content>")] | Annotated[_VendorBlocks, Tag("<blocks>")], Discriminator(content_shape)
]


class VendorMessage(CompatMessage):
    """A message whose content may hold images, calls, their results, and marks for the cache."""

    content: _VendorContent


class CacheableTool(InputSchemaTool):
    """A function that the model may call."""

    cache_control: CacheControl | None = None
    """Keep all tools up to this one in the cache."""


class VendorMessagesRequest(VendorRequest, CompatMessagesRequest):
    """Messages, as the vendor who invented them takes them, and who follows that."""

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
