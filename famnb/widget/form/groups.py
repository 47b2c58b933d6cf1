"""Under which heading a field of any request stands: declared once for all endpoints, by the field's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from famnb.request import Request

FIRST: Final = ""
"""What a newcomer needs; it stands above all headings."""
IMAGES: Final = "Images"
TOOLS: Final = "Tools"
FORM: Final = "Output form"
OTHER: Final = "More"
"""What has no heading of its own."""
GROUPS = ("Sampling", "Reasoning", FORM, TOOLS, IMAGES, "Conversation", "Stream", "Metadata", OTHER)
"""The headings in the order in which they stand."""
EXACT = ("fields as JSON",)
"""The place of fields that are sent as they stand, whatever the controls say."""
_BY_NAME: Mapping[str, str] = {
    "model": FIRST,
    "temperature": "Sampling",
    "top_p": "Sampling",
    "thinking": "Reasoning",
    "reasoning": "Reasoning",
    "response_format": FORM,
    "text": FORM,
    "tools": TOOLS,
    "tool_choice": TOOLS,
    "system": "Conversation",
    "instructions": "Conversation",
    "previous_response_id": "Conversation",
    "stream": "Stream",
    "stream_options": "Stream",
    "store": "Metadata",
    "metadata": "Metadata",
}


def group_of(model: type[Request], name: str) -> str:
    """The heading under which a request's field stands."""
    if name == model.cap:
        return FIRST
    if name == model.prompt_field:
        return "Conversation"
    return _BY_NAME.get(name, OTHER)
