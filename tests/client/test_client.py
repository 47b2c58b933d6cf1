"""What is checked before anything is sent, where requests go, and what `ask` makes of a prompt."""

import contextlib
import json

import pytest

from famnb.api import Client
from famnb.endpoints import ENDPOINTS as ALL
from famnb.errors import InvalidRequest
from tests.support.client_shells import KEY, outcome
from tests.support.fault_server import chunked, whole
from tests.support.wire_payloads import ENDPOINTS, body, request, sse_stream


def test_each_endpoint_goes_to_its_own_address(serve):
    first, other = (serve(choose=lambda received: whole(body(names[received.path], "Hello"))) for _ in range(2))
    names = {endpoint.path: endpoint.name for endpoint in ALL.values()}
    with Client(base_url=first.url + "/v1/", alt_base_url=other.url, api_key=KEY) as client:
        for name in ENDPOINTS:
            client.send(request(name, stream=False))
    for server, is_other in ((first, False), (other, True)):
        assert [call.path for call in server.requests] == [at.path for at in ALL.values() if at.alt is is_other]


def test_a_request_is_sent_as_it_is(serve, connect):
    server = serve(whole(body("web", "Hello")))
    original = request("web", stream=False)
    connect(server).send(original)
    received = server.requests[0]
    assert json.loads(received.body) == original.body()
    assert (received.headers["content-type"], received.headers["authorization"]) == (
        "application/json",
        f"Bearer {KEY}",
    )


def test_stream_asks_for_a_stream_and_send_does_not_insist(serve, connect):
    server = serve(chunked(*sse_stream("web", "Hello")))
    client = connect(server)
    with client.stream(request("web", stream=False)) as stream:
        list(stream)
    client.send(request("web", stream=False))
    assert [json.loads(call.body)["stream"] for call in server.requests] == [True, False]


def test_labels_are_texts(serve, connect, recorder):
    client = connect(serve(whole(body("web", "Hello"))), ledger=recorder)
    client.send(request("web", stream=False), labels={"tag": "first", "run": 3, "note": None})
    assert recorder.exchanges[0].labels == {"tag": "first", "run": "3"}


@pytest.mark.parametrize("labels", ["first", ["first"], {"tag": ["first"]}, {1: "first"}, {"tag": object()}])
@pytest.mark.parametrize("method", ["send", "stream", "send_many", "ask"])
def test_labels_that_could_not_be_recorded_are_refused(serve, connect, method, labels):
    """Before anything is sent: a call must not miss its record for a label's sake."""
    server = serve(whole(body("web", "Hello")))
    what = {"ask": "Hello?", "send_many": [request("web")]}.get(method, request("web"))
    with pytest.raises(InvalidRequest, match="labels: expected"):
        getattr(connect(server), method)(what, labels=labels)
    assert server.requests == []


@pytest.mark.parametrize("method", ["send", "stream"])
def test_something_that_is_not_a_request_is_refused(connect, method):
    with pytest.raises(InvalidRequest, match="compose"):
        getattr(connect("http://127.0.0.1:1"), method)("Why is the sky blue?")


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({}, "/v1/messages"),
        ({"model": "fam-2-5-mini"}, "/v1/messages"),
        ({"model": "fam-mini"}, "/v1/chat/completions"),
        ({"endpoint": "responses"}, "/v1/responses"),
    ],
)
def test_ask_finds_the_endpoint(serve, connect_either, arguments, path):
    names = {endpoint.path: endpoint.name for endpoint in ALL.values()}
    server = serve(choose=lambda received: chunked(*sse_stream(names[received.path], "Hello")))
    assert outcome(connect_either(server).ask("Hi.", **arguments)).text == "Hello"
    assert [call.path for call in server.requests] == [path]


def test_ask_warns_of_what_is_lost(serve, connect):
    server = serve(chunked(*sse_stream("web", "Hello")))
    with pytest.warns(UserWarning, match="instructions"):
        connect(server).ask("Hi.", endpoint="web", instructions="Be brief.", max_tokens=9)
    sent = json.loads(server.requests[0].body)
    assert (sent["max_new_tokens"], sent["stream"], "instructions" in sent) == (9, True, False)


def test_ask_is_shown_while_it_runs(serve, connect_either):
    client = connect_either(serve(chunked(*sse_stream("web", "Hello"))))
    seen = []

    @contextlib.contextmanager
    def viewer(stream):
        seen.append("opened")
        yield
        seen.append(stream.reply.text)

    client.engine.viewer = viewer
    outcome(client.ask("Hi.", endpoint="web"))
    assert seen == ["opened", "Hello"]


@pytest.mark.parametrize("connections", [0, -1, True, 2.5])
def test_senseless_connections_are_refused(connections):
    with pytest.raises(InvalidRequest, match="connections"):
        Client(base_url="http://127.0.0.1:1", api_key=KEY, connections=connections)
