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
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

# The layouts below are those of 64-bit Linux, whatever its C library.
IS_AVAILABLE = sys.platform == "linux" and sys.maxsize > 2**32 and sys.byteorder == "little"
"""Whether this module can be used."""
MAX_READY = 256
"""How many ready files are told at once; the others the next time."""


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


def _find(name: str, arguments: Sequence[Any], result: Any) -> Callable[..., int]:
    """A function of the C library; calling it keeps the interpreter's lock, which is what `PyDLL` is for."""
    function = getattr(ctypes.PyDLL(None, use_errno=True), name)
    function.argtypes, function.restype = arguments, result
    found: Callable[..., int] = function
    return found


class RecvMsg:
    """`recvmsg` into one buffer, with one for control messages."""

    def __init__(self, buffer: memoryview, control: bytearray) -> None:
        self._call = _find("recvmsg", (ctypes.c_int, ctypes.c_void_p, ctypes.c_int), ctypes.c_ssize_t)
        self._control_size = len(control)
        # Kept, since the structures hold only their addresses.
        self._buffers = [(ctypes.c_char * len(part)).from_buffer(part) for part in (buffer, control)]
        base, control_base = map(ctypes.addressof, self._buffers)
        self._part = _Part(base, 0)
        self._message = _Message(None, 0, ctypes.pointer(self._part), 1, control_base, 0, 0)
        self._address = ctypes.addressof(self._message)

    def __call__(self, fd: int, size: int, flags: int) -> tuple[int, int]:
        """Receive at most `size` bytes; return how many came, and the size of the control messages. Raises OSError."""
        self._part.size = size
        self._message.control_size = self._control_size
        count = self._call(fd, self._address, flags)
        if count < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return count, self._message.control_size


class EpollWait:
    """`epoll_wait` that does not wait."""

    def __init__(self, epoll: select.epoll) -> None:
        arguments = ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int
        self._call = _find("epoll_wait", arguments, ctypes.c_int)
        self._epoll = epoll
        # Events, and of the data beside them what `select.epoll` sets, the number of the file. Packed on x86-64 alone.
        self._event = struct.Struct("=Ii4x" if platform.machine() == "x86_64" else "=I4xi4x")
        self._buffer = (ctypes.c_char * (self._event.size * MAX_READY))()
        self._address = ctypes.addressof(self._buffer)

    def __call__(self) -> list[int]:
        """Return the numbers of the files that are ready, at most MAX_READY of them."""
        count = self._call(self._epoll.fileno(), self._address, MAX_READY, 0)
        # An error is a signal that came in between: what is ready now is ready the next time, too.
        return [self._event.unpack_from(self._buffer, self._event.size * place)[1] for place in range(max(count, 0))]
