"""What an engine is: whatever generates the events of a reply to a prompt."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from famnb.events import Event
from famnb.service.prompt import GenerationPrompt


class Engine(Protocol):
    """Generates replies to prompts, knowing nothing of endpoints."""

    name: str
    """The value of the header `x-famnb-engine` on every response: `sim`, `upstream`."""

    takes_any_model: bool
    """Whether it may know models that the document does not have."""

    def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        """Yield the events of one reply, from a `Started` once the prompt is accepted to `Ended`, `Usage`, `Done`.

        A ServiceError raised before `Started` becomes the error response; any exception after it, the stream's
        failure. Thinking is yielded only if `prompt.thinking` is set. The reply's id is filled in by the caller.
        """

    async def state(self) -> dict[str, Any]:
        """Return what `/health` reports of the engine beside its name; nothing secret, for it needs no key."""

    async def models(self) -> tuple[str, ...]:
        """Return the ids of its models beside the document's."""

    async def count_tokens(self, prompt: GenerationPrompt, /) -> int:
        """Return how many tokens a prompt has. Raises ServiceError if that cannot be found out."""

    async def aclose(self) -> None:
        """Close what the engine holds, once the service has shut down."""
