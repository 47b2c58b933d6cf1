"""Recorded calls played again: identical requests cost nothing, and no reply pretends to be a new one."""

import asyncio
import math
import time

import pytest

import famnb
from famnb.errors import IdleTimeout, InvalidRequest, LedgerError, NotRecorded
from famnb.record import Ledger
from famnb.reply import Reply
from famnb.request import Request
from famnb.widget.html import transcript
from famnb.widget.live.reply_pane import ReplyPane
from tests.support.exchanges import at, chunk, exchange, spoken
from tests.support.fault_server import FaultServer, chunked, whole
from tests.support.wire_payloads import ENDPOINTS, body, delta, opening, request, sse_stream

KEY = "fam-key-0123456789abcdef"
NOWHERE = "http://127.0.0.1:9"


def client(ledger: Ledger, url: str = NOWHERE, **options):
    return famnb.Client(base_url=url, api_key=KEY, ledger=ledger, **options)


def iterate(caller: famnb.Client, question: Request) -> Reply:
    """The reply once its events, as they came, are those of a consumer."""
    with caller:
        stream = caller.engine.start(question)
        assert tuple(stream) == stream.reply.events
    return stream.reply


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_an_identical_request_is_answered_from_the_ledger(ledger, endpoint, streamed):
    question = request(endpoint, stream=streamed)
    with FaultServer(chunked(*sse_stream(endpoint, "Hello")) if streamed else whole(body(endpoint, "Hello"))) as server:
        live, again = (iterate(client(ledger, server.url, replay="prefer"), question) for _ in range(2))
    assert len(server.requests) == len(ledger) == 1
    assert (live.text, live.replayed, again.replayed) == ("Hello", False, True)
    assert (again, again.events, again.request) == (live, live.events, question)
    assert (again.call_id, again.timing, again.cost) == (live.call_id, live.timing, live.cost)


def test_a_notebook_runs_again_without_its_service(ledger):
    ledger.on_close(exchange(prompt="Hello?")).result()
    question = exchange(prompt="Hello?").request
    with client(ledger, replay="only") as offline:
        replies = [offline.send(question), offline.ask("Hello?", endpoint="chat"), asyncio.run(offline.asend(question))]
        replies += offline.send_many([question] * 3)
        with offline.stream(question) as stream:
            assert list(stream)

    async def await_reply():
        async with famnb.AsyncClient(base_url=NOWHERE, api_key=KEY, ledger=ledger, replay="only") as other:
            return await other.send(question)

    replies += [stream.reply, asyncio.run(await_reply())]
    assert {(reply.text, reply.replayed) for reply in replies} == {("Hello, world", True)}
    assert len(ledger) == 1


@pytest.mark.parametrize("other", [{"prompt": "Hi"}, {"temperature": 0.5}, {"streamed": False}, {"endpoint": "web"}])
def test_only_refuses_what_is_not_recorded(ledger, other):
    ledger.on_close(exchange()).result()
    question = exchange(**{"streamed": True, **other}).request
    with client(ledger, replay="only") as offline, pytest.raises(NotRecorded, match="replay='prefer'") as caught:
        offline.send(question)
    assert (caught.value.reply.status, caught.value.reply.call_id, len(ledger)) == ("failed", None, 1)


def test_only_complete_calls_are_answers_and_a_refusal_hurts_no_other(ledger):
    ledger.on_close(exchange()).result()
    ledger.on_close(exchange(spoken("Hel")[:2], prompt="?")).result()
    with client(ledger, replay="only") as offline:
        replies = offline.send_many([exchange().request, exchange(prompt="?").request])
    assert [type(reply.error) for reply in replies] == [type(None), NotRecorded]


def test_repeats_stay_as_different_as_they_were(ledger):
    for text in ("old", "middle", "new"):
        ledger.on_close(exchange(spoken(text))).result()
    for _ in range(2):
        with client(ledger, replay="only") as offline:
            replies = offline.send_many([exchange().request] * 4)
        assert [reply.text for reply in replies] == ["new", "middle", "old", "new"]


def test_a_simulated_answer_is_not_passed_off_as_a_services(ledger):
    ledger.on_close(exchange(service="sim")).result()
    with client(ledger, replay="only") as local:
        assert local.send(exchange().request).service == "sim"
    with client(ledger, "http://api.example.com", replay="only") as remote, pytest.raises(NotRecorded):
        remote.send(exchange().request)


def test_a_ledger_in_trouble_leaves_the_service(tmp_path):
    (tmp_path / "bad.sqlite").write_bytes(b"no database " * 100)
    question = request("web", stream=False)
    with FaultServer(whole(body("web", "Hello"))) as server:
        with client(tmp_path / "bad.sqlite", server.url, replay="only") as caller, pytest.raises(LedgerError):
            caller.send(question)
        prefers = client(tmp_path / "bad.sqlite", server.url, replay="prefer")
        with prefers as caller, pytest.warns(RuntimeWarning, match="not being recorded"):
            assert caller.send(question).text == "Hello"


@pytest.mark.parametrize("options", [{"replay": "yes"}, {"replay": "only", "replay_speed": -1}])
def test_a_senseless_replay_is_refused(ledger, options):
    with pytest.raises(InvalidRequest, match="replay"):
        client(ledger, **options)


@pytest.mark.parametrize(("speed", "least_s"), [(1, 0.4), (4, 0.1), (0, 0.0), (math.inf, 0.0)])
def test_a_recorded_stream_plays_again(ledger, speed, least_s):
    call = exchange(spoken("Hello, ", "world"))
    ledger.on_close(call).result()
    began = time.monotonic()
    with ledger.replay(call.id, speed=speed) as stream:
        events = list(stream)
    assert time.monotonic() - began >= least_s
    assert tuple(events) == call.reply.events
    assert stream.reply == call.reply
    assert (stream.reply.timing, stream.reply.call_id) == (call.reply.timing, call.id)
    assert len(ledger) == 1


def test_a_replay_can_be_stopped(ledger):
    call = exchange([at(1, chunk({"content": "Hel"})), at(10**7, chunk({"content": "lo"}, finish="stop"))])
    ledger.on_close(call).result()
    with ledger.replay(call.id) as stream:
        next(iter(stream))
        stream.stop()
        reply = stream.result()
    assert (reply.text, reply.status, reply.replayed, reply.timing.e2e_s) == ("Hel", "cancelled", True, 0.001)
    assert ledger.call(call.id).reply.text == "Hello"


def test_a_failed_call_fails_again_as_it_did(ledger):
    silent = chunked(*opening("web"), delta("web", "Hel"), 5.0)
    with FaultServer(silent) as server, client(ledger, server.url, deadlines=famnb.Deadlines(idle=0.1)) as caller:
        live = caller.send_many([request("web")])[0]
    with pytest.raises(IdleTimeout) as again:
        ledger.replay(live.call_id, speed=0).result()
    assert (str(again.value), again.value.seconds) == (str(live.error), 0.1)
    assert (again.value.reply.text, again.value.reply.replayed) == ("Hel", True)


def test_an_error_status_is_played_as_its_error(ledger):
    with FaultServer(whole({"error": {"message": "no"}}, 400)) as server, client(ledger, server.url) as caller:
        live = caller.send_many([request("web")])[0]
    stream = ledger.replay(live.call_id)
    assert stream.wait(60)
    assert (str(stream.reply.error), stream.events) == ("400: no", [])


def test_a_replay_is_shown_like_a_live_stream(ledger):
    call = exchange(spoken("Hello, ", "world"))
    ledger.on_close(call).result()
    stream = ledger.replay(call.id, speed=0)
    pane = ReplyPane(stream, key="pane")
    assert stream.wait(60)
    assert "replayed" in [badge.text for badge in pane.view().badges]
    assert "replayed" in transcript.reply_bundle(stream.reply)["text/plain"]
