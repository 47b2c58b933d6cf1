"""Routes, errors outside the endpoints, the headers of every response, and the two addresses of the document."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import httpx
import pytest

from famnb.api import Client
from famnb.endpoints import ENDPOINTS, compose
from famnb.errors import NotFoundError
from famnb.events import Event, Started
from famnb.service import Server, serve
from famnb.service.app import create_app
from famnb.service.prompt import GenerationPrompt
from famnb.service.settings import Options
from famnb.service.shutdown import Shutdown
from famnb.service.store import ResponseStore
from tests.support.service_requests import PATHS, ServiceClient, error_of, minimal_body, own_address


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_405_and_says_what_is_allowed(api: ServiceClient, endpoint: str, method: str):
    answer = api.request(method, PATHS[endpoint])
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "POST" in error_of(endpoint, answer.json())["message"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/completion", "/v1/responses/", "/v2/responses", "/health/x", "//"])
def test_an_unknown_path_is_404_in_the_common_shape(api: ServiceClient, path: str):
    answer = api.post(path, json={})
    assert (answer.status_code, error_of("web", answer.json())["type"]) == (404, "invalid_request_error")


def test_every_answer_carries_its_marks(api: ServiceClient, endpoint: str):
    answers = [api.ask(endpoint), api.ask(endpoint, stream=True), api.ask(endpoint, model="x"), api.get("/nowhere")]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 4
    for answer in answers:
        assert answer.headers["x-famnb-engine"] == "sim"
        assert answer.headers.get_list("server") == ["famnb"]


def test_health_and_description_need_no_key(server: Server):
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok", "engine": "sim"}
    properties = httpx.get(f"{server.url}/openapi.json").json()["components"]["schemas"]["ResponsesRequest"][
        "properties"
    ]
    assert properties["max_output_tokens"]["default"] == 512
    assert properties["previous_response_id"]["description"]


class FailingEngine:
    """An engine that fails before it says anything."""

    name = "broken"

    async def generate(self, prompt: GenerationPrompt, /) -> AsyncGenerator[Event]:
        raise RuntimeError("the engine's own words")
        yield Started()


@pytest.mark.parametrize("streamed", [True, False])
def test_a_crash_is_a_500_in_shape_that_ends_the_connection(endpoint: str, streamed: bool):
    app = create_app(Options(), keys=("key",), engine=FailingEngine(), store=ResponseStore(), shutdown=Shutdown())

    async def post_request() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            body = minimal_body(endpoint, stream=streamed)
            return await client.post(PATHS[endpoint], json=body, headers={"authorization": "Bearer key"})

    answer = asyncio.run(post_request())
    assert (answer.status_code, answer.headers["connection"]) == (500, "close")
    assert "own words" not in error_of(endpoint, answer.json())["message"]


@pytest.fixture(scope="module")
def two() -> Iterator[Server]:
    """A service with an alternative address."""
    with serve(time_scale=0, alt_port=0) as running:
        yield running


def post_minimal(server: Server, url: str, endpoint: str) -> httpx.Response:
    """The answer to a sound request, sent to one of the addresses."""
    headers = {"authorization": f"Bearer {server.key}"}
    return httpx.post(url + PATHS[endpoint], json=minimal_body(endpoint), headers=headers)


def test_a_client_with_the_addresses_swapped_is_told(two: Server, endpoint: str):
    with Client(base_url=two.alt_url, alt_base_url=two.url, api_key=two.key) as client:
        address = "alternative" if ENDPOINTS[endpoint].alt else "first"
        with pytest.raises(NotFoundError, match=f"{PATHS[endpoint]} is served at the {address} address"):
            client.send(compose(endpoint, "Why is the sky blue?"))


def test_stored_responses_are_where_responses_are_made(two: Server):
    id_ = post_minimal(two, two.alt_url, "responses").json()["id"]
    headers = {"authorization": f"Bearer {two.key}"}
    answers = {url: httpx.get(f"{url}/v1/responses/{id_}", headers=headers) for url in (two.url, two.alt_url)}
    assert answers[two.alt_url].json()["id"] == id_
    assert answers[two.url].status_code == 404
    assert "alternative address" in error_of("responses", answers[two.url].json())["message"]


def test_limits_hold_across_both():
    with serve(time_scale=0, alt_port=0, requests_per_minute=1, burst=2) as limited:
        answers = [post_minimal(limited, own_address(limited, name), name).status_code for name in ENDPOINTS]
    assert answers == [200, 200, *[429] * (len(ENDPOINTS) - 2)]
