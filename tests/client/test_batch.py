"""Many calls at once: order, errors in place, how many run, and what is shown meanwhile."""

import asyncio
import json
import os
import signal
import threading
import time

import pytest

from famnb.api import AsyncClient
from famnb.client.batch import Batch
from famnb.client.retry import Retries
from famnb.errors import InvalidRequest
from tests.support.client_shells import outcome
from tests.support.fault_server import Action, chunked, whole
from tests.support.waiting import wait_until
from tests.support.wire_payloads import body, delta, opening, request

ENDLESS = chunked(*opening("web"), *[delta("web", "x"), 0.01] * 1000)


def echo(received):
    """Answers with the prompt; a prompt `fail` gets a 400, the first one the slowest answer."""
    prompt = json.loads(received.body)["messages"][0]["content"]
    if prompt == "fail":
        return whole({"error": {"message": "no"}}, 400)
    return [0.2 if prompt == "0" else 0.0, *whole(body("web", prompt))]


def send_many(client, requests, **options):
    return outcome(client.send_many(requests, **options))


def prompts(*texts: str):
    return [request("web", text, stream=False) for text in texts]


def test_replies_come_in_the_order_of_the_requests(serve, connect_either):
    replies = send_many(connect_either(serve(choose=echo)), prompts(*map(str, range(12))))
    assert [reply.text for reply in replies] == [str(number) for number in range(12)]


def test_one_failure_hurts_no_other(serve, connect_either, recorder):
    replies = send_many(connect_either(serve(choose=echo), ledger=recorder), prompts("a", "fail", "b"))
    assert [reply.text for reply in replies] == ["a", "", "b"]
    assert [getattr(reply.error, "status", None) for reply in replies] == [None, 400, None]
    assert len(recorder.exchanges) == 3


def test_no_more_run_than_asked_for(serve, connect_either):
    server = serve([0.01, *whole(body("web", "Hello"))])
    replies = send_many(connect_either(server), prompts(*"abcdefghijklmnopqrst"), concurrency=3)
    assert {reply.text for reply in replies} == {"Hello"}
    assert server.connections <= 3


def test_a_throttled_fan_out_finishes(serve, connect):
    server = serve(choose=lambda _: whole(b"", 429) if len(server.requests) % 2 else whole(body("web", "Hello")))
    replies = connect(server).send_many(prompts(*"abcdefgh"), concurrency=1)
    assert [reply.text for reply in replies] == ["Hello"] * 8


def test_the_next_fan_out_begins_with_what_the_last_one_learned(serve, connect_either):
    all_sent = threading.Event()

    def choose(_) -> list:
        if len(server.requests) > 4:
            return whole(body("web", "Hello"))
        # No refusal before all four are sent: one that is sent after it would halve the limit once more.
        if len(server.requests) == 4:
            all_sent.set()
        return [all_sent, *whole(b"", 429)]

    server = serve(choose=choose)
    client = connect_either(server, retries=Retries(tries=1))
    send_many(client, prompts(*"abcd"), concurrency=4)
    assert client.engine.batch_limit("web") == 2
    assert [reply.text for reply in send_many(client, prompts(*"abcd"), concurrency=4)] == ["Hello"] * 4
    assert (client.engine.batch_limit("web") or 4) > 2


def test_an_interrupt_stops_them_all(serve, connect, recorder, monkeypatch):
    server = serve(ENDLESS)
    client = connect(server, ledger=recorder)
    # It is still starting the other eight when the first two arrive.
    waits, replies = threading.Event(), Batch.replies
    monkeypatch.setattr(Batch, "replies", lambda batch: waits.set() or replies(batch))

    def interrupt() -> None:
        wait_until(lambda: len(server.requests) == 2)
        waits.wait()
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        client.send_many([request("web")] * 10, concurrency=2, progress=False)
    assert {exchange.reply.status for exchange in recorder.exchanges} == {"cancelled"}
    assert len(server.requests) == len(recorder.exchanges) == 2


def test_a_cancelled_await_stops_them_all(serve, connect):
    server = serve(ENDLESS)
    client = connect(server, kind=AsyncClient)

    async def impatient() -> None:
        batch = asyncio.create_task(client.send_many([request("web")] * 10, concurrency=2))
        await asyncio.to_thread(wait_until, lambda: len(server.requests) == 2)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch

    asyncio.run(impatient())
    client.engine.shut_down().result()
    assert len(server.requests) == 2


def test_progress_is_shown_when_asked_for(serve, connect_either, capsys):
    client = connect_either(serve(choose=echo))
    send_many(client, prompts(*"abcdef"), progress=True)
    assert "6/6" in capsys.readouterr().err
    send_many(client, prompts(*"abcdef"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5, "2"])
def test_a_senseless_concurrency_is_refused(serve, connect, concurrency):
    server = serve(choose=echo)
    with pytest.raises(InvalidRequest, match="concurrency"):
        connect(server).send_many(prompts("a"), concurrency=concurrency)
    assert server.requests == []


def test_nothing_to_send_is_nothing(serve, connect_either):
    assert send_many(connect_either(serve([Action.RESET])), []) == []
