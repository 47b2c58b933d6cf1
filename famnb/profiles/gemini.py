"""Gemini: chat completions at Google's address for them.

It refuses a field that it does not know with status 400, so those of OpenAI that Google does not name are not offered
here: penalties, `logprobs`, `user`, `parallel_tool_calls`. What Gemini alone has stands in its own `extra_body`:
`extra_body={"extra_body": {"google": {"thinking_config": {"include_thoughts": True}}}}`. So do tools of Google's own,
which stand beside functions: `extra_body={"tools": [{"google_search": {}}]}`.

https://ai.google.dev/gemini-api/docs/openai
"""

from famnb.profiles.profile import Profile, vendor_endpoints
from famnb.request.fields import pick
from famnb.request.vendor_fields import CHAT, chat_request

_FIELDS = (
    "model messages stream max_tokens response_format max_completion_tokens stream_options tools tool_choice stop "
    "extra_body temperature top_p reasoning_effort seed"
)
GeminiChatRequest = chat_request(
    "GeminiChatRequest", "Chat completions at Gemini.", pick(CHAT, _FIELDS), module=__name__
)

PROFILE = Profile(
    name="gemini",
    title="Gemini",
    endpoints=vendor_endpoints(("gemini-3.5-flash", "gemini-3.8-flash"), GeminiChatRequest, prefix=""),
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
