"""OpenRouter: models of many vendors by chat completions.

`headers={"HTTP-Referer": …, "X-Title": …}` names the application to it. Usage comes with the cost of each call, which
counts before any price.

https://openrouter.ai/docs/api/reference/overview
"""

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field

from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.fields import Row
from famnb.request.types import Text, Tokens
from famnb.request.vendor_fields import (
    CHAT,
    CHAT_TRAITS,
    MIN_P,
    OWN_CHAT_TOOLS,
    TOP_K,
    Share,
    VendorReasoning,
    chat_request,
)


class OpenRouterReasoning(VendorReasoning):
    """How much to reason: by effort, or in tokens."""

    max_tokens: Tokens | None = None
    """At most this many tokens of reasoning."""
    exclude: bool | None = None
    """Whether to leave the reasoning out of the reply."""
    enabled: bool | None = None
    """Whether to reason at all."""


OpenRouterChatRequest = chat_request(
    "OpenRouterChatRequest",
    "Chat completions at OpenRouter.",
    {
        **CHAT,
        **OWN_CHAT_TOOLS,
        "reasoning": Row(OpenRouterReasoning, "How much to reason; shown unless excluded.", "Reasoning"),
        "top_k": TOP_K,
        "min_p": MIN_P,
        "top_a": Row(Share, "The same, by the square of the likeliest one's probability.", "Sampling"),
        "repetition_penalty": Row(
            Annotated[float, Field(ge=0, le=2)], "Above 1 against saying the same words again.", "Sampling"
        ),
        "models": Row(list[Text], "Models to try in turn, should the first fail."),
        "provider": Row(dict[str, Any], "Which vendors may answer, and in which order."),
        "plugins": Row(list[dict[str, Any]], "Plug-ins of the router, such as its search."),
        "transforms": Row(list[Literal["middle-out"]], "What the router may do to a prompt that is too long."),
        "logit_bias": Row(dict[str, float], "By token, from -100 for never to 100 for always.", "Sampling"),
        "verbosity": Row(Literal["low", "medium", "high", "xhigh", "max"], "How much to say.", "Output form"),
        "session_id": Row(str, "A name for requests that belong together."),
    },
    traits=dataclasses.replace(
        CHAT_TRAITS,
        thinking="budget",
        carry_thinking=lambda fields, tokens: ({"reasoning": {"max_tokens": tokens}, **fields}, ""),
    ),
    module=__name__,
)

PROFILE = Profile(
    name="openrouter",
    title="OpenRouter",
    endpoints=vendor_endpoints(
        ("openai/gpt-5.4-mini", "anthropic/claude-sonnet-5", "google/gemini-3.5-flash"), OpenRouterChatRequest
    ),
    base_url="https://openrouter.ai/api",
    key_variables=("OPENROUTER_API_KEY",),
)
