"""Ollama: models on this machine, by chat completions, responses and messages.

    chat        max_tokens, tools, reasoning_effort or reasoning.effort, seed, penalties, stop, stream_options
    responses   input, instructions, tools, max_output_tokens, reasoning.effort, text.format; it keeps none
    messages    max_tokens, thinking, tools, stop_sequences, top_k, output_config.effort

Ollama ignores fields that it does not know, so those that it does not have are not offered here: `tool_choice`,
`user`, `logit_bias`, `previous_response_id`, `metadata`, `cache_control` and the like. Images are data URLs.

https://docs.ollama.com/api/openai-compatibility and https://docs.ollama.com/api/anthropic-compatibility
"""

from typing import Any, ClassVar

from famnb.endpoints import ENDPOINTS
from famnb.profiles.open import server_endpoints
from famnb.profiles.profile import MESSAGES_TRAITS, Profile
from famnb.request.compat import OutputConfig
from famnb.request.vendor import StatelessResponsesRequest, VendorChatRequest, VendorMessagesRequest


class OllamaChatRequest(VendorChatRequest):
    """Chat completions of Ollama."""

    cap_fields: ClassVar[tuple[str, ...]] = ("max_tokens",)
    not_offered: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "tool_choice", "parallel_tool_calls", "user")


class OllamaResponsesRequest(StatelessResponsesRequest):
    """Responses of Ollama."""

    not_offered: ClassVar[tuple[str, ...]] = (
        "tool_choice",
        "parallel_tool_calls",
        "include",
        "truncation",
        "metadata",
        "user",
    )


class OllamaOutputConfig(OutputConfig):
    """How much effort the answer is worth."""

    not_offered: ClassVar[tuple[str, ...]] = ("format",)


class OllamaMessagesRequest(VendorMessagesRequest):
    """Messages of Ollama."""

    not_offered: ClassVar[tuple[str, ...]] = ("tool_choice", "cache_control", "metadata", "service_tier")

    output_config: OllamaOutputConfig | None = None
    """How much effort the answer is worth."""


_WITHOUT_FORMAT: dict[str, Any] = {
    **MESSAGES_TRAITS,
    "format": None,
    "implied": ENDPOINTS["messages"].traits.implied,
}

PROFILE = Profile(
    name="ollama",
    title="Ollama",
    documentation="https://docs.ollama.com/api/openai-compatibility",
    endpoints=server_endpoints(
        ("qwen3:8b", "gpt-oss:20b", "gemma4:31b"),
        chat=OllamaChatRequest,
        chat_fields={"reasoning": "Reasoning"},
        responses=OllamaResponsesRequest,
        messages=OllamaMessagesRequest,
        messages_traits=_WITHOUT_FORMAT,
    ),
    base_url="http://127.0.0.1:11434",
    url_variables=("OLLAMA_HOST",),
    key_variables=("OLLAMA_API_KEY",),
    needs_key=False,
)
