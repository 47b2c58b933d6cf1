"""A TLS server for one connection whose every byte a test decides: records, close_notify, and what follows it."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any


class TLSPeer:
    """The server's side of a connection, on a thread of its own."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def shake_hands(self) -> None:
        self._run(self.session.do_handshake)

    def read_head(self) -> bytes:
        """The head of a request."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._run(lambda: self.session.read(65536))
        return data

    def write(self, data: bytes) -> None:
        self.session.write(data)
        self.sock.sendall(self._outgoing.read())

    def notify_close(self, *, then: bytes = b"") -> None:
        """Say that nothing more is sent, and send more; the connection stays open."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.session.unwrap()
        self.sock.sendall(self._outgoing.read() + then)

    def await_end(self) -> None:
        """Wait until the client leaves."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass

    def _run(self, step: Callable[[], Any]) -> Any:
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self.sock.sendall(self._outgoing.read())
                if not (data := self.sock.recv(65536)):
                    raise ConnectionResetError from None
                self._incoming.write(data)
            else:
                self.sock.sendall(self._outgoing.read())
                return result


@contextlib.contextmanager
def serve_tls(context: ssl.SSLContext, play: Callable[[TLSPeer], object]) -> Iterator[str]:
    """Play for every connection, and close it then; yields the address."""

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    def serve(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            play(TLSPeer(sock, context))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"https://localhost:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
