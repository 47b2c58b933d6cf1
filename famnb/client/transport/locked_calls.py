"""System calls that keep the interpreter's lock, for 64-bit Linux.

Python's own wrappers give the lock away for every call, also for one that takes a microsecond and never waits. A busy
cell then may take it, and gives it back after 5 ms, or when a long call into C is over: with 64 streams beside a cell
that computes, events were read 0.7 s late (p99), and 15 ms late with the lock kept.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
import socket
import struct
import sys
from collections.abc import Callable

# The layouts below are those of 64-bit Linux, whatever its C library.
IS_AVAILABLE = sys.platform == "linux" and sys.maxsize > 2**32 and sys.byteorder == "little"
"""Whether this module can be used."""
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
_WORDS = ctypes.sizeof(_Received) // 8
"""How many 64-bit words a `_Received` has."""
_CONTROL_SIZE = _Message.control_size.offset // 8
"""Which of them is the size of its control messages."""
_SIZE = _Received.size.offset // 8
"""Which of them has, in its lower half, how many bytes came."""
_PART_SIZE = _Part.size.offset // 8
"""Which word of a `_Part` is its size."""


def _find(name: str) -> Callable[..., int]:
    """A function of the C library; calling it keeps the interpreter's lock, which is what `PyDLL` is for.

    Its arguments are integers of C's `int`, and references. It returns an `int`.
    """
    # Without `argtypes`, which would convert each argument of each call: a third of a microsecond for five of them.
    found: Callable[..., int] = getattr(ctypes.PyDLL(None, use_errno=True), name)
    return found


class Receive:
    """Looks at what waits in sockets, each look with a control message, and takes it."""

    def __init__(self, buffer: memoryview, control: bytearray) -> None:
        """`control` has room for the control messages of two looks."""
        self._recvmmsg, self._recvmsg = _find("recvmmsg"), _find("recvmsg")
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
        words[_CONTROL_SIZE] = words[_WORDS + _CONTROL_SIZE] = room
        if self._recvmmsg(fd, self._both, 2, _PEEK, None) < 2:
            raise _last_error()
        return words[_WORDS + _SIZE] & 0xFFFFFFFF, words[_CONTROL_SIZE] == words[_WORDS + _CONTROL_SIZE] == room

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
            raise _last_error()
        return received, self._words[_CONTROL_SIZE] == self._room


def _last_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


class EpollWait:
    """`epoll_wait` that does not wait."""

    def __init__(self, epoll: select.epoll) -> None:
        self._call = _find("epoll_wait")
        self._epoll = epoll
        # Events, and of the data beside them what `select.epoll` sets, the number of the file. Packed on x86-64 alone.
        self._event = struct.Struct("=Ii4x" if platform.machine() == "x86_64" else "=I4xi4x")
        self._buffer = (ctypes.c_char * (self._event.size * MAX_READY))()

    def __call__(self) -> list[int]:
        """Return the numbers of the files that are ready, at most MAX_READY of them."""
        count = self._call(self._epoll.fileno(), self._buffer, MAX_READY, 0)
        # An error is a signal that came in between: what is ready now is ready the next time, too.
        return [self._event.unpack_from(self._buffer, self._event.size * place)[1] for place in range(max(count, 0))]
