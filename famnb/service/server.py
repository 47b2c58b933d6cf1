"""Runs the service in this process: socket, web server, the first line of output, and the ways to end it."""

from __future__ import annotations

import asyncio
import contextlib
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
from famnb.service.settings import Options, new_key
from famnb.service.shutdown import Shutdown
from famnb.service.stores.base import Store

if sys.platform != "win32":
    import resource

_GRACE_S = 1
"""How long callers have to read the end of their streams, once the service ends."""
_FILES = (65_536, 10_240)
"""How many open files to ask for where all that there may be are refused."""


class _WebServer(uvicorn.Server):
    """A web server that says where it is once it accepts connections."""

    def __init__(self, config: uvicorn.Config, line: bytes, *, engine: Engine, store: Store, ending: Shutdown) -> None:
        super().__init__(config)
        self._line = line
        self._engine = engine
        self._store = store
        self._ending = ending
        self._warned: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.stdout.buffer.write(self._line + b"\n")
        sys.stdout.buffer.flush()
        self._warned = asyncio.create_task(self._warn())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End open streams properly, give callers slow to read their time, and close what is open."""
        self._ending.begin()
        await super().shutdown(sockets)
        if self.server_state.tasks:
            # Those still there were cancelled just now; what they have to store, they do before they end.
            await asyncio.wait(self.server_state.tasks, timeout=_GRACE_S)
        await self._store.aclose()
        await self._engine.aclose()

    async def _warn(self) -> None:
        """Say on standard error what keeps the engine from answering; it is served all the same."""
        match (await self._engine.state()).get("upstream"):
            case "down":
                said = "the upstream does not answer yet; calls fail until it does"
            case "unauthorized":
                said = "the upstream refuses the key; say with --upstream-key which variable has the right one"
            case _:
                return
        print(f"famnb: {said}", file=sys.stderr, flush=True)  # noqa: T201 - whoever started it reads it

    def end_with_stdin(self) -> None:
        """Stop once whoever started the service has no more need of it, or is gone."""
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        self.should_exit = True


def run(*, until_eof: bool = False, **options: Any) -> int:
    """Serve until interrupted, or until the end of standard input; returns the exit status.

    `options` are the fields of `famnb.service.settings.Options`. The first line on standard output is one JSON
    object `{"url", "key", "pid", "alt_url"}`, written once connections are accepted; everything else goes to standard
    error. `alt_url` is the `url` unless there is an `alt_port`.
    """
    chosen = Options(**options)
    _open_many()
    keys = chosen.keys() or (new_key(),)
    wanted = (chosen.port,) if chosen.alt_port is None else (chosen.port, chosen.alt_port)
    sockets = [_listening(chosen.host, port) for port in wanted]
    ports = [listening.getsockname()[1] for listening in sockets]
    url, alt_url = _url(chosen.host, ports[0]), _url(chosen.host, ports[-1])
    line = {"url": url, "key": keys[0], "pid": os.getpid(), "alt_url": alt_url}
    engine, store, ending = create_engine(chosen), create_store(chosen), Shutdown()
    alt_port = None if chosen.alt_port is None else ports[-1]
    app = create_app(chosen, keys=keys, engine=engine, store=store, ending=ending, alt_port=alt_port)
    web = _WebServer(
        _config(app, within=chosen.upload_timeout), msgspec.json.encode(line), engine=engine, store=store, ending=ending
    )
    if until_eof:
        threading.Thread(target=web.end_with_stdin, name="famnb-stdin", daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt), collect_rarely():
        web.run(sockets=sockets)
    return 0


def _config(app: ASGIApp, *, within: float) -> uvicorn.Config:
    class Timed(ServiceProtocol):
        """A connection with the patience that the options say."""

    Timed.within = within
    return uvicorn.Config(
        app,
        http=Timed,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("server", "famnb")],
        # Longer than clients keep idle connections, so that it is they who close them.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_GRACE_S,
    )


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens at the host and port; raises ConnectError when it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConnectError(
            f"cannot listen at {host} port {port} ({reason}); choose another host or port, port 0 for a free one"
        ) from None


def _open_many() -> None:
    """Have as many files open as the system allows: each caller is one, each call of an upstream another."""
    if sys.platform == "win32":
        return  # there is no such limit
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # Some systems say that there is no limit, and refuse it all the same.
    for wanted in (most, *_FILES):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            return


def _url(host: str, port: int) -> str:
    """Where callers find a service that listens at this host."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - nothing binds here
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
