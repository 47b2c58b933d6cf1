"""API keys, and the rate limits of each key."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from famnb.service import Server
from famnb.service.auth import RateLimiter
from famnb.service.errors import ServiceError
from tests.support.service_requests import PATHS, ServiceClient, error_of, minimal_body, send_raw
from tests.support.thread_service import run_service
from tests.support.waiting import wait_until

FIXTURES = Path(__file__).parents[1] / "wire" / "fixtures"
ANYBODY = httpx.Client(verify=False)
"""A caller who has no key."""


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Bearer wrong")],
        [("authorization", "Basic {key}")],
        [("authorization", "{key}")],
        [("authorization", "Bearer {key} {key}")],
        [("authorization", "Bearer {key}"), ("authorization", "Bearer {key}")],
        [("authorization", f"Bearer {'k' * 30_000}")],
        [("authorization", "Bearer schlüssel")],
    ],
    ids=lambda headers: repr(headers)[:60],
)
def test_a_key_that_is_not_the_key_is_refused(server, endpoint, headers):
    """As JSON, of a stream too."""
    sent = [(name, value.format(key=server.key).encode("latin-1")) for name, value in headers]
    answer = ANYBODY.post(server.url + PATHS[endpoint], headers=sent, json=minimal_body(endpoint, stream=True))
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/json"
    error = error_of(endpoint, answer.json())
    if endpoint == "messages":
        assert error["type"] == "authentication_error"
    else:
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
    assert server.key not in answer.text


@pytest.mark.parametrize("name", ["web", "responses", "messages"])
def test_an_error_body_is_the_documents(server: Server, name: str):
    expected = json.loads((FIXTURES / f"error_{name}.json").read_text())
    body = ANYBODY.post(server.url + PATHS[name], json=minimal_body(name)).json()
    inner = body["error"]["error"] if name == "messages" else body["error"]
    (expected["error"]["error"] if name == "messages" else expected["error"])["message"] = inner["message"]
    assert body == expected


def test_the_key_comes_before_the_body(server: Server, endpoint: str):
    assert ANYBODY.post(server.url + PATHS[endpoint], content=b"{").status_code == 401
    head = f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n"
    assert send_raw(server, head.encode()).startswith(b"HTTP/1.1 401 ")


def test_the_messages_endpoint_also_takes_the_header_of_its_sdk(server: Server):
    headers = {"x-api-key": server.key}
    assert (
        ANYBODY.post(server.url + PATHS["messages"], headers=headers, json=minimal_body("messages")).status_code == 200
    )
    assert ANYBODY.post(server.url + PATHS["web"], headers=headers, json=minimal_body("web")).status_code == 401
    headers["authorization"] = "Bearer wrong"
    assert (
        ANYBODY.post(server.url + PATHS["messages"], headers=headers, json=minimal_body("messages")).status_code == 401
    )


def request(limits: RateLimiter, key: str = "key") -> float | None:
    """Make one request; the seconds to wait if it is refused."""
    try:
        with limits.admit(key):
            return None
    except ServiceError as refusal:
        return float(refusal.headers["retry-after"])


@pytest.mark.parametrize("per_minute", [0.5, 7, 60, 1000])
def test_after_retry_after_a_request_passes(per_minute: float):
    now = [1000.0]
    limits = RateLimiter(requests_per_minute=per_minute, burst=1, clock=lambda: now[0])
    assert request(limits) is None
    wait = request(limits)
    assert wait is not None
    now[0] += wait
    assert request(limits) is None


def test_each_key_has_its_own_allowance_and_only_what_runs_is_concurrent():
    limits = RateLimiter(requests_per_minute=60, burst=1, clock=lambda: 1000.0)
    assert [request(limits, key) is None for key in ("a", "b", "a", "b")] == [True, True, False, False]
    limits = RateLimiter(concurrency=1)
    with limits.admit("key"):
        assert request(limits) == 1.0
    assert request(limits) is None


def test_a_limited_service_answers_429_in_shape(endpoint: str):
    with run_service(time_scale=0, requests_per_minute=1, burst=2) as limited, ServiceClient(limited) as caller:
        answers = [caller.ask(endpoint) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429, 429]
    assert error_of(endpoint, answers[-1].json())["type"] == "rate_limit_error"
    assert 55 <= int(answers[-1].headers["retry-after"]) <= 60
    assert int(answers[-1].headers["retry-after-ms"]) <= int(answers[-1].headers["retry-after"]) * 1000


def test_of_a_burst_at_once_exactly_those_beyond_the_limit_are_refused():
    with (
        run_service(time_scale=0, requests_per_minute=10) as limited,
        ServiceClient(limited) as api,
        ThreadPoolExecutor() as pool,
    ):
        statuses = list(pool.map(lambda _: api.ask("messages").status_code, range(15)))
    assert sorted(statuses) == [200] * 10 + [429] * 5


def test_a_stream_holds_its_place_until_it_ends():
    with run_service(time_scale=0, concurrency=1) as limited, ServiceClient(limited) as caller:
        headers = {"x-famnb-fault": "stall=1"}
        with caller.stream("POST", "/v1/responses", json=_stream_body(), headers=headers) as stream:
            chunks = stream.iter_bytes()
            next(chunks)
            assert caller.ask("web").status_code == 429
        wait_until(lambda: caller.ask("web").status_code == 200)


def _stream_body() -> dict[str, object]:
    return {"model": "fam-2-5-pro", "input": "hello", "stream": True}


def test_the_embedded_default_has_no_limit(api: ServiceClient):
    assert {api.ask("web", "one sentence").status_code for _ in range(50)} == {200}
