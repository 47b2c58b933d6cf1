"""The service as a child process: starts light, hides its key, ends with its parent, says why it cannot start."""

import json
import os
import socket
import sys
import traceback
from pathlib import Path

import httpx
import psutil
import pytest

from famnb.errors import ConnectError
from famnb.service import serve
from tests.support.service_requests import PATHS, is_answering, minimal_body, start_python
from tests.support.waiting import wait_until


def has_ended(pid: int) -> bool:
    """Whether a process has ended; one that only waits to be buried by whoever inherited it has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_starting_it_loads_no_web_server():
    """The parent stays light: neither starlette nor uvicorn is imported to start a child."""
    code = (
        "import sys, famnb.service as s\n"
        "with s.serve(): print(sorted({'starlette', 'uvicorn', 'httptools', 'pydantic'} & set(sys.modules)))"
    )
    out, error = start_python(code).communicate(timeout=60)
    assert (out.strip(), error) == ("[]", "")


def test_it_serves_until_closed():
    server = serve(time_scale=0)
    assert is_answering(server.url)
    assert server.running
    server.close()
    server.close()
    assert has_ended(server.pid)
    assert not server.running
    assert not is_answering(server.url)


def test_the_key_is_shown_nowhere():
    with serve(time_scale=0, key="a-chosen-key") as server:
        assert server.key == "a-chosen-key"
        assert not any("a-chosen-key" in argument for argument in psutil.Process(server.pid).cmdline())
        assert "a-chosen-key" not in repr(server)
        sent = {"authorization": "Bearer a-chosen-key"}
        assert httpx.post(server.url + PATHS["web"], headers=sent, json=minimal_body("web")).status_code == 200


def test_why_it_could_not_start_is_in_the_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConnectError, match=rf"did not start: cannot listen at 127\.0\.0\.1 port {port} .*choose"):
            serve(port=port)


def test_a_child_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hanging))
    with pytest.raises(ConnectError, match="in silence"):
        serve(start_timeout=0.3)


PARENT = """
import famnb.service, json, time
server = famnb.service.serve()
print(json.dumps({"url": server.url, "pid": server.pid}), flush=True)
"""


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("", marks=pytest.mark.full),
        pytest.param("1 / 0", marks=pytest.mark.full),
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_it_ends_with_its_parent(end: str):
    out, _ = start_python(f"{PARENT}{end}").communicate(timeout=60)
    server = json.loads(out)
    wait_until(lambda: has_ended(server["pid"]))


def test_neither_the_parents_process_group_nor_a_key_in_its_environment_is_the_services(monkeypatch):
    """An interrupt of a kernel reaches its whole group; what `famnb lab` left in the environment is its service's."""
    monkeypatch.setenv("FAMNB_SERVICE_KEY", "another-services-key")
    with serve() as server:
        assert server.key != "another-services-key"
        assert os.getpgid(server.pid) != os.getpgid(0)
        assert os.getsid(server.pid) != os.getsid(0)


def test_a_service_that_cannot_be_started_shows_no_environment(monkeypatch):
    """A verbose traceback shows the variables of every frame, and the environment may hold a key."""
    monkeypatch.setenv("FAM_API_KEY", "fam-key-0123456789abcdef")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ConnectError, match="nowhere") as caught:
        serve()
    assert caught.value.__context__ is None
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "fam-key-0123456789abcdef" not in "".join(report.format())
