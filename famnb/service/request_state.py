"""What the parts of the service tell each other of a request: the names in the `state` of its ASGI scope.

server ── http_protocol: HEAD_TOO_LARGE, UNREADABLE, WRITE_BLOCK, HOLD_HEAD ── app: RECORD, SEND_BODY ── endpoint

Those of the whole process, which every request's state has as well: SHUTDOWN, HEAD_TIMEOUT, METRICS.
"""

from __future__ import annotations

RECORD = "record"
"""Its `RequestRecord`."""
HEAD_TOO_LARGE = "head_too_large"
"""Set if a part of its head was dropped."""
UNREADABLE = "unreadable"
"""How it was answered below the application, whose own answer nobody gets.

The status, the error's code and the id of the answer, for HTTP that becomes unreadable behind its head; no status for
an answer that had begun.
"""
# Around a request's `send` are four layers, which do something with the head of the answer alone.
SEND_BODY = "send_body"
"""The server's own `send`, for the pieces of a body."""
WRITE_BLOCK = "write_block"
"""A function that writes a piece of a streamed body; missing where the server has none.

It returns whether it could: if not, the piece is to be sent, which may take its time.
"""
HOLD_HEAD = "hold_head"
"""A function that has an answer's head wait for the first piece of its body; missing where the server has none.

Both are then one write: that saves a tenth of a short request, and its caller is woken once.
"""

SHUTDOWN = "shutdown"
"""The `Shutdown` of the application."""
HEAD_TIMEOUT = "head_timeout"
"""The seconds that a caller has for the head of a request, from the connection or the end of the last answer."""
METRICS = "metrics"
"""The `Metrics` of the application."""
