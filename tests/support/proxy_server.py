"""An HTTP proxy in a thread: tunnels, and requests passed on; it knows what it was asked for."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from urllib.parse import urlsplit


class ProxyServer:
    """Serves until it is closed; every connection is relayed as bytes, in both directions."""

    def __init__(self, *, credentials: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        """`credentials` is the `proxy-authorization` without which it refuses; with `tls` it speaks TLS itself."""
        self.heads: list[str] = []
        """The head of each first request, as it came."""
        self._credentials = credentials
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        port = self._listener.getsockname()[1]
        self.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self) -> ProxyServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            received = b""
            while b"\r\n\r\n" not in received:
                data = connection.recv(65536)
                if not data:
                    return
                received += data
            head, _, rest = received.partition(b"\r\n\r\n")
            self.heads.append(head.decode("latin-1"))
            if self._credentials and f"proxy-authorization: {self._credentials}".lower() not in self.heads[-1].lower():
                connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                return
            method, target, _ = self.heads[-1].split("\r\n")[0].split()
            parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
            origin = stack.enter_context(socket.create_connection((parts.hostname or "", parts.port or 80)))
            origin.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                origin.sendall(rest)
            else:
                origin.sendall(received.replace(target.encode(), (parts.path or "/").encode(), 1))
            _relay(connection, origin)


def _relay(peer: socket.socket, other: socket.socket) -> None:
    """Pass bytes on until either side ends, and how it ended."""
    peers = {peer: other, other: peer}
    while True:
        pending = [peer] if isinstance(peer, ssl.SSLSocket) and peer.pending() else []
        for sock in pending or select.select([peer, other], [], [])[0]:
            try:
                data = sock.recv(65536)
            except ConnectionResetError:
                # Passed on as what it is.
                peers[sock].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return
            if not data:
                return
            peers[sock].sendall(data)
