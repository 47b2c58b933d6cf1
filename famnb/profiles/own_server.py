"""The endpoints that servers of one's own have in common: three dialects at the paths of those who invented them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from famnb.endpoints import Endpoints
from famnb.profiles.profile import (
    CHAT_FIELDS,
    CHAT_TRAITS,
    MESSAGES_FIELDS,
    MESSAGES_TRAITS,
    RESPONSES_FIELDS,
    vendor_endpoint,
)
from famnb.request.base import Heading, Request
from famnb.request.vendor import VendorChatRequest, VendorMessagesRequest, VendorResponsesRequest


def server_endpoints(
    models: tuple[str, ...],
    *,
    chat: type[Request] = VendorChatRequest,
    chat_fields: Mapping[str, Heading] = MappingProxyType({}),
    stores_replies: bool = True,
) -> Endpoints:
    """Return chat completions, responses and messages, with these models to suggest.

    `chat` is the request of chat completions where it has fields of its own, and `chat_fields` are their headings.
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
            VendorResponsesRequest,
            "/v1/responses",
            models,
            fields=RESPONSES_FIELDS,
            traits={"stores_replies": stores_replies},
        ),
        "messages": vendor_endpoint(
            "messages", VendorMessagesRequest, "/v1/messages", models, fields=MESSAGES_FIELDS, traits=MESSAGES_TRAITS
        ),
    }
