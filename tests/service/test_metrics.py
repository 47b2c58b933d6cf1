"""`/metrics`: what Prometheus reads, with its own parser."""

from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from famnb.service.metrics import Metrics, RequestRecord
from tests.support.service_requests import PATHS, ServiceClient, minimal_body
from tests.support.thread_service import run_service
from tests.support.waiting import wait_until


def read(text: str) -> dict[tuple[str, ...], float]:
    """Each sample's value by its name and the values of its labels."""
    return {
        (sample.name.removeprefix("famnb_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def finished(**fields: Any) -> RequestRecord:
    """A request that took two seconds, its first token half of one."""
    record = RequestRecord("web", 10.0, **{"status": 200, **fields})
    record.first_token, record.ended = 10.5, 12.0
    return record


def test_requests_tokens_and_times_are_counted(endpoint: str):
    with run_service(time_scale=0) as server, ServiceClient(server) as api:
        usage = api.ask(endpoint).json()["usage"]
        assert api.ask(endpoint, stream=True).status_code == 200
        assert api.ask(endpoint, model=5).status_code == 400
        assert httpx.post(server.url + PATHS[endpoint]).status_code == 401
        samples = read(api.get("/metrics").text)
    for status, count in {"200": 2, "400": 1, "401": 1}.items():
        assert samples["requests_total", endpoint, status] == count
    output = usage.get("output_tokens", usage.get("completion_tokens"))
    assert samples["tokens_total", endpoint, "output"] == 2 * output
    assert samples["time_to_first_token_seconds_count", endpoint] == 2
    assert samples["request_duration_seconds_bucket", endpoint, "+Inf"] == 4
    assert (samples["requests_in_flight", endpoint], samples["requests_in_flight", "metrics"]) == (0, 1)


def test_whoever_left_and_what_broke_are_told_apart():
    metrics = Metrics()
    for record in (finished(status=None, error="disconnected"), finished(error="server_error")):
        metrics.begin(record)
        metrics.end(record)
    samples = read(metrics.render("down").decode())
    assert samples["time_to_first_token_seconds_sum", "web"] == 2 * 0.5
    assert [samples["upstream_state", state] for state in ("up", "unauthorized", "down")] == [0, 0, 1]
    assert (samples["requests_total", "web", "499"], samples["broken_streams_total", "web"]) == (1, 1)


def test_running_requests_are_in_flight(api: ServiceClient):
    def running() -> float:
        return read(api.get("/metrics").text)["requests_in_flight", "web"]

    body = minimal_body("web", stream=True)
    with api.stream("POST", PATHS["web"], json=body, headers={"x-famnb-fault": "stall=1"}) as stream:
        chunks = stream.iter_bytes()
        next(chunks)
        assert running() == 1
    wait_until(lambda: running() == 0)


def test_metrics_want_the_key(api: ServiceClient):
    assert httpx.get(f"{api.base_url}/metrics").status_code == 401
    assert api.get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
