"""Which sockets can be read, and the bytes that wait in them, each with the time at which the kernel received it.

wire ── kernel (receives a segment, notes the wall clock) ── socket ······ Python, when it gets its turn
                └ t_ns, on the monotonic clock                             └ t_ns + late_ns

A read returns one stamp, that of the last byte read. So the waiting bytes are looked at first, without taking them, and
asked at which places their stamp changes; each run of bytes with one stamp is then handed on by itself. The kernel may
have merged segments before anybody looked: such a run has the stamp of its last segment.

Looking takes a fifth of all the time that an event takes. So it is left out where one event waits at a time: on a
connection whose last reads brought one event each, while Python is never late.

`Readiness` calls connections when their sockets can be read: from an epoll of our own where there is one, else from the
event loop.

On 64-bit Linux the system calls keep the interpreter's lock. Python's own wrappers give the lock away for every call,
also for one that takes a microsecond and never waits. A busy cell then may take it, and gives it back after 5 ms, or
when a long call into C is over: with 64 streams beside a cell that computes, events were read 0.7 s late (p99), and
15 ms late with the lock kept.
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
from typing import Protocol, TypeAlias

from famnb.timing import Arrival

Clock: TypeAlias = Callable[[], int]
"""Returns nanoseconds."""
Segment: TypeAlias = tuple[memoryview, Arrival]
"""Bytes that share one stamp, valid until the next read, and when they came."""

# SO_TIMESTAMPNS, which Python's `socket` has no name for; its control messages have the same number.
_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("@qq")
"""Seconds and nanoseconds since the epoch, of a control message."""
_STAMPED_MESSAGE = struct.Struct("@Niiqq")
"""The same with its head: size, level and kind."""
_STAMPED_MESSAGES = struct.Struct("@NiiqqNiiqq")
"""Two of them."""
# Larger than what arrives between two turns of an event loop, except in bulk.
BUFFER_BYTES = 262_144
"""How many bytes one read takes at most."""
# Beyond it nobody waits for single events, and looking for the stamps would cost more than reading.
SEARCHED_BYTES = 65_536
"""Up to how many waiting bytes the places are looked for at which their stamp changes."""
# A body that drips byte by byte while nobody reads waits in as many segments; finding the n-th takes n steps.
MAX_RUNS = 64
"""How many runs of bytes with one stamp are taken by one read; the rest is ready to be read at once."""
# For the same reason: a guess must not look far ahead of single bytes.
GUESSED_BYTES = 2048
"""How long a run may be whose end is guessed."""
_TLS_DATA = 0x17
"""The first byte of an encrypted record."""
# Stepping the wall clock changes the offset; slewing does not, since it changes both clocks alike.
REMEASURE_NS = 5_000_000_000
"""After how many nanoseconds the offset between the two clocks is measured again."""
# Two hundred connections at once need not measure it two hundred times.
FRESH_NS = 100_000_000
"""For how many nanoseconds new connections share one measurement."""
# Far more than the offset's own error of some hundred nanoseconds.
TOLERANCE_NS = 50_000
"""By how much a stamp may seem to lie in the future."""
# The first of several events that waited loses its stamp where nobody looked: once, since then they are looked for.
SINGLE_READS = 8
"""After how many reads in a row that brought one event each a connection is read without a look."""
# Events that come 5 ms apart are 200 a second, which few services send.
LATE_NS = 5_000_000
"""How late a read must be, in nanoseconds, for it to mean that Python is late."""
CALM_NS = 1_000_000_000
"""How long no read of any connection must have been late, in nanoseconds, for Python to be on time."""


def measure_offset(wall: Clock = time.time_ns, monotonic: Clock = time.perf_counter_ns, *, tries: int = 100) -> int:
    """Return what is added to the wall clock to get the monotonic one, in nanoseconds.

    The wall clock is read between two readings of the other; the narrowest of `tries` such brackets counts.
    """
    narrowest, offset = None, 0
    for _ in range(tries):
        before, moment, after = monotonic(), wall(), monotonic()
        if narrowest is None or after - before < narrowest:
            narrowest, offset = after - before, (before + after) // 2 - moment
    return offset


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

        def is_later(place: int, own: int | None = stamp) -> bool:
            return stamp_at(place + 1) != own

        # Two looks are enough for a right guess, where the search takes a dozen.
        known, guess = start, guess_end(start) - 1
        if start < guess < size and not is_later(guess):
            known = guess
        # The kernel walks to a byte from the first, so that to look far ahead of a short run would take long.
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
        # Nothing is known yet of how late Python is.
        self._late_until_ns = now_ns() + CALM_NS
        self.measure()

    def measure(self) -> None:
        """Measure the offset between the clocks."""
        self._offset_ns = measure_offset(self._wall, self.now_ns)
        self._measured_ns = self.now_ns()

    def refresh(self) -> None:
        """Measure it for a new connection, unless that was done just now."""
        if self.now_ns() - self._measured_ns > FRESH_NS:
            self.measure()

    def arrival(self, stamp: int | None, earliest_ns: int, now_ns: int) -> Arrival:
        """Return when something came that is read now, no earlier than `earliest_ns`.

        Where there is no stamp, the time of the read; where it contradicts the monotonic clock, that time too, blurred.
        """
        if stamp is None:
            return Arrival(now_ns, None)
        if now_ns - self._measured_ns > REMEASURE_NS:
            self.measure()
        t_ns = stamp + self._offset_ns
        if now_ns - t_ns > LATE_NS:
            self._late_until_ns = now_ns + CALM_NS
        if earliest_ns <= t_ns <= now_ns + TOLERANCE_NS:
            return Arrival(t_ns, max(0, now_ns - t_ns))
        return Arrival(now_ns, None, blurred=True)

    def is_on_time(self, now_ns: int) -> bool:
        """Whether what came lately was read at once."""
        return now_ns > self._late_until_ns


class ReceiveBuffer:
    """Where all connections of one thread read to, one after the other."""

    def __init__(self, size: int = BUFFER_BYTES) -> None:
        self._data = bytearray(size)
        self.view = memoryview(self._data)
        self._control = bytearray(_STAMPED_MESSAGES.size)
        self._receive = LockedReceive(self.view, self._control) if HAS_LOCKED_CALLS else None

    def look(self, sock: socket.socket) -> tuple[int, int | None, int | None]:
        """Fill the buffer with what waits, without taking it; return how many bytes, and the first and last stamp.

        None where the kernel has no stamp. Raises BlockingIOError if nothing waits, OSError if the connection broke.
        """
        if self._receive is None:
            size, last = _look(sock, self.view, socket.MSG_PEEK)
            return size, _look(sock, self.view[:1], socket.MSG_PEEK)[1], last
        size, has_stamps = self._receive.look_at_both_ends(sock.fileno())
        if not has_stamps:
            # Rare: the socket is older than the kernel's stamps.
            return size, self.stamp_at(sock, 1), self.stamp_at(sock, size)
        _, _, kind, s, ns, _, _, last_kind, last_s, last_ns = _STAMPED_MESSAGES.unpack(self._control)
        if kind != _SO_TIMESTAMPNS or last_kind != _SO_TIMESTAMPNS:
            return size, None, None
        return size, s * 1_000_000_000 + ns, last_s * 1_000_000_000 + last_ns

    def stamp_at(self, sock: socket.socket, place: int) -> int | None:
        """The stamp of a byte that waits, counted from 1."""
        if self._receive is None:
            return _look(sock, self.view[:place], socket.MSG_PEEK | socket.MSG_TRUNC)[1]
        return self._read_stamp() if self._receive.look_at(sock.fileno(), place) else None

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

    def take_all(self, sock: socket.socket) -> tuple[int, int | None]:
        """Take what waits without a look; return how many bytes, and the stamp of the last. Raises as `look` does."""
        if self._receive is None:
            return _look(sock, self.view, 0)
        size, has_stamp = self._receive.take(sock.fileno())
        return size, self._read_stamp() if has_stamp else None

    def take(self, sock: socket.socket, size: int) -> None:
        """Take what was looked at; the buffer keeps it."""
        if self._receive is None:
            sock.recv_into(self.view, size, socket.MSG_TRUNC)
        else:
            self._receive.take(sock.fileno(), size)

    def _read_stamp(self) -> int | None:
        """The stamp in the control message that came last."""
        _, _, kind, s, ns = _STAMPED_MESSAGE.unpack_from(self._control)
        return s * 1_000_000_000 + ns if kind == _SO_TIMESTAMPNS else None


def _look(sock: socket.socket, buffer: memoryview, flags: int) -> tuple[int, int | None]:
    """How many bytes wait, at most a buffer full, and the stamp of the last of them."""
    size, messages, *_ = sock.recvmsg_into([buffer], _STAMPED_MESSAGE.size, flags)
    for _, kind, data in messages:
        if kind == _SO_TIMESTAMPNS and len(data) == _STAMP.size:
            s, ns = _STAMP.unpack(data)
            return size, s * 1_000_000_000 + ns
    return size, None


class SocketReader:
    """Reads a non-blocking socket; the time of what it reads is that of the read itself."""

    __slots__ = (
        "_breakage",
        "_buffer",
        "_clock",
        "_earliest_ns",
        "_sock",
        "is_at_end",
    )

    def __init__(self, sock: socket.socket, buffer: ReceiveBuffer, clock: StampClock) -> None:
        self._sock = sock
        self._buffer = buffer
        self._clock = clock
        self.is_at_end = False
        """Whether the peer sends no more."""
        self._earliest_ns = 0
        """What is read next came no earlier than this: when the request was sent, then what was read before."""
        self._breakage: OSError | None = None
        """How the connection broke, if it did; there may be more to read."""

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

    __slots__ = ("_single_reads",)

    def __init__(self, sock: socket.socket, buffer: ReceiveBuffer, clock: StampClock) -> None:
        super().__init__(sock, buffer, clock)
        self._single_reads = 0
        """How many of the last reads in a row brought one event each."""

    def read(self) -> list[Segment]:
        now_ns, buffer, sock = self._clock.now_ns(), self._buffer, self._sock
        if self._single_reads >= SINGLE_READS and self._clock.is_on_time(now_ns):
            size, last = buffer.take_all(sock)
            if size == 0:
                return self._end()
            if buffer.guess_end(0) != size:
                self._single_reads = 0
            return [self._make_segment(0, size, last, now_ns)]
        try:
            size, first, last = buffer.look(sock)
        except BlockingIOError:
            raise
        except OSError as error:
            # Told once, and before what came until then.
            self._breakage = error
            size, first, last = buffer.look(sock)
        if size == 0:
            return self._end()
        # Nearly always it is one segment that waits.
        if first == last or size > SEARCHED_BYTES:
            buffer.take(sock, size)
            if self._single_reads < SINGLE_READS:
                self._single_reads = self._single_reads + 1 if buffer.guess_end(0) == size else 0
            return [self._make_segment(0, size, last, now_ns)]
        self._single_reads = 0
        # What was looked at to find the end of a run is the start of the next one.
        stamp_at = functools.cache(functools.partial(buffer.stamp_at, sock))
        runs = find_runs(size, last, stamp_at, buffer.guess_end)
        segments, start = [], 0
        for end, stamp in itertools.islice(runs, MAX_RUNS):
            segments.append(self._make_segment(start, end, stamp, now_ns))
            start = end
        buffer.take(sock, start)
        return segments

    def _make_segment(self, start: int, end: int, stamp: int | None, now_ns: int) -> Segment:
        """Return a run of bytes with one stamp, which is in the buffer."""
        arrival = self._clock.arrival(stamp, self._earliest_ns, now_ns)
        self._earliest_ns = arrival.t_ns
        return self._buffer.view[start:end], arrival

    def _end(self) -> list[Segment]:
        """The peer sends no more. Raises OSError if the connection broke."""
        if self._breakage is not None:
            raise self._breakage
        self.is_at_end = True
        return []


def request_stamps(sock: socket.socket) -> None:
    """Ask the kernel for stamps, if it has any for such a socket: for TCP on Linux.

    Best before connecting: the first socket of a machine that asks has to wait for them a moment.
    """
    if sys.platform == "linux" and sock.family in (socket.AF_INET, socket.AF_INET6):
        # A kernel in a sandbox need not have them.
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def make_reader(sock: socket.socket, buffer: ReceiveBuffer, clock: StampClock) -> SocketReader:
    """Return a reader of a connected socket; with stamps if `request_stamps` got any."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                clock.refresh()
                return StampedReader(sock, buffer, clock)
    return SocketReader(sock, buffer, clock)


class Readiness(Protocol):
    """Calls back when a socket can be read; used on one event loop alone."""

    def watch(self, sock: socket.socket, callback: Callable[[], object]) -> None:
        """Have the callback called whenever something waits in the socket, or its connection is broken."""

    def ignore(self, sock: socket.socket) -> None:
        """Call no more."""

    def close(self) -> None:
        """Give up what it holds, once nothing is watched any more."""


class LoopReadiness:
    """Leaves it to the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def watch(self, sock: socket.socket, callback: Callable[[], object]) -> None:
        self._loop.add_reader(sock, callback)

    def ignore(self, sock: socket.socket) -> None:
        self._loop.remove_reader(sock)

    def close(self) -> None:
        """Nothing to give up."""


class EpollReadiness:
    """An epoll that the event loop watches: all sockets that are ready are read in one turn of the loop.

    uvloop takes the interpreter's lock anew for each socket, and a busy cell may have it in between; nor does uvloop
    (0.23) call again for a socket whose connection broke while bytes waited.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._epoll = select.epoll()
        self._wait = LockedEpollWait(self._epoll) if HAS_LOCKED_CALLS else self._poll
        self._loop.add_reader(self._epoll.fileno(), self._on_ready)

    def watch(self, sock: socket.socket, callback: Callable[[], object]) -> None:
        self._callbacks[sock.fileno()] = callback
        self._epoll.register(sock.fileno(), select.EPOLLIN)

    def ignore(self, sock: socket.socket) -> None:
        del self._callbacks[sock.fileno()]
        self._epoll.unregister(sock.fileno())

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _poll(self) -> list[int]:
        return [fd for fd, _ in self._epoll.poll(0)]

    def _on_ready(self) -> None:
        for fd in self._wait():
            # One of those before may have closed it.
            callback = self._callbacks.get(fd)
            if callback is not None:
                callback()


def make_readiness() -> Readiness:
    """Return the best there is, for the running event loop."""
    return EpollReadiness() if sys.platform == "linux" else LoopReadiness()


# System calls that keep the interpreter's lock. The layouts are those of 64-bit Linux, whatever its C library.

HAS_LOCKED_CALLS = sys.platform == "linux" and sys.maxsize > 2**32 and sys.byteorder == "little"
"""Whether system calls can keep the interpreter's lock; see `LockedReceive`."""
MAX_READY = 256
"""How many ready files are told at once; the others the next time."""
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


class _Received(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = (("message", _Message), ("size", ctypes.c_uint))


# An attribute of a structure takes three times as long as an item of a memoryview of it.
_RECEIVED_WORDS = ctypes.sizeof(_Received) // 8
"""How many 64-bit words a `_Received` has."""
_CONTROL_SIZE = _Message.control_size.offset // 8
"""Which of them is the size of its control messages."""
_RECEIVED_SIZE = _Received.size.offset // 8
"""Which of them has, in its lower half, how many bytes came."""
_PART_SIZE = _Part.size.offset // 8
"""Which word of a `_Part` is its size."""


def _find_c_function(name: str) -> Callable[..., int]:
    """A function of the C library; calling it keeps the interpreter's lock, which is what `PyDLL` is for.

    Its arguments are integers of C's `int`, and references. It returns an `int`.
    """
    # Without `argtypes`, which would convert each argument of each call: a third of a microsecond for five of them.
    found: Callable[..., int] = getattr(ctypes.PyDLL(None, use_errno=True), name)
    return found


class LockedReceive:
    """Looks at what waits in sockets, each look with a control message, and takes it."""

    def __init__(self, buffer: memoryview, control: bytearray) -> None:
        """`control` has room for the control messages of two looks."""
        self._recvmmsg, self._recvmsg = _find_c_function("recvmmsg"), _find_c_function("recvmsg")
        # Kept, since the structures hold only their addresses.
        self._buffers = [(ctypes.c_char * len(part)).from_buffer(part) for part in (buffer, control)]
        base, control_base = map(ctypes.addressof, self._buffers)
        self._room, self._size = len(control) // 2, len(buffer)
        self._parts = (_Part * 2)(_Part(base, 1), _Part(base, len(buffer)))
        self._received = (_Received * 2)()
        for place in range(2):
            part = ctypes.pointer(self._parts[place])
            self._received[place].message = _Message(None, 0, part, 1, control_base + self._room * place, self._room, 0)
        self._both, self._first = ctypes.byref(self._received), ctypes.byref(self._received[0].message)
        self._words = memoryview(self._received).cast("B").cast("Q")
        self._sizes = memoryview(self._parts).cast("B").cast("Q")

    def look_at_both_ends(self, fd: int) -> tuple[int, bool]:
        """Look at the first byte, then at all that waits, in one call; return how many bytes those are.

        And whether both looks had their control message. Raises BlockingIOError if nothing waits, OSError.
        """
        words, room = self._words, self._room
        self._sizes[_PART_SIZE] = 1
        words[_CONTROL_SIZE] = words[_RECEIVED_WORDS + _CONTROL_SIZE] = room
        if self._recvmmsg(fd, self._both, 2, _PEEK, None) < 2:
            raise _last_c_error()
        return words[_RECEIVED_WORDS + _RECEIVED_SIZE] & 0xFFFFFFFF, words[_CONTROL_SIZE] == words[
            _RECEIVED_WORDS + _CONTROL_SIZE
        ] == room

    def look_at(self, fd: int, place: int) -> bool:
        """Look at the first `place` bytes; return whether there was a control message."""
        return self._receive(fd, place, _PEEK_AND_TRUNC)[1]

    def take(self, fd: int, size: int | None = None) -> tuple[int, bool]:
        """Take the first `size` bytes, which were looked at, or into the buffer all that waits; return how many.

        And whether there was a control message. Raises BlockingIOError if nothing waits, OSError.
        """
        # TCP leaves the buffer as it is where it truncates, so nothing is copied twice.
        return self._receive(fd, self._size, 0) if size is None else self._receive(fd, size, _TRUNC)

    def _receive(self, fd: int, size: int, flags: int) -> tuple[int, bool]:
        self._sizes[_PART_SIZE] = size
        self._words[_CONTROL_SIZE] = self._room
        received = self._recvmsg(fd, self._first, flags)
        if received < 0:
            raise _last_c_error()
        return received, self._words[_CONTROL_SIZE] == self._room


def _last_c_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


class LockedEpollWait:
    """`epoll_wait` that does not wait."""

    def __init__(self, epoll: select.epoll) -> None:
        self._call = _find_c_function("epoll_wait")
        self._epoll = epoll
        # Events, and of the data beside them what `select.epoll` sets, the number of the file. Packed on x86-64 alone.
        self._event = struct.Struct("=Ii4x" if platform.machine() == "x86_64" else "=I4xi4x")
        self._buffer = (ctypes.c_char * (self._event.size * MAX_READY))()

    def __call__(self) -> list[int]:
        """Return the numbers of the files that are ready, at most MAX_READY of them."""
        count = self._call(self._epoll.fileno(), self._buffer, MAX_READY, 0)
        # An error is a signal that came in between: what is ready now is ready the next time, too.
        return [self._event.unpack_from(self._buffer, self._event.size * place)[1] for place in range(max(count, 0))]
