"""Anthropic: messages."""

from famnb.profiles.profile import MESSAGES_FIELDS, MESSAGES_TRAITS, Profile, vendor_endpoint
from famnb.request.vendor import VendorMessagesRequest

PROFILE = Profile(
    name="anthropic",
    title="Anthropic",
    documentation="https://platform.claude.com/docs/en/api/messages",
    endpoints={
        "messages": vendor_endpoint(
            "messages",
            VendorMessagesRequest,
            "/v1/messages",
            ("claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5"),
            fields=MESSAGES_FIELDS,
            traits=MESSAGES_TRAITS,
        )
    },
    base_url="https://api.anthropic.com",
    url_variables=("ANTHROPIC_BASE_URL",),
    key_variables=("ANTHROPIC_API_KEY",),
    key_header="x-api-key",
    headers={"anthropic-version": "2023-06-01"},
)
