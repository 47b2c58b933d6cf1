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
from starlette.types import ASGIApp

from famnb.errors import ConnectError
from famnb.service.app import create_app, create_engine, create_store
from famnb.service.engines.base import Engine
from famnb.service.http_protocol import ServiceProtocol
from famnb.service.request_body import collect_rarely
from famnb.service.request_log import log_settings
from famnb.service.settings import Options, new_key
from famnb.service.shutdown import Shutdown
from famnb.service.stores.base import Store

if sys.platform != "win32":
    import resource

_log = logging.getLogger("famnb.service")

# A caller who reads at all needs milliseconds; whoever closes the service, a notebook's end among them, waits for it.
_GRACE_S = 1
"""How many seconds callers have to read the end of their streams, once the shutdown begins."""
# macOS reports an unlimited maximum, which it refuses to set; 10,240 is its OPEN_MAX.
_FILE_LIMITS = (65_536, 10_240)
"""The numbers of open files to ask for, one after the other, where the system refuses its own maximum."""


class _WebServer(uvicorn.Server):
    """A web server that says where it is once it accepts connections."""

    def __init__(
        self, config: uvicorn.Config, first_line: bytes, *, engine: Engine, store: Store, shutdown: Shutdown
    ) -> None:
        super().__init__(config)
        self._first_line = first_line
        self._engine = engine
        self._store = store
        self._shutdown = shutdown
        self._warning_task: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then write the first line."""
        await super().startup(sockets)
        sys.stdout.buffer.write(self._first_line + b"\n")
        sys.stdout.buffer.flush()
        # Not awaited, for an upstream may take seconds to answer; kept, since a task without a reference may vanish.
        self._warning_task = asyncio.create_task(self._warn_about_engine())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End open streams properly, give slow callers time to read, then close the store and the engine."""
        self._shutdown.begin()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            # uvicorn cancelled these just now, without waiting; they still have to store what came of their responses.
            await asyncio.wait(self.server_state.tasks, timeout=_GRACE_S)
        await self._store.aclose()
        await self._engine.aclose()

    async def _warn_about_engine(self) -> None:
        """Log why the engine cannot answer yet, if so; the service runs all the same."""
        match (await self._engine.state()).get("upstream"):
            case "down":
                _log.warning("the upstream does not answer yet; calls fail until it does")
            case "unauthorized":
                _log.warning("the upstream refuses the key; say with --upstream-key which variable has the right one")

    def stop_at_end_of_stdin(self) -> None:
        """Stop once standard input ends: whoever started the service has closed it, or has died."""
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        self.should_exit = True


def run(*, until_eof: bool = False, **options: Any) -> int:
    """Serve until interrupted, with `until_eof` also until the end of standard input; returns the exit status.

    `options` are the fields of `famnb.service.settings.Options`. The first line on standard output is one JSON
    object `{"url", "key", "pid", "alt_url"}`, written once connections are accepted; everything else goes to standard
    error. `alt_url` is the `url` unless there is an `alt_port`.
    """
    settings = Options(**options)
    _raise_file_limit()
    keys = settings.keys() or (new_key(),)
    wanted_ports = (settings.port,) if settings.alt_port is None else (settings.port, settings.alt_port)
    sockets = [_listen(settings.host, port) for port in wanted_ports]
    ports = [listener.getsockname()[1] for listener in sockets]
    url, alt_url = _url(settings.host, ports[0]), _url(settings.host, ports[-1])
    first_line = {"url": url, "key": keys[0], "pid": os.getpid(), "alt_url": alt_url}
    engine, store, shutdown = create_engine(settings), create_store(settings), Shutdown()
    alt_port = None if settings.alt_port is None else ports[-1]
    app = create_app(settings, keys=keys, engine=engine, store=store, shutdown=shutdown, alt_port=alt_port)
    server = _WebServer(
        _uvicorn_config(app, settings),
        msgspec.json.encode(first_line),
        engine=engine,
        store=store,
        shutdown=shutdown,
    )
    for warning in settings.warnings(keys):
        _log.warning(warning)
    if until_eof:
        threading.Thread(target=server.stop_at_end_of_stdin, name="famnb-stdin", daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt), collect_rarely():
        server.run(sockets=sockets)
    return 0


def _uvicorn_config(app: ASGIApp, settings: Options) -> uvicorn.Config:
    class Protocol(ServiceProtocol):
        """The protocol with the timeout of the options: uvicorn takes a class and makes the objects itself."""

    Protocol.head_timeout = settings.upload_timeout
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",  # the app has no start-up or shutdown of its own; `_WebServer` has
        log_config=log_settings(settings.log_format),
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


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the host and port. Raises ConnectError if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # Room for a thousand callers who connect at once; the system may allow fewer.
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConnectError(
            f"cannot listen at {host} port {port} ({reason}); choose another host or port, port 0 for a free one"
        ) from None


def _raise_file_limit() -> None:
    """Allow this process as many open files as the system permits: each caller is one, each upstream call another."""
    if sys.platform == "win32":
        return  # there is no such limit
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for limit in (hard_limit, *_FILE_LIMITS):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard_limit))
            return


def _url(host: str, port: int) -> str:
    """Return the address at which callers reach a service that listens at `host`."""
    # The addresses that mean "every interface" cannot be called everywhere; the local one can.
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - nothing binds here
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
