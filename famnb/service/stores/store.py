"""What a store of responses is, and the words for what it does not have; where it keeps them is left to each."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from famnb.service.prompt import Earlier, Turn
from famnb.service.refusal import Refusal

MOST = 10_000
"""How many responses a key may have stored; the oldest is forgotten first."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A response as far as it came, and what it takes to continue it."""

    id: str = ""
    status: str = "in_progress"
    body: bytes = b""
    """The response object, encoded as a whole reply has it."""
    previous: str | None = None
    """The id of the response that it continues."""
    earlier: Earlier = dataclasses.field(default_factory=Earlier)
    """The conversation up to that one."""
    said: tuple[Turn, ...] = ()
    """The turns it added: the request's own, then the answer."""
    system: str = ""
    """The system text under which the engine saw all of them."""

    @property
    def continuable(self) -> bool:
        """Whether a request may go on from here: not while it runs, nor once it failed or was cancelled."""
        return self.status in ("completed", "incomplete")

    @property
    def conversation(self) -> Earlier:
        """The conversation up to and including this response."""
        return Earlier((*self.earlier.turns, *self.said), self.system)


class Store(Protocol):
    """The responses of every key, each key's own; a conversation goes on by `previous_response_id`, and branches.

    What `add`, `end` and `delete` were told is kept, as surely as the store keeps anything, once they return; when it
    cannot be, they raise Refusal 500.
    """

    async def add(self, key: str, stored: Stored, /) -> None:
        """Keep a response that is new, finished or still running."""

    async def end(self, key: str, stored: Stored, /) -> None:
        """Keep what became of a response that was added while it ran; one deleted meanwhile stays deleted."""

    async def get(self, key: str, id_: str, /) -> bytes:
        """The response object, encoded; raises Refusal 404."""

    async def delete(self, key: str, id_: str, /) -> None:
        """Forget a response; what continues it already goes on. Raises Refusal 404."""

    async def continued(self, key: str, id_: str, /) -> Earlier:
        """The conversation that a request with this `previous_response_id` continues; raises Refusal 400."""

    async def aclose(self) -> None:
        """Finish what was begun, and let go of what the store holds."""


def unknown(id_: str) -> Refusal:
    """The answer to whoever retrieves or deletes what a key does not have."""
    return Refusal(404, f"no response {id_[:80]!r} is stored for this key", code="response_not_found")


def not_continued(id_: str, status: str | None) -> Refusal:
    """The answer to whoever continues a response that has this status, or is not stored at all."""
    reason = "is not stored for this key" if status is None else f"cannot be continued: it is {status}"
    return Refusal(
        400,
        f"previous_response_id: the response {id_[:80]!r} {reason}; name a finished one, or send the whole input",
        code="previous_response_not_found",
        param="previous_response_id",
    )
