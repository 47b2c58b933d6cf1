"""The service in the foreground: its first line, its ports, its files, and how it ends."""

import json
import socket
import sys

import pytest

from famnb.service import serve
from tests.support.service_requests import is_answering, start_python


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are told by Linux alone")
def test_it_has_as_many_files_as_the_system_allows():
    """Each caller is one, and what a shell allows by default would be too few for a thousand of them."""
    code = (
        "import psutil, resource as r, famnb.service as s\n"
        "most = r.getrlimit(r.RLIMIT_NOFILE)[1]\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (256, most))\n"
        "with s.serve() as server: print(psutil.Process(server.pid).rlimit(r.RLIMIT_NOFILE) == (most, most))"
    )
    out, error = start_python(code).communicate(timeout=60)
    assert (out.strip(), error) == ("True", "")


def test_run_goes_on_when_its_input_ends():
    process = start_python("from famnb.service.server import run\nrun()")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdin = None
    line = json.loads(process.stdout.readline())
    assert set(line) == {"url", "key", "pid", "alt_url"}
    assert is_answering(line["url"])
    process.terminate()
    assert process.communicate(timeout=60) == ("", "")


def test_it_listens_where_it_is_told_and_says_how_to_reach_it():
    with serve(host="0.0.0.0") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert is_answering(server.url)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serve(port=port) as server:
        assert server.url == f"http://127.0.0.1:{port}"
