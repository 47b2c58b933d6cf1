"""Plays recorded calls again, through the same reader and the same handle as live ones; sends and records nothing.

request ── recall ──┬── recorded ── its reads, at their pace or at once ── the recorded reply, marked `replayed`
                    └── not ──┬── "prefer": the service is asked
                              └── "only": NotRecorded
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
from typing import Literal, Protocol, TypeAlias, get_args
from urllib.parse import urlsplit

from famnb.client.config import NO_DEADLINES, is_this_machine
from famnb.client.exchange import Exchange
from famnb.client.io_thread import io_thread
from famnb.client.live_call import LiveCall, Stream
from famnb.errors import FamnbError, InvalidRequest, LedgerError, NotRecorded
from famnb.request import Request
from famnb.validation import check_number

ReplayMode: TypeAlias = Literal["prefer", "only"]
"""Whether a request that is not recorded is sent (`prefer`) or refused (`only`)."""


class ReplaySource(Protocol):
    """Finds recorded calls, as the ledger does; called on a thread of its own, so it may block."""

    def recall(self, request: Request, *, profile: str, nth: int, simulated: bool) -> Exchange | None:
        """The `nth` newest complete call of an identical request, counted round after the oldest; None without any.

        Calls of another `profile` do not count; without `simulated`, neither do those that a simulated engine answered.
        """


class Replays:
    """Answers a client's calls from recorded ones.

    The first of several identical requests gets the newest recording, the next one the recording before it, and so on;
    after the oldest comes the newest again. So repeats stay as different as they were. A simulated recording answers
    only a client whose service is on this machine itself.
    """

    def __init__(self, source: ReplaySource, *, mode: ReplayMode, speed: float | None = None) -> None:
        if mode not in get_args(ReplayMode):
            raise InvalidRequest(f"replay: expected 'prefer', 'only' or None, got {mode!r}")
        self._source = source
        self._mode = mode
        self._scale = _check_speed("replay_speed", speed)
        self._counts: collections.Counter[str] = collections.Counter()

    async def answer(self, call: LiveCall) -> bool:
        """Answer a call from the record if it can or must be; return False if the service is to be asked."""
        request = call.exchange.request
        key = request.key()
        # Counted before the first await, so that two calls at once get two recordings.
        nth, self._counts[key] = self._counts[key], self._counts[key] + 1
        is_local = is_this_machine(urlsplit(call.exchange.url).hostname or "")
        try:
            # On another thread: the ledger reads a file, and the I/O thread carries every other call.
            recorded = await asyncio.to_thread(
                self._source.recall, request, profile=call.exchange.profile, nth=nth, simulated=is_local
            )
        except LedgerError as fault:
            if self._mode == "prefer":
                return False
            # A new one, without the frames of the ledger's thread.
            _fail(call, LedgerError(str(fault)))
            return True
        if recorded is not None:
            await _play(call, recorded, scale=self._scale)
        elif self._mode == "only":
            mode = "streamed" if request.streams else "whole"
            message = (
                f"no complete call of this {mode} {request.endpoint!r} request is recorded (replay='only'): send it "
                "once with replay='prefer', or name the ledger that has it with ledger= or FAMNB_LEDGER"
            )
            _fail(call, NotRecorded(message))
        return recorded is not None or self._mode == "only"


def play(recorded: Exchange, *, speed: float | None) -> Stream:
    """Play one recorded call, whether it succeeded or failed; see `record.Ledger.replay`."""
    scale, io = _check_speed("speed", speed), io_thread()
    call = LiveCall(exchange=recorded, body=b"")

    async def run() -> None:
        try:
            await _play(call, recorded, scale=scale)
        finally:
            call.buffer.finish(call.exchange.reply)

    io.start(run())
    return Stream(call, io)


async def _play(call: LiveCall, recorded: Exchange, *, scale: float) -> None:
    """Feed a recorded call's reads to a call; its outcome is the recorded one, unless it is stopped before."""
    t_ns = 0
    # The recording's own clock: a call that is stopped half-way ends at the time it has come to.
    call.now_ns, call.sent_ns = lambda: t_ns, 0
    call.exchange = dataclasses.replace(recorded, reads=[], replayed=True)
    reader = call.start_reading(streamed=recorded.streamed)
    reads = recorded.reads if recorded.reply.events else []  # an error's body says nothing but the error
    loop = asyncio.get_running_loop()
    start = loop.time()
    try:
        async with call.timer.limit(NO_DEADLINES):
            for read in reads:
                # Against the start, so that one late read does not delay all that follow.
                await asyncio.sleep(max(0.0, start + read.t_ns * scale - loop.time()))
                t_ns = read.t_ns
                with contextlib.suppress(FamnbError):  # the recorded reply has it
                    reader.feed_read(read)
                call.buffer.notify()
            await asyncio.sleep(max(0.0, start + (recorded.end_ns or 0) * scale - loop.time()))
    except FamnbError as error:
        call.conclude(error)
        return
    reader.close(recorded.end_ns or t_ns)
    call.exchange.reads = recorded.reads
    reply = call.exchange.reply = dataclasses.replace(recorded.reply, request=recorded.request, replayed=True)
    if reply.error is not None:
        reply.error.reply = reply


def _fail(call: LiveCall, error: FamnbError) -> None:
    """End a call that was neither sent nor recorded."""
    call.conclude(error)
    error.reply = call.exchange.reply = dataclasses.replace(call.exchange.reply, call_id=None)


def _check_speed(name: str, speed: float | None) -> float:
    """Return the seconds to take for a recorded nanosecond, 0 for at once. Raises InvalidRequest."""
    if speed is None:
        return 0.0
    pace = "a number from 0 up (0 is at once, 1 the recorded pace)"
    check_number(name, speed, minimum=0, finite=False, expected=pace)
    return 0.0 if speed == 0 else 1e-9 / speed
