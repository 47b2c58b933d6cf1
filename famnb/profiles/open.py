"""Any other server that speaks one of the three dialects: llama.cpp, SGLang, LM Studio, a LiteLLM proxy …"""

from famnb.profiles.own_server import server_endpoints
from famnb.profiles.profile import Profile

PROFILE = Profile(
    name="open",
    title="A server of your own",
    documentation="https://platform.openai.com/docs/api-reference/chat",
    endpoints=server_endpoints(("default",)),
    key_variables=(),
    needs_key=False,
)
