"""Which sockets can be read, and the bytes that wait in them, each with the time at which the kernel received it.

wire ── kernel (receives a segment, notes the wall clock) ── socket ······ Python, when it gets its turn
                └ t_ns, on the monotonic clock                             └ t_ns + late_ns

A read returns one stamp, that of the last byte read. The kernel also counts the segments of a connection. Where one
has come since the last read, as nearly always, its bytes are taken and the stamp is theirs. Where several wait, they
are looked at first, without taking them, and asked at which offsets their stamp changes; each run of bytes with one
stamp is then handed on by itself. The kernel may have merged segments before anybody looked, and such a run has the
stamp of its last segment. If there are as many runs as segments, none was merged, and every byte of a run came at its
stamp. If some were, but there are as many segments as events, no event was sent in two, and that still holds for a run
of one event. Else it is known of the last byte of a run alone (`Arrival.merged`).

These system calls keep the interpreter's lock (GIL). Python's own wrappers
give it away for every call, also for one that takes a microsecond and never waits. A busy cell then may take it, and
gives it back after 5 ms, or when a long call into C is over: with 64 streams beside a cell that computes, events were
read 0.7 s late (p99), and 15 ms late with the lock kept.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import ctypes
import functools
import itertools
import os
import platform
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from famnb.timing import Arrival

Clock: TypeAlias = Callable[[], int]
"""Returns nanoseconds."""
Segment: TypeAlias = tuple[memoryview, Arrival]
"""Bytes that share one stamp, valid until the next read, and when they came."""

# SO_TIMESTAMPNS, which Python's `socket` has no name for; its control messages have the same number.
_SO_TIMESTAMPNS = 35
_STAMPED_MESSAGE = struct.Struct("@Niiqq")
"""A control message: its size, level and kind; seconds and nanoseconds since the epoch."""
_TCP_COUNTERS = struct.Struct("=120xQQ16xI")
"""Of `struct tcp_info`: how many bytes the peer has acknowledged; how many bytes, and segments with data, came."""
# Larger than what arrives between two turns of an event loop, except in bulk.
BUFFER_BYTES = 262_144
"""How many bytes one read takes at most."""
# Beyond it nobody waits for single events, and looking for the stamps would cost more than reading.
SEARCHED_BYTES = 65_536
"""Up to how many waiting bytes the offsets are looked for at which their stamp changes."""
# A body that drips byte by byte while nobody reads waits in as many segments; finding the n-th takes n steps.
MAX_RUNS = 64
"""How many runs of bytes with one stamp are taken by one read; the rest is ready to be read at once."""
# For the same reason: a guess must not look far ahead of single bytes.
GUESSED_BYTES = 2048
"""How long a run may be whose end is guessed."""
_TLS_DATA = 0x17
"""The first byte of an encrypted record."""
# Far more than the offset's own error of some hundred nanoseconds.
TOLERANCE_NS = 20_000
"""By how much the two clocks may seem to have moved apart."""
# What arrives between reading the clock and reading the socket must not lend its stamp to the event before it.
OFFSET_ERROR_NS = 1_000  # nanoseconds by which the measured offset between the clocks may be wrong
# Longer than bytes wait to be read.
UNSURE_NS = 1_000_000_000
"""For how many nanoseconds no stamp counts after the wall clock was stepped: it may be from before the step."""


def measure_offset(wall: Clock = time.time_ns, monotonic: Clock = time.perf_counter_ns, *, tries: int = 100) -> int:
    """Return what is added to the wall clock to get the monotonic one, in nanoseconds.

    The wall clock is read between two readings of the other; the narrowest of `tries` such brackets counts.
    """

    def look() -> tuple[int, int]:
        before, moment, after = monotonic(), wall(), monotonic()
        return after - before, (before + after) // 2 - moment

    return min(look() for _ in range(tries))[1]


def find_runs(
    size: int,
    last: int | None,
    stamp_at: Callable[[int], int | None],
    guess_end: Callable[[int], int] = lambda start: start,
) -> Iterator[tuple[int, int | None]]:
    """Yield the end and the stamp of each run of waiting bytes with one stamp.

    `size` bytes wait and the stamp of the last of them is `last`; `stamp_at(n)` is the stamp of the n-th byte.
    `guess_end(start)` is where the run that begins there probably ends; `start` for no guess.
    """
    start = 0
    while start < size:
        stamp = stamp_at(start + 1)
        if stamp == last:
            yield size, last
            return

        def is_later(offset: int, stamp: int | None = stamp) -> bool:
            return stamp_at(offset + 1) != stamp

        # Two looks are enough for a right guess, where the search takes a dozen.
        known, guess = start, guess_end(start) - 1
        if start < guess < size and not is_later(guess):
            known = guess
        # The kernel walks to a byte from the first: to look far ahead of a short run would take long.
        step = 1
        while known + step < size and not is_later(known + step):
            step *= 2
        end = bisect.bisect_left(range(size), True, known + step // 2 + 1, min(known + step, size), key=is_later)
        yield end, stamp
        start = end


class StampClock:
    """Turns the kernel's stamps into times of the monotonic clock; one for all connections of a transport."""

    def __init__(self, now_ns: Clock = time.perf_counter_ns, wall: Clock = time.time_ns) -> None:
        self.now_ns = now_ns
        """The monotonic clock."""
        self._wall = wall
        self._offset_ns = measure_offset(wall, now_ns)
        self._unsure_until_ns = 0

    def read(self) -> int:
        """Return the time by the monotonic clock, and notice at once if the wall clock was stepped."""
        now_ns = self.now_ns()
        # Slewing the wall clock moves both clocks alike, so a difference is a step, or a pause between the two calls.
        if abs(self._wall() + self._offset_ns - now_ns) > TOLERANCE_NS:
            offset_ns = measure_offset(self._wall, self.now_ns)
            if abs(offset_ns - self._offset_ns) > TOLERANCE_NS:
                self._offset_ns, self._unsure_until_ns = offset_ns, self.now_ns() + UNSURE_NS
        return now_ns

    def arrival(self, stamp: int | None, earliest_ns: int, now_ns: int) -> Arrival:
        """Return when something came that waited at `now_ns`, and came no earlier than `earliest_ns`.

        Where there is no stamp, the time of the read; where it contradicts the monotonic clock, that time too, blurred.
        """
        if stamp is None:
            return Arrival(now_ns, None)
        t_ns = stamp + self._offset_ns
        if earliest_ns <= t_ns <= now_ns + OFFSET_ERROR_NS and now_ns >= self._unsure_until_ns:
            return Arrival(t_ns, max(0, now_ns - t_ns))
        return Arrival(now_ns, None, blurred=True)


class ReceiveBuffer:
    """Where all connections of one thread read to, one after the other."""

    def __init__(self, size: int = BUFFER_BYTES) -> None:
        self._data = bytearray(size)
        self.view = memoryview(self._data)
        self._control = bytearray(_STAMPED_MESSAGE.size)
        # Kept, since the structures hold only their addresses.
        self._buffers = [(ctypes.c_char * len(part)).from_buffer(part) for part in (self._data, self._control)]
        base, control_base = map(ctypes.addressof, self._buffers)
        self._part = _Part(base, size)
        self._message = _Message(None, 0, ctypes.pointer(self._part), 1, control_base, len(self._control), 0)
        self._message_reference = ctypes.byref(self._message)

    def look(self, sock: socket.socket) -> tuple[int, int | None, int | None]:
        """Fill the buffer with what waits, without taking it; return how many bytes, and the first and last stamp.

        None where the kernel has no stamp. Raises BlockingIOError if nothing waits, OSError if the connection broke.
        """
        size, last = self._receive(sock, len(self.view), _PEEK)
        return size, self.stamp_at(sock, 1) if size else None, last

    def stamp_at(self, sock: socket.socket, number: int) -> int | None:
        """The stamp of a byte that waits, counted from 1."""
        # TCP leaves the buffer as it is where it truncates, so nothing is copied twice.
        return self._receive(sock, number, _PEEK_AND_TRUNC)[1]

    def take(self, sock: socket.socket, size: int) -> tuple[int, int | None]:
        """Fill the buffer with the first `size` bytes, and take them; return how many, and the stamp of the last.

        Raises as `look` does.
        """
        return self._receive(sock, min(size, len(self.view)), 0)

    def skip(self, sock: socket.socket, size: int) -> None:
        """Take what was looked at; the buffer keeps it."""
        self._receive(sock, size, _TRUNC)

    def _receive(self, sock: socket.socket, size: int, flags: int) -> tuple[int, int | None]:
        assert _recvmsg is not None
        room = len(self._control)
        self._part.size, self._message.control_size = size, room
        received = _recvmsg(sock.fileno(), self._message_reference, flags)
        if received < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        if self._message.control_size != room:
            return received, None
        _, _, kind, s, ns = _STAMPED_MESSAGE.unpack(self._control)
        return received, s * 1_000_000_000 + ns if kind == _SO_TIMESTAMPNS else None

    def count_writes(self, start: int, end: int) -> int:
        """How many writes of the sender a run probably has; 0 if they do not end where it does."""
        count = 0
        while start < end and (after := self.guess_end(start)) > start:
            start, count = after, count + 1
        return count if start == end else 0

    def guess_end(self, start: int) -> int:
        """Where the sender's write probably ends that begins at a place: with an event, or with an encrypted record."""
        data = self._data
        if data[start] == _TLS_DATA:
            end = start + 5 + int.from_bytes(data[start + 3 : start + 5])
        else:
            end = data.find(b"\n\n", start, start + GUESSED_BYTES) + 2
            # The event may be a chunk of its own, which has an end of its own.
            if data[end : end + 2] == b"\r\n":
                end += 2
        return end if end - start <= GUESSED_BYTES else start


class SocketReader:
    """Reads a non-blocking socket; the time of what it reads is that of the read itself."""

    def __init__(self, sock: socket.socket, buffer: ReceiveBuffer, clock: StampClock) -> None:
        self._sock = sock
        self._buffer = buffer
        self._clock = clock
        self.is_at_end = False
        """Whether the peer sends no more."""
        self._earliest_ns = 0
        """What is read next came no earlier than this: when the request was sent, then what was read before."""

    def begin(self) -> None:
        """A request is sent now: whatever comes next came later."""
        self._earliest_ns = self._clock.now_ns()

    def read(self) -> list[Segment]:
        """Return what waits, in order; nothing at the end. Raises BlockingIOError if nothing waits, OSError."""
        view = self._buffer.view
        size = self._sock.recv_into(view)
        self.is_at_end = size == 0
        return [(view[:size], Arrival(self._clock.now_ns(), None))] if size else []


class StampedReader(SocketReader):
    """Reads a socket whose kernel notes when segments arrive."""

    def __init__(self, sock: socket.socket, buffer: ReceiveBuffer, clock: StampClock, taken: int) -> None:
        super().__init__(sock, buffer, clock)
        self._taken = taken
        """How many bytes were read so far."""
        self._segments: int | None = 0 if taken == 0 else None
        """How many segments they came in; None while that is not known."""

    def read(self) -> list[Segment]:
        # The clock comes first, then the count: a stamp that is later is of a segment that is not counted, and was
        # merged with the one before it. Then nobody knows the time of what is read.
        now_ns, buffer, sock = self._clock.read(), self._buffer, self._sock
        _, received, segments = read_tcp_counters(sock)
        count = None if self._segments is None else segments - self._segments
        if count == 1 and received > self._taken:
            # No more than was counted, and the FIN, which counts as a byte.
            size, last = buffer.take(sock, received - self._taken)
            runs = [(size, last)]
        else:
            size, first, last = buffer.look(sock)
            if count and size > received - self._taken > 0:
                # The rest came after the count.
                size = received - self._taken
                last = buffer.stamp_at(sock, size)
            runs = [(size, last)]
            if first != last and size <= SEARCHED_BYTES:
                # What was looked at to find the end of a run is the start of the next one.
                stamp_at = functools.cache(functools.partial(buffer.stamp_at, sock))
                runs = list(itertools.islice(find_runs(size, last, stamp_at, buffer.guess_end), MAX_RUNS))
                size = runs[-1][0]
            if size:
                buffer.skip(sock, size)
        if size == 0:
            self.is_at_end = True
            return []
        self._taken += size
        self._segments = segments if received - self._taken in (0, 1) else None
        pieces, start = [], 0
        for end, stamp in runs:
            arrival = self._clock.arrival(stamp, self._earliest_ns, now_ns)
            self._earliest_ns = arrival.t_ns
            pieces.append((buffer.view[start:end], arrival))
            start = end
        known = sum([not arrival.blurred for _, arrival in pieces])
        if known != count:
            # Some were merged. If there were as many segments as events, or encrypted records, each was a segment.
            starts = [0, *[end for end, _ in runs]]
            writes = [buffer.count_writes(start, end) for start, end in itertools.pairwise(starts)]
            are_segments = known == len(runs) and all(writes) and sum(writes) == count
            pieces = [
                (data, came if are_segments and number == 1 else Arrival(came.t_ns, came.late_ns, came.blurred, True))
                for (data, came), number in zip(pieces, writes, strict=True)
            ]
        if received - self._taken == 1:
            # The end of the connection counts as a byte and as no segment, and may have lent its stamp to the last.
            pieces[-1] = pieces[-1][0], Arrival(pieces[-1][1].t_ns, pieces[-1][1].late_ns, blurred=True)
        return pieces


def read_tcp_counters(sock: socket.socket) -> tuple[int, int, int]:
    """How many bytes the peer has acknowledged, and how many bytes and segments with data came; zeros if not known."""
    if sys.platform == "linux":
        # Not TCP, or a kernel in a sandbox, or one before Linux 4.6.
        with contextlib.suppress(OSError, struct.error):
            return _TCP_COUNTERS.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_COUNTERS.size))
    return 0, 0, 0


def request_stamps(sock: socket.socket) -> None:
    """Ask the kernel for stamps, if it has any for such a socket: for TCP on 64-bit Linux.

    Best before connecting: the first socket of a machine that asks has to wait for them a moment.
    """
    if HAS_GIL_CALLS and sock.family in (socket.AF_INET, socket.AF_INET6):
        # A kernel in a sandbox need not have them.
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def make_reader(sock: socket.socket, buffer: ReceiveBuffer, clock: StampClock, taken: int = 0) -> SocketReader:
    """Return a reader of a connected socket, with stamps if `request_stamps` got any.

    `taken` is how many bytes were read from it before.
    """
    if HAS_GIL_CALLS:
        with contextlib.suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                return StampedReader(sock, buffer, clock, taken)
    return SocketReader(sock, buffer, clock)


class Readiness:
    """Calls back when a socket can be read; used on one event loop alone.

    On Linux an epoll that the event loop watches: all sockets that are ready are read in one turn of the loop. uvloop
    takes the interpreter's lock anew for each socket, and a busy cell may have it in between; nor does uvloop (0.23)
    call again for a socket whose connection broke while bytes waited.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._epoll = select.epoll() if HAS_GIL_CALLS else None
        if self._epoll is not None:
            self._ready = (ctypes.c_char * (_EPOLL_EVENT.size * MAX_READY))()
            self._loop.add_reader(self._epoll.fileno(), self._on_ready)

    def watch(self, sock: socket.socket, callback: Callable[[], object]) -> None:
        """Have the callback called whenever something waits in the socket, or its connection is broken."""
        if self._epoll is None:
            self._loop.add_reader(sock, callback)
        else:
            self._callbacks[sock.fileno()] = callback
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    def ignore(self, sock: socket.socket) -> None:
        """Call no more."""
        if self._epoll is None:
            self._loop.remove_reader(sock)
        else:
            del self._callbacks[sock.fileno()]
            self._epoll.unregister(sock.fileno())

    def close(self) -> None:
        """Give up what it holds, once nothing is watched any more."""
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()

    def _on_ready(self) -> None:
        assert self._epoll is not None
        assert _epoll_wait is not None
        count = _epoll_wait(self._epoll.fileno(), self._ready, MAX_READY, 0)
        # An error, as -1, is a signal that came in between: what is ready now is ready the next time, too.
        for index in range(count):
            _, fd = _EPOLL_EVENT.unpack_from(self._ready, _EPOLL_EVENT.size * index)
            # One of those before may have closed it.
            callback = self._callbacks.get(fd)
            if callback is not None:
                callback()


# System calls that keep the interpreter's lock. The layouts are those of 64-bit Linux, whatever its C library.

HAS_GIL_CALLS = sys.platform == "linux" and sys.maxsize > 2**32 and sys.byteorder == "little"
"""Whether there are stamps, and system calls that keep the interpreter's lock; see the head of this file."""
MAX_READY = 256
"""How many ready files are told at once; the others the next time."""
# Events, and of the data beside them what `select.epoll` sets, the number of the file. Packed on x86-64 alone.
_EPOLL_EVENT = struct.Struct("=Ii4x" if platform.machine() == "x86_64" else "=I4xi4x")
# As plain integers: an operation on the flags of `socket` takes longer than the system call.
_PEEK, _TRUNC, _PEEK_AND_TRUNC = map(int, (socket.MSG_PEEK, socket.MSG_TRUNC, socket.MSG_PEEK | socket.MSG_TRUNC))


class _Part(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """`struct msghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint),
        ("parts", ctypes.POINTER(_Part)),
        ("part_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


# `PyDLL` keeps the interpreter's lock while a function runs. Arguments are integers of C's `int`, and references:
# without `argtypes`, which would convert each of them at each call, a third of a microsecond for five.
_libc = ctypes.PyDLL(None, use_errno=True) if HAS_GIL_CALLS else None
_recvmsg: Callable[..., int] | None = _libc.recvmsg if _libc else None
_epoll_wait: Callable[..., int] | None = _libc.epoll_wait if _libc else None
