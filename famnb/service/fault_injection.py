"""Faults on demand, for teaching and for tests: how a request asks for them, and how a reply is made to fail.

    x-famnb-fault: status=429     that error instead of an answer
                   delay=2        seconds of silence before anything is sent
                   error=3        after 3 deltas the generation fails, as the endpoint reports it
                   cut=3          after 3 deltas the connection breaks
                   garbage=3      after 3 deltas comes an event that is not JSON
                   stall=3        after 3 deltas nothing comes any more
                   drip           every byte is sent by itself
Several are joined by commas.

To add a fault: a field of `InjectedFaults` (`bool`, seconds as `float`, or deltas as `int | None`, which `parse_faults`
reads), what it does in one of that class's methods, and its name in the list above, in the message of `parse_faults`
and in the docstring of `cli/serve.py`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator

from starlette.types import Send

from famnb.events import Delta, Event
from famnb.service.errors import ServiceError
from famnb.wire.dialect import EventWriter

HEADER = "x-famnb-fault"


@dataclasses.dataclass(frozen=True, slots=True)
class InjectedFaults:
    """The faults of one reply. A number of deltas is None, and everything else falsy, where there is no fault."""

    status: int | None = None
    delay: float = 0.0
    error: int | None = None
    cut: int | None = None
    garbage: int | None = None
    stall: int | None = None
    drip: bool = False

    async def delay_or_refuse(self) -> None:
        """Wait for `delay` seconds, then raise ServiceError if `status` is set."""
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.status is not None:
            # The statuses with which real services send the header.
            headers = {"retry-after": "1"} if self.status in (429, 503, 529) else {}
            raise ServiceError(self.status, f"status {self.status}, as {HEADER} demands", headers=headers)

    def fail(self, deltas: int) -> None:
        """Raise ServiceError 500 if the generation is to fail after so many deltas."""
        if deltas == self.error:
            raise ServiceError(500, f"a failure after delta {deltas}, as {HEADER} demands")

    async def send_stream(self, events: AsyncIterator[Event], writer: EventWriter, send: Send) -> None:
        """Send the blocks of a stream, one block, one write, and the end of the body right after the last."""
        deltas = 0
        async for event in events:
            for block in writer.write(event):
                for piece in [bytes((byte,)) for byte in block] if self.drip else (block,):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    if self.drip:
                        await asyncio.sleep(0)  # a turn of the loop, so that each byte is a write of its own
            if type(event) is Delta:
                deltas += 1
                if deltas == self.garbage:
                    garbage = b'data: {"garbage": tr\n\n'
                    await send({"type": "http.response.body", "body": garbage, "more_body": True})
                if deltas == self.cut:
                    return  # without an end of the body the server breaks the connection off
                if deltas == self.stall:
                    await asyncio.Event().wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def damage_body(self, body: bytes) -> bytes:
        """Return the body of a whole reply, or its first half where `cut` or `garbage` is set."""
        return body if self.cut is None and self.garbage is None else body[: len(body) // 2]


_FIELD_TYPES = {field.name: field.type for field in dataclasses.fields(InjectedFaults)}


def parse_faults(text: str) -> InjectedFaults:
    """Return the faults that a header or an option asks for. Raises ServiceError 400 if one is unknown."""
    fields: dict[str, float | int | bool] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, _, value = map(str.strip, item.partition("="))
        try:
            match _FIELD_TYPES.get(name):
                case "bool" if not value:
                    fields[name] = True
                # 600 s is the client's own deadline for a whole call: a longer delay would show nothing more.
                case "float" if 0 <= float(value) <= 600:
                    fields[name] = float(value)
                case "int | None" if name != "status" and int(value) >= 0:
                    fields[name] = int(value)
                case "int | None" if 400 <= int(value) <= 599:
                    fields[name] = int(value)
                case _:
                    raise ValueError
        except ValueError:
            raise ServiceError(
                400,
                f"{HEADER}: {item[:80]!r} is not a fault; expected some of status=400…599, delay=SECONDS, error=N, "
                "cut=N, garbage=N, stall=N, drip, joined by commas",
                code="invalid_value",
                param=HEADER,
            ) from None
    return InjectedFaults(**fields)  # type: ignore[arg-type]  # mypy cannot see that each value fits its field
