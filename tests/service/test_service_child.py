"""The service as a child: starts light, hides its key, ends with whoever started it, and says why it cannot start."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import httpx
import psutil
import pytest

from famnb.errors import ConnectError, CredentialError, InvalidRequest
from famnb.service import Server, serve
from tests.support.service_requests import PATHS, eventually, minimal


def python(code: str) -> subprocess.Popen[str]:
    """A process of its own that runs some code."""
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def gone(pid: int) -> bool:
    """Whether a process has ended; one that only waits to be buried by whoever inherited it has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def answers(server: Server | dict[str, object]) -> bool:
    url = server["url"] if isinstance(server, dict) else server.url
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_starting_it_loads_no_web_server() -> None:
    """The parent stays light: neither starlette nor uvicorn is imported to start a child."""
    code = (
        "import sys, famnb.service as s\n"
        "with s.serve(): print(sorted({'starlette', 'uvicorn', 'httptools', 'pydantic'} & set(sys.modules)))"
    )
    out, error = python(code).communicate(timeout=60)
    assert (out.strip(), error) == ("[]", "")


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are told by Linux alone")
def test_it_has_as_many_files_as_the_system_allows() -> None:
    """Each caller is one, and what a shell allows by default would be too few for a thousand of them."""
    code = (
        "import psutil, resource as r, famnb.service as s\n"
        "most = r.getrlimit(r.RLIMIT_NOFILE)[1]\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (256, most))\n"
        "with s.serve() as server: print(psutil.Process(server.pid).rlimit(r.RLIMIT_NOFILE) == (most, most))"
    )
    out, error = python(code).communicate(timeout=60)
    assert (out.strip(), error) == ("True", "")


def test_it_serves_until_closed() -> None:
    """It answers, `close` ends the process, closing again does nothing, and nobody listens any more."""
    server = serve(time_scale=0)
    assert answers(server)
    assert server.running
    server.close()
    server.close()
    assert gone(server.pid)
    assert not server.running
    assert not answers(server)


def test_a_with_block_ends_it_even_with_a_stream_open() -> None:
    """An open stream does not keep the service alive; it ends, though not as a complete one does."""
    with serve() as server:
        body = minimal("web", "count to 99999", stream=True)
        headers = {"authorization": f"Bearer {server.key}"}
        client = httpx.Client(headers=headers)
        stream = client.send(client.build_request("POST", server.url + PATHS["web"], json=body), stream=True)
        chunks = stream.iter_bytes()
        next(chunks)
    assert gone(server.pid)
    assert '"the service is ending' in b"".join(chunks).decode()
    client.close()


def test_the_key_is_shown_nowhere() -> None:
    """Neither the arguments, which every user can list, nor the repr holds it; a chosen key is the one in force."""
    with serve(time_scale=0, key="a-chosen-key") as server:
        assert server.key == "a-chosen-key"
        assert not any("a-chosen-key" in argument for argument in psutil.Process(server.pid).cmdline())
        assert "a-chosen-key" not in repr(server)
        sent = {"authorization": "Bearer a-chosen-key"}
        assert httpx.post(server.url + PATHS["web"], headers=sent, json=minimal("web")).status_code == 200


def test_every_service_has_a_key_of_its_own() -> None:
    """Without a key a random one is made up, unguessable and different each time."""
    with serve() as one, serve() as other:
        assert one.key.startswith("famnb-")
        assert len(one.key) > 30
        assert one.key != other.key
        assert one.url != other.url


def test_a_key_in_the_environment_of_the_parent_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `famnb lab` left in the environment belongs to its own service."""
    monkeypatch.setenv("FAMNB_SERVICE_KEY", "another-services-key")
    with serve() as server:
        assert server.key != "another-services-key"


@pytest.mark.parametrize("key", ["", "two words", "line\n", "schlüssel", ["good", "not good"]])
def test_a_malformed_key_is_refused_without_being_shown(key: str | list[str]) -> None:
    """The refusal comes before anything starts."""
    with pytest.raises(CredentialError) as refused:
        serve(key=key)
    assert "words" not in str(refused.value)
    assert "schlüssel" not in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        {"time_scale": -1.0},
        {"time_scale": math.nan},
        {"requests_per_minute": math.nan},
        {"requests_per_minute": math.inf},
        {"burst": 0, "requests_per_minute": 1},
        {"concurrency": -1},
        {"fault": "fire"},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object]) -> None:
    """In words, and with nothing left running."""
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises((InvalidRequest, ConnectError), match=r"expected"):
        serve(**options)
    assert {child.pid for child in psutil.Process().children()} <= before


def test_a_burst_of_no_allowance_is_refused() -> None:
    """It would limit nothing, which nobody means."""
    with pytest.raises(InvalidRequest, match="requests_per_minute"):
        serve(burst=5)


def test_an_option_that_does_not_exist_is_a_type_error() -> None:
    """As with any function."""
    with pytest.raises(TypeError, match="speed"):
        serve(speed=1)


def test_why_it_could_not_start_is_in_the_error() -> None:
    """A port in use: the child's own words reach the caller, with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConnectError, match=rf"did not start: cannot listen at 127\.0\.0\.1 port {port} .*choose"):
            serve(port=port)


def test_a_child_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An interpreter that hangs is killed when the time is up."""
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


def test_it_dies_when_its_parent_is_killed() -> None:
    """`kill -9` leaves the parent no time to tidy up; the child notices and ends."""
    parent = python(f"{PARENT}time.sleep(60)")
    assert parent.stdout is not None
    server = json.loads(parent.stdout.readline())
    assert answers(server)
    parent.kill()
    parent.communicate()
    assert eventually(lambda: gone(server["pid"]))


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "1 / 0"])
def test_it_ends_with_its_parent(end: str) -> None:
    """However the parent ends, a service that was never closed is gone with it."""
    out, _ = python(f"{PARENT}{end}").communicate(timeout=60)
    server = json.loads(out)
    assert eventually(lambda: gone(server["pid"]))


def test_an_interrupt_of_the_parents_group_does_not_reach_it() -> None:
    """Interrupting a kernel interrupts its whole process group; the service must outlive that."""
    with serve() as server:
        assert os.getpgid(server.pid) != os.getpgid(0)
        assert os.getsid(server.pid) != os.getsid(0)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_run_prints_one_line_and_ends_on_a_signal(sent: signal.Signals) -> None:
    """In the foreground: one JSON line once it accepts connections, then silence; a signal ends it, streams or not."""
    code = "from famnb.service import run\nrun(time_scale=1.0, key='some-key')"
    process = python(code)
    assert process.stdout is not None
    line = json.loads(process.stdout.readline())
    assert set(line) == {"url", "key", "pid", "alt_url"}
    assert (line["key"], line["pid"]) == ("some-key", process.pid)
    opened = threading.Event()

    def listen() -> None:
        body = minimal("web", "count to 99999", stream=True)
        headers = {"authorization": "Bearer some-key"}
        try:
            with httpx.stream("POST", line["url"] + PATHS["web"], json=body, headers=headers) as stream:
                for _ in stream.iter_bytes():
                    opened.set()
        except httpx.TransportError:
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    assert opened.wait(20)
    process.send_signal(sent)
    out, error = process.communicate(timeout=20)
    listener.join()
    assert (out, "Traceback" in error) == ("", False)
    assert process.returncode in (0, -sent)


def test_run_goes_on_when_its_input_ends() -> None:
    """Only a child watches its input; in the foreground the service goes on without one."""
    process = python("from famnb.service import run\nrun()")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdin = None
    line = json.loads(process.stdout.readline())
    assert answers(line)
    process.terminate()
    process.communicate(timeout=20)


def test_it_listens_where_it_is_told_and_says_how_to_reach_it() -> None:
    """The address of a service that listens everywhere is one that can be called."""
    with serve(host="0.0.0.0") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert answers(server)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serve(port=port) as server:
        assert server.url == f"http://127.0.0.1:{port}"


def test_a_service_that_cannot_be_started_shows_no_environment(monkeypatch):
    """A verbose traceback shows the variables of every frame, and the environment may hold a key."""
    monkeypatch.setenv("FAM_API_KEY", "fam-key-0123456789abcdef")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ConnectError, match="nowhere") as caught:
        serve()
    assert caught.value.__context__ is None
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "fam-key-0123456789abcdef" not in "".join(report.format())
