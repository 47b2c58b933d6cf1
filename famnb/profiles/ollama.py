"""Ollama: models on this machine, by chat completions, responses and messages."""

from famnb.profiles.own_server import server_endpoints
from famnb.profiles.profile import Profile

PROFILE = Profile(
    name="ollama",
    title="Ollama",
    documentation="https://docs.ollama.com/api/openai-compatibility",
    # It keeps no responses.
    endpoints=server_endpoints(("qwen3:8b", "gpt-oss:20b", "gemma4:31b"), stores_replies=False),
    base_url="http://127.0.0.1:11434",
    url_variables=("OLLAMA_HOST",),
    key_variables=("OLLAMA_API_KEY",),
    needs_key=False,
)
