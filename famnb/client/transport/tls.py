"""TLS between bytes in memory, so that what is decrypted keeps the arrival of the bytes it came in. Opens no socket."""

from __future__ import annotations

import contextlib
import functools
import ssl

import httpx

# The largest record, decrypted.
_RECORD_BYTES = 16_384


@functools.cache
def default_context() -> ssl.SSLContext:
    """The context that verifies certificates by SSL_CERT_FILE, SSL_CERT_DIR or certifi's authorities.

    Loading the authorities takes long enough to do it once, and only if needed. Raises OSError.
    """
    try:
        return httpx.create_ssl_context()
    except OSError as failure:
        raise OSError(f"the certificates cannot be loaded: {failure}; see SSL_CERT_FILE") from None


class TLSLayer:
    """One TLS session of a client: encrypted bytes in, plain ones out, and the other way round."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        # The protocols that are offered are the context's. Httpcore, too, sets those of a given context.
        context.set_alpn_protocols(["http/1.1"])
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.is_closed = False
        """Whether the peer has said that it sends no more (close_notify); what follows is not read."""
        self.has_rest = False
        """Whether bytes of what came last have no content (yet): a part of a record, or one of the session's own."""
        self.fault: ssl.SSLError | None = None
        """Why what came is no record of this session; what came before it counts."""

    def shake_hands(self, data: bytes = b"") -> bool:
        """Take what came of the handshake; return whether it is done. Raises ssl.SSLError if it fails.

        Either way `take_outgoing` has what must be sent now.
        """
        self._incoming.write(data)
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def encrypt(self, data: bytes) -> bytes:
        """Return the bytes to send for plain ones."""
        if data:
            self._session.write(data)
        return self.take_outgoing()

    def decrypt(self, data: bytes | memoryview) -> bytes:
        """Return the plain bytes of all records that are complete now; then see `is_closed` and `fault`."""
        incoming, session = self._incoming, self._session
        if self.is_closed:
            return b""
        incoming.write(data)
        content: list[bytes] = []
        self.has_rest = False
        # A read decrypts one whole record and leaves the next in `incoming`, so nothing waits in the session. Each call
        # of the session gives up the interpreter's lock, and beside a busy cell it is got back only a switch interval
        # later: one call a record is all that may be spent.
        while incoming.pending:
            try:
                record = session.read(_RECORD_BYTES)
            except ssl.SSLWantReadError:
                self.has_rest = True
                break
            except ssl.SSLError as error:
                self.fault = error
                break
            # At close_notify `read` returns nothing, and does so again and again.
            if not record:
                self.is_closed = self.has_rest = True
                break
            content.append(record)
        return content[0] if len(content) == 1 else b"".join(content)

    def take_outgoing(self) -> bytes:
        """Return what the session itself wants sent: its part of a handshake, or of a change of keys."""
        return self._outgoing.read()

    def close(self) -> bytes:
        """Return the farewell to send."""
        # It asks for the peer's own farewell, which nobody waits for.
        with contextlib.suppress(ssl.SSLError):
            self._session.unwrap()
        return self.take_outgoing()
