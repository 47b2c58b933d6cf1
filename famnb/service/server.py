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
from starlette.types import Receive, Scope, Send

from famnb.errors import ConnectError
from famnb.service.app import create_app, create_engine
from famnb.service.request_log import log_settings
from famnb.service.settings import Options, new_key
from famnb.service.shutdown import Shutdown
from famnb.service.store import MEMORY, ResponseStore

if sys.platform != "win32":
    import resource

_log = logging.getLogger("famnb.service")

# A caller who reads at all needs milliseconds, and closing the service, as at a notebook's end, takes this long.
_GRACE_S = 1
"""How many seconds callers have to read the end of their streams, once the shutdown begins."""
# macOS reports an unlimited maximum, which it refuses to set; 10,240 is its OPEN_MAX.
_FILE_LIMITS = (65_536, 10_240)
"""The numbers of open files to ask for, one after the other, where the system refuses its own maximum."""


class ServiceApp:
    """The application of the process, and what it holds from its start to its end."""

    def __init__(
        self, options: Options, *, keys: tuple[str, ...], alt_port: int | None = None, first_line: bytes = b""
    ) -> None:
        """`first_line` is written to standard output once requests are answered, if it is not empty.

        Raises InvalidRequest if the options cannot be followed.
        """
        self.shutdown = Shutdown()
        self._first_line = first_line
        self._engine = create_engine(options)
        self._store = ResponseStore(options.store or MEMORY)
        self._app = create_app(
            options, keys=keys, engine=self._engine, store=self._store, shutdown=self.shutdown, alt_port=alt_port
        )
        self._tasks: set[asyncio.Task[Any]] = set()
        """Those of the requests that are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._app(scope, receive, send)
        finally:
            self._tasks.discard(task)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start with the server, and end after its last connection, as uvicorn announces both."""
        await receive()
        # Not awaited, since an upstream may take seconds to answer.
        warning = asyncio.create_task(self._warn_about_engine())
        await send({"type": "lifespan.startup.complete"})
        if self._first_line:
            sys.stdout.buffer.write(self._first_line + b"\n")
            sys.stdout.buffer.flush()
        await receive()
        warning.cancel()
        if self._tasks:
            # uvicorn cancelled these just now, without waiting; they still have to store their responses' ends.
            await asyncio.wait(self._tasks, timeout=_GRACE_S)
        await self._store.aclose()
        await self._engine.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _warn_about_engine(self) -> None:
        """Log why the engine cannot answer yet, if so; the service runs all the same."""
        match (await self._engine.state()).get("upstream"):
            case "down":
                _log.warning("famnb: the upstream does not answer yet; calls fail until it does")
            case "unauthorized":
                _log.warning(
                    "famnb: the upstream refuses the key; name the variable of the right one with --upstream-key"
                )


class _Server(uvicorn.Server):
    """uvicorn's server, which would wait for open streams and cancel them; here they end in order."""

    def __init__(self, config: uvicorn.Config, shutdown: Shutdown) -> None:
        super().__init__(config)
        self._shutdown = shutdown

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._shutdown.begin()
        await super().shutdown(sockets)


def create_server(app: ServiceApp, *, log_config: dict[str, Any] | None = None) -> uvicorn.Server:
    """Return the web server of an application; `log_config` is applied to the process unless it is None."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=log_config,
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
    return _Server(config, app.shutdown)


def run(*, until_eof: bool = False, **fields: Any) -> int:
    """Serve until interrupted, with `until_eof` also until the end of standard input; returns the exit status.

    `fields` are those of `famnb.service.settings.Options`. The first line on standard output is one JSON object
    `{"url", "key", "pid", "alt_url"}`, written once connections are accepted; everything else goes to standard error.
    `alt_url` is the `url` unless there is an `alt_port`. Raises InvalidRequest, CredentialError or ConnectError.
    """
    options = Options(**fields)
    _raise_file_limit()
    keys = options.keys() or (new_key(),)
    wanted_ports = (options.port,) if options.alt_port is None else (options.port, options.alt_port)
    sockets = [_listen(options.host, port) for port in wanted_ports]
    ports = [listener.getsockname()[1] for listener in sockets]
    url, alt_url = _url(options.host, ports[0]), _url(options.host, ports[-1])
    line = msgspec.json.encode({"url": url, "key": keys[0], "pid": os.getpid(), "alt_url": alt_url})
    app = ServiceApp(options, keys=keys, alt_port=None if options.alt_port is None else ports[-1], first_line=line)
    server = create_server(app, log_config=log_settings(options.log_format))
    for warning in options.warnings(keys):
        _log.warning("famnb: %s", warning)
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
