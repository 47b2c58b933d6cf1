"""The service on a thread of the test's process, which starts in milliseconds; one of its own takes half a second."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from famnb.service.server import ServiceServer
from famnb.service.settings import Options, new_key
from tests.support.waiting import wait_until


class ThreadService(NamedTuple):
    """A running service."""

    url: str
    key: str


@contextlib.contextmanager
def run_service(**fields: Any) -> Iterator[ThreadService]:
    """A service with these options, on a free port of this machine, while the block runs."""
    options = Options(**fields)
    keys = options.keys() or (new_key(),)
    server = ServiceServer(options, keys=keys)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            yield ThreadService(f"http://127.0.0.1:{listener.getsockname()[1]}", keys[0])
        finally:
            server.should_exit = True
            thread.join()
