"""Ollama: models on this machine, by chat completions, responses and messages."""

from famnb.profiles.profile import (
    CHAT_FIELDS,
    CHAT_TRAITS,
    MESSAGES_FIELDS,
    MESSAGES_TRAITS,
    RESPONSES_FIELDS,
    Profile,
    vendor_endpoint,
)
from famnb.request.vendor import VendorChatRequest, VendorMessagesRequest, VendorResponsesRequest

MODELS = ("qwen3:8b", "gpt-oss:20b", "gemma4:31b")

PROFILE = Profile(
    name="ollama",
    title="Ollama",
    documentation="https://docs.ollama.com/api/openai-compatibility",
    endpoints={
        "chat": vendor_endpoint(
            "chat", VendorChatRequest, "/v1/chat/completions", MODELS, fields=CHAT_FIELDS, traits=CHAT_TRAITS
        ),
        # It keeps no responses.
        "responses": vendor_endpoint(
            "responses",
            VendorResponsesRequest,
            "/v1/responses",
            MODELS,
            fields=RESPONSES_FIELDS,
            traits={"stores_replies": False},
        ),
        "messages": vendor_endpoint(
            "messages", VendorMessagesRequest, "/v1/messages", MODELS, fields=MESSAGES_FIELDS, traits=MESSAGES_TRAITS
        ),
    },
    base_url="http://127.0.0.1:11434",
    url_variables=("OLLAMA_HOST",),
    key_variables=("OLLAMA_API_KEY",),
    needs_key=False,
)
