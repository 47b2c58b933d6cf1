"""Ollama: models on this machine, by chat completions, responses and messages.

    chat        max_tokens, tools, reasoning_effort or reasoning.effort, seed, penalties, stop, stream_options
    responses   input, instructions, tools, max_output_tokens, reasoning.effort, text.format; it keeps none
    messages    max_tokens, thinking, tools, stop_sequences, top_k, output_config.effort

Ollama ignores fields that it does not know, so those that it does not have are not offered here: `tool_choice`,
`user`, `logit_bias`, `previous_response_id`, `metadata`, `cache_control` and the like. Images are data URLs.

https://docs.ollama.com/api/openai-compatibility and https://docs.ollama.com/api/anthropic-compatibility
"""

from typing import Any, ClassVar, Literal

from famnb.endpoints import ENDPOINTS
from famnb.profiles.own_server import server_endpoints
from famnb.profiles.profile import MESSAGES_TRAITS, Profile
from famnb.request.compat import OutputConfig
from famnb.request.vendor import StatelessResponsesRequest, VendorChatRequest, VendorMessagesRequest


class OllamaChatRequest(VendorChatRequest):
    """Chat completions of Ollama."""

    cap_fields: ClassVar[tuple[str, ...]] = ("max_tokens",)

    # Not offered: a class variable in a field's place ends the field in pydantic; mypy sees but another kind of name.
    max_completion_tokens: ClassVar[None] = None  # type: ignore[misc]
    tool_choice: ClassVar[Literal["auto"]] = "auto"  # type: ignore[misc]
    parallel_tool_calls: ClassVar[None] = None  # type: ignore[misc]
    user: ClassVar[None] = None  # type: ignore[misc]


class OllamaResponsesRequest(StatelessResponsesRequest):
    """Responses of Ollama."""

    # Not offered: a class variable in a field's place ends the field in pydantic; mypy sees but another kind of name.
    tool_choice: ClassVar[Literal["auto"]] = "auto"  # type: ignore[misc]
    parallel_tool_calls: ClassVar[None] = None  # type: ignore[misc]
    include: ClassVar[None] = None  # type: ignore[misc]
    truncation: ClassVar[None] = None  # type: ignore[misc]
    metadata: ClassVar[None] = None  # type: ignore[misc]
    user: ClassVar[None] = None  # type: ignore[misc]


class OllamaOutputConfig(OutputConfig):
    """How much effort the answer is worth."""

    # Not offered: a class variable in a field's place ends the field in pydantic; mypy sees but another kind of name.
    format: ClassVar[None] = None  # type: ignore[misc]


class OllamaMessagesRequest(VendorMessagesRequest):
    """Messages of Ollama."""

    output_config: OllamaOutputConfig | None = None
    """How much effort the answer is worth."""
    # Not offered: a class variable in a field's place ends the field in pydantic; mypy sees but another kind of name.
    tool_choice: ClassVar[None] = None  # type: ignore[misc]
    cache_control: ClassVar[None] = None  # type: ignore[misc]
    metadata: ClassVar[None] = None  # type: ignore[misc]
    service_tier: ClassVar[None] = None  # type: ignore[misc]


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
