"""Anthropic: messages.

Beside functions stand Anthropic's own tools: `tools=[weather, {"type": "web_search_20250305", "name": "web_search"}]`.

Models from Claude 4.6 on decide themselves how much to think: for them `thinking=` of `compose` and `ask` is the
nearest effort, `thinking={"type": "adaptive"}` and `output_config={"effort": …}`; for earlier ones it is a budget.

https://platform.claude.com/docs/en/api/messages
"""

import dataclasses
import re
from typing import Any

from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.message_parts import nearest_effort
from famnb.request.vendor_fields import MESSAGES, MESSAGES_TRAITS, OWN_MESSAGES_TOOLS, messages_request

MODELS = ("claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5")
# In the name of a model the numbers stand behind the family or before it; eight digits at the end are a date.
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_FIRST_ADAPTIVE = (4, 6)
_BETAS = {
    '"type":"computer_20241022"': "computer-use-2024-10-22",
    '"type":"computer_20250124"': "computer-use-2025-01-24",
    '"type":"computer_20251124"': "computer-use-2025-11-24",
    '"type":"code_execution_20250522"': "code-execution-2025-05-22",
    '"type":"advisor_20260301"': "advisor-tool-2026-03-01",
    '"type":"compact_20260112"': "compact-2026-01-12",
    '"type":"file"': "files-api-2025-04-14",
    '"mcp_servers":': "mcp-client-2025-11-20",
    '"context_management":': "context-management-2025-06-27",
    '"skills":': "skills-2025-10-02",
    '"speed":': "fast-mode-2026-02-01",
}
"""What in a request's JSON needs a header that names the beta."""


def _carry_thinking(fields: dict[str, Any], tokens: int) -> tuple[dict[str, Any], str]:
    model = fields.get("model", "")
    version = _VERSION.match(model)
    if version is None or (int(version[1]), int(version[2] or 0)) < _FIRST_ADAPTIVE:
        return MESSAGES_TRAITS.carry_thinking(fields, tokens)
    effort = nearest_effort(tokens)
    carried = {
        "output_config": {"effort": effort, **(fields.get("output_config") or {})},
        # `summarized`, since some models would send the signature alone.
        "thinking": {"type": "adaptive", "display": "summarized"},
    }
    loss = f"`thinking={tokens}` is carried as the effort {effort}: {model} takes no token budget"
    return {**fields, **carried}, loss


AnthropicMessagesRequest = messages_request(
    "AnthropicMessagesRequest",
    "Messages at Anthropic.",
    {**MESSAGES, **OWN_MESSAGES_TOOLS},
    traits=dataclasses.replace(MESSAGES_TRAITS, carry_thinking=_carry_thinking),
    module=__name__,
)

PROFILE = Profile(
    name="anthropic",
    title="Anthropic",
    endpoints=vendor_endpoints(MODELS, AnthropicMessagesRequest),
    base_url="https://api.anthropic.com",
    url_variables=("ANTHROPIC_BASE_URL",),
    key_variables=("ANTHROPIC_API_KEY",),
    key_header="x-api-key",
    headers={"anthropic-version": "2023-06-01"},
    feature_header="anthropic-beta",
    features=_BETAS,
)
