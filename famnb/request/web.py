"""The request of `POST {alt_base_url}/v1/web/chat/completions`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, ClassVar

from pydantic import FailFast

from famnb.request.base import RequestTraits
from famnb.request.chat import TRAITS as CHAT_TRAITS
from famnb.request.chat import BaseChatRequest
from famnb.request.message_parts import Reasoning, ResponseFormat
from famnb.request.tool_forms import CheckedToolChoice, Tool
from famnb.request.types import ProModel, StrictModel, Temperature, Tokens, TopP, any_shape


class StreamOptions(StrictModel):
    """Options of the stream."""

    include_usage: bool | None = None
    """One more chunk with the full usage before `[DONE]`."""


TRAITS = dataclasses.replace(
    CHAT_TRAITS,
    documents_images=False,
    usage_fields={"stream_options": {"include_usage": True}},
    groups={**CHAT_TRAITS.groups, "tools": "Tools", "tool_choice": "Tools", "stream_options": "Stream"},
)


class WebChatRequest(BaseChatRequest):
    """Chat completions with tools."""

    model_config = any_shape({"tool_choice": {"enum": ["none", "auto"]}}, {"tools": {"type": "array", "minItems": 1}})

    endpoint: ClassVar[str] = "web"
    traits: ClassVar[RequestTraits] = TRAITS
    cap: ClassVar[str] = "max_new_tokens"

    model: ProModel
    """`fam-2-5-pro` or `fam-2-5-mini`."""
    stream: bool = False
    """Server-sent events when true."""
    stream_options: StreamOptions | None = None
    """Options of the stream."""
    tools: Annotated[list[Tool] | None, FailFast()] = None
    """Functions the model may call."""
    tool_choice: CheckedToolChoice = "auto"
    """`none`: a message; `auto`: a message or calls; `required`: one or more calls; or the one tool to call."""
    max_new_tokens: Tokens = 2048
    """Maximum tokens to generate."""
    reasoning: Reasoning | None = None
    """How much to reason; counted in usage, not shown."""
    response_format: ResponseFormat | None = None
    """Text or JSON; text unless set."""
    temperature: Temperature = 0.1
    """Sampling temperature."""
    top_p: TopP = 1.0
    """Nucleus sampling."""
