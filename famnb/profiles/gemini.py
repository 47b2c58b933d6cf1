"""Gemini: chat completions at Google's address for them.

    header      authorization: Bearer
    body        model, messages, max_tokens, temperature, top_p, stop, seed, stream, stream_options, tools,
                tool_choice, response_format, reasoning_effort

It refuses a field that it does not know with status 400, so those of OpenAI that Google does not name are not offered
here: penalties, `logprobs`, `user`, `parallel_tool_calls`. What Gemini alone has stands in its own `extra_body`:
`extra_body={"extra_body": {"google": {"thinking_config": {"include_thoughts": True}}}}`.

https://ai.google.dev/gemini-api/docs/openai
"""

from typing import ClassVar

from famnb.profiles.profile import CHAT_FIELDS, CHAT_TRAITS, Profile, vendor_endpoint
from famnb.request.vendor import VendorChatRequest


class GeminiChatRequest(VendorChatRequest):
    """Chat completions at Gemini."""

    not_offered: ClassVar[tuple[str, ...]] = (
        "reasoning",
        "frequency_penalty",
        "presence_penalty",
        "parallel_tool_calls",
        "logprobs",
        "top_logprobs",
        "user",
    )


PROFILE = Profile(
    name="gemini",
    title="Gemini",
    documentation="https://ai.google.dev/gemini-api/docs/openai",
    endpoints={
        "chat": vendor_endpoint(
            "chat",
            GeminiChatRequest,
            "/chat/completions",
            ("gemini-3.5-flash", "gemini-3.8-flash"),
            fields=CHAT_FIELDS,
            traits=CHAT_TRAITS,
        )
    },
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
