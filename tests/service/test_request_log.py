"""`--log-format json`: standard error is a JSON object a line, one for each request."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.service_requests import PATHS, error_of, minimal_body
from tests.support.waiting import wait_until

KEY = "the-key-of-this-test"


class Logged(NamedTuple):
    """A caller of a service, and the process whose standard error is read."""

    caller: httpx.Client
    process: subprocess.Popen[str]

    def lines(self) -> list[dict[str, Any]]:
        """End the service; everything that it logged."""
        self.caller.close()
        self.process.terminate()
        return [json.loads(line) for line in self.process.communicate(timeout=60)[1].splitlines()]


@pytest.fixture
def logged() -> Iterator[Logged]:
    command = [sys.executable, "-m", "famnb", "serve", "--key", KEY, "--time-scale", "0", "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with httpx.Client(base_url=url, headers={"authorization": f"Bearer {KEY}"}) as caller:
            yield Logged(caller, process)
        process.kill()


def test_every_request_is_a_line(logged: Logged):
    answers = [
        logged.caller.post(PATHS[name], json=minimal_body(name, "a secret question", stream=stream))
        for name in PATHS
        for stream in (False, True)
    ]
    lines = logged.lines()
    assert [line["id"] for line in lines] == [answer.headers["x-request-id"] for answer in answers]
    assert [line["endpoint"] for line in lines] == [name for name in PATHS for _ in range(2)]
    for line, streams in zip(lines, [False, True] * 4, strict=True):
        assert line["key"] == hashlib.sha256(KEY.encode()).hexdigest()[:12]
        assert (line["status"], line["error"], line["stream"]) == (200, None, streams)
        assert min(line["input_tokens"], line["output_tokens"]) > 1
        assert 0 < line["ttft_s"] <= line["duration_s"]
    written = json.dumps(lines)
    assert KEY not in written
    assert "secret" not in written


def test_a_refused_request_says_why(logged: Logged):
    refused = logged.caller.post(PATHS["web"], json={}, headers={"authorization": "Bearer wrong-key"})
    invalid = logged.caller.post(PATHS["web"], json={})
    missing = logged.caller.get("/nowhere?key=secret")
    lines = logged.lines()
    assert [(line["status"], line["error"], line["key"] is None) for line in lines] == [
        (401, "invalid_api_key", True),
        (400, error_of("web", invalid.json())["code"], False),
        (404, "not_found", True),
    ]
    assert (lines[2]["endpoint"], refused.status_code, missing.status_code) == ("other", 401, 404)
    assert "secret" not in json.dumps(lines)


def test_what_broke_inside_a_stream_is_said(logged: Logged):
    body = minimal_body("web", stream=True)
    logged.caller.post(PATHS["web"], json=body, headers={"x-famnb-fault": "error=2"})
    with logged.caller.stream("POST", PATHS["web"], json=body, headers={"x-famnb-fault": "stall=2"}) as stream:
        next(stream.iter_bytes())
    wait_until(lambda: 'requests_in_flight{endpoint="web"} 0' in logged.caller.get("/metrics").text)
    lines = [line for line in logged.lines() if line["endpoint"] == "web"]
    assert [(line["status"], line["error"]) for line in lines] == [(200, "server_error"), (200, "disconnected")]
