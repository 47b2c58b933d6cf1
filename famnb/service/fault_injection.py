"""Faults on demand, for teaching and for tests: how they are asked for, and how a reply commits them.

    x-famnb-fault: status=429     that error instead of an answer
                   delay=2        seconds of silence before anything is sent
                   error=3        after 3 deltas the generation fails, as the endpoint reports it
                   cut=3          after 3 deltas the connection breaks
                   garbage=3      after 3 deltas comes an event that is not JSON
                   stall=3        after 3 deltas nothing comes any more
                   drip           every byte is sent by itself
Several are joined by commas.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator

from famnb.events import Delta, Event
from famnb.service.errors import ServiceError
from famnb.wire.dialect import Writer

HEADER = "x-famnb-fault"


class ConnectionCut(Exception):
    """Ends a response where it is, without finishing it."""


@dataclasses.dataclass(frozen=True, slots=True)
class InjectedFaults:
    """The faults that one reply commits; by default none."""

    status: int | None = None
    delay: float = 0.0
    error: int | None = None
    cut: int | None = None
    garbage: int | None = None
    stall: int | None = None
    drip: bool = False

    async def before(self) -> None:
        """Be late, and refuse, if so asked."""
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.status is not None:
            headers = {"retry-after": "1"} if self.status in (429, 503, 529) else {}
            raise ServiceError(self.status, f"status {self.status}, as {HEADER} demands", headers=headers)

    async def failing(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """The events, up to a failure after the `error`-th delta."""
        deltas = 0
        async for event in events:
            if type(event) is Delta:
                if deltas == self.error:
                    raise ServiceError(500, f"a failure after delta {deltas}, as {HEADER} demands")
                deltas += 1
            yield event

    async def blocks(self, events: AsyncIterator[Event], writer: Writer) -> AsyncIterator[bytes]:
        """The blocks of a stream, each to be written by itself; raises Cut where the connection is to break."""
        deltas = 0
        async for event in events:
            for block in writer.write(event):
                if self.drip:
                    for byte in block:
                        yield bytes((byte,))
                        await asyncio.sleep(0)
                else:
                    yield block
            if type(event) is Delta:
                deltas += 1
                if deltas == self.garbage:
                    yield b'data: {"garbage": tr\n\n'
                if deltas == self.cut:
                    raise ConnectionCut
                if deltas == self.stall:
                    await asyncio.Event().wait()

    def whole(self, body: bytes) -> bytes:
        """The body of a whole reply, or what `cut` and `garbage` leave of it."""
        return body if self.cut is None and self.garbage is None else body[: len(body) // 2]


_KINDS = {field.name: field.type for field in dataclasses.fields(InjectedFaults)}


def parse_faults(words: str) -> InjectedFaults:
    """The faults that a header or an option asks for; raises Refusal 400."""
    given: dict[str, float | int | bool] = {}
    for word in filter(None, (word.strip() for word in words.split(","))):
        name, _, value = word.partition("=")
        try:
            match _KINDS.get(name.strip()):
                case "bool" if not value:
                    given[name] = True
                case "float" if 0 <= float(value) <= 600:
                    given[name] = float(value)
                case "int | None" if name != "status" and int(value) >= 0:
                    given[name] = int(value)
                case "int | None" if 400 <= int(value) <= 599:
                    given[name] = int(value)
                case _:
                    raise ValueError
        except ValueError:
            raise ServiceError(
                400,
                f"{HEADER}: {word[:80]!r} is no fault; expected some of status=400…599, delay=SECONDS, error=N, cut=N, "
                "garbage=N, stall=N, drip, joined by commas",
                code="invalid_value",
                param=HEADER,
            ) from None
    return InjectedFaults(**given)  # type: ignore[arg-type]  # each value has the type of its own field, which mypy cannot see
