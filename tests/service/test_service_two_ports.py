"""Two addresses, as the document has them: each serves its own endpoints, one process answers at both."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx
import psutil
import pytest

from famnb.client.client import BlockingClient as Client
from famnb.endpoints import ENDPOINTS, compose
from famnb.errors import ConnectError, NotFoundError
from famnb.service import Server, serve
from tests.support.service_requests import PATHS, minimal, said


@pytest.fixture(scope="module")
def two() -> Iterator[Server]:
    """A service with an alternative address."""
    with serve(time_scale=0, alt_port=0) as running:
        yield running


def posted(server: Server, url: str, endpoint: str) -> httpx.Response:
    """The answer to a sound request, sent to one of the addresses."""
    headers = {"authorization": f"Bearer {server.key}"}
    return httpx.post(url + PATHS[endpoint], json=minimal(endpoint), headers=headers)


def own(server: Server, endpoint: str) -> str:
    """The address at which the document has an endpoint."""
    return server.alt_url if ENDPOINTS[endpoint].alt else server.url


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_with_both_addresses_calls_every_endpoint(two: Server, endpoint: str, stream: bool) -> None:
    """Whole and streamed; the client sends each request to the address the document has for it."""
    with Client(base_url=two.url, alt_base_url=two.alt_url, api_key=two.key) as client:
        reply = client.send(compose(endpoint, "Why is the sky blue?", stream=stream))
    assert reply.complete
    assert reply.text


def test_a_client_with_the_addresses_swapped_is_told(two: Server, endpoint: str) -> None:
    """The typed error says at which address the endpoint is served."""
    with Client(base_url=two.alt_url, alt_base_url=two.url, api_key=two.key) as client:
        address = "alternative" if ENDPOINTS[endpoint].alt else "first"
        with pytest.raises(NotFoundError, match=f"{PATHS[endpoint]} is served at the {address} address"):
            client.send(compose(endpoint, "Why is the sky blue?"))


def test_an_endpoint_at_the_wrong_address_is_404_in_its_own_shape(two: Server, endpoint: str) -> None:
    """The error body is the endpoint's; at its own address the same request is answered."""
    wrong = {two.url, two.alt_url} - {own(two, endpoint)}
    answer = posted(two, wrong.pop(), endpoint)
    assert answer.status_code == 404
    error = said(endpoint, answer.json())
    assert error["type"] == "invalid_request_error"
    assert posted(two, own(two, endpoint), endpoint).status_code == 200


def test_stored_responses_are_where_responses_are_made(two: Server) -> None:
    """Retrieved at the alternative address; at the first there is no such path."""
    made = posted(two, two.alt_url, "responses").json()["id"]
    headers = {"authorization": f"Bearer {two.key}"}
    found = {url: httpx.get(f"{url}/v1/responses/{made}", headers=headers) for url in (two.url, two.alt_url)}
    assert found[two.alt_url].json()["id"] == made
    assert found[two.url].status_code == 404
    assert "alternative address" in said("responses", found[two.url].json())["message"]


def test_each_address_describes_what_it_serves(two: Server) -> None:
    """Both are healthy, and `/openapi.json` lists exactly the endpoints that are there."""
    for url in (two.url, two.alt_url):
        assert httpx.get(f"{url}/health").json()["status"] == "ok"
        described = httpx.get(f"{url}/openapi.json").json()
        assert set(described["paths"]) == {PATHS[name] for name in ENDPOINTS if own(two, name) == url}


def test_limits_hold_across_both() -> None:
    """A key's allowance is one, wherever it calls."""
    with serve(time_scale=0, alt_port=0, requests_per_minute=1, burst=2) as limited:
        answers = [posted(limited, own(limited, name), name).status_code for name in ENDPOINTS]
    assert answers == [200, 200, 429, 429]


def test_one_process_listens_at_both_and_ends_for_both() -> None:
    """Its two sockets belong to one process; `close` ends the open stream at each and frees both ports."""
    with serve(alt_port=0) as server:
        ports = sorted(int(url.rpartition(":")[2]) for url in (server.url, server.alt_url))
        listening = psutil.Process(server.pid).net_connections("tcp")
        assert sorted(each.laddr.port for each in listening if each.status == psutil.CONN_LISTEN) == ports
        client = httpx.Client(headers={"authorization": f"Bearer {server.key}"})
        streams = []
        for name in ("chat", "messages"):
            body = minimal(name, "count to 9999", stream=True)
            request = client.build_request("POST", own(server, name) + PATHS[name], json=body)
            streams.append(client.send(request, stream=True).iter_bytes())
            next(streams[-1])
    assert not psutil.pid_exists(server.pid)
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
    client.close()


def test_without_an_alternative_port_both_addresses_are_one(server: Server) -> None:
    """All four endpoints on one port, which is also the `alt_url`."""
    assert server.alt_url == server.url
    assert {posted(server, server.alt_url, name).status_code for name in ENDPOINTS} == {200}


def test_a_taken_alternative_port_is_said() -> None:
    """As for the first port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConnectError, match=rf"cannot listen at 127\.0\.0\.1 port {port} .*choose"):
            serve(alt_port=port)


def test_the_command_line_says_both_addresses() -> None:
    """`famnb serve --alt-port 0` names them in its first line."""
    command = [sys.executable, "-m", "famnb", "serve", "--alt-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            line = json.loads(child.stdout.readline())
            assert line["url"] != line["alt_url"]
            assert httpx.get(f"{line['alt_url']}/health").status_code == 200
        finally:
            child.terminate()
