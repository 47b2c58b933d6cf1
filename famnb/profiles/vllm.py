"""vLLM: an engine of one's own, by chat completions, responses and messages.

A response is kept where `store=True` and the server runs with VLLM_ENABLE_RESPONSES_API_STORE=1.

https://docs.vllm.ai/en/stable/serving/openai_compatible_server/
"""

import dataclasses
from typing import Annotated, Any

from pydantic import Field

from famnb.profiles.open import SERVER_CHAT, ServerResponsesRequest
from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.fields import Row, pick
from famnb.request.message_parts import nearest_effort
from famnb.request.types import Tokens
from famnb.request.vendor_fields import MESSAGES, MESSAGES_TRAITS, MIN_P, Count, chat_request, messages_request

_TEMPLATE = Row(
    dict[str, Any], 'Options of the model\'s chat template, such as `{"enable_thinking": false}`.', "Reasoning"
)

VLLMChatRequest = chat_request(
    "VLLMChatRequest",
    "Chat completions of vLLM.",
    {
        **SERVER_CHAT,
        "top_k": Row(
            Annotated[int, Field(ge=-1)], "Only from so many of the likeliest tokens; -1 for all.", "Sampling"
        ),
        "min_p": MIN_P,
        "repetition_penalty": Row(
            Annotated[float, Field(gt=0)], "Above 1 against saying the same words again.", "Sampling"
        ),
        "min_tokens": Row(Count, "At least this many tokens."),
        "ignore_eos": Row(bool, "Whether to go on after the model's end, up to the cap; for measuring."),
        "thinking_token_budget": Row(Tokens, "At most this many tokens of thinking.", "Reasoning"),
        "include_reasoning": Row(
            bool, "Whether the reply shows the thinking; it does unless this is false.", "Reasoning"
        ),
        "priority": Row(int, "Lower is served sooner, where the server runs with priorities."),
        "chat_template_kwargs": _TEMPLATE,
        "structured_outputs": Row(
            dict[str, Any], "The form of the answer by a grammar, an expression or choices.", "Output form"
        ),
    },
    module=__name__,
)


def _carry_thinking(fields: dict[str, Any], tokens: int) -> tuple[dict[str, Any], str]:
    return {**fields, "output_config": {"effort": nearest_effort(tokens), **(fields.get("output_config") or {})}}, ""


VLLMMessagesRequest = messages_request(
    "VLLMMessagesRequest",
    "Messages of vLLM.",
    {
        **pick(
            MESSAGES,
            "model messages system max_tokens stream temperature top_p extra_body tools tool_choice stop_sequences "
            "output_config top_k metadata",
        ),
        "chat_template_kwargs": _TEMPLATE,
    },
    traits=dataclasses.replace(MESSAGES_TRAITS, thinking="effort", carry_thinking=_carry_thinking),
    module=__name__,
)

PROFILE = Profile(
    name="vllm",
    title="vLLM",
    endpoints=vendor_endpoints(("Qwen/Qwen3-8B",), VLLMChatRequest, ServerResponsesRequest, VLLMMessagesRequest),
    base_url="http://127.0.0.1:8000",
    key_variables=("VLLM_API_KEY",),
    needs_key=False,
)
