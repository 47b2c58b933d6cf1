"""Azure: OpenAI's dialects at a resource of one's own, where `model` is the name of a deployment.

    header      api-key; a token of Entra goes into `headers={"authorization": "Bearer …"}`
    path        /openai/v1/chat/completions, /openai/v1/responses; `query={"api-version": "preview"}` for a preview
    body        as OpenAI's

https://learn.microsoft.com/en-us/azure/foundry/openai/latest
"""

import dataclasses

from famnb.profiles import openai
from famnb.profiles.profile import Profile

PROFILE = Profile(
    name="azure",
    title="Azure OpenAI",
    documentation="https://learn.microsoft.com/en-us/azure/foundry/openai/latest",
    endpoints={
        name: dataclasses.replace(endpoint, path=f"/openai{endpoint.path}")
        for name, endpoint in openai.PROFILE.endpoints.items()
    },
    url_variables=("AZURE_OPENAI_ENDPOINT",),
    key_variables=("AZURE_OPENAI_API_KEY",),
    key_header="api-key",
)
