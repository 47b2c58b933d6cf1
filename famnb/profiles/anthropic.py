"""Anthropic: messages.

    header      x-api-key, anthropic-version
    body        model, max_tokens (always), messages, system, stream, thinking, output_config, tools, tool_choice,
                stop_sequences, temperature, top_k, top_p, cache_control, metadata, service_tier
    blocks      text, image and document (base64 or url), tool_use, tool_result, thinking; each may end what is cached

Models from Claude 4.6 on decide themselves how much to think: for them `thinking=` of `compose` and `ask` is the
nearest effort, `thinking={"type": "adaptive"}` and `output_config={"effort": …}`; for earlier ones it is a budget.

https://platform.claude.com/docs/en/api/messages
"""

import re
from typing import Any, Self

from famnb.profiles.profile import MESSAGES_FIELDS, MESSAGES_TRAITS, Profile, vendor_endpoint
from famnb.request.message_parts import Reasoning
from famnb.request.vendor import MESSAGES_TOKENS, VendorMessagesRequest

# In the name of a model the numbers stand behind the family or before it; eight digits at the end are a date.
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_FIRST_ADAPTIVE = (4, 6)
_LEAST_BUDGET = 1024
_SAMPLING = ("temperature", "top_p", "top_k")


class AnthropicMessagesRequest(VendorMessagesRequest):
    """Messages at Anthropic."""

    @classmethod
    def compose(cls, prompt: str, *, system: str | None, thinking: int | None, **fields: Any) -> Self:
        if thinking is None or _version(fields.get("model", "")) < _FIRST_ADAPTIVE:
            return super().compose(prompt, system=system, thinking=thinking, **fields)
        effort = Reasoning.for_budget(thinking).effort
        fields["output_config"] = {"effort": effort, **(fields.get("output_config") or {})}
        fields.setdefault("max_tokens", MESSAGES_TOKENS + thinking)
        request = super().compose(prompt, system=system, thinking=None, **fields)
        loss = f"`thinking={thinking}` is carried as the effort {effort}: {request.model} takes no token budget"
        # `summarized`, since some models would send the signature alone.
        return request.replace(thinking={"type": "adaptive", "display": "summarized"}).with_losses((loss,))

    def hints(self) -> list[str]:
        hints = []
        budget = self.thinking.budget_tokens if self.thinking else None
        if budget is not None and budget < _LEAST_BUDGET:
            hints.append(f"The thinking budget of {budget:,} is below {_LEAST_BUDGET:,}, the least there is.")
        refused = [f"`{name}`" for name in _SAMPLING if name in self.model_fields_set]
        if refused and _version(self.model) > _FIRST_ADAPTIVE:
            hints.append(f"The newer models of Claude refuse {', '.join(refused)}.")
        return [*hints, *super().hints()]


def _version(model: str) -> tuple[int, int]:
    """Return the version in the name of a model; (0, 0) if it has none."""
    match = _VERSION.match(model)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


PROFILE = Profile(
    name="anthropic",
    title="Anthropic",
    documentation="https://platform.claude.com/docs/en/api/messages",
    endpoints={
        "messages": vendor_endpoint(
            "messages",
            AnthropicMessagesRequest,
            "/v1/messages",
            ("claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5"),
            fields=MESSAGES_FIELDS,
            traits=MESSAGES_TRAITS,
        )
    },
    base_url="https://api.anthropic.com",
    url_variables=("ANTHROPIC_BASE_URL",),
    key_variables=("ANTHROPIC_API_KEY",),
    key_header="x-api-key",
    headers={"anthropic-version": "2023-06-01"},
)
