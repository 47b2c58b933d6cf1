"""Any other server that speaks one of the three dialects: llama.cpp, SGLang, LM Studio, a LiteLLM proxy …

    chat        max_tokens, tools, seed, stop, penalties, response_format, reasoning_effort, stream_options
    responses   as OpenAI has them; a reply is taken to be kept only where the request says `store=True`
    messages    as Anthropic has them

https://platform.openai.com/docs/api-reference/chat and https://platform.claude.com/docs/en/api/messages
"""

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
