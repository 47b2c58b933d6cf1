"""The service beside this process: starts it, knows where it is, ends it; loads nothing of a web server itself."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from famnb.errors import ConnectError
from famnb.service.settings import Options

SERVICE_URL = "FAMNB_SERVICE_URL"
"""The environment variable by which `famnb lab` tells its kernels where the service is, and they their children."""
KEY_VARIABLE = "FAMNB_SERVICE_KEY"
"""The environment variable that carries the keys to the child: never its arguments, which every user can list."""


class Server:
    """A running service; it ends with `close`, at the end of a `with` block, or when this process ends."""

    def __init__(
        self, *, url: str, alt_url: str, key: str, pid: int, process: subprocess.Popen[bytes], log: IO[bytes]
    ) -> None:
        self.url = url
        """Its address, a client's `base_url`."""
        self.alt_url = alt_url
        """Its alternative address, a client's `alt_base_url`; the same as `url` without an `alt_port`."""
        self.key = key
        self.pid = pid
        self._process = process
        self._log = log
        atexit.register(self.close)

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the service, its open streams included, and wait until it is gone; calling it again does nothing."""
        atexit.unregister(self.close)
        _end(self._process)
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Server {self.url} {'running' if self.running else 'ended'}>"


def serve(*, start_timeout: float = 30.0, **options: Any) -> Server:
    """Start the local service in a child process that ends with this one; raises ConnectError when it cannot.

    `options` are the fields of `famnb.service.settings.Options`, such as `port=0`, `alt_port=None`, `key=None`,
    `seed=0`, `time_scale=1.0`, `strict=False`, `fault=""`; `upstream="http://127.0.0.1:8000"` has a real engine answer,
    whose key the child reads from the environment variable that `upstream_key` names; `store="responses.sqlite"` keeps
    responses in a file, so that conversations go on after a restart.
    """
    chosen = Options(**options)
    arguments = {field.name: getattr(chosen, field.name) for field in dataclasses.fields(chosen) if field.name != "key"}
    log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
    process = spawn(
        [sys.executable, "-m", "famnb.service", msgspec.json.encode(arguments, enc_hook=str).decode()],
        {KEY_VARIABLE: " ".join(chosen.keys())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        # Of its own session, or an interrupt meant for a notebook cell would end the service as well.
        start_new_session=True,
    )
    if isinstance(process, OSError):
        log.close()
        raise ConnectError(f"the local service did not start: {process}")
    assert process.stdout is not None
    late = threading.Timer(start_timeout, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    except BaseException:
        _end(process)
        raise
    finally:
        late.cancel()
    try:
        said = msgspec.json.decode(line)
        where = {name: said[name] for name in ("url", "alt_url", "key", "pid")}
        return Server(**where, process=process, log=log)
    except (msgspec.DecodeError, KeyError, TypeError):
        raise _not_started(process, log, start_timeout) from None


def announce(server: Server) -> None:
    """Tell the processes that this one starts, and its own `connect`, where a service is and its key."""
    os.environ.update({SERVICE_URL: server.url, KEY_VARIABLE: server.key})


def spawn(command: Sequence[str], variables: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes] | OSError:
    """A child process with more environment variables, or why there is none.

    The failure is given back rather than raised: a traceback may show the variables of its frames, and these frames'
    have the whole environment, keys included.
    """
    try:
        return subprocess.Popen(command, env={**os.environ, **variables}, **options)  # noqa: S603 - our own commands
    except OSError as failure:
        return failure.with_traceback(None)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a child: it stops at the end of its input; if it does not, it is killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _not_started(process: subprocess.Popen[bytes], log: IO[bytes], start_timeout: float) -> ConnectError:
    """The error for a child that did not say where it is, with the end of what it said instead."""
    _end(process)
    log.seek(0)
    said = log.read().decode(errors="replace").strip()[-2000:]
    log.close()
    reason = said or f"it ended with status {process.returncode} (or took longer than {start_timeout:g} s) in silence"
    return ConnectError(f"the local service did not start: {reason}")
