"""A scripted server on a raw socket, in a thread: it answers each request with the next script, faults included.

A script is a list of steps: bytes are sent, a number is a pause in seconds, an Event is waited for, and the words below
do what they say.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Action(Enum):
    RESET = "break the connection off, so that the peer sees an error"
    CLOSE = "close the connection in order"
    HALF_CLOSE = "send no more, but keep listening until the peer leaves"
    STALL = "do nothing until the peer leaves"


Step = bytes | float | threading.Event | Action
Script = Sequence[Step]
END = b"0\r\n\r\n"
"""The end of a chunked body."""


@dataclass
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"
    at: float = field(default_factory=time.monotonic)


def head(status: int = 200, **headers: str) -> bytes:
    """A response head; underscores in header names are dashes."""
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(body: Any = b"", status: int = 200, **headers: str) -> list[Step]:
    """A response with a body of known length; a value that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"content_type": "application/json", "content_length": str(len(data)), **headers}
    return [head(status, **fields) + data]


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunked(*steps: Step, status: int = 200, end: bool = True, **headers: str) -> list[Step]:
    """A response whose body comes in chunks: each step of bytes is one chunk and one write."""
    fields = {"content_type": "text/event-stream; charset=utf-8", "transfer_encoding": "chunked", **headers}
    body = [chunk(step) if isinstance(step, bytes) else step for step in steps]
    return [head(status, **fields), *body, *([END] if end else [])]


def event(payload: Any) -> bytes:
    """One server-sent event, as the API writes it."""
    return b"data: " + (payload if isinstance(payload, bytes) else json.dumps(payload).encode()) + b"\n\n"


DONE = event(b"[DONE]")


class FaultServer:
    """Serves scripts in order, the last one again and again; `requests` and `open` say what came and what is there."""

    def __init__(
        self,
        *scripts: Script,
        choose: Callable[[Received], Script] | None = None,
        get: Script | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`host` is an address, IPv6 too; with `tls` it speaks TLS."""
        self.scripts = list(scripts)
        self.choose = choose
        self.get = get
        """What a GET is answered with, without being counted; None closes the connection."""
        self.requests: list[Received] = []
        self.sent: list[float] = []
        """When each step of bytes was sent, on the monotonic clock."""
        self.connections = 0
        """Connections ever accepted."""
        self.open = 0
        """Connections not yet closed by either side."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=256)
        # The name that certificates are made for.
        name = "localhost" if tls else f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{name}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self) -> FaultServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self.open += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            incoming = stack.enter_context(connection.makefile("rb"))
            while (request := _received(incoming)) and self._play(connection, self._script(request)):
                pass
        with self._lock:
            self.open -= 1

    def _script(self, request: Received) -> Script:
        if request.method == "GET":
            return self.get or [Action.CLOSE]
        with self._lock:
            self.requests.append(request)
            if self.choose is not None:
                return self.choose(request)
            return self.scripts[min(len(self.requests), len(self.scripts)) - 1]

    def _play(self, connection: socket.socket, script: Script) -> bool:
        """Whether the connection can take another request."""
        for step in script:
            match step:
                case bytes():
                    self.sent.append(time.monotonic())
                    connection.sendall(step)
                case threading.Event():
                    step.wait(10)
                case Action.RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                case Action.CLOSE:
                    return False
                case Action.HALF_CLOSE | Action.STALL:
                    if step is Action.HALF_CLOSE:
                        connection.shutdown(socket.SHUT_WR)
                    self._left(connection, 30)
                    return False
                case _ if self._left(connection, step):
                    return False
        return True

    def _left(self, connection: socket.socket, seconds: float) -> bool:
        """Wait; True as soon as the peer has left."""
        due = time.monotonic() + seconds
        while (left := due - time.monotonic()) > 0 and not self._closing.is_set():
            readable, _, _ = select.select([connection], [], [], min(left, 0.05))
            # The socket's own method: that of TLS cannot look without taking. What a peer says there is a farewell.
            if readable and (not socket.socket.recv(connection, 1, socket.MSG_PEEK) or self._tls is not None):
                return True
        return False


def _received(incoming: Any) -> Received | None:
    first = incoming.readline()
    if not first.startswith((b"POST ", b"GET ")):
        return None  # the peer has left, or speaks TLS
    headers: dict[str, str] = {}
    while (line := incoming.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    method, path, _ = first.decode().split()
    if headers.get("transfer-encoding") == "chunked":
        chunks = []
        while size := int(incoming.readline(), 16):
            chunks.append(incoming.read(size))
            incoming.readline()
        incoming.readline()
        return Received(path, headers, b"".join(chunks), method=method)
    return Received(path, headers, incoming.read(int(headers.get("content-length", "0"))), method=method)
