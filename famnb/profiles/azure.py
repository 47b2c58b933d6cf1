"""Azure: OpenAI's dialects at a resource of one's own, where `model` is the name of a deployment.

A token of Entra goes into `headers={"authorization": "Bearer …"}`, `query={"api-version": "preview"}` is for a preview.

https://learn.microsoft.com/en-us/azure/foundry/openai/latest
"""

from famnb.profiles import openai
from famnb.profiles.profile import Profile, vendor_endpoints

PROFILE = Profile(
    name="azure",
    title="Azure OpenAI",
    endpoints=vendor_endpoints(
        openai.MODELS, openai.OpenAIResponsesRequest, openai.OpenAIChatRequest, prefix="/openai/v1"
    ),
    url_variables=("AZURE_OPENAI_ENDPOINT",),
    key_variables=("AZURE_OPENAI_API_KEY",),
    key_header="api-key",
    names_deployments=True,
)
