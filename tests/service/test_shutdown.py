"""The end of the service: open calls end properly, in their endpoint's own format, and nothing holds it up."""

import contextlib
import json
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from famnb.service import Server, serve
from tests.support.fault_server import Action, FaultServer
from tests.support.service_requests import (
    CAPS,
    PATHS,
    ServiceClient,
    decode_stream,
    error_of,
    failure_of,
    is_answering,
    minimal_body,
    open_call,
)
from tests.support.upstream_servers import MODEL
from tests.support.waiting import wait_until

KEY = "the-key-of-these-tests"


class Call(threading.Thread):
    """A call whose answer would take minutes, read to its end on a thread of its own."""

    def __init__(self, server: Server, endpoint: str, **fields: Any) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.answer: httpx.Response | None = None
        self.content = b""
        self._request = (server, endpoint, fields)
        self.start()

    def run(self) -> None:
        server, endpoint, fields = self._request
        body = minimal_body(endpoint, "count to 99999", **{CAPS[endpoint]: 16_000, **fields})
        with ServiceClient(server) as caller, caller.stream("POST", PATHS[endpoint], json=body) as self.answer:
            for chunk in self.answer.iter_bytes():
                self.content += chunk
                if self.content.count(b"data:") > 5:
                    self.begun.set()


def terminate(server: Server) -> None:
    psutil.Process(server.pid).terminate()


def interrupt(server: Server) -> None:
    psutil.Process(server.pid).send_signal(signal.SIGINT)


def close(server: Server) -> None:
    server.close()


def has_ended(server: Server) -> bool:
    """Whether the process is gone, in its own time."""
    return bool(wait_until(lambda: not server.running))


@pytest.mark.parametrize("end", [terminate, *(pytest.param(end, marks=pytest.mark.full) for end in (interrupt, close))])
def test_open_streams_end_with_their_endpoints_own_failure(end: Callable[[Server], None]):
    with serve(time_scale=1) as server:
        calls = {endpoint: Call(server, endpoint, stream=True) for endpoint in PATHS}
        assert all(call.begun.wait(60) for call in calls.values())
        end(server)
        for endpoint, call in calls.items():
            call.join(60)
            assert "the service is ending" in failure_of(endpoint, decode_stream(call.content))["message"]
        assert has_ended(server)
        assert end is close or server.read_log() == ""


def test_whole_calls_are_answered_with_an_error():
    with FaultServer([Action.STALL]) as upstream:
        with serve(upstream=upstream.url, upstream_model=MODEL) as server:
            calls = {endpoint: Call(server, endpoint) for endpoint in PATHS}
            wait_until(lambda: sum(request.method == "POST" for request in upstream.requests) == len(calls))
            server.close()
        for endpoint, call in calls.items():
            call.join(60)
            assert call.answer is not None
            assert (call.answer.status_code, call.answer.headers["connection"]) == (500, "close")
            assert "the service is ending" in error_of(endpoint, json.loads(call.content))["message"]


def test_uploads_under_way_are_answered():
    with serve() as server, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        callers = {endpoint: stack.enter_context(socket.create_connection(address, timeout=60)) for endpoint in PATHS}
        for endpoint, caller in callers.items():
            head = f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key}\r\n"
            caller.sendall(f"{head}content-length: 1000\r\n\r\n{{".encode())
        with ServiceClient(server) as other:
            assert [other.get("/health").status_code for _ in range(3)] == [200] * 3
        terminate(server)
        for endpoint, caller in callers.items():
            head, _, body = b"".join(iter(lambda caller=caller: caller.recv(65536), b"")).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 500")
            assert "the service is ending" in error_of(endpoint, json.loads(body))["message"]
        assert has_ended(server)


def test_a_caller_who_does_not_read_is_not_waited_for(tmp_path: Path):
    endless: dict[str, Any] = {"prompt": "count to 99999", "max_output_tokens": 200_000, "stream": True}
    with (
        serve(time_scale=0, store=tmp_path / "store", key=KEY) as server,
        open_call(server, "responses", **endless) as caller,
    ):
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = b""
        while b'","object":"response"' not in head:
            head += caller.recv(1024)
        # Once it rests, every buffer is full, and the stream waits for its caller.
        wait_until(lambda: psutil.Process(server.pid).cpu_percent(interval=0.2) < 5)
        terminate(server)
        wait_until(lambda: not is_answering(server.url))
        assert has_ended(server)
    with serve(time_scale=0, store=tmp_path / "store", key=KEY) as server, ServiceClient(server) as caller:
        id_ = head.partition(b'"id":"')[2].partition(b'"')[0].decode()
        assert caller.get(f"{PATHS['responses']}/{id_}").json()["status"] in ("failed", "cancelled")


def test_an_idle_connection_does_not_hold_up_the_end():
    with serve() as server, ServiceClient(server) as caller:
        assert caller.get("/health").status_code == 200
        terminate(server)
        assert has_ended(server)
