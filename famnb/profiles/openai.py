"""OpenAI: responses and chat completions.

    header      authorization: Bearer
    chat        max_completion_tokens, reasoning_effort, verbosity, response_format, tools, stop, seed, penalties,
                logprobs, stream_options, store, metadata, service_tier, prompt_cache_key, safety_identifier
    responses   input (a text, or items whose content is a text or a list), instructions, max_output_tokens, reasoning,
                text, tools, previous_response_id, conversation, store, include, truncation, background, metadata

The effort of chat completions is `reasoning_effort`; `reasoning` is a field of responses alone.

https://platform.openai.com/docs/api-reference/chat/create, https://platform.openai.com/docs/api-reference/responses/create
"""

from typing import ClassVar, Literal

from famnb.profiles.profile import CHAT_FIELDS, CHAT_TRAITS, RESPONSES_FIELDS, Profile, vendor_endpoint
from famnb.request.base import Heading
from famnb.request.types import Text, Tokens
from famnb.request.vendor import VendorChatRequest, VendorResponsesRequest

MODELS = ("gpt-5.4-mini", "gpt-5.4", "gpt-6-luna", "gpt-6.2-sol")
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast"]
Verbosity = Literal["low", "medium", "high"]


class OpenAIChatRequest(VendorChatRequest):
    """Chat completions at OpenAI."""

    cap: ClassVar[str] = "max_completion_tokens"
    not_offered: ClassVar[tuple[str, ...]] = ("reasoning",)

    max_completion_tokens: Tokens | None = None
    """Upper bound on generated tokens, reasoning included."""
    store: bool | None = None
    """Whether the completion is kept."""
    metadata: dict[str, str] | None = None
    """Up to 16 pairs."""
    service_tier: ServiceTier | None = None
    """Which capacity answers, at which price."""
    verbosity: Verbosity | None = None
    """How much to say."""
    logit_bias: dict[str, int] | None = None
    """By token, from -100 for never to 100 for always."""
    prompt_cache_key: str | None = None
    """A name for prompts that begin alike."""
    safety_identifier: str | None = None
    """A name for the end user, in place of `user`."""


class OpenAIResponsesRequest(VendorResponsesRequest):
    """Responses at OpenAI."""

    service_tier: ServiceTier | None = None
    """Which capacity answers, at which price."""
    max_tool_calls: Tokens | None = None
    """How often built-in tools may be called."""
    prompt_cache_key: str | None = None
    """A name for prompts that begin alike."""
    safety_identifier: str | None = None
    """A name for the end user, in place of `user`."""
    background: bool | None = None
    """Whether the service answers at once and goes on working."""
    conversation: Text | None = None
    """The id of a conversation that the service keeps."""

    @property
    def stores_reply(self) -> bool:
        return self.store is not False


_METADATA: dict[str, Heading] = {
    "metadata": "Metadata",
    "store": "Metadata",
    "service_tier": "Metadata",
    "safety_identifier": "Metadata",
}

PROFILE = Profile(
    name="openai",
    title="OpenAI",
    documentation="https://platform.openai.com/docs/api-reference",
    endpoints={
        "responses": vendor_endpoint(
            "responses",
            OpenAIResponsesRequest,
            "/v1/responses",
            MODELS,
            fields={**RESPONSES_FIELDS, **_METADATA},
        ),
        "chat": vendor_endpoint(
            "chat",
            OpenAIChatRequest,
            "/v1/chat/completions",
            MODELS,
            fields={**CHAT_FIELDS, **_METADATA, "logit_bias": "Sampling", "verbosity": "Output form"},
            traits=CHAT_TRAITS,
        ),
    },
    base_url="https://api.openai.com",
    url_variables=("OPENAI_BASE_URL",),
    key_variables=("OPENAI_API_KEY",),
)
