"""Faults on demand, and the format in which each endpoint reports a failure."""

import json

import httpx
import pytest

from famnb.service.errors import ServiceError
from famnb.service.fault_injection import HEADER, parse_faults
from tests.support.fault_server import FaultServer
from tests.support.service_requests import PATHS, ServiceClient, decode_stream, error_of, failure_of, minimal_body
from tests.support.thread_service import run_service
from tests.support.upstream_servers import answer_hello


def post_with_fault(api: ServiceClient, endpoint: str, fault: str, **fields: object) -> httpx.Response:
    return api.post(PATHS[endpoint], json=minimal_body(endpoint, **fields), headers={HEADER: fault})


@pytest.mark.parametrize("status", [400, 401, 404, 408, 429, 500, 503, 529])
def test_a_status_on_demand_has_the_endpoints_shape(api: ServiceClient, endpoint: str, status: int):
    answer = post_with_fault(api, endpoint, f"status={status}", stream=True)
    assert answer.status_code == status
    error = error_of(endpoint, answer.json())
    assert error["message"]
    assert error["type"]
    assert endpoint == "messages" or isinstance(error["code"], str)
    assert ("retry-after" in answer.headers) == (status in (429, 503, 529))


def test_a_failure_inside_a_stream_is_said_in_the_dialect(api: ServiceClient, endpoint: str):
    stream = post_with_fault(api, endpoint, "error=3", stream=True)
    assert stream.status_code == 200
    failure = failure_of(endpoint, decode_stream(stream.content))
    assert {failure.get("type"), failure.get("code")} & {"server_error", "api_error"}
    marks = {"responses": '"response.output_text.delta"', "messages": '"content_block_delta"'}
    assert stream.text.count(marks.get(endpoint, '"finish_reason":null')) == 3


def test_a_failure_of_a_whole_reply_is_a_500(api: ServiceClient, endpoint: str):
    answer = post_with_fault(api, endpoint, "error=3")
    assert answer.status_code == 500
    assert error_of(endpoint, answer.json())["type"] in ("server_error", "api_error")


def test_a_cut_ends_the_connection_without_an_end(api: ServiceClient, endpoint: str):
    for fields in ({"stream": True}, {}):
        with pytest.raises(httpx.RemoteProtocolError, match="peer closed connection"):
            post_with_fault(api, endpoint, "cut=3", **fields)


def test_garbage_is_an_event_that_is_not_json(api: ServiceClient, endpoint: str):
    blocks = post_with_fault(api, endpoint, "garbage=3", stream=True).text.split("\n\n")
    assert blocks.count('data: {"garbage": tr') == 1
    with pytest.raises(json.JSONDecodeError):
        post_with_fault(api, endpoint, "garbage=3").json()


def test_drip_changes_no_byte(api: ServiceClient, endpoint: str):
    dripped = decode_stream(post_with_fault(api, endpoint, "drip", stream=True).content)
    plain = api.events(endpoint)
    assert len(dripped) == len(plain)


def test_a_stall_says_nothing_more(api: ServiceClient):
    headers = {HEADER: "stall=2"}
    body = minimal_body("web", stream=True)
    with (
        pytest.raises(httpx.ReadTimeout),
        api.stream("POST", PATHS["web"], json=body, headers=headers, timeout=0.3) as stream,
    ):
        for _ in stream.iter_bytes():
            pass


def test_faults_can_be_committed_by_default():
    with run_service(time_scale=0, fault="status=503") as broken, ServiceClient(broken) as caller:
        assert caller.ask("web").status_code == 503
        assert post_with_fault(caller, "web", "").status_code == 200


def test_blanks_around_a_fault_do_not_count():
    assert parse_faults(" cut = 3 , delay =1") == parse_faults("cut=3,delay=1")


@pytest.mark.parametrize(
    "words", ["status", "status=200", "status=x", "delay=-1", "delay=nan", "cut", "cut=-1", "drip=1", "fire=2"]
)
def test_a_fault_that_does_not_exist_is_refused(api: ServiceClient, words: str):
    answer = post_with_fault(api, "web", words)
    assert (answer.status_code, error_of("web", answer.json())["param"]) == (400, HEADER)
    with pytest.raises(ServiceError, match="expected some of"):
        parse_faults(words)


def test_faults_are_for_this_machine_alone_unless_they_are_allowed(endpoint: str):
    with FaultServer(choose=answer_hello) as upstream:
        for options in ({"host": "0.0.0.0"}, {"upstream": upstream.url}):
            for allow, status in ((False, 200), (True, 429)):
                with run_service(time_scale=0, allow_faults=allow, **options) as server, ServiceClient(server) as api:
                    answer = post_with_fault(api, endpoint, "status=429")
                    assert answer.status_code == status
                    assert (answer.headers.get("x-famnb-ignored") == HEADER) is not allow
