"""Calls the recorder at the right moments, so that nothing it does can break a call."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

from famnb.client.exchange import Exchange, Recorder

T = TypeVar("T")
NOTE_S = 1.0
"""How often a running call's new reads are handed on."""
PATIENCE_S = 10.0
"""How long a call waits for its record to be durable."""


class Recording:
    """A recorder that never raises; its first failure is a warning, later ones are silent."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._warned = False

    def opened(self, exchange: Exchange) -> None:
        """The call starts."""
        if self._recorder is not None:
            self._tried(self._recorder.opened, exchange)

    def arrived(self, exchange: Exchange) -> None:
        """More of its reads came."""
        if self._recorder is not None:
            self._tried(self._recorder.arrived, exchange)

    @contextlib.contextmanager
    def noting(self, exchange: Exchange) -> Iterator[None]:
        """While the call runs, its new reads are handed on about once a second."""
        if self._recorder is None:
            yield
            return
        loop = asyncio.get_running_loop()
        noted = 0
        timer: asyncio.TimerHandle

        def note() -> None:
            nonlocal noted, timer
            if len(exchange.reads) != noted:
                noted = len(exchange.reads)
                self.arrived(exchange)
            timer = loop.call_later(NOTE_S, note)

        timer = loop.call_later(NOTE_S, note)
        try:
            yield
        finally:
            timer.cancel()

    async def closed(self, exchange: Exchange) -> None:
        """The call is over; returns when its record is durable, or when it will not be."""
        if self._recorder is None:
            return
        future = self._tried(self._recorder.closed, exchange)
        if future is None:
            return
        kept = asyncio.wrap_future(future)
        await asyncio.wait({kept}, timeout=PATIENCE_S)
        if not kept.done():
            self._warn(f"the recorder did not finish within {PATIENCE_S:g} s")
        elif not kept.cancelled() and (failure := kept.exception()):
            self._warn(f"{type(failure).__name__}: {failure}")

    def _tried(self, method: Callable[[Exchange], T], exchange: Exchange) -> T | None:
        try:
            return method(exchange)
        except Exception as failure:
            self._warn(f"{type(failure).__name__}: {failure}")
            return None

    def _warn(self, words: str) -> None:
        if not self._warned:
            self._warned = True
            # Where warnings are errors, this one would break the call.
            with contextlib.suppress(Warning):
                warnings.warn(f"calls are answered but not recorded: {words}", stacklevel=2)
