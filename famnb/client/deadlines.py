"""How long to wait for what; the watching itself is in `watch`."""

from __future__ import annotations

import dataclasses
import math

from famnb.errors import InvalidRequest


@dataclasses.dataclass(frozen=True, slots=True)
class Deadlines:
    """Limits in seconds on the monotonic clock; `math.inf` waits for ever."""

    connect: float = 5.0
    """To open a connection, name look-up and TLS included; then it is tried again, see Retries."""
    pool: float = 10.0
    """To get one of the client's connections while all are in use."""
    first_event: float = 120.0
    """From sending to the first event of a stream; a whole reply has no events and is under `total` alone."""
    idle: float = 60.0
    """Between two events of a stream; a comment is a sign of life, a part of an event is none."""
    total: float = 600.0
    """The whole call: waiting for a connection, every try and every pause between tries."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            seconds = getattr(self, field.name)
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
                raise InvalidRequest(f"deadlines: {field.name} must be a number of seconds above 0, got {seconds!r}")

    def finite(self, name: str) -> float | None:
        """A limit as the libraries below want it: None for ever."""
        seconds = float(getattr(self, name))
        return seconds if math.isfinite(seconds) else None


PATIENT = Deadlines(math.inf, math.inf, math.inf, math.inf, math.inf)
"""No limit at all, for what only its caller ends."""
