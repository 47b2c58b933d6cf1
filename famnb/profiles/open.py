"""Any other server that speaks one of the three dialects: llama.cpp, SGLang, LM Studio, a LiteLLM proxy …"""

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

MODELS = ("default",)

PROFILE = Profile(
    name="open",
    title="A server of your own",
    documentation="https://platform.openai.com/docs/api-reference/chat",
    endpoints={
        "chat": vendor_endpoint(
            "chat", VendorChatRequest, "/v1/chat/completions", MODELS, fields=CHAT_FIELDS, traits=CHAT_TRAITS
        ),
        "responses": vendor_endpoint(
            "responses", VendorResponsesRequest, "/v1/responses", MODELS, fields=RESPONSES_FIELDS
        ),
        "messages": vendor_endpoint(
            "messages", VendorMessagesRequest, "/v1/messages", MODELS, fields=MESSAGES_FIELDS, traits=MESSAGES_TRAITS
        ),
    },
    key_variables=(),
    needs_key=False,
)
