"""Vendors whose API is OpenAI's but for a few fields: Gemini, Azure, DeepSeek, Groq, Mistral, xAI, Together and others.

gemini      refuses a field that it does not know, so those of OpenAI that Google does not name are not offered here.
            What Gemini alone has stands in its own `extra_body`:
            `extra_body={"extra_body": {"google": {"thinking_config": {"include_thoughts": True}}}}`. Google's own tools
            stand beside functions: `extra_body={"tools": [{"google_search": {}}]}`.
            https://ai.google.dev/gemini-api/docs/openai
azure       `model` is the name of a deployment; a token of Entra goes into `headers={"authorization": "Bearer …"}`,
            `query={"api-version": "preview"}` is for a preview; https://learn.microsoft.com/en-us/azure/foundry/openai
deepseek    `thinking` goes into extra_body; https://api-docs.deepseek.com
groq        https://console.groq.com/docs/api-reference
mistral     usage is in every stream; https://docs.mistral.ai/api
xai         each reply says what it costs; https://docs.x.ai/docs/api-reference
together    https://docs.together.ai/reference
bedrock     at https://bedrock-mantle.REGION.api.aws, with a key of Bedrock; https://docs.aws.amazon.com/bedrock
vertex      at https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/endpoints/openapi,
            with the access token that `gcloud auth print-access-token` prints;
            https://docs.cloud.google.com/vertex-ai/generative-ai/docs/start/openai
"""

import dataclasses
from typing import Literal

from famnb.profiles.open import SERVER_CHAT, ServerChatRequest, ServerResponsesRequest
from famnb.profiles.openai import MODELS as OPENAI_MODELS
from famnb.profiles.openai import OpenAIChatRequest, OpenAIResponsesRequest
from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.fields import Row, pick
from famnb.request.vendor_fields import CHAT, CHAT_TRAITS, MIN_P, OWN_CHAT_TOOLS, TOP_K, Count, chat_request

_COMMON = (
    "model messages stream response_format tools tool_choice stop extra_body temperature top_p reasoning_effort "
    "frequency_penalty presence_penalty"
)
"""The fields of `SERVER_CHAT` that DeepSeek, Groq, Mistral and Together take alike."""

GeminiChatRequest = chat_request(
    "GeminiChatRequest",
    "Chat completions at Gemini.",
    pick(
        CHAT,
        "model messages stream max_tokens response_format max_completion_tokens stream_options tools tool_choice stop "
        "extra_body temperature top_p reasoning_effort seed",
    ),
    module=__name__,
)
DeepSeekChatRequest = chat_request(
    "DeepSeekChatRequest",
    "Chat completions at DeepSeek.",
    pick(SERVER_CHAT, f"{_COMMON} max_tokens stream_options logprobs top_logprobs"),
    module=__name__,
)
GroqChatRequest = chat_request(
    "GroqChatRequest",
    "Chat completions at Groq.",
    {
        **pick(SERVER_CHAT, f"{_COMMON} max_completion_tokens stream_options parallel_tool_calls seed user"),
        **OWN_CHAT_TOOLS,
        "reasoning_format": Row(Literal["hidden", "raw", "parsed"], "Where the reply has the reasoning.", "Reasoning"),
        "service_tier": Row(Literal["auto", "on_demand", "flex", "performance"], "Which capacity answers.", "Metadata"),
    },
    module=__name__,
    cap="max_completion_tokens",
)
MistralChatRequest = chat_request(
    "MistralChatRequest",
    "Chat completions at Mistral.",
    {
        **pick(SERVER_CHAT, f"{_COMMON} max_tokens parallel_tool_calls"),
        "random_seed": Row(Count, "For answers that repeat, as far as the vendor can.", "Sampling"),
        "prompt_mode": Row(
            Literal["reasoning"], "Whether the vendor's own prompt for reasoning is added.", "Reasoning"
        ),
        "safe_prompt": Row(bool, "Whether the vendor's own prompt for safety is added."),
    },
    traits=dataclasses.replace(CHAT_TRAITS, usage_fields={}),
    module=__name__,
)
TogetherChatRequest = chat_request(
    "TogetherChatRequest",
    "Chat completions at Together.",
    {
        **pick(SERVER_CHAT, f"{_COMMON} max_tokens stream_options seed"),
        "top_k": TOP_K,
        "min_p": MIN_P,
        "repetition_penalty": Row(float, "Above 1 against saying the same words again.", "Sampling"),
    },
    module=__name__,
)

# Name, title, address without `/v1` or the variable that holds it, prefix of the paths, variables of the key, models,
# requests; of the models and of the requests the first is the default.
# fmt: off
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"
_ROWS = (
    ("gemini", "Gemini", _GOOGLE, "", ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
     ("gemini-3.5-flash", "gemini-3.8-flash"), (GeminiChatRequest,)),
    ("azure", "Azure OpenAI", "AZURE_OPENAI_ENDPOINT", "/openai/v1", ("AZURE_OPENAI_API_KEY",),
     OPENAI_MODELS, (OpenAIResponsesRequest, OpenAIChatRequest)),
    ("deepseek", "DeepSeek", "https://api.deepseek.com", "/v1", ("DEEPSEEK_API_KEY",),
     ("deepseek-chat", "deepseek-reasoner"), (DeepSeekChatRequest,)),
    ("groq", "Groq", "https://api.groq.com", "/openai/v1", ("GROQ_API_KEY",),
     ("openai/gpt-oss-120b", "llama-3.3-70b-versatile"), (GroqChatRequest,)),
    ("mistral", "Mistral", "https://api.mistral.ai", "/v1", ("MISTRAL_API_KEY",),
     ("mistral-medium-latest", "magistral-medium-latest"), (MistralChatRequest,)),
    ("xai", "xAI", "https://api.x.ai", "/v1", ("XAI_API_KEY",),
     ("grok-4.5", "grok-4-fast"), (ServerResponsesRequest, ServerChatRequest)),
    ("together", "Together", "https://api.together.xyz", "/v1", ("TOGETHER_API_KEY",),
     ("openai/gpt-oss-120b", "Qwen/Qwen3-235B-A22B-Thinking-2507"), (TogetherChatRequest,)),
    ("bedrock", "Bedrock", "BEDROCK_BASE_URL", "/v1", ("AWS_BEARER_TOKEN_BEDROCK",),
     ("openai.gpt-oss-120b",), (OpenAIChatRequest, OpenAIResponsesRequest)),
    ("vertex", "Vertex", "VERTEX_BASE_URL", "", ("GOOGLE_OAUTH_ACCESS_TOKEN",),
     ("google/gemini-3.5-flash",), (GeminiChatRequest,)),
)
# fmt: on
PROFILES = {
    name: Profile(
        name=name,
        title=title,
        endpoints=vendor_endpoints(models, *requests, prefix=prefix),
        base_url=url if "://" in url else None,
        url_variables=() if "://" in url else (url,),
        key_variables=key_variables,
    )
    for name, title, url, prefix, key_variables, models, requests in _ROWS
}
"""The profiles by name; where everyone has an address of their own, a variable holds it."""
PROFILES["azure"] = dataclasses.replace(PROFILES["azure"], key_header="api-key", names_deployments=True)
