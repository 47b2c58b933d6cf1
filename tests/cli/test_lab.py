"""`famnb lab`, as a shell sees it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest


@pytest.mark.slow
def test_lab_opens_on_the_notebooks_with_the_service_running(tmp_path: Path):
    """`famnb lab` serves the notebooks folder, its kernels find the embedded service, and Ctrl-C ends both."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    environment |= {"JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"), "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "famnb", "lab", "--no-browser", "--port", str(port)]
    command += ["--", "--IdentityProvider.token=", "--ServerApp.port_retries=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True) as child:
        try:
            url = re.search(r"embedded service at (http://\S+)", child.stdout.readline())[1]
            listed = json.loads(fetch_when_ready(f"http://127.0.0.1:{port}/api/contents"))
            assert "01-start.ipynb" in [entry["name"] for entry in listed["content"]]
            assert fetch(f"{url}/health")
        finally:
            os.killpg(child.pid, signal.SIGINT)
            time.sleep(0.5)
            os.killpg(child.pid, signal.SIGINT)
            child.wait(30)
    with pytest.raises(OSError):
        fetch(f"{url}/health")


def fetch(url: str) -> bytes:
    """The body of a GET, without any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        return answer.read()


def fetch_when_ready(url: str) -> bytes:
    """The body of a GET, from a server that may still be starting."""
    for _ in range(300):
        try:
            return fetch(url)
        except OSError:
            time.sleep(0.1)
    return fetch(url)
