"""Many calls at once: a gate for each service, and a progress bar while they run."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from tqdm.auto import tqdm

from famnb.client.concurrency import ConcurrencyLimiter
from famnb.client.stream import Stream
from famnb.errors import Interrupted
from famnb.formatting import format_usd
from famnb.reply import Reply
from famnb.validation import check_integer

FEW = 4
"""Up to this many calls go without a progress bar."""


class Gates:
    """One gate for each service that a fan-out calls."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = check_integer("concurrency", concurrency, minimum=1)
        self._gates: dict[str, ConcurrencyLimiter] = {}

    def __getitem__(self, origin: str) -> ConcurrencyLimiter:
        return self._gates.setdefault(origin, ConcurrencyLimiter(self._concurrency))


class FanOut:
    """Calls that were started together; their replies come in the order of the calls, each with its own error."""

    def __init__(self, streams: Sequence[Stream], *, progress: bool | None) -> None:
        self._streams = streams
        self._progress = progress
        self._spent = Decimal()
        self._over: queue.SimpleQueue[Stream] = queue.SimpleQueue()
        for stream in streams:
            stream.add_done_callback(self._over.put)

    def replies(self) -> list[Reply]:
        """The replies, waited for; an interrupt stops every call and waits until those that ran are recorded."""
        over = 0
        with self._bar() as bar:
            try:
                while over < len(self._streams):
                    self._advance(bar, self._over.get())
                    over += 1
            except KeyboardInterrupt:
                self._stop()
                for stream in self._streams:
                    stream.wait()
                raise Interrupted(f"{over} of {len(self._streams)} calls were over; no further one is sent") from None
        return [stream.reply for stream in self._streams]

    async def gathered(self) -> list[Reply]:
        """The same without blocking the loop; a cancellation stops every call."""
        with self._bar() as bar:
            try:
                for stream in self._streams:
                    await stream.ended()
                    self._advance(bar, stream)
            except asyncio.CancelledError:
                self._stop()
                raise
        return [stream.reply for stream in self._streams]

    def _advance(self, bar: tqdm[Any], stream: Stream) -> None:
        """One more is over; what has been spent so far stands beside the bar."""
        usd = getattr(stream.reply.cost, "usd", None)
        if usd is not None and not stream.reply.replayed:
            self._spent += usd
            bar.set_postfix_str(format_usd(self._spent), refresh=False)
        bar.update()

    def _stop(self) -> None:
        # Backwards, so that no call that waits gets the place of one that was stopped.
        for stream in reversed(self._streams):
            stream.stop()

    @contextlib.contextmanager
    def _bar(self) -> Iterator[tqdm[Any]]:
        shown = len(self._streams) > FEW and watched() if self._progress is None else self._progress
        with tqdm(total=len(self._streams), unit="call", disable=not shown) as bar:
            yield bar


def watched() -> bool:
    """Whether somebody is looking: a terminal, or a notebook, whose kernel is no terminal."""
    ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr.isatty() or hasattr(ipython, "kernel")
