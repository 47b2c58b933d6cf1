"""OpenRouter: models of many vendors by chat completions.

    header      authorization: Bearer; `headers={"HTTP-Referer": …, "X-Title": …}` names the application to it
    body        as OpenAI's chat completions, with max_tokens, and reasoning (effort, max_tokens, exclude, enabled),
                models, provider, plugins, top_k, min_p, top_a, repetition_penalty, logit_bias, verbosity
    usage       with the cost of each call, which counts before any price

https://openrouter.ai/docs/api/reference/overview
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from famnb.profiles.profile import CHAT_FIELDS, CHAT_TRAITS, Profile, vendor_endpoint
from famnb.request.chat import prompt_messages
from famnb.request.types import Text, Tokens
from famnb.request.vendor import VendorChatRequest, VendorReasoning


class OpenRouterReasoning(VendorReasoning):
    """How much to reason: by effort, or in tokens."""

    max_tokens: Tokens | None = None
    """At most this many tokens of reasoning."""
    exclude: bool | None = None
    """Whether to leave the reasoning out of the reply."""
    enabled: bool | None = None
    """Whether to reason at all."""


class OpenRouterChatRequest(VendorChatRequest):
    """Chat completions at OpenRouter."""

    reasoning: OpenRouterReasoning | None = None
    """How much to reason; shown unless excluded."""
    top_k: Annotated[int, Field(ge=0)] | None = None
    """Only from so many of the likeliest tokens."""
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """Only tokens at least so likely, relative to the likeliest."""
    top_a: Annotated[float, Field(ge=0, le=1)] | None = None
    """The same, by the square of the likeliest one's probability."""
    repetition_penalty: Annotated[float, Field(ge=0, le=2)] | None = None
    """Above 1 against saying the same words again."""
    models: list[Text] | None = None
    """Models to try in turn, should the first fail."""
    provider: dict[str, Any] | None = None
    """Which vendors may answer, and in which order."""
    plugins: list[dict[str, Any]] | None = None
    """Plug-ins of the router, such as its search."""
    transforms: list[Literal["middle-out"]] | None = None
    """What the router may do to a prompt that is too long."""
    logit_bias: dict[str, float] | None = None
    """By token, from -100 for never to 100 for always."""
    verbosity: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How much to say."""
    session_id: str | None = None
    """A name for requests that belong together."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is not None:
            fields.setdefault("reasoning", {"max_tokens": thinking})
        return cls(**{"messages": prompt_messages(prompt, system), **fields})


PROFILE = Profile(
    name="openrouter",
    title="OpenRouter",
    documentation="https://openrouter.ai/docs/api/reference/overview",
    endpoints={
        "chat": vendor_endpoint(
            "chat",
            OpenRouterChatRequest,
            "/v1/chat/completions",
            ("openai/gpt-5.4-mini", "anthropic/claude-sonnet-5", "google/gemini-3.5-flash"),
            fields={
                **CHAT_FIELDS,
                "reasoning": "Reasoning",
                "top_k": "Sampling",
                "min_p": "Sampling",
                "top_a": "Sampling",
                "repetition_penalty": "Sampling",
                "logit_bias": "Sampling",
                "verbosity": "Output form",
            },
            traits={**CHAT_TRAITS, "thinking": "budget"},
        )
    },
    base_url="https://openrouter.ai/api",
    key_variables=("OPENROUTER_API_KEY",),
)
