"""Any other server that speaks one of the three dialects: llama.cpp, SGLang, LM Studio, a LiteLLM proxy …

A response is taken to be kept only where the request says `store=True`.

https://platform.openai.com/docs/api-reference/chat and https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.vendor_fields import (
    CHAT,
    MESSAGES,
    OWN_CHAT_TOOLS,
    OWN_MESSAGES_TOOLS,
    RESPONSES,
    chat_request,
    messages_request,
    responses_request,
)

SERVER_CHAT = {name: row for name, row in CHAT.items() if name != "reasoning"}
"""The fields of chat completions, as most servers and vendors take them: the effort is `reasoning_effort`."""

ServerChatRequest = chat_request(
    "ServerChatRequest",
    "Chat completions, as most servers of one's own take them.",
    {**SERVER_CHAT, **OWN_CHAT_TOOLS},
    module=__name__,
)
ServerResponsesRequest = responses_request(
    "ServerResponsesRequest",
    "Responses, as the vendor who invented them takes them, and who follows that.",
    RESPONSES,
    module=__name__,
)
ServerMessagesRequest = messages_request(
    "ServerMessagesRequest",
    "Messages, as the vendor who invented them takes them, and who follows that.",
    {**MESSAGES, **OWN_MESSAGES_TOOLS},
    module=__name__,
)

PROFILE = Profile(
    name="open",
    title="A server of your own",
    endpoints=vendor_endpoints(("default",), ServerChatRequest, ServerResponsesRequest, ServerMessagesRequest),
)
