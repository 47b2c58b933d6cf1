"""Starts and ends the service as a child process: `serve` and the `Server` it returns.

Imports nothing of a web server, so that a notebook that only starts the service stays light.
"""

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
from typing import IO, Any, Self

import msgspec

from famnb.errors import ConnectError
from famnb.service.local_models import find_model
from famnb.service.settings import Options

SERVICE_URL = "FAMNB_SERVICE_URL"
"""The environment variable with the address of the service, set by `famnb lab` for its kernels and their children."""
MODELS_VARIABLE = "FAMNB_SERVICE_MODELS"
"""The environment variable with the names of the models that answer there, joined by commas; unset for a simulation."""
KEY_VARIABLE = "FAMNB_SERVICE_KEY"
"""The environment variable with the keys. Never an argument of the child: every user of the machine can list those."""
_START_TIMEOUT_S = 30.0
"""How many seconds a service may take to start."""
_LOAD_TIMEOUT_S = 900.0
"""The same for one that loads models."""
# The service allows a second for callers to read the end of their streams, and another to store what came of them.
_STOP_TIMEOUT_S = 3.0
"""How many seconds a service may take to end by itself before it is killed."""
_upstreams: dict[str, str] = {}
"""The upstream behind each address of this process's services, also of those that ended; "" for a simulation."""


class ChildProcess:
    """A child of this process that says in one line of JSON that it is ready, and ends when its standard input does.

    So it ends with this process however that ends. It is in a session of its own: an interrupt meant for a notebook
    cell reaches the whole process group of the kernel.
    """

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], *, title: str, start_timeout: float
    ) -> None:
        """Start it with additional environment variables; `title` is what errors call it.

        Raises ConnectError, with the end of its standard error, if its first line is no JSON object.
        """
        # A file: a pipe that nobody reads would fill up.
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
        process = spawn(
            command, variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True
        )
        if isinstance(process, OSError):
            self.log.close()
            raise ConnectError(f"{title} did not start: {process}")
        self._process = process
        assert process.stdout is not None
        # `readline` has no timeout; it returns once the child is killed.
        killer = threading.Timer(start_timeout, process.kill)
        killer.start()
        try:
            line = process.stdout.readline()
        except BaseException:
            self.close()
            raise
        finally:
            killer.cancel()
        try:
            self.message: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError:
            self._end()
            reason = self.read_log() or (
                f"it ended with status {process.returncode} (or took longer than {start_timeout:g} s) in silence"
            )
            self.log.close()
            raise ConnectError(f"{title} did not start: {reason}") from None
        atexit.register(self.close)

    @property
    def running(self) -> bool:
        """Whether it is alive."""
        return self._process.poll() is None

    def read_log(self) -> str:
        """Return the end of what it wrote to standard error."""
        self.log.seek(0)
        # A traceback says at its end what is wrong.
        return self.log.read().decode(errors="replace").strip()[-2000:]

    def close(self) -> None:
        """End it, and wait for that; a second call does nothing."""
        atexit.unregister(self.close)
        self._end()
        self.log.close()

    def _end(self) -> None:
        """Close its standard input, at which it ends by itself, or kill it after `_STOP_TIMEOUT_S`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class Server:
    """A running service; it ends with `close`, at the end of a `with` block, or when this process ends."""

    def __init__(self, child: ChildProcess, *, models: tuple[str, ...] = ()) -> None:
        self._child = child
        self.models = models
        """The names of the models on this machine that answer; none for a simulation or an upstream."""
        self.url: str = child.message["url"]
        """Its address, a client's `base_url`."""
        self.alt_url: str = child.message["alt_url"]
        """Its alternative address, a client's `alt_base_url`; the same as `url` without an `alt_port`."""
        self.key: str = child.message["key"]
        self.pid: int = child.message["pid"]

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._child.running

    def read_log(self) -> str:
        """Return the end of what it wrote to standard error: warnings, and a line a request if it logs those."""
        return self._child.read_log()

    def close(self) -> None:
        """End the service, its open streams included, and wait for its process; a second call does nothing."""
        self._child.close()
        for url in (self.url, self.alt_url):
            # Another service may get the port, and it need not be a simulation.
            if _upstreams.get(url) == "":
                del _upstreams[url]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Server {self.url} {'running' if self.running else 'ended'}>"


def serve(*, start_timeout: float | None = None, **options: Any) -> Server:
    """Start the local service in a child process that ends with this one. Raises ConnectError if it does not start.

    `options` are the fields of `famnb.service.settings.Options`, such as `port=0`, `alt_port=None`, `key=None`,
    `seed=0`, `time_scale=1.0`, `strict=False`, `fault=""`; `upstream="http://127.0.0.1:8000"` has a real engine answer,
    whose key the child reads from the environment variable that `upstream_key` names;
    `upstream_model="fam-2-5-pro=big"` names its model; `model="smollm2"` has a model on this machine answer;
    `store="responses.sqlite"` keeps responses in a file, so that conversations go on after a restart.
    `famnb serve --help` explains all of them.

        with famnb.serve() as server:
            client = famnb.Client(base_url=server.url, api_key=server.key)

    The vendors' SDKs work against it: `openai` with `base_url=server.url + "/v1"` (chat completions, responses) or
    `server.url + "/v1/web"` (web chat), `anthropic` with `base_url=server.url`.
    """
    # Checked here as well as in the child, so that a wrong option raises the exception itself.
    settings = Options(**options)
    arguments = {
        field.name: getattr(settings, field.name) for field in dataclasses.fields(settings) if field.name != "key"
    }
    child = ChildProcess(
        # `enc_hook`: `store` may be a Path, which JSON does not have.
        [sys.executable, "-m", "famnb.service", msgspec.json.encode(arguments, enc_hook=str).decode()],
        {KEY_VARIABLE: " ".join(settings.keys())},
        title="the local service",
        # A model may take minutes to load.
        start_timeout=start_timeout or (_LOAD_TIMEOUT_S if settings.models else _START_TIMEOUT_S),
    )
    server = Server(child, models=tuple(find_model(model)[0] for model in settings.models))
    for url in (server.url, server.alt_url):
        _upstreams[url] = url if settings.models else settings.upstream
    return server


def is_simulation(url: str) -> bool:
    """Whether an address is known as a simulation's: the embedded service's, or that of one this process runs."""
    is_embedded = url == os.getenv(SERVICE_URL) and not os.getenv(MODELS_VARIABLE)
    return is_embedded or _upstreams.get(url) == ""


def upstream_of(url: str) -> str:
    """The address behind that of a gateway which this process started; empty for any other."""
    return _upstreams.get(url, "")


def variables_of(server: Server) -> dict[str, str]:
    """Return the environment variables by which child processes find a service."""
    return {SERVICE_URL: server.url, KEY_VARIABLE: server.key, MODELS_VARIABLE: ",".join(server.models)}


# Here, and not in the line of a user's call: a verbose traceback shows the values of the names in its lines.
def announce(server: Server) -> None:
    """Name a service in the environment, for child processes and for what finds the service by it."""
    os.environ.update(variables_of(server))


def spawn(command: Sequence[str], variables: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes] | OSError:
    """Start a child process with additional environment variables; returns the OSError if it cannot be started.

    The error is returned rather than raised: a verbose traceback shows the variables of its frames, and these frames
    hold the whole environment, keys included.
    """
    try:
        return subprocess.Popen(command, env={**os.environ, **variables}, **options)  # noqa: S603 - our own commands
    except OSError as error:
        return error.with_traceback(None)
