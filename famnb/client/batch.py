"""Batch, the calls of one `send_many`: a limiter for each service, and a progress bar while they run."""

from __future__ import annotations

import asyncio
import queue
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from famnb.client.concurrency import ConcurrencyLimiter
from famnb.client.live_call import Stream
from famnb.errors import Interrupted
from famnb.formatting import format_usd
from famnb.reply import Reply
from famnb.validation import check_integer

if TYPE_CHECKING:
    from tqdm.auto import tqdm

# So few are over before a bar can be read; it would only leave a line behind.
FEW_CALLS = 4
"""Up to this many calls have no progress bar unless one is asked for."""


# Well below MAX_CONNECTIONS, so that other calls of the client find a connection; a service that takes less says so.
CONCURRENCY = 16
"""How many calls of `send_many` run at once by default."""


class ServiceLimiters:
    """One limiter for each service that a batch calls; a service that throttles slows no other."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = check_integer("concurrency", concurrency, minimum=1)
        self._limiters: dict[str, ConcurrencyLimiter] = {}

    def __getitem__(self, origin: str) -> ConcurrencyLimiter:
        return self._limiters.setdefault(origin, ConcurrencyLimiter(self._concurrency))


class Batch:
    """Calls that were started together; their replies come in the order of the calls, each with its own error."""

    def __init__(self, streams: Sequence[Stream], *, progress: bool | None) -> None:
        self._streams = streams
        self._progress = progress
        self._spent = Decimal()
        self._finished: queue.SimpleQueue[Stream] = queue.SimpleQueue()
        for stream in streams:
            stream.add_done_callback(self._finished.put)

    def replies(self) -> list[Reply]:
        """Wait for the replies; an interrupt stops every call and waits until those that ran are recorded."""
        count = 0
        with self._bar() as bar:
            try:
                while count < len(self._streams):
                    self._advance(bar, self._finished.get())
                    count += 1
            except KeyboardInterrupt:
                self._stop()
                for stream in self._streams:
                    stream.wait()
                # Without the KeyboardInterrupt, which a cell's traceback would show above this one.
                raise Interrupted(f"{count} of {len(self._streams)} calls were over; no further one is sent") from None
        return [stream.reply for stream in self._streams]

    async def areplies(self) -> list[Reply]:
        """`replies` for an event loop; a cancellation stops every call."""
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
        """Count one more call that is over, and show beside the bar what has been spent so far."""
        # A recorder without prices leaves `cost` None, and a replayed call costs nothing.
        usd = getattr(stream.reply.cost, "usd", None)
        if usd is not None and not stream.reply.replayed:
            self._spent += usd
            bar.set_postfix_str(format_usd(self._spent), refresh=False)
        bar.update()

    def _stop(self) -> None:
        # Last to first, so that no call that waits gets the turn of one that was stopped.
        for stream in reversed(self._streams):
            stream.stop()

    def _bar(self) -> tqdm[Any]:
        # Only here: it takes a tenth of what the first client of a process waits for.
        from tqdm.auto import tqdm

        is_shown = len(self._streams) > FEW_CALLS and is_watched() if self._progress is None else self._progress
        return tqdm(total=len(self._streams), unit="call", disable=not is_shown)


def is_watched() -> bool:
    """Whether a progress bar would be seen: in a terminal or in a notebook."""
    # A kernel's standard error is no terminal, but the notebook shows it.
    ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr.isatty() or hasattr(ipython, "kernel")
