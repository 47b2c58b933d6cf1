"""Which sockets can be read, told to the connections: by an epoll of our own where there is one, else by the loop."""

from __future__ import annotations

import asyncio
import select
import socket
import sys
from collections.abc import Callable
from typing import Protocol

from famnb.client.transport import locked_calls


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
        self._wait = locked_calls.EpollWait(self._epoll) if locked_calls.IS_AVAILABLE else self._poll
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
