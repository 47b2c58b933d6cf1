"""Calls from any thread and any loop, and every way to leave one early: nothing leaks, nothing is lost."""

import asyncio
import gc
import os
import random
import signal
import threading

import pytest

from famnb.api import AsyncClient, Client
from famnb.errors import FamnbError, Interrupted
from famnb.events import Delta
from tests.support.fault_server import Action, chunked, whole
from tests.support.waiting import wait_until
from tests.support.wire_payloads import body, closing, delta, opening, request, sse_stream

STREAM = request("web")
WHOLE = request("web", stream=False)
ENDLESS = chunked(*opening("web"), *[delta("web", "x"), 0.01] * 1000)


def test_stop_from_another_thread_keeps_what_came(serve, connect, recorder):
    server = serve(ENDLESS)
    client = connect(server, ledger=recorder)
    stream = client.engine.start(STREAM)
    next(iter(stream))
    threading.Thread(target=stream.stop).start()
    reply = stream.result()
    assert (reply.status, reply.error, set(reply.text) <= {"x"}) == ("cancelled", None, True)
    assert (recorder.exchanges[0].reply.status, stream.running) == ("cancelled", False)
    wait_until(lambda: server.open == 0)


def test_a_stream_that_nobody_holds_is_stopped(serve, connect, recorder):
    """Its answer could not be read, and would be paid for: the call ends as if stopped, with a warning that says so."""
    server = serve(ENDLESS)
    client = connect(server, ledger=recorder)
    stream = client.engine.start(STREAM)
    next(iter(stream))
    streams = [stream]
    del stream
    with pytest.warns(RuntimeWarning, match="a stream was dropped while its call ran, so the call was stopped"):
        streams.clear()
    wait_until(lambda: recorder.exchanges)
    assert (recorder.exchanges[0].reply.status, recorder.exchanges[0].reply.error) == ("cancelled", None)
    wait_until(lambda: server.open == 0)


@pytest.mark.filterwarnings("error")
def test_a_stream_is_held_by_whoever_waits_for_it(serve, connect):
    client = connect(serve(chunked(*opening("web"), 0.05, delta("web", "Hello"), *closing("web"))))
    assert "".join(event.text for event in client.engine.start(STREAM) if isinstance(event, Delta)) == "Hello"
    assert client.engine.start(STREAM).result().text == "Hello"
    texts: list[str] = []
    client.engine.start(STREAM).add_done_callback(lambda ended: texts.append(ended.reply.text))
    gc.collect()
    wait_until(lambda: texts == ["Hello"])


def test_stop_while_nothing_has_come(serve, connect):
    stream = connect(serve([Action.STALL])).stream(STREAM)
    stream.stop()
    assert (stream.result().status, stream.reply.text) == ("cancelled", "")


def test_leaving_the_block_early_stops_the_stream(serve, connect, recorder):
    server = serve(ENDLESS)
    client = connect(server, ledger=recorder)
    with client.stream(STREAM) as stream:
        next(iter(stream))
    assert stream.reply.status == "cancelled"

    async def leave() -> str:
        async with client.stream(STREAM) as stream:
            async for _ in stream:
                break
        return stream.reply.status

    assert asyncio.run(leave()) == "cancelled"
    assert recorder.steps.count("on_close") == 2


def test_fifty_streams_cancelled_at_random_moments_leave_no_connection(serve, connect):
    chance = random.Random(7)
    server = serve(choose=lambda received: ENDLESS if b"endless" in received.body else whole(body("web", "Hello")))
    client = connect(server, connections=10)
    streams = [client.engine.start(request("web", "endless")) for _ in range(50)]
    for stream in streams:
        threading.Timer(chance.uniform(0, 0.3), stream.stop).start()
    assert {stream.result().status for stream in streams} == {"cancelled"}
    wait_until(lambda: server.open == 0)
    assert client.send(WHOLE).text == "Hello"


def test_a_cancelled_await_stops_the_call(serve, connect, recorder):
    server = serve(ENDLESS)
    client = connect(server, ledger=recorder)

    async def impatient() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.asend(STREAM), 0.2)

    asyncio.run(impatient())
    wait_until(lambda: recorder.exchanges and server.open == 0)
    assert recorder.exchanges[0].reply.status == "cancelled"


@pytest.mark.parametrize("wait", [lambda stream: stream.result(), lambda stream: stream.wait(), list])
def test_an_interrupt_stops_the_call_and_says_so(serve, connect, recorder, wait):
    server = serve(ENDLESS, whole(body("web", "Hello")))
    client = connect(server, ledger=recorder)
    stream = client.engine.start(STREAM)
    next(iter(stream))
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(Interrupted) as caught:
        wait(stream)
    assert (caught.value.reply.status, caught.value.reply.text[:1]) == ("cancelled", "x")
    assert recorder.exchanges[0].reply.status == "cancelled"
    assert client.send(WHOLE).text == "Hello"


def test_one_client_on_two_loops_and_four_threads(serve, connect):
    server = serve(chunked(*sse_stream("web", "Hel", "lo")))
    client = connect(server)
    texts = [asyncio.run(client.asend(STREAM)).text for _ in range(2)]
    threads = [threading.Thread(target=lambda: texts.append(client.send(STREAM).text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hello"] * 6


def test_the_running_reply_grows(serve, connect):
    seen = threading.Event()
    server = serve(chunked(delta("web", "Hel"), seen, delta("web", "lo"), *closing("web")))
    with connect(server).stream(STREAM) as stream:
        next(event for event in stream if isinstance(event, Delta))
        assert (stream.reply.text, stream.reply.status, stream.running) == ("Hel", "running", True)
        assert stream.wait(0.01) is False
        seen.set()
        assert stream.wait() is True
        assert (stream.reply.text, stream.reply.status, stream.running) == ("Hello", "completed", False)


def test_callbacks_at_the_end(serve, connect, caplog):
    ready = threading.Event()
    stream = connect(serve(chunked(ready, *sse_stream("web", "Hello")))).stream(STREAM)
    called: list[object] = []
    stream.add_done_callback(lambda _: 1 / 0)
    stream.add_done_callback(called.append)
    ready.set()
    assert stream.result().text == "Hello"
    wait_until(lambda: called == [stream])
    stream.add_done_callback(called.append)
    assert called == [stream, stream]
    assert "ZeroDivisionError" in caplog.text


def test_closing_a_client_stops_its_calls(serve, connect, recorder):
    server = serve(ENDLESS)
    client = connect(server, ledger=recorder)
    stream = client.engine.start(STREAM)
    next(iter(stream))
    client.close()
    assert (stream.reply.status, len(recorder.exchanges)) == ("cancelled", 1)
    wait_until(lambda: server.open == 0)
    with pytest.raises(FamnbError, match="closed"):
        client.send(WHOLE)


def test_a_forgotten_client_closes_its_connections_when_its_calls_are_over(serve):
    server = serve(chunked(delta("web", "Hel"), 0.2, delta("web", "lo"), *closing("web")))
    stream = Client(base_url=server.url, api_key="a-key-of-its-own").stream(STREAM)
    assert stream.result().text == "Hello"
    wait_until(lambda: server.open == 0)


def test_the_async_client_has_the_plain_names(serve):
    server = serve(chunked(*sse_stream("web", "Hello")))

    async def talk() -> list[str]:
        async with AsyncClient(base_url=server.url, api_key="a-key-of-its-own") as client:
            texts = [(await client.send(STREAM)).text, (await client.ask("Hi.", endpoint="web")).text]
            texts += [reply.text for reply in await client.send_many([STREAM, STREAM])]
            async with client.stream(WHOLE) as stream:
                texts.append("".join([event.text async for event in stream if isinstance(event, Delta)]))
        return texts

    assert asyncio.run(talk()) == ["Hello"] * 5
    wait_until(lambda: server.open == 0)
