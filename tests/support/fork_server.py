"""Python processes without their imports: forked from one that has loaded what they need, and otherwise as any other.

`python -m tests.support.fork_server` is that one process, which `ForkServer` starts and asks.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

ROOT = Path(__file__).parents[2]
PACKET = 1 << 17


class ForkServer:
    """A process that has imported modules, and from which others are forked; all of them end when it is closed."""

    def __init__(self, *modules: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            command = [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno()), *modules]
            self._process = subprocess.Popen(
                command, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; what was forked from it goes on until it is told to end."""
        self._socket.close()
        self._process.wait()

    def ask(self, message: Mapping[str, Any], files: Sequence[int] = ()) -> int:
        """Send one request, with open files, and return the answer."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(message).encode()], files)
            answer = self._socket.recv(PACKET)
        if not answer:
            raise RuntimeError("the fork server has ended; what it wrote says why")
        return int(answer)

    def start(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: str | None, files: Sequence[int]
    ) -> tuple[int, int]:
        """Fork a process that does what `[python, …, "-m", module, *arguments]` would, or `-c` and code.

        Returns its id and a file for it.
        """
        place = next(place for place, word in enumerate(command) if word in ("-m", "-c"))
        message = {"argv": list(command[place:]), "env": dict(env), "cwd": cwd or str(Path.cwd())}
        pid = self.ask(message, files)
        # Whatever became of it, its id is its own until it is waited for.
        return pid, os.pidfd_open(pid)


class ForkedProcess:
    """What `subprocess.Popen` returns, for a forked process; its standard files are pipes where PIPE is asked for."""

    def __init__(
        self,
        server: ForkServer,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: Any = None,
        stderr: Any = None,
    ) -> None:
        self._server = server
        self._waiting = threading.Lock()
        self.args = command
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr = None
        with contextlib.ExitStack() as theirs:
            null = theirs.enter_context(Path(os.devnull).open("rb"))
            files = [null.fileno(), 1, 2]
            if stdin == subprocess.PIPE:
                files[0], ours = os.pipe()
                theirs.callback(os.close, files[0])
                self.stdin = os.fdopen(ours, "wb", 0)
            if stdout == subprocess.PIPE:
                ours, files[1] = os.pipe()
                theirs.callback(os.close, files[1])
                self.stdout = os.fdopen(ours, "rb")
            elif stdout is not None:
                files[1] = stdout.fileno()
            if stderr is not None:
                files[2] = stderr.fileno()
            self.pid, self._file = server.start(command, env=env, cwd=cwd, files=files)

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit status."""
        with self._waiting:
            if self.returncode is None:
                if not select.select([self._file], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = self._server.ask({"wait": self.pid})
                os.close(self._file)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def main() -> None:
    """Import what is named, then fork a process for each request; returns in this one when there are no more."""
    asked = socket.socket(fileno=int(sys.argv[1]))
    # Before all others, to be called after them.
    is_done = threading.Event()
    atexit.register(end_at_once, is_done)
    if "ipykernel.kernelapp" in sys.argv:
        # It reads at its import whose end ends a kernel, and matplotlib where a kernel's figures go.
        os.environ |= {"JPY_PARENT_PID": str(os.getpid()), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    while True:
        text, files, _, _ = socket.recv_fds(asked, PACKET, 3)
        if not text:
            return
        message = json.loads(text)
        if "wait" in message:
            asked.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(message["wait"], 0)[1]))
        elif os.fork():
            for file in files:
                os.close(file)
        else:
            os.setsid()
            # Not before: who is told the id may send signals to the group of it.
            asked.send(b"%d" % os.getpid())
            asked.detach()
            become(message, files)
            is_done.set()
            return


def end_at_once(is_done: threading.Event) -> None:
    """End a process that has done what was asked for."""
    # To take apart what it has loaded would take a short one as long again.
    if is_done.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def become(message: Mapping[str, Any], files: Sequence[int]) -> None:
    """Do in this process what was asked for; it ends as any does."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    # A shell that starts the tests in the background has interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(message["env"])
    os.chdir(message["cwd"])
    option, program, *arguments = message["argv"]
    # As `python -m` has them.
    sys.path[0] = message["cwd"]
    if option == "-c":
        sys.argv = [option, *arguments]
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv = [program, *arguments]
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
