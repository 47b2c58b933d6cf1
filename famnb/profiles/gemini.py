"""Gemini: chat completions at Google's address for them."""

from famnb.profiles.profile import CHAT_FIELDS, CHAT_TRAITS, Profile, vendor_endpoint
from famnb.request.vendor import VendorChatRequest

PROFILE = Profile(
    name="gemini",
    title="Gemini",
    documentation="https://ai.google.dev/gemini-api/docs/openai",
    endpoints={
        "chat": vendor_endpoint(
            "chat",
            VendorChatRequest,
            "/chat/completions",
            ("gemini-3.5-flash", "gemini-3.8-flash"),
            fields=CHAT_FIELDS,
            traits=CHAT_TRAITS,
        )
    },
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
