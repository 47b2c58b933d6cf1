"""The way to a service and back: requests over kept connections, answers with the times at which they came."""

from __future__ import annotations

import sys

# httpx (0.28) also loads its command line where `click` and `rich` are installed, as they are in most notebooks: 35 of
# 85 ms. It does without where that module cannot be imported; afterwards it can be, as ever.
if "httpx" not in sys.modules:
    sys.modules["httpx._main"] = None  # type: ignore[assignment] # the import system's own word for "there is none"
    try:
        import httpx  # noqa: F401
    finally:
        del sys.modules["httpx._main"]

from famnb.client.transport.pool import StampedTransport as StampedTransport
from famnb.client.transport.sender import MAX_CONNECTIONS as MAX_CONNECTIONS
from famnb.client.transport.sender import RequestSender as RequestSender
from famnb.client.transport.sender import Response as Response
from famnb.client.transport.sender import check_transport as check_transport
from famnb.client.transport.sender import origin_of as origin_of
