"""What the tests of profiles share: every vendor with its endpoints and paths, a form and a tool."""

import pydantic

import famnb
from famnb.profiles import VENDOR_NAMES, find_profile

VENDORS = [(name, endpoint) for name in VENDOR_NAMES for endpoint in find_profile(name).endpoints]
PATHS = {
    "openai": {"responses": "/v1/responses", "chat": "/v1/chat/completions"},
    "anthropic": {"messages": "/v1/messages"},
    "openrouter": {"chat": "/v1/chat/completions"},
    "gemini": {"chat": "/chat/completions"},
    "azure": {"responses": "/openai/v1/responses", "chat": "/openai/v1/chat/completions"},
    "deepseek": {"chat": "/v1/chat/completions"},
    "groq": {"chat": "/openai/v1/chat/completions"},
    "mistral": {"chat": "/v1/chat/completions"},
    "xai": {"responses": "/v1/responses", "chat": "/v1/chat/completions"},
    "together": {"chat": "/v1/chat/completions"},
    "bedrock": {"chat": "/v1/chat/completions", "responses": "/v1/responses"},
    "vertex": {"chat": "/chat/completions"},
    "ollama": {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"},
    "vllm": {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"},
    "open": {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"},
}


class Trip(pydantic.BaseModel):
    """Where to go."""

    city: str


@famnb.tool
def weather(city: str) -> str:
    """The weather of a city right now."""
    return f"4 degrees in {city}"
