"""Which hosts are this machine, and which a page on the internet might be behind."""

import httpx
import pytest

from famnb.endpoints import ENDPOINTS
from famnb.service.settings import names_this_machine
from tests.support.service_requests import PATHS, ServiceClient, error_of, minimal_body
from tests.support.thread_service import run_service


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:8000", True),
        ("[::1]", True),
        ("famnb:8000", True),
        ("page.example.com", False),
        ("page.example.com:8000", False),
        ("127.0.0.1.example.com:8000", False),
        ("localhost.example.com", False),
        ("[2001:db8::1]:8000", False),
        ("93.184.216.34:8000", False),
        ("example.com.:80", False),
    ],
)
def test_a_page_s_name_is_none_of_this_machine(header: str, expected: bool):
    assert names_this_machine(header) is expected


@pytest.mark.parametrize("path", [*PATHS.values(), "/health", "/metrics", "/openapi.json", "/v1/responses/x"])
def test_a_page_that_renamed_this_machine_gets_nothing(api: ServiceClient, path: str):
    body = minimal_body(next((name for name in PATHS if PATHS[name] == path), "web"))
    method = "POST" if path in PATHS.values() else "GET"
    answer = api.request(method, path, json=body, headers={"host": "page.example.com"})
    endpoint = next((name for name, value in ENDPOINTS.items() if path.startswith(value.path)), "web")
    assert (answer.status_code, "--allow-host" in error_of(endpoint, answer.json())["message"]) == (421, True)
    assert answer.headers["x-request-id"].startswith("req_")


def test_a_proxy_s_name_can_be_allowed():
    with run_service(time_scale=0, allow_host=["models.example.com"]) as server:
        for host, status in {"models.example.com": 200, "Models.Example.Com:443": 200, "example.com": 421}.items():
            assert httpx.get(f"{server.url}/health", headers={"host": host}).status_code == status


def test_beyond_loopback_any_name_will_do():
    with run_service(host="0.0.0.0") as server:
        assert httpx.get(f"{server.url}/health", headers={"host": "models.example.com"}).status_code == 200
