"""What most vendors take, as tables of fields, of which the requests of each profile are built.

    GeminiChatRequest = build_request("GeminiChatRequest", "Chat completions at Gemini.", ChatRequest,
                                      pick(CHAT, "model messages max_tokens"), CHAT_TRAITS, module=__name__)

They accept any model, and a field that no table has in `extra_body`, which is sent as it is. Unlike the models of the
document they have no defaults of a service's own, since those differ from vendor to vendor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, SerializeAsAny, Tag

from famnb.request.chat import ChatRequest
from famnb.request.fields import Row, Table, pick
from famnb.request.gateway_fields import CHAT as GATEWAY_CHAT
from famnb.request.gateway_fields import (
    CONTENT_SHAPE,
    BaseCallOutput,
    BlockMessage,
    FunctionCallItem,
    ImageBlock,
    OutputConfig,
    ToolResultBlock,
    ToolUseBlock,
)
from famnb.request.gateway_fields import MESSAGES as GATEWAY_MESSAGES
from famnb.request.gateway_fields import RESPONSES as GATEWAY_RESPONSES
from famnb.request.message_parts import (
    IMAGE_TYPES,
    TEXT_TYPES,
    THINKING_TYPES,
    BaseChatMessage,
    Content,
    ContentPart,
    ResponseFormat,
    ToolCall,
    nearest_effort,
)
from famnb.request.messages import MessagesRequest
from famnb.request.neutral import FormatPaths, PromptTurn
from famnb.request.responses import INPUT_SHAPE, BaseInputItem, ResponsesRequest, TextFormat, TextOptions
from famnb.request.tool_forms import InputSchemaTool
from famnb.request.types import NON_EMPTY, StrictModel, Temperature, Text, Tokens, TopP

# More than models generate unless they are asked to; a plan of what a call costs at most needs some number.
UNCAPPED_TOKENS = 128_000
"""The output tokens that a request without a cap counts as."""

VendorEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Penalty: TypeAlias = Annotated[float, Field(ge=-2, le=2)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Field(ge=0)]


class VendorReasoning(StrictModel):
    """How much to reason, and whether to sum it up."""

    effort: VendorEffort | None = None
    """How much reasoning effort."""
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Whether a summary of the reasoning is wanted."""


class VendorResponseFormat(ResponseFormat):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    """`text`, any JSON (`json_object`), or JSON by a schema."""


_OPEN = ConfigDict(extra="allow")


class VendorPart(ContentPart):
    """One part of a message: a text or an image."""

    model_config = _OPEN


class Foreign(StrictModel):
    """What a vendor has of its own, such as a file, audio, a search or an item of an earlier answer; sent as it is."""

    model_config = _OPEN

    type: Text
    """The vendor's word for it."""

    def turns(self) -> tuple[PromptTurn, ...]:
        """Return none: what it says is not known here."""
        return ()


def tell_foreign_apart(*known: str) -> Discriminator:
    """Return the discriminator of objects of known types, whose tags are `<type>`, and of all others, `<foreign>`.

    An object without a type has the tag of the first.
    """

    def tag(value: Any) -> str:
        type_ = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
        return f"<{type_ or known[0]}>" if type_ in (None, *known) else "<foreign>"

    return Discriminator(tag)


_PART_TYPES = (*TEXT_TYPES, *IMAGE_TYPES, *THINKING_TYPES)


def _content_shape(content: Any) -> str | None:
    if isinstance(content, Mapping | StrictModel):
        return _part_shape(content)
    return "<text>" if isinstance(content, str) else "<parts>" if isinstance(content, list | tuple) else None


def _part_shape(part: Any) -> str:
    type_ = part.get("type") if isinstance(part, Mapping) else getattr(part, "type", None)
    return "<part>" if type_ in (None, *_PART_TYPES) else "<foreign>"


_ForeignTag: TypeAlias = Annotated[Foreign, Tag("<foreign>")]
_Part: TypeAlias = Annotated[Annotated[VendorPart, Tag("<part>")] | _ForeignTag, Discriminator(_part_shape)]
VendorContent: TypeAlias = SerializeAsAny[
    Annotated[
        Annotated[str, Tag("<text>")]
        | Annotated[VendorPart, Tag("<part>")]
        | _ForeignTag
        | Annotated[list[_Part], NON_EMPTY, Tag("<parts>")],
        Discriminator(
            _content_shape,
            custom_error_type="content_type",
            custom_error_message="Input should be a text, a part or a list of parts",
        ),
    ]
]
"""A message's content, parts of the vendor's own among it."""


class VendorCall(ToolCall):
    """A tool call of an earlier assistant message."""

    model_config = _OPEN


_Call: TypeAlias = Annotated[Annotated[VendorCall, Tag("<function>")] | _ForeignTag, tell_foreign_apart("function")]


class VendorChatMessage(BaseChatMessage):
    """A message, with what the vendor sent with it and wants back."""

    model_config = _OPEN

    content: VendorContent | None = None
    tool_calls: list[_Call] | None = None

    def lacks_content(self) -> bool:
        """See the base; beside what only the vendor knows, such as the id of audio, there may be nothing."""
        return not self.model_extra and super().lacks_content()


_SAMPLING: Table = {
    "temperature": Row(Temperature, "Sampling temperature.", "Sampling"),
    "top_p": Row(TopP, "Nucleus sampling.", "Sampling"),
}
_EXTRA: Table = {
    "extra_body": Row(
        dict[str, Any], "Fields that are not listed here, sent as they are; one that is listed is replaced."
    )
}
CHAT: Table = {
    **pick(GATEWAY_CHAT, "model messages stream"),
    "messages": Row(Annotated[list[VendorChatMessage], NON_EMPTY], "The conversation so far.", default=...),
    "max_tokens": Row(Tokens, "Upper bound on generated tokens."),
    "reasoning": Row(VendorReasoning, "How much to reason.", "Reasoning"),
    "response_format": dataclasses.replace(GATEWAY_CHAT["response_format"], type=VendorResponseFormat),
    **_SAMPLING,
    "max_completion_tokens": Row(Tokens, "The same as `max_tokens`."),
    **pick(GATEWAY_CHAT, "stream_options tools tool_choice parallel_tool_calls stop"),
    "reasoning_effort": Row(VendorEffort, "How much to reason.", "Reasoning"),
    "seed": Row(int, "For answers that repeat, as far as the vendor can.", "Sampling"),
    "frequency_penalty": Row(
        Penalty, "Above 0 against saying the same words again, by how often they were said.", "Sampling"
    ),
    "presence_penalty": Row(Penalty, "Above 0 against saying the same words again at all.", "Sampling"),
    "logprobs": Row(bool, "Whether to return the probabilities of the tokens."),
    "top_logprobs": Row(
        Annotated[int, Field(ge=0, le=20)], "How many alternatives of each token to return with `logprobs`."
    ),
    "user": Row(str, "A name for the end user, which some vendors want for their own limits.", "Metadata"),
    **_EXTRA,
}
"""Chat completions, as nearly every vendor and engine takes them."""
CHAT_TRAITS = dataclasses.replace(
    ChatRequest.traits,
    carry_thinking=lambda fields, tokens: ({"reasoning_effort": nearest_effort(tokens), **fields}, ""),
    usage_fields={"stream_options": {"include_usage": True}},
    returns_opaque=True,
    output_tokens=UNCAPPED_TOKENS,
)


class VendorTextFormat(TextFormat):
    """The form of the reply."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    """`text`, any JSON (`json_object`), or JSON by a schema."""


class VendorTextOptions(TextOptions):
    """The form and length of the reply."""

    format: VendorTextFormat | None = None
    """Text or JSON."""


class VendorItem(BaseInputItem):
    """A message, also one that the service has sent."""

    model_config = _OPEN

    content: VendorContent
    id: str | None = None
    status: str | None = None


class VendorCallItem(FunctionCallItem):
    """A call that an earlier response made."""

    model_config = _OPEN


class VendorCallOutput(BaseCallOutput):
    """The result of a call."""

    output: Annotated[str, Tag("<text>")] | Annotated[list[_Part], Tag("<parts>")]


_Item: TypeAlias = Annotated[
    Annotated[VendorItem, Tag("<message>")]
    | Annotated[VendorCallItem, Tag("<function_call>")]
    | Annotated[VendorCallOutput, Tag("<function_call_output>")]
    | _ForeignTag,
    tell_foreign_apart("message", "function_call", "function_call_output"),
]
_Input: TypeAlias = SerializeAsAny[
    Annotated[Annotated[Text, Tag("<text>")] | Annotated[list[_Item], NON_EMPTY, Tag("<items>")], INPUT_SHAPE]
]
RESPONSES: Table = {
    **GATEWAY_RESPONSES,
    "input": Row(_Input, "The prompt, or a list of items: messages, tool calls, their results.", default=...),
    **_SAMPLING,
    "max_output_tokens": Row(Tokens, "Upper bound, counting visible and reasoning tokens."),
    "reasoning": Row(VendorReasoning, "How much to reason.", "Reasoning"),
    "text": dataclasses.replace(GATEWAY_RESPONSES["text"], type=VendorTextOptions),
    "store": Row(bool, "Whether the response is kept, to be retrieved and continued.", "Metadata"),
    "include": Row(list[Text], "What else the reply shall hold, such as `reasoning.encrypted_content`."),
    "truncation": Row(Literal["auto", "disabled"], "Whether a conversation that is too long is cut."),
    "user": Row(str, "A name for the end user.", "Metadata"),
    **_EXTRA,
}
"""Responses, as the vendor who invented them takes them, and who follows that."""
RESPONSES_TRAITS = dataclasses.replace(
    ResponsesRequest.traits,
    carry_thinking=lambda fields, tokens: ({"reasoning": {"effort": nearest_effort(tokens)}, **fields}, ""),
    # Few servers keep replies, and most of those only with an option at their start.
    stores_replies=False,
    returns_opaque=True,
    output_tokens=UNCAPPED_TOKENS,
)


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

    model_config = _OPEN


class CacheableImage(_Cacheable, ImageBlock):
    """An image."""


class CacheableToolUse(_Cacheable, ToolUseBlock):
    """A call that an earlier message made."""

    model_config = _OPEN


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


def _block_shape(block: Any) -> str:
    type_ = block.get("type") if isinstance(block, Mapping) else getattr(block, "type", None)
    return f"<{type_}>" if type_ in ("image", "tool_use", "tool_result", "document") else _part_shape(block)


_Blocks: TypeAlias = Annotated[
    list[
        Annotated[
            Annotated[CacheablePart, Tag("<part>")]
            | Annotated[CacheableImage, Tag("<image>")]
            | Annotated[CacheableToolUse, Tag("<tool_use>")]
            | Annotated[CacheableToolResult, Tag("<tool_result>")]
            | Annotated[DocumentBlock, Tag("<document>")]
            | _ForeignTag,
            Discriminator(_block_shape),
        ]
    ],
    NON_EMPTY,
]
_Content: TypeAlias = Annotated[
    Annotated[Content, Tag("<content>")] | Annotated[_Blocks, Tag("<blocks>")], CONTENT_SHAPE
]


class VendorMessage(BlockMessage):
    """A message whose content may hold images, documents, calls, their results, and marks for the cache."""

    role: Literal["user", "assistant"]
    content: _Content


class CacheableTool(InputSchemaTool):
    """A function that the model may call."""

    cache_control: CacheControl | None = None
    """Keep all tools up to this one in the cache."""


_FORMAT = FormatPaths(("output_config", "format"), ("output_config", "format"), names=("schema",))
MESSAGES: Table = {
    **pick(GATEWAY_MESSAGES, "model messages system max_tokens stream thinking"),
    **_SAMPLING,
    "messages": Row(Annotated[list[VendorMessage], NON_EMPTY], "The conversation so far.", default=...),
    "system": Row(_Content, "System text.", "Conversation"),
    "max_tokens": Row(Tokens, "Maximum tokens to generate, thinking included.", default=...),
    "temperature": Row(Share, "Sampling temperature.", "Sampling"),
    "tools": Row(list[CacheableTool], "Functions the model may call.", "Tools"),
    **pick(GATEWAY_MESSAGES, "tool_choice stop_sequences"),
    "output_config": Row(
        OutputConfig,
        "The form of the answer, and how much effort it is worth.",
        "Output form",
        implied={_FORMAT.schema: (_FORMAT.type, "json_schema")},
    ),
    "top_k": Row(Count, "Only from so many of the likeliest tokens.", "Sampling"),
    "cache_control": Row(CacheControl, "Keep the whole prompt in the cache."),
    "metadata": Row(dict[str, Any], "`user_id`, a name for the end user.", "Metadata"),
    "service_tier": Row(Literal["auto", "standard_only"], "Whether capacity that was bought ahead is used."),
    **_EXTRA,
}
"""Messages, as the vendor who invented them takes them, and who follows that."""
MESSAGES_TRAITS = dataclasses.replace(
    MessagesRequest.traits, documents_images=True, returns_opaque=True, format=_FORMAT
)
