"""Vendors whose API is OpenAI's but for a few fields: DeepSeek, Groq, Mistral, xAI, Together, Bedrock and Vertex.

    deepseek    chat; reasoning_effort, logprobs, `thinking` in extra_body; no seed
    groq        chat; max_completion_tokens, reasoning_effort, reasoning_format, seed, service_tier; no logprobs
    mistral     chat; max_tokens, random_seed, prompt_mode, safe_prompt; usage is in every stream
    xai         responses, chat; reasoning_effort, seed, logprobs; each reply says what it costs
    together    chat; top_k, min_p, repetition_penalty, seed
    bedrock     chat and responses at https://bedrock-mantle.REGION.api.aws, with a key of Bedrock
    vertex      chat at https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/endpoints/openapi,
                with the access token that `gcloud auth print-access-token` prints

https://api-docs.deepseek.com, https://console.groq.com/docs/api-reference, https://docs.mistral.ai/api,
https://docs.x.ai/docs/api-reference, https://docs.together.ai/reference, https://docs.aws.amazon.com/bedrock and
https://docs.cloud.google.com/vertex-ai/generative-ai/docs/start/openai
"""

import dataclasses
from typing import Any, Literal

from famnb.profiles.gemini import GeminiChatRequest
from famnb.profiles.open import SERVER_CHAT, ServerChatRequest, ServerResponsesRequest
from famnb.profiles.openai import OpenAIChatRequest, OpenAIResponsesRequest
from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request import ChatRequest
from famnb.request.fields import Row, build_request, pick
from famnb.request.vendor_fields import CHAT_TRAITS, Count, Share

_COMMON = "model messages stream response_format tools tool_choice stop extra_body temperature top_p"

DeepSeekChatRequest = build_request(
    "DeepSeekChatRequest",
    "Chat completions at DeepSeek.",
    ChatRequest,
    pick(
        SERVER_CHAT,
        f"{_COMMON} max_tokens stream_options reasoning_effort frequency_penalty presence_penalty logprobs "
        "top_logprobs",
    ),
    CHAT_TRAITS,
    module=__name__,
)
GroqChatRequest = build_request(
    "GroqChatRequest",
    "Chat completions at Groq.",
    ChatRequest,
    {
        **pick(
            SERVER_CHAT,
            f"{_COMMON} max_completion_tokens stream_options parallel_tool_calls reasoning_effort seed "
            "frequency_penalty presence_penalty user",
        ),
        "reasoning_format": Row(Literal["hidden", "raw", "parsed"], "Where the reply has the reasoning.", "Reasoning"),
        "service_tier": Row(Literal["auto", "on_demand", "flex", "performance"], "Which capacity answers.", "Metadata"),
    },
    CHAT_TRAITS,
    module=__name__,
    cap="max_completion_tokens",
)
MistralChatRequest = build_request(
    "MistralChatRequest",
    "Chat completions at Mistral.",
    ChatRequest,
    {
        **pick(
            SERVER_CHAT,
            f"{_COMMON} max_tokens parallel_tool_calls reasoning_effort frequency_penalty presence_penalty",
        ),
        "random_seed": Row(Count, "For answers that repeat, as far as the vendor can.", "Sampling"),
        "prompt_mode": Row(
            Literal["reasoning"], "Whether the vendor's own prompt for reasoning is added.", "Reasoning"
        ),
        "safe_prompt": Row(bool, "Whether the vendor's own prompt for safety is added."),
    },
    dataclasses.replace(CHAT_TRAITS, usage_fields={}),
    module=__name__,
)
TogetherChatRequest = build_request(
    "TogetherChatRequest",
    "Chat completions at Together.",
    ChatRequest,
    {
        **pick(
            SERVER_CHAT,
            f"{_COMMON} max_tokens stream_options reasoning_effort seed frequency_penalty presence_penalty",
        ),
        "top_k": Row(Count, "Only from so many of the likeliest tokens.", "Sampling"),
        "min_p": Row(Share, "Only tokens at least so likely, relative to the likeliest.", "Sampling"),
        "repetition_penalty": Row(float, "Above 1 against saying the same words again.", "Sampling"),
    },
    CHAT_TRAITS,
    module=__name__,
)


def _profile(name: str, title: str, models: str, *requests: Any, prefix: str = "/v1", **fields: Any) -> Profile:
    return Profile(
        name=name,
        title=title,
        documentation=__doc__ or "",
        endpoints=vendor_endpoints(tuple(models.split()), *requests, prefix=prefix),
        **fields,
    )


PROFILES = {
    profile.name: profile
    for profile in (
        _profile(
            *("deepseek", "DeepSeek", "deepseek-chat deepseek-reasoner", DeepSeekChatRequest),
            base_url="https://api.deepseek.com",
            key_variables=("DEEPSEEK_API_KEY",),
        ),
        _profile(
            *("groq", "Groq", "openai/gpt-oss-120b llama-3.3-70b-versatile", GroqChatRequest),
            prefix="/openai/v1",
            base_url="https://api.groq.com",
            key_variables=("GROQ_API_KEY",),
        ),
        _profile(
            *("mistral", "Mistral", "mistral-medium-latest magistral-medium-latest", MistralChatRequest),
            base_url="https://api.mistral.ai",
            key_variables=("MISTRAL_API_KEY",),
        ),
        _profile(
            *("xai", "xAI", "grok-4.5 grok-4-fast", ServerResponsesRequest, ServerChatRequest),
            base_url="https://api.x.ai",
            key_variables=("XAI_API_KEY",),
        ),
        _profile(
            *("together", "Together", "openai/gpt-oss-120b Qwen/Qwen3-235B-A22B-Thinking-2507", TogetherChatRequest),
            base_url="https://api.together.xyz",
            key_variables=("TOGETHER_API_KEY",),
        ),
        _profile(
            *("bedrock", "Bedrock", "openai.gpt-oss-120b", OpenAIChatRequest, OpenAIResponsesRequest),
            url_variables=("BEDROCK_BASE_URL",),
            key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        ),
        _profile(
            *("vertex", "Vertex", "google/gemini-3.5-flash", GeminiChatRequest),
            prefix="",
            url_variables=("VERTEX_BASE_URL",),
            key_variables=("GOOGLE_OAUTH_ACCESS_TOKEN",),
        ),
    )
}
"""The profiles by name."""
