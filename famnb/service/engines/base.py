"""What an engine is: what the app asks of whatever generates the text."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from famnb.events import Event
from famnb.service.prompt import GenerationPrompt


class Engine(Protocol):
    """Answers prompts, knowing nothing of endpoints."""

    name: str
    """What `x-famnb-engine` says on every answer: `sim`, `upstream`."""

    def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        """The events of one reply, from a `Started` once the prompt is accepted to `Ended`, `Usage`, `Done`.

        A Refusal raised before `Started` becomes the error response; any exception after it, the stream's failure.
        Thinking is said only when the prompt shows it. The app fills in the reply's id.
        """

    async def state(self) -> dict[str, Any]:
        """What `/health` says of the engine beside its name; nothing secret."""

    async def aclose(self) -> None:
        """Let go of what the engine holds, once the service ends."""
