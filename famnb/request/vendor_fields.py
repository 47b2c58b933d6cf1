"""What most vendors take, as tables of fields, of which the requests of each profile are built.

    GeminiChatRequest = chat_request("GeminiChatRequest", "Chat completions at Gemini.",
                                     pick(CHAT, "model messages max_tokens"), module=__name__)

They accept any model, and a field that no table has in `extra_body`, which is sent as it is. Unlike the models of the
document they have no defaults of a service's own, since those differ from vendor to vendor. `OWN_CHAT_TOOLS` and its
like are for vendors that have tools of their own beside functions.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from famnb.request import gateway_fields as gateway
from famnb.request.chat import ChatRequest
from famnb.request.fields import Row, Table, build_request, pick
from famnb.request.message_parts import (
    CONTENT_SHAPE,
    BaseChatMessage,
    ContentPart,
    ResponseFormat,
    ToolCall,
    nearest_effort,
)
from famnb.request.messages import MessagesRequest
from famnb.request.neutral import FormatPaths
from famnb.request.responses import INPUT_SHAPE, BaseInputItem, ResponsesRequest, TextFormat, TextOptions
from famnb.request.tool_forms import (
    ChoiceWord,
    FlatTool,
    InputSchemaTool,
    NamedFlatTool,
    NamedTool,
    StrictTool,
    require_chosen_tool,
)
from famnb.request.types import BY_SHAPE, NON_EMPTY, Foreign, StrictModel, Temperature, Text, Tokens, TopP

# More than models generate unless they are asked to; a plan of what a call costs at most needs some number.
UNCAPPED_TOKENS = 128_000
"""The output tokens that a request without a cap counts as."""

VendorEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
_Checked = AfterValidator(require_chosen_tool)


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


# Parts, calls and items keep what the vendor has beside the known fields: it may want it back.


class VendorPart(ContentPart, extra="allow"):
    """One part of a message: a text or an image."""


_Part: TypeAlias = Annotated[VendorPart | Foreign, BY_SHAPE]
VendorContent: TypeAlias = Annotated[str | VendorPart | Foreign | Annotated[list[_Part], NON_EMPTY], CONTENT_SHAPE]
"""A message's content, parts of the vendor's own among it."""


class VendorCall(ToolCall, extra="allow"):
    """A tool call of an earlier assistant message."""


class VendorChatMessage(BaseChatMessage, extra="allow"):
    """A message, with what the vendor sent with it and wants back."""

    content: VendorContent | None = None
    tool_calls: list[Annotated[VendorCall | Foreign, BY_SHAPE]] | None = None

    def lacks_content(self) -> bool:
        """See the base; beside what only the vendor knows, such as the id of audio, there may be nothing."""
        return not self.model_extra and super().lacks_content()


_SAMPLING: Table = {
    "temperature": Row(Temperature, "Sampling temperature.", "Sampling"),
    "top_p": Row(TopP, "Nucleus sampling.", "Sampling"),
}
TOP_K = Row(Count, "Only from so many of the likeliest tokens.", "Sampling")
MIN_P = Row(Share, "Only tokens at least so likely, relative to the likeliest.", "Sampling")
_EXTRA: Table = {
    "extra_body": Row(
        dict[str, Any], "Fields that are not listed here, sent as they are; one that is listed is replaced."
    )
}
CHAT: Table = {
    **pick(gateway.CHAT, "model messages stream"),
    "messages": Row(Annotated[list[VendorChatMessage], NON_EMPTY], "The conversation so far.", default=...),
    "max_tokens": Row(Tokens, "Upper bound on generated tokens."),
    "reasoning": Row(VendorReasoning, "How much to reason.", "Reasoning"),
    "response_format": dataclasses.replace(gateway.CHAT["response_format"], type=VendorResponseFormat),
    **_SAMPLING,
    "max_completion_tokens": Row(Tokens, "The same as `max_tokens`."),
    **pick(gateway.CHAT, "stream_options tools tool_choice parallel_tool_calls stop"),
    "reasoning_effort": Row(VendorEffort, "How much to reason.", "Reasoning"),
    **pick(gateway.CHAT, "seed frequency_penalty presence_penalty logprobs top_logprobs"),
    "user": Row(str, "A name for the end user, which some vendors want for their own limits.", "Metadata"),
    **_EXTRA,
}
"""Chat completions, as nearly every vendor and engine takes them."""
OWN_CHAT_TOOLS: Table = {
    "tools": Row(list[Annotated[StrictTool | Foreign, BY_SHAPE]], "Functions and tools of the vendor's own.", "Tools"),
    "tool_choice": dataclasses.replace(
        gateway.CHAT["tool_choice"], type=Annotated[ChoiceWord | NamedTool | Foreign, BY_SHAPE, _Checked]
    ),
}
"""Tools of chat completions where the vendor has some of its own."""
CHAT_TRAITS = dataclasses.replace(
    ChatRequest.traits,
    carry_thinking=lambda fields, tokens: ({"reasoning_effort": nearest_effort(tokens), **fields}, ""),
    usage_fields={"stream_options": {"include_usage": True}},
    returns_opaque=True,
    output_tokens=UNCAPPED_TOKENS,
)
chat_request = functools.partial(build_request, like=ChatRequest, traits=CHAT_TRAITS)
"""Builds a request for chat completions."""


class VendorTextFormat(TextFormat):
    """The form of the reply."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    """`text`, any JSON (`json_object`), or JSON by a schema."""


class VendorTextOptions(TextOptions):
    """The form and length of the reply."""

    format: VendorTextFormat | None = None
    """Text or JSON."""


class VendorItem(BaseInputItem, extra="allow"):
    """A message, also one that the service has sent."""

    content: VendorContent
    id: str | None = None
    status: str | None = None


class VendorCallItem(gateway.FunctionCallItem, extra="allow"):
    """A call that an earlier response made."""


class VendorCallOutput(gateway.BaseCallOutput):
    """The result of a call."""

    output: Annotated[str | list[_Part], BY_SHAPE]


_Item: TypeAlias = Annotated[VendorItem | VendorCallItem | VendorCallOutput | Foreign, BY_SHAPE]
_Input: TypeAlias = Annotated[Text | Annotated[list[_Item], NON_EMPTY], INPUT_SHAPE]
RESPONSES: Table = {
    **gateway.RESPONSES,
    "input": Row(_Input, "The prompt, or a list of items: messages, tool calls, their results.", default=...),
    "tools": Row(list[Annotated[FlatTool | Foreign, BY_SHAPE]], "Functions and tools of the vendor's own.", "Tools"),
    "tool_choice": dataclasses.replace(
        gateway.RESPONSES["tool_choice"], type=Annotated[ChoiceWord | NamedFlatTool | Foreign, BY_SHAPE, _Checked]
    ),
    **_SAMPLING,
    "max_output_tokens": Row(Tokens, "Upper bound, counting visible and reasoning tokens."),
    "reasoning": Row(VendorReasoning, "How much to reason.", "Reasoning"),
    "text": dataclasses.replace(gateway.RESPONSES["text"], type=VendorTextOptions),
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
responses_request = functools.partial(build_request, like=ResponsesRequest, traits=RESPONSES_TRAITS)
"""Builds a request for responses."""


class CacheControl(StrictModel):
    """Marks the end of what the vendor shall keep in its cache."""

    type: Literal["ephemeral"]
    """Only `ephemeral`."""
    ttl: Literal["5m", "1h"] | None = None
    """How long it is kept; five minutes unless set."""


class VendorImage(gateway.ImageBlock, extra="allow"):
    """An image."""


class VendorToolUse(gateway.ToolUseBlock, extra="allow"):
    """A call that an earlier message made."""


class VendorToolResult(gateway.ToolResultBlock, extra="allow"):
    """The result of a call."""


_Blocks: TypeAlias = Annotated[
    list[Annotated[VendorPart | VendorImage | VendorToolUse | VendorToolResult | Foreign, BY_SHAPE]], NON_EMPTY
]
_Content: TypeAlias = Annotated[Text | ContentPart | _Blocks, CONTENT_SHAPE]


class VendorMessage(gateway.BlockMessage):
    """A message whose content may hold images, documents, calls, their results, and marks for the cache."""

    role: Literal["user", "assistant"]
    content: _Content


class VendorTool(InputSchemaTool, extra="allow"):
    """A function that the model may call; it may end what is kept in the cache."""


_FORMAT = FormatPaths(("output_config", "format"), ("output_config", "format"), names=("schema",))
MESSAGES: Table = {
    **pick(gateway.MESSAGES, "model messages system max_tokens stream thinking"),
    **_SAMPLING,
    "messages": Row(Annotated[list[VendorMessage], NON_EMPTY], "The conversation so far.", default=...),
    "system": Row(_Content, "System text.", "Conversation"),
    "max_tokens": Row(Tokens, "Maximum tokens to generate, thinking included.", default=...),
    "temperature": Row(Share, "Sampling temperature.", "Sampling"),
    "tools": Row(list[VendorTool], "Functions the model may call.", "Tools"),
    **pick(gateway.MESSAGES, "tool_choice stop_sequences"),
    "output_config": Row(
        gateway.OutputConfig,
        "The form of the answer, and how much effort it is worth.",
        "Output form",
        implied={_FORMAT.schema: (_FORMAT.type, "json_schema")},
    ),
    "top_k": TOP_K,
    "cache_control": Row(CacheControl, "Keep the whole prompt in the cache."),
    "metadata": Row(dict[str, Any], "`user_id`, a name for the end user.", "Metadata"),
    "service_tier": Row(Literal["auto", "standard_only"], "Whether capacity that was bought ahead is used."),
    **_EXTRA,
}
"""Messages, as the vendor who invented them takes them, and who follows that."""
OWN_MESSAGES_TOOLS: Table = {
    "tools": Row(list[Annotated[VendorTool | Foreign, BY_SHAPE]], "Functions and tools of the vendor's own.", "Tools"),
}
"""Tools of messages where the vendor has some of its own."""
MESSAGES_TRAITS = dataclasses.replace(
    MessagesRequest.traits, documents_images=True, returns_opaque=True, format=_FORMAT
)
messages_request = functools.partial(build_request, like=MessagesRequest, traits=MESSAGES_TRAITS)
"""Builds a request for messages."""
