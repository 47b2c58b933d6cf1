"""vLLM: an engine of one's own, by chat completions, responses and messages."""

from typing import Annotated, Any

from pydantic import Field

from famnb.profiles.own_server import server_endpoints
from famnb.profiles.profile import Profile
from famnb.request.types import Tokens
from famnb.request.vendor import VendorChatRequest


class VLLMChatRequest(VendorChatRequest):
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
    chat_template_kwargs: dict[str, Any] | None = None
    """Options of the model's chat template, such as `{"enable_thinking": false}`."""
    structured_outputs: dict[str, Any] | None = None
    """The form of the answer by a grammar, an expression or choices."""


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
            "structured_outputs": "Output form",
        },
    ),
    base_url="http://127.0.0.1:8000",
    key_variables=("VLLM_API_KEY",),
    needs_key=False,
)
