"""Profile, a vendor's API as a value: its endpoints, address, key and headers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints
from famnb.request import Request
from famnb.request.base import Heading
from famnb.request.neutral import FormatPaths


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The API of one vendor, or of one kind of server."""

    name: str
    """The name that `famnb.Client(profile=…)` takes."""
    title: str
    documentation: str
    """The vendor's own page about the requests."""
    endpoints: Endpoints = dataclasses.field(hash=False)
    """What it has, by name; the first is the default."""
    base_url: str | None = None
    """Where it is; None where everyone has an address of their own."""
    url_variables: tuple[str, ...] = ()
    """Environment variables that may hold the address, in order."""
    key_variables: tuple[str, ...]
    """Environment variables that may hold the key, in order."""
    needs_key: bool = True
    key_header: str = "authorization"
    """The header that carries the key; `Bearer` stands before it in `authorization` alone."""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """Headers that every request has."""
    query: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """What every address ends with, after the question mark."""


CHAT_TRAITS: Mapping[str, Any] = MappingProxyType(
    {"documents_images": True, "usage_fields": {"stream_options": {"include_usage": True}}}
)
"""What chat completions can carry at most vendors."""
CHAT_FIELDS: Mapping[str, Heading] = MappingProxyType(
    {
        "seed": "Sampling",
        "frequency_penalty": "Sampling",
        "presence_penalty": "Sampling",
        "stop": "Sampling",
        "reasoning_effort": "Reasoning",
        "tools": "Tools",
        "tool_choice": "Tools",
        "parallel_tool_calls": "Tools",
        "stream_options": "Stream",
        "user": "Metadata",
    }
)
"""The headings of the fields of chat completions that most vendors have."""
RESPONSES_FIELDS: Mapping[str, Heading] = MappingProxyType(
    {"tools": "Tools", "tool_choice": "Tools", "parallel_tool_calls": "Tools", "user": "Metadata"}
)
"""The same for responses."""
_MESSAGES_FORMAT = FormatPaths(("output_config", "format"), ("output_config", "format"), names=("schema",))
MESSAGES_TRAITS: Mapping[str, Any] = MappingProxyType(
    {
        "documents_images": True,
        "format": _MESSAGES_FORMAT,
        "implied": {
            **ENDPOINTS["messages"].traits.implied,
            _MESSAGES_FORMAT.schema: (_MESSAGES_FORMAT.type, "json_schema"),
        },
    }
)
"""What messages can carry at the vendors who have them."""
MESSAGES_FIELDS: Mapping[str, Heading] = MappingProxyType(
    {
        "top_k": "Sampling",
        "stop_sequences": "Sampling",
        "tools": "Tools",
        "tool_choice": "Tools",
        "output_config": "Output form",
        "metadata": "Metadata",
    }
)
"""The headings of the fields of messages."""


def vendor_endpoint(
    name: str,
    request: type[Request],
    path: str,
    models: tuple[str, ...],
    *,
    fields: Mapping[str, Heading] = MappingProxyType({}),
    traits: Mapping[str, Any] = MappingProxyType({}),
) -> Endpoint:
    """Return a vendor's endpoint: the document's of that name, with what differs.

    `models` are suggestions, the first the default. `traits` are changes of the document's RequestTraits, `fields` the
    headings of fields that it does not have.
    """
    ours = ENDPOINTS[name]
    known = request.model_fields
    # A vendor may be without a field of the document.
    groups = {field: heading for field, heading in {**ours.traits.groups, **fields}.items() if field in known}
    implications = traits.get("implied", ours.traits.implied)
    implied = {field: value for field, value in implications.items() if field[0] in known}
    return dataclasses.replace(
        ours,
        request=request,
        path=path,
        models=models,
        alt=False,
        traits=dataclasses.replace(ours.traits, **{**traits, "groups": groups, "implied": implied}),
    )
