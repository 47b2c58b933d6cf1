"""Models on this machine, behind famnb's own service: every endpoint, with the vendors' fields as well.

    famnb.connect("local")                          # smollm2; `famnb model list` has the known ones
    famnb.connect("local", model="FILE.gguf")       # any model in llama.cpp's format

Answers keep a JSON schema by llama.cpp's grammars; tools are called where the model's template has them. A call takes
the time it takes, and has no price.

https://github.com/ggml-org/llama.cpp/tree/master/tools/server
"""

from __future__ import annotations

import dataclasses

from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request import ResponsesRequest, WebChatRequest
from famnb.request.fields import build_request
from famnb.request.gateway_fields import CHAT, MESSAGES, RESPONSES, WEB
from famnb.request.vendor_fields import CHAT_TRAITS, MESSAGES_TRAITS, chat_request, messages_request

LOCAL = "local"
_CHAT_TRAITS = dataclasses.replace(CHAT_TRAITS, returns_opaque=False)
LocalChatRequest = chat_request(
    "LocalChatRequest", "Chat completions of a local model.", CHAT, traits=_CHAT_TRAITS, module=__name__
)
LocalResponsesRequest = build_request(
    "LocalResponsesRequest", "Responses of a local model.", RESPONSES, like=ResponsesRequest, module=__name__
)
LocalWebChatRequest = build_request(
    "LocalWebChatRequest", "Web chat of a local model.", WEB, like=WebChatRequest, module=__name__
)
LocalMessagesRequest = messages_request(
    "LocalMessagesRequest",
    "Messages of a local model.",
    MESSAGES,
    traits=dataclasses.replace(MESSAGES_TRAITS, documents_images=False, returns_opaque=False),
    module=__name__,
)
_REQUESTS = (LocalChatRequest, LocalResponsesRequest, LocalWebChatRequest, LocalMessagesRequest)
PROFILE = Profile(
    name=LOCAL,
    title="A model on this machine",
    endpoints=vendor_endpoints(("smollm2",), *_REQUESTS),
    # With it, streams of messages count the prompt's tokens as well.
    headers={"anthropic-version": "2023-06-01"},
)


def local_profile(models: tuple[str, ...]) -> Profile:
    """Return the profile for a service with these models, the first the default."""
    return dataclasses.replace(PROFILE, endpoints=vendor_endpoints(models, *_REQUESTS))
