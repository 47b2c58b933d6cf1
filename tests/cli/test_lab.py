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

from tests.support.waiting import wait_until


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
            contents = wait_until(lambda: fetch(f"http://127.0.0.1:{port}/api/contents"), timeout=60)
            assert "01-start.ipynb" in [entry["name"] for entry in json.loads(contents)["content"]]
            assert fetch(f"{url}/health")
        finally:
            # JupyterLab asks back after the first. Two at once would count as one: pending signals are not queued.
            os.killpg(child.pid, signal.SIGINT)
            time.sleep(0.5)
            os.killpg(child.pid, signal.SIGINT)
            child.wait(30)
    assert fetch(f"{url}/health") is None


def fetch(url: str) -> bytes | None:
    """The body of a GET, without any proxy; None where no server answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as response:
            return response.read()
    except OSError:
        return None
