"""The fields that `Client.ask` passes on to a request, as a type: editors complete them, type checkers check them.

A field of one's own profile is passed as `**extra`, where `extra` is a `dict[str, Any]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class Fields(TypedDict, total=False):
    """Every field of the requests of famnb's own profiles that is not a parameter of `Client.ask`.

    An endpoint has some of them: `famnb.MessagesRequest?` shows which, with limits and defaults. None leaves one unset.
    """

    background: bool | None
    cache_control: Mapping[str, Any] | None
    chat_template_kwargs: Mapping[str, Any] | None
    conversation: str | None
    extra_body: Mapping[str, Any] | None
    frequency_penalty: float | None
    ignore_eos: bool | None
    include: Sequence[str] | None
    include_reasoning: bool | None
    instructions: str | None
    logit_bias: Mapping[str, float] | None
    logprobs: bool | None
    max_completion_tokens: int | None
    max_new_tokens: int | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    metadata: Mapping[str, Any] | None
    min_p: float | None
    min_tokens: int | None
    models: Sequence[str] | None
    output_config: Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    plugins: Sequence[Mapping[str, Any]] | None
    presence_penalty: float | None
    previous_response_id: str | None
    priority: int | None
    prompt_cache_key: str | None
    prompt_mode: str | None
    provider: Mapping[str, Any] | None
    random_seed: int | None
    reasoning: Any
    reasoning_effort: str | None
    reasoning_format: str | None
    repetition_penalty: float | None
    response_format: Any
    safe_prompt: bool | None
    safety_identifier: str | None
    seed: int | None
    service_tier: str | None
    session_id: str | None
    stop: str | Sequence[str] | None
    stop_sequences: Sequence[str] | None
    store: bool | None
    stream_options: Any
    structured_outputs: Mapping[str, Any] | None
    temperature: float | None
    text: Any
    thinking_token_budget: int | None
    tool_choice: Any
    top_a: float | None
    top_k: int | None
    top_logprobs: int | None
    top_p: float | None
    transforms: Sequence[str] | None
    truncation: str | None
    user: str | None
    verbosity: str | None
