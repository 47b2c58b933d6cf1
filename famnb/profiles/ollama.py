"""Ollama: models on this machine, by chat completions, responses and messages.

Ollama ignores fields that it does not know, so those that it does not have are not offered here: `tool_choice`,
`user`, `logit_bias`, `previous_response_id`, `metadata`, `cache_control` and the like. Images are data URLs.

https://docs.ollama.com/api/openai-compatibility and https://docs.ollama.com/api/anthropic-compatibility
"""

import dataclasses

from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.fields import Row, pick
from famnb.request.gateway_fields import RESPONSES as GATEWAY_RESPONSES
from famnb.request.gateway_fields import EffortConfig
from famnb.request.vendor_fields import (
    CHAT,
    MESSAGES,
    MESSAGES_TRAITS,
    RESPONSES,
    chat_request,
    messages_request,
    responses_request,
)

OllamaChatRequest = chat_request(
    "OllamaChatRequest",
    "Chat completions of Ollama.",
    pick(
        CHAT,
        "model messages stream max_tokens reasoning response_format stream_options tools stop extra_body temperature "
        "top_p reasoning_effort seed frequency_penalty presence_penalty logprobs top_logprobs",
    ),
    module=__name__,
)
OllamaResponsesRequest = responses_request(
    "OllamaResponsesRequest",
    "Responses of Ollama.",
    pick(
        {**RESPONSES, "tools": GATEWAY_RESPONSES["tools"]},
        "model input instructions max_output_tokens stream reasoning temperature top_p text tools extra_body",
    ),
    module=__name__,
)
OllamaMessagesRequest = messages_request(
    "OllamaMessagesRequest",
    "Messages of Ollama.",
    {
        **pick(
            MESSAGES,
            "model messages system max_tokens stream thinking temperature top_p extra_body tools stop_sequences top_k",
        ),
        "output_config": Row(EffortConfig, "How much effort the answer is worth.", "Output form"),
    },
    traits=dataclasses.replace(MESSAGES_TRAITS, format=None),
    module=__name__,
)

PROFILE = Profile(
    name="ollama",
    title="Ollama",
    endpoints=vendor_endpoints(
        ("qwen3:8b", "gpt-oss:20b", "gemma4:31b"), OllamaChatRequest, OllamaResponsesRequest, OllamaMessagesRequest
    ),
    base_url="http://127.0.0.1:11434",
    url_variables=("OLLAMA_HOST",),
    default_port=11434,
    key_variables=("OLLAMA_API_KEY",),
    needs_key=False,
)
