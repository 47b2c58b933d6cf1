"""vLLM: an engine of one's own, by chat completions, responses and messages.

    chat        as OpenAI's, with max_tokens, and top_k, min_p, repetition_penalty, min_tokens, ignore_eos,
                thinking_token_budget, include_reasoning, chat_template_kwargs, structured_outputs, priority
    responses   as OpenAI's; a reply is kept where `store=True` and the server runs with
                VLLM_ENABLE_RESPONSES_API_STORE=1
    messages    max_tokens, system, tools, tool_choice, stop_sequences, temperature, top_k, top_p, output_config

https://docs.vllm.ai/en/stable/serving/openai_compatible_server/
"""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from famnb.profiles.open import ServerChatRequest, server_endpoints
from famnb.profiles.profile import MESSAGES_TRAITS, Profile
from famnb.request.message_parts import Reasoning
from famnb.request.types import Tokens
from famnb.request.vendor import VendorMessagesRequest


class VLLMChatRequest(ServerChatRequest):
    """Chat completions of vLLM."""

    top_k: Annotated[int, Field(ge=-1)] | None = None
    """Only from so many of the likeliest tokens; -1 for all."""
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """Only tokens at least so likely, relative to the likeliest."""
    repetition_penalty: Annotated[float, Field(gt=0)] | None = None
    """Above 1 against saying the same words again."""
    min_tokens: Annotated[int, Field(ge=0)] | None = None
    """At least this many tokens."""
    ignore_eos: bool | None = None
    """Whether to go on after the model's end, up to the cap; for measuring."""
    thinking_token_budget: Tokens | None = None
    """At most this many tokens of thinking."""
    include_reasoning: bool | None = None
    """Whether the reply shows the thinking; it does unless this is false."""
    priority: int | None = None
    """Lower is served sooner, where the server runs with priorities."""
    chat_template_kwargs: dict[str, Any] | None = None
    """Options of the model's chat template, such as `{"enable_thinking": false}`."""
    structured_outputs: dict[str, Any] | None = None
    """The form of the answer by a grammar, an expression or choices."""


class VLLMMessagesRequest(VendorMessagesRequest):
    """Messages of vLLM."""

    not_offered: ClassVar[tuple[str, ...]] = ("thinking", "cache_control", "service_tier")

    chat_template_kwargs: dict[str, Any] | None = None
    """Options of the model's chat template, such as `{"enable_thinking": false}`."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is not None:
            effort = Reasoning.for_budget(thinking).effort
            fields["output_config"] = {"effort": effort, **(fields.get("output_config") or {})}
        return super().compose(prompt, system=system, thinking=None, **fields)


PROFILE = Profile(
    name="vllm",
    title="vLLM",
    documentation="https://docs.vllm.ai/en/stable/serving/openai_compatible_server/",
    endpoints=server_endpoints(
        ("Qwen/Qwen3-8B",),
        chat=VLLMChatRequest,
        chat_fields={
            "top_k": "Sampling",
            "min_p": "Sampling",
            "repetition_penalty": "Sampling",
            "thinking_token_budget": "Reasoning",
            "chat_template_kwargs": "Reasoning",
            "include_reasoning": "Reasoning",
            "structured_outputs": "Output form",
        },
        messages=VLLMMessagesRequest,
        messages_traits={**MESSAGES_TRAITS, "thinking": "effort"},
    ),
    base_url="http://127.0.0.1:8000",
    key_variables=("VLLM_API_KEY",),
    needs_key=False,
)
