"""The upstream engine: its address, key, models and connections."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from famnb.errors import ConnectError, CredentialError, InvalidRequest
from famnb.service import Server, serve
from tests.support.fault_server import Action, FaultServer, Received, Script, chunked, event, whole
from tests.support.service_requests import PATHS, ServiceClient, error_of, minimal_body
from tests.support.thread_service import run_service
from tests.support.upstream_servers import (
    HELLO,
    answer_hello,
    chunk,
    completion,
    decode_body,
    fetch_reply,
    start_gateway,
)
from tests.support.waiting import wait_until

KEY = "the-upstreams-own-key"


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", KEY)


def listing(*models: str) -> Script:
    return whole({"object": "list", "data": [{"id": model, "object": "model"} for model in models]})


@pytest.mark.parametrize(
    ("suffix", "named", "header"),
    [("", "THEIR_KEY", f"Bearer {KEY}"), ("/v1", "", None), ("/v1/", "THEIR_KEY", f"Bearer {KEY}"), ("/", "", None)],
)
def test_the_address_may_end_in_v1(suffix: str, named: str, header: str | None):
    with FaultServer(choose=answer_hello) as upstream, start_gateway(upstream.url + suffix, upstream_key=named) as api:
        fetch_reply(api, "web")
    (request,) = upstream.requests
    assert (request.path, request.headers.get("authorization")) == ("/v1/chat/completions", header)


@pytest.mark.parametrize(
    ("option", "listed", "called", "expected"),
    [
        ("theirs", [], "fam-2-5-pro", "theirs"),
        (["fam-2-5-pro=big", "small"], [], "fam-2-5-pro", "big"),
        (["fam-2-5-pro=big", "small"], [], "fam-2-5-mini", "small"),
        ([], ["the-only-one"], "fam-2-5-pro", "the-only-one"),
        ([], ["one", "other"], "fam-2-5-pro", "fam-2-5-pro"),
        ([], ["one", "fam-2-5-pro"], "fam-2-5-pro", "fam-2-5-pro"),
    ],
)
def test_models_by_the_upstreams_names(option: Any, listed: list[str], called: str, expected: str):
    with (
        FaultServer(choose=answer_hello, get=listing(*listed)) as upstream,
        start_gateway(upstream, upstream_model=option) as api,
    ):
        assert api.ask("web", model=called).json()["model"] == called
    assert decode_body(upstream.requests[0])["model"] == expected


def test_a_model_changed_at_the_upstream_is_found_again():
    with (
        FaultServer(choose=answer_hello, get=listing("old")) as upstream,
        start_gateway(upstream, upstream_model=()) as api,
    ):
        fetch_reply(api, "web")
        upstream.get = listing("new")
        upstream.choose = lambda request: whole({"error": "no such model"}, 404)
        assert api.ask("web").status_code == 500
        upstream.choose = answer_hello
        fetch_reply(api, "web")
    assert decode_body(upstream.requests[-1])["model"] == "new"


def leaking(request: Received) -> Script:
    """A server that says everything it knows, in whatever way the prompt asks for."""
    host = request.headers["host"]
    words = f"key {request.headers['authorization']} at http://{host}/v1/chat/completions ({host}), not good"
    prompt = decode_body(request)["messages"][-1]["content"]
    match prompt.split():
        case ["status", status]:
            return whole({"error": {"message": words, "code": words}}, int(status), x_upstream=host, location=words)
        case ["html"]:
            return whole(f"<html><title>{words}</title></html>".encode(), 502, content_type="text/html")
        case ["stream"]:
            return chunked(chunk({"content": "Hello"}), event({"error": {"message": words}}))
        case ["garbage"]:
            return chunked(chunk({"content": "Hello"}), event(words.encode()))
        case _:
            return whole(completion(words))


@pytest.fixture(scope="module")
def leaky() -> Iterator[tuple[FaultServer, Server]]:
    """A service in front of a server that keeps nothing to itself."""
    with pytest.MonkeyPatch.context() as patch, FaultServer(choose=leaking) as upstream:
        patch.setenv("THEIR_KEY", KEY)
        with serve(upstream=upstream.url, upstream_key="THEIR_KEY", upstream_model="m") as server:
            yield upstream, server


PROMPTS = ["html", "stream", "garbage", *(f"status {code}" for code in (302, 400, 401, 404, 422, 429, 500))]


@pytest.mark.parametrize("stream", [False, True])
def test_the_upstreams_key_and_address_are_told_to_nobody(leaky, endpoint, stream):
    upstream, server = leaky
    before = len(upstream.requests)
    with ServiceClient(server) as api:
        responses = [api.ask(endpoint, prompt, stream=stream) for prompt in PROMPTS]
        output = "".join(f"{response.headers} {response.text}" for response in responses)
        output += f"{api.get('/health').text} {server.read_log()}"
    assert len(upstream.requests) == before + len(PROMPTS)
    assert KEY not in output + " ".join(psutil.Process(server.pid).cmdline())
    assert upstream.url.removeprefix("http://") not in output


def test_a_key_that_the_answer_repeats_is_masked(leaky: tuple[FaultServer, Server], endpoint: str):
    with ServiceClient(leaky[1]) as api:
        text = fetch_reply(api, endpoint, "repeat").text
    assert KEY not in text
    assert "[key]" in text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"upstream": "http://user:secret@127.0.0.1"}, ConnectError),
        pytest.param({"upstream_model": "m"}, InvalidRequest, marks=pytest.mark.full),
        ({"upstream_key": "THEIR_KEY"}, InvalidRequest),
        pytest.param(
            {"upstream": "http://127.0.0.1:1", "upstream_model": "fam-9=theirs"}, ConnectError, marks=pytest.mark.full
        ),
        pytest.param(
            {"upstream": "http://127.0.0.1:1", "upstream_model": ["fam-mini=m", "fam-2-5-pro="]},
            ConnectError,
            marks=pytest.mark.full,
        ),
        ({"upstream": "http://127.0.0.1:1", "upstream_key": KEY}, CredentialError),
    ],
)
def test_a_wrong_setting_is_refused_without_showing_a_secret(options: dict[str, Any], error: type[Exception]):
    """A key in place of its variable's name is a likely mistake."""
    with pytest.raises(error, match="upstream") as refused:
        serve(**options)
    assert KEY not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_health_says_whether_the_upstream_answers():
    with socket.create_server(("127.0.0.1", 0)) as free:
        gone = f"http://127.0.0.1:{free.getsockname()[1]}"
    states = {}
    with FaultServer(get=listing("m")) as good, FaultServer(get=whole(b"", 401)) as refusing:
        for word, url in {"up": good.url, "unauthorized": refusing.url, "down": gone}.items():
            with run_service(upstream=url) as server:
                states[word] = httpx.get(f"{server.url}/health").json()
    assert states == {word: {"status": "ok", "engine": "upstream", "upstream": word} for word in states}


def test_an_upstream_that_is_down_is_a_warning_and_a_500():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "famnb", "serve", "--upstream", f"http://{address}", "--key", "ours"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    with httpx.Client(base_url=url, headers={"authorization": "Bearer ours"}) as client:
        answers = {name: client.post(path, json=minimal_body(name, stream=True)) for name, path in PATHS.items()}
    process.send_signal(signal.SIGINT)
    printed = process.communicate(timeout=60)[1]
    for name, answer in answers.items():
        words = error_of(name, answer.json())["message"]
        assert (answer.status_code, "does not answer" in words, address in answer.text) == (500, True, False)
    assert printed == "famnb: the upstream does not answer yet; calls fail until it does\n"


@pytest.mark.parametrize("words", [[*HELLO, Action.STALL], [Action.STALL]], ids=["in a stream", "before it"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_upstream_is_left_when_the_caller_leaves(gateway, upstream, endpoint, stream, words):
    script = chunked(*words, end=False) if len(words) > 1 else words

    async def leave() -> int:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def choose(_: Received) -> Script:
            loop.call_soon_threadsafe(arrived.set)
            return script

        upstream.choose = choose
        headers = dict(gateway.headers)
        async with httpx.AsyncClient(base_url=gateway.base_url, headers=headers, verify=False) as client:
            call = asyncio.create_task(client.post(PATHS[endpoint], json=minimal_body(endpoint, stream=stream)))
            await arrived.wait()
            count = upstream.open
            call.cancel()
        return count

    count = asyncio.run(leave())
    wait_until(lambda: upstream.open < count)


def test_connections_to_the_upstream_are_used_again(gateway: ServiceClient, upstream: FaultServer, endpoint: str):
    fetch_reply(gateway, endpoint, stream=True)
    before = upstream.connections
    for stream in (True, False, True):
        fetch_reply(gateway, endpoint, stream=stream)
    assert upstream.connections == before


def test_a_request_that_got_no_answer_is_not_sent_again_by_the_gateway(gateway, upstream, endpoint):
    """The upstream may have generated, and billed, an answer: the caller is told, and decides."""
    fetch_reply(gateway, endpoint, stream=True)
    upstream.choose = lambda _request: [Action.RESET]
    before = len(upstream.requests)
    assert gateway.ask(endpoint, stream=True).status_code == 500
    assert len(upstream.requests) == before + 1
    upstream.choose = answer_hello
    assert fetch_reply(gateway, endpoint, stream=True).text == "Hello, world."
