"""Many calls at once: a gate for each service, and a progress bar while they run."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tqdm.auto import tqdm

from famnb.client.gate import Gate
from famnb.client.stream import Stream
from famnb.errors import InvalidRequest
from famnb.reply import Reply

FEW = 4
"""Up to this many calls go without a progress bar."""
REFRESH_S = 0.2


class Gates:
    """One gate for each service that a fan-out calls."""

    def __init__(self, concurrency: int) -> None:
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise InvalidRequest(f"concurrency: expected an integer of at least 1, got {concurrency!r}")
        self._concurrency = concurrency
        self._gates: dict[str, Gate] = {}

    def __getitem__(self, origin: str) -> Gate:
        return self._gates.setdefault(origin, Gate(self._concurrency))


class FanOut:
    """Calls that were started together; their replies come in the order of the calls, each with its own error."""

    def __init__(self, streams: Sequence[Stream], *, progress: bool | None) -> None:
        self._streams = streams
        self._progress = progress
        self._over: list[Stream] = []
        for stream in streams:
            stream.add_done_callback(self._over.append)

    def replies(self) -> list[Reply]:
        """The replies, waited for; an interrupt stops every call and waits until all are recorded."""
        with self._bar() as bar:
            try:
                for stream in self._streams:
                    while not stream.wait(REFRESH_S):
                        bar.update(len(self._over) - bar.n)
            except KeyboardInterrupt:
                self._stop()
                for stream in self._streams:
                    stream.wait()
                raise
        return [stream.reply for stream in self._streams]

    async def gathered(self) -> list[Reply]:
        """The same without blocking the loop; a cancellation stops every call."""
        with self._bar() as bar:
            try:
                for stream in self._streams:
                    while stream.running:
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(REFRESH_S):
                                await stream.ended()
                        bar.update(len(self._over) - bar.n)
            except asyncio.CancelledError:
                self._stop()
                raise
        return [stream.reply for stream in self._streams]

    def _stop(self) -> None:
        for stream in self._streams:
            stream.stop()

    @contextlib.contextmanager
    def _bar(self) -> Iterator[tqdm[Any]]:
        shown = len(self._streams) > FEW and _watched() if self._progress is None else self._progress
        with tqdm(total=len(self._streams), unit="call", disable=not shown) as bar:
            yield bar
            bar.update(len(self._streams) - bar.n)


def _watched() -> bool:
    """Whether somebody is looking: a terminal, or a notebook, whose kernel is no terminal."""
    ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr.isatty() or hasattr(ipython, "kernel")
