"""Runs the service in this process: sockets, the web server, the first line of output, and the ways to stop it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from famnb.errors import ConnectError
from famnb.service.app import create_app, create_engine, create_store
from famnb.service.auth import RateLimits
from famnb.service.engines.base import Engine
from famnb.service.http_protocol import ServiceProtocol
from famnb.service.metrics import Metrics
from famnb.service.request_body import collect_rarely
from famnb.service.request_log import log_settings
from famnb.service.request_state import HEAD_TIMEOUT, METRICS, SHUTDOWN
from famnb.service.settings import Options, new_key
from famnb.service.shutdown import Shutdown
from famnb.service.stores.base import Store
from famnb.service.stores.sqlite import SqliteStore
from famnb.service.workers import SharedMetrics, SharedRateLimiter, Supervisor, end_with_supervisor

if sys.platform != "win32":
    import resource

_log = logging.getLogger("famnb.service")

# A caller who reads at all needs milliseconds; whoever closes the service, a notebook's end among them, waits for it.
_GRACE_S = 1
"""How many seconds callers have to read the end of their streams, once the shutdown begins."""
# macOS reports an unlimited maximum, which it refuses to set; 10,240 is its OPEN_MAX.
_FILE_LIMITS = (65_536, 10_240)
"""The numbers of open files to ask for, one after the other, where the system refuses its own maximum."""


class ServiceApp:
    """The application of one process, and what it holds from its start to its end.

    Before `prepare` it can be sent to another process, which prepares it itself.
    """

    def __init__(
        self, settings: Options, *, keys: tuple[str, ...], alt_port: int | None, first_line: bytes = b""
    ) -> None:
        """`first_line` is written to standard output once this process answers, if it is not empty."""
        self._settings = settings
        self._keys = keys
        self._alt_port = alt_port
        self._first_line = first_line
        self._parts: _Parts | None = None

    def prepare(self, *, is_worker: bool = False) -> None:
        """Open what requests need. Raises InvalidRequest if the options cannot be followed."""
        settings = self._settings
        store = create_store(settings, is_shared=is_worker)
        limits = RateLimits.of(settings)
        metrics, limiter = Metrics(), None
        if is_worker:
            assert isinstance(store, SqliteStore)
            metrics = SharedMetrics(store)
            limiter = SharedRateLimiter(limits, store) if limits.are_set else None
        engine, shutdown = create_engine(settings), Shutdown()
        app = create_app(
            settings,
            keys=self._keys,
            engine=engine,
            store=store,
            shutdown=shutdown,
            limiter=limiter,
            counts=metrics,
            alt_port=self._alt_port,
        )
        self._parts = _Parts(app, engine, store, shutdown, metrics)

    async def aclose(self) -> None:
        """Close what `prepare` has opened."""
        if self._parts is not None:
            await self._parts.store.aclose()
            await self._parts.engine.aclose()
            self._parts = None

    async def warn_about_engine(self) -> None:
        """Log why the engine cannot answer yet, if so; the service runs all the same."""
        assert self._parts is not None
        match (await self._parts.engine.state()).get("upstream"):
            case "down":
                _log.warning("famnb: the upstream does not answer yet; calls fail until it does")
            case "unauthorized":
                _log.warning(
                    "famnb: the upstream refuses the key; say with --upstream-key which variable has the right one"
                )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        else:
            assert self._parts is not None
            await self._parts.answer(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start with the server, and end after its last connection, as uvicorn tells."""
        await receive()
        if self._parts is None:
            self.prepare(is_worker=True)
            end_with_supervisor()
        parts = self._parts
        assert parts is not None
        scope["state"].update(
            {SHUTDOWN: parts.shutdown, HEAD_TIMEOUT: self._settings.upload_timeout, METRICS: parts.metrics}
        )
        shared = parts.metrics if isinstance(parts.metrics, SharedMetrics) else None
        with collect_rarely():
            # Not awaited, for an upstream may take seconds to answer.
            task = asyncio.create_task(shared.publish_regularly() if shared else self.warn_about_engine())
            await send({"type": "lifespan.startup.complete"})
            if self._first_line:
                _write_line(self._first_line)
            await receive()
            parts.shutdown.begin()
            task.cancel()
            if parts.tasks:
                # uvicorn cancelled these just now, without waiting; they still have to store what came of them.
                await asyncio.wait(parts.tasks, timeout=_GRACE_S)
            if shared:
                await shared.publish()
            await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


@dataclasses.dataclass(slots=True)
class _Parts:
    """What the application of a process is made of while it runs."""

    app: ASGIApp
    engine: Engine
    store: Store
    shutdown: Shutdown
    metrics: Metrics
    tasks: set[asyncio.Task[Any]] = dataclasses.field(default_factory=set)
    """Those of the requests that are being answered."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            await self.app(scope, receive, send)
        finally:
            self.tasks.discard(task)


def _write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


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
    alt_port = None if settings.alt_port is None else ports[-1]
    line = msgspec.json.encode(first_line)
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        if settings.workers > 1 and not settings.store:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="famnb-"))
            settings = dataclasses.replace(settings, store=Path(folder) / "responses.sqlite")
        app = ServiceApp(settings, keys=keys, alt_port=alt_port, first_line=line if settings.workers == 1 else b"")
        config = _uvicorn_config(app, settings)  # which sets the log up
        for warning in settings.warnings(keys):
            _log.warning("famnb: %s", warning)
        # Also before there are workers: one process alone brings the file up to date, and says what is wrong.
        app.prepare()
        if settings.workers == 1:
            server = uvicorn.Server(config)
            if until_eof:
                _call_at_end_of_stdin(lambda: setattr(server, "should_exit", True))
            server.run(sockets=sockets)
        else:
            asyncio.run(_warn_and_close(app))
            supervisor = Supervisor(config, sockets, lambda: _write_line(line))
            if until_eof:
                _call_at_end_of_stdin(supervisor.should_exit.set)
            supervisor.run()
    return 0


async def _warn_and_close(app: ServiceApp) -> None:
    await app.warn_about_engine()
    await app.aclose()


def _call_at_end_of_stdin(stop: Callable[[], object]) -> None:
    """Call `stop` once standard input ends: whoever started the service has closed it, or has died."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        stop()

    threading.Thread(target=wait, name="famnb-stdin", daemon=True).start()


def _uvicorn_config(app: ServiceApp, settings: Options) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=ServiceProtocol,
        ws="none",
        lifespan="on",
        workers=settings.workers,
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
