"""The clients of the field: what installs them, which script drives them, and what they offer.

Each client runs in an environment of its own, since their dependencies exclude each other. Libraries that only call one
of these are left out.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
CASES = ("whole", "stream", "tools", "streamed_tools", "object", "streamed_object")
MODELS = {
    "chat": "gpt-4o-mini",
    "compatible": "gpt-4o-mini",
    "responses": "gpt-5-mini",
    "messages": "claude-sonnet-4-5",
}
"""What is asked for at each API: clients know these names, and do with them what they do with the vendor's."""


@dataclasses.dataclass(frozen=True)
class Client:
    """A client at one of the APIs that it speaks."""

    name: str
    api: str
    """`chat`, `responses`, `messages`, or `compatible` for a provider of servers like OpenAI's."""
    script: str
    packages: tuple[str, ...] = ()
    """What to install, the client first; empty for one that the tests have installed anyway."""
    cases: tuple[str, ...] = CASES
    not_offered: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict, hash=False)
    """Why a case fails, by service and case; the test fails once it does not."""

    def __str__(self) -> str:
        return f"{self.name} {self.api}"

    @property
    def is_javascript(self) -> bool:
        return self.script.endswith(".mjs")


VERCEL = ("ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "@ai-sdk/anthropic", "zod")
LANGCHAIN = ("langchain-openai", "langchain-anthropic")
# LiteLLM imports mcp where a tool is given, but does not depend on it.
LITELLM = ("litellm", "mcp")
NO_FORMAT = (
    "it parses a streamed answer only where the response repeats `text.format` of its request, "
    "which the document's response does not have; with `--profile openresponses` it has"
)

OPENAI_APIS = ("chat", "responses")
CLIENTS = (
    *(Client("openai", api, "openai_sdk.py", cases=(*CASES, "models")) for api in OPENAI_APIS),
    Client("anthropic", "messages", "anthropic_sdk.py", cases=(*CASES, "models")),
    *(Client("openai (npm)", api, "openai_sdk.mjs", ("openai", "zod"), (*CASES, "models")) for api in OPENAI_APIS),
    Client("anthropic (npm)", "messages", "anthropic_sdk.mjs", ("@anthropic-ai/sdk", "zod"), (*CASES, "models")),
    *(Client("ai (npm)", api, "vercel_ai.mjs", VERCEL) for api in MODELS),
    Client("langchain-openai", "chat", "langchain_models.py", LANGCHAIN, (*CASES, "object_by_tool")),
    Client(
        "langchain-openai",
        "responses",
        "langchain_models.py",
        LANGCHAIN,
        (*CASES, "object_by_tool"),
        not_offered={(service, "streamed_object"): NO_FORMAT for service in ("simulation", "engine", "smollm2")},
    ),
    Client("langchain-anthropic", "messages", "langchain_models.py", LANGCHAIN[::-1], (*CASES, "object_by_tool")),
    *(Client("litellm", api, "litellm_calls.py", LITELLM) for api in ("chat", "responses", "messages")),
)
