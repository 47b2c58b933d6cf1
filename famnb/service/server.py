"""Runs the service in this process: sockets, the web server, the first line of output, and the ways to stop it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
from typing import Any

import msgspec
import uvicorn

from famnb.errors import ConnectError
from famnb.service.app import create_app, create_engine
from famnb.service.settings import Options, new_key
from famnb.service.shutdown import Shutdown
from famnb.service.store import MEMORY, ResponseStore

if sys.platform != "win32":
    import resource

_log = logging.getLogger("famnb.service")

# A caller who reads at all needs milliseconds, and closing the service, as at a notebook's end, takes this long.
_GRACE_S = 1
"""How many seconds callers have to read the end of their streams, once the shutdown begins."""


class ServiceServer(uvicorn.Server):
    """The web server of the service, with what it holds from its start to its end.

    uvicorn would wait for open streams and cancel them; here they end in order.
    """

    def __init__(
        self, options: Options, *, keys: tuple[str, ...], alt_port: int | None = None, first_line: bytes = b""
    ) -> None:
        """Print `first_line`, if any, once connections are accepted. InvalidRequest if the options are wrong."""
        self._shutdown = Shutdown()
        self._first_line = first_line
        self._engine = create_engine(options)
        self._store = ResponseStore(options.store or MEMORY)
        app = create_app(
            options, keys=keys, engine=self._engine, store=self._store, shutdown=self._shutdown, alt_port=alt_port
        )
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # nothing uses the caller's address
            server_header=False,
            headers=[("server", "famnb")],
            # Longer than clients keep idle connections (ours 30 s), so that it is they who close them: a request that
            # crosses a server's close on its way is lost.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE_S,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # Not awaited, since an upstream may take seconds to answer.
        self._warning = asyncio.create_task(self._warn_about_engine())
        if self._first_line:
            sys.stdout.buffer.write(self._first_line + b"\n")
            sys.stdout.buffer.flush()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._warning.cancel()
        self._shutdown.begin()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            # uvicorn cancelled these just now, without waiting; they still have to store their responses' ends.
            await asyncio.wait(self.server_state.tasks, timeout=_GRACE_S)
        await self._store.aclose()
        await self._engine.aclose()

    async def _warn_about_engine(self) -> None:
        """Log why the engine cannot answer yet, if so; the service runs all the same."""
        problems = {
            "down": "does not answer yet; calls fail until it does",
            "unauthorized": "refuses the key; name the variable of the right one with --upstream-key",
        }
        if problem := problems.get((await self._engine.state()).get("upstream", "")):
            _log.warning("famnb: the upstream %s", problem)


def run(*, until_eof: bool = False, **fields: Any) -> int:
    """Serve until interrupted, with `until_eof` also until the end of standard input; returns the exit status.

    `fields` are those of `famnb.service.settings.Options`. The first line on standard output is one JSON object
    `{"url", "key", "pid", "alt_url"}`, written once connections are accepted; everything else goes to standard error.
    `alt_url` is the `url` unless there is an `alt_port`. Raises InvalidRequest, CredentialError or ConnectError.
    """
    options = Options(**fields)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    _raise_file_limit()
    keys = options.keys() or (new_key(),)
    wanted_ports = (options.port,) if options.alt_port is None else (options.port, options.alt_port)
    sockets = [_listen(options.host, port) for port in wanted_ports]
    ports = [listener.getsockname()[1] for listener in sockets]
    url, alt_url = _url(options.host, ports[0]), _url(options.host, ports[-1])
    line = msgspec.json.encode({"url": url, "key": keys[0], "pid": os.getpid(), "alt_url": alt_url})
    alt_port = None if options.alt_port is None else ports[-1]
    server = ServiceServer(options, keys=keys, alt_port=alt_port, first_line=line)
    if until_eof:
        threading.Thread(target=_end_with_stdin, args=[server], name="famnb-stdin", daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=sockets)
    return 0


def _end_with_stdin(server: uvicorn.Server) -> None:
    """End the server once standard input ends, since the process that started it has closed it or died."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the host and port. Raises ConnectError if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # Room for a thousand callers who connect at once; the system may allow fewer.
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConnectError(
            f"cannot listen at {host} port {port} ({reason}); choose another host or port, port 0 for a free one"
        ) from None
    # Callers' sockets inherit it. Without it, an event waits up to 40 ms until the last one is acknowledged; uvloop
    # sets it by itself, asyncio only on the sockets of a listener that it has opened.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _raise_file_limit() -> None:
    """Allow this process as many open files as the system permits: each caller is one, each upstream call another."""
    if sys.platform == "win32":
        return  # there is no such limit
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # macOS reports an unlimited maximum, which it refuses to set.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _url(host: str, port: int) -> str:
    """Return the address at which callers reach a service that listens at `host`."""
    # The addresses that mean "every interface" cannot be called everywhere; the local one can.
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - nothing binds here
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
