"""Any other server that speaks one of the three dialects: llama.cpp, SGLang, LM Studio, a LiteLLM proxy …

    chat        max_tokens, tools, seed, stop, penalties, response_format, reasoning_effort, stream_options
    responses   as OpenAI has them; a reply is taken to be kept only where the request says `store=True`
    messages    as Anthropic has them

https://platform.openai.com/docs/api-reference/chat and https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from famnb.endpoints import Endpoints
from famnb.profiles.profile import (
    CHAT_FIELDS,
    CHAT_TRAITS,
    MESSAGES_FIELDS,
    MESSAGES_TRAITS,
    RESPONSES_FIELDS,
    Profile,
    vendor_endpoint,
)
from famnb.request.base import Heading, Request
from famnb.request.vendor import VendorChatRequest, VendorMessagesRequest, VendorResponsesRequest


class ServerChatRequest(VendorChatRequest):
    """Chat completions, as most servers of one's own take them."""

    # Servers have the effort as a field of its own, `reasoning_effort`.
    not_offered: ClassVar[tuple[str, ...]] = ("reasoning",)


def server_endpoints(
    models: tuple[str, ...],
    *,
    chat: type[Request] = ServerChatRequest,
    chat_fields: Mapping[str, Heading] = MappingProxyType({}),
    responses: type[Request] = VendorResponsesRequest,
    messages: type[Request] = VendorMessagesRequest,
    messages_traits: Mapping[str, Any] = MESSAGES_TRAITS,
) -> Endpoints:
    """Return chat completions, responses and messages, with these models to suggest.

    A request is given where it differs from that of most servers, and `chat_fields` are the headings of its fields.
    """
    return {
        "chat": vendor_endpoint(
            "chat",
            chat,
            "/v1/chat/completions",
            models,
            fields={**CHAT_FIELDS, **chat_fields},
            traits=CHAT_TRAITS,
        ),
        "responses": vendor_endpoint(
            "responses",
            responses,
            "/v1/responses",
            models,
            fields=RESPONSES_FIELDS,
            # Few keep replies, and most of those only if they are told to when they start.
            traits={"stores_replies": False},
        ),
        "messages": vendor_endpoint(
            "messages", messages, "/v1/messages", models, fields=MESSAGES_FIELDS, traits=messages_traits
        ),
    }


PROFILE = Profile(
    name="open",
    title="A server of your own",
    documentation="https://platform.openai.com/docs/api-reference/chat",
    endpoints=server_endpoints(("default",)),
    key_variables=(),
    needs_key=False,
)
