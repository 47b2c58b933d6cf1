"""`famnb lab`, as a shell sees it."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.waiting import wait_until


@contextlib.contextmanager
def run_lab(tmp_path: Path, *, terminal: int | None = None) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    """`famnb lab` as a process in a session of its own, with the addresses of JupyterLab and of the service.

    With `terminal`, the file descriptor of one, that is its controlling terminal.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    environment |= {"JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"), "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "famnb", "lab", "--no-browser", "--port", str(port)]
    command += ["--", "--IdentityProvider.token=", "--ServerApp.port_retries=0"]
    if terminal is not None:
        # `setsid --ctty` makes its standard input the controlling terminal of the session that it begins.
        command = ["setsid", "--ctty", *command]
    with (tmp_path / "log").open("wb") as log:
        child = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=terminal is None,
        )
    assert child.stdout is not None
    try:
        match = re.search(rb"embedded service at (http://\S+)", child.stdout.readline())
        assert match is not None
        lab, service = f"http://127.0.0.1:{port}", match[1].decode()
        wait_until(lambda: fetch(f"{lab}/api/contents"), timeout=60)
        yield child, lab, service
    finally:
        # Not killed: JupyterLab would be left behind where a test has failed.
        child.terminate()
        child.wait(60)
        child.stdout.close()


@pytest.mark.full
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=lambda ending: ending.name)
def test_a_signal_ends_jupyterlab_and_the_service_together(tmp_path: Path, ending: signal.Signals):
    with run_lab(tmp_path) as (child, lab, service):
        listing = json.loads(fetch(f"{lab}/api/contents") or b"")
        assert "01-start.ipynb" in [entry["name"] for entry in listing["content"]]
        assert fetch(f"{service}/health")
        child.send_signal(ending)
        child.wait(60)
        assert (fetch(f"{lab}/api/contents"), fetch(f"{service}/health")) == (None, None)


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("setsid"), reason="needs Linux's setsid")
def test_no_question_covers_the_first_page_and_closing_the_terminal_ends_both(tmp_path: Path):
    window, terminal = os.openpty()
    with run_lab(tmp_path, terminal=terminal) as (child, lab, service):
        page = (fetch(f"{lab}/lab") or b"").decode()
        config = json.loads(
            re.search(r'id="jupyter-config-data" type="application/json">(.*?)</script>', page, re.S)[1]
        )
        assert (config["news"], config["exposeAppInBrowser"]) == ({"disabled": True}, True)
        os.close(terminal)
        os.close(window)
        child.wait(60)
        wait_until(lambda: (fetch(f"{lab}/api/contents"), fetch(f"{service}/health")) == (None, None), timeout=60)


def fetch(url: str) -> bytes | None:
    """The body of a GET, without any proxy; None where no server answers."""
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(url, trust_env=False, timeout=60).raise_for_status().content
    return None
