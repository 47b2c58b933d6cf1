"""OpenAI: responses and chat completions.

The effort of chat completions is `reasoning_effort`; `reasoning` is a field of responses alone.

https://platform.openai.com/docs/api-reference/chat/create, https://platform.openai.com/docs/api-reference/responses/create
"""

import dataclasses
from typing import Literal

from famnb.profiles.open import SERVER_CHAT
from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.fields import Row, Table
from famnb.request.types import Text, Tokens
from famnb.request.vendor_fields import OWN_CHAT_TOOLS, RESPONSES, RESPONSES_TRAITS, chat_request, responses_request

MODELS = ("gpt-5.4-mini", "gpt-5.4", "gpt-6-luna", "gpt-6.2-sol")
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast"]

_SHARED: Table = {
    "service_tier": Row(ServiceTier, "Which capacity answers, at which price.", "Metadata"),
    "prompt_cache_key": Row(str, "A name for prompts that begin alike."),
    "safety_identifier": Row(str, "A name for the end user, in place of `user`.", "Metadata"),
}
OpenAIChatRequest = chat_request(
    "OpenAIChatRequest",
    "Chat completions at OpenAI.",
    {
        **SERVER_CHAT,
        **OWN_CHAT_TOOLS,
        "max_completion_tokens": Row(Tokens, "Upper bound on generated tokens, reasoning included."),
        "store": Row(bool, "Whether the completion is kept.", "Metadata"),
        "metadata": Row(dict[str, str], "Up to 16 pairs.", "Metadata"),
        "verbosity": Row(Literal["low", "medium", "high"], "How much to say.", "Output form"),
        "logit_bias": Row(dict[str, int], "By token, from -100 for never to 100 for always.", "Sampling"),
        **_SHARED,
    },
    module=__name__,
    cap="max_completion_tokens",
)
OpenAIResponsesRequest = responses_request(
    "OpenAIResponsesRequest",
    "Responses at OpenAI.",
    {
        **RESPONSES,
        **_SHARED,
        "max_tool_calls": Row(Tokens, "How often built-in tools may be called."),
        "background": Row(
            bool, "Whether the service answers at once and goes on working; `client.fetch(reply)` has the answer."
        ),
        "conversation": Row(Text, "The id of a conversation that the service keeps."),
    },
    traits=dataclasses.replace(RESPONSES_TRAITS, stores_replies=True),
    module=__name__,
)

PROFILE = Profile(
    name="openai",
    title="OpenAI",
    endpoints=vendor_endpoints(MODELS, OpenAIResponsesRequest, OpenAIChatRequest),
    base_url="https://api.openai.com",
    url_variables=("OPENAI_BASE_URL",),
    key_variables=("OPENAI_API_KEY",),
)
