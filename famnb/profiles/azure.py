"""Azure: OpenAI's dialects at a resource of one's own, where `model` is the name of a deployment."""

import dataclasses

from famnb.profiles import openai
from famnb.profiles.profile import Profile

PROFILE = Profile(
    name="azure",
    title="Azure OpenAI",
    documentation="https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle",
    endpoints={
        name: dataclasses.replace(endpoint, path=f"/openai{endpoint.path}")
        for name, endpoint in openai.PROFILE.endpoints.items()
    },
    url_variables=("AZURE_OPENAI_ENDPOINT",),
    key_variables=("AZURE_OPENAI_API_KEY",),
    key_header="api-key",
)
