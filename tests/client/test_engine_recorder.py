"""What the recorder is called with and when, and that nothing it does can break a call."""

import asyncio
import dataclasses
import threading
import warnings
from concurrent.futures import Future
from unittest.mock import Mock

import pytest

from famnb.client.engine import SafeRecorder
from famnb.errors import ServerError
from famnb.timing import Read
from tests.support.client_shells import MemoryRecorder
from tests.support.exchanges import exchange as finished_exchange
from tests.support.fault_server import chunked, whole
from tests.support.wire_payloads import closing, delta, request, sse_stream

STREAM = request("web")


def test_the_record_is_durable_before_the_reply_is_returned(caller, serve, connect, recorder):
    client = connect(serve(chunked(*sse_stream("web", "Hello"))), ledger=recorder)
    reply = caller.send(client, STREAM)
    assert recorder.steps == ["on_open", "on_close"]
    assert (recorder.exchanges[0].reply, recorder.exchanges[0].id) == (reply, reply.call_id)


def test_the_record_is_durable_before_the_error_is_raised(caller, serve, connect, recorder):
    client = connect(serve(whole({"error": {"message": "no"}}, 500)), ledger=recorder)
    error = caller.failure(client, STREAM)
    kept = recorder.exchanges[0]
    assert isinstance(error, ServerError)
    assert (kept.attempts, kept.http_status, kept.reply.error, kept.reply is error.reply) == (3, 500, error, True)
    assert recorder.steps == ["on_open", "on_close"]


def test_what_an_exchange_holds(serve, connect, recorder):
    headers = {"x_request_id": "req_1", "x_famnb_engine": "sim"}
    server = serve(chunked(delta("web", "Hel"), 0.05, delta("web", "lo"), *closing("web"), **headers))
    connect(server, ledger=recorder).send(STREAM, labels={"experiment": "first"})
    kept = recorder.exchanges[0]
    assert kept.url == f"{server.url}/v1/web/chat/completions"
    assert (kept.http_status, kept.request_id, kept.service, kept.streamed) == (200, "req_1", "sim", True)
    assert (kept.labels, kept.attempts, kept.reply.service) == ({"experiment": "first"}, 1, "sim")
    assert ("x-request-id", "req_1") in kept.response_headers
    assert 0 < kept.headers_ns <= kept.reads[0].t_ns < kept.reads[-1].t_ns == kept.end_ns
    assert kept.reply.reads == tuple(kept.reads)


def test_reads_are_handed_on_while_a_stream_runs(serve, connect, monkeypatch):
    monkeypatch.setattr("famnb.client.engine.PROGRESS_S", 0.02)
    gates = [threading.Event(), threading.Event()]

    class Counting(MemoryRecorder):
        """Lets the server go on with each read that it is given."""

        def on_reads(self, exchange):
            super().on_reads(exchange)
            counts.append(len(exchange.reads))
            for gate in gates[: len(counts)]:
                gate.set()

    counts: list[int] = []
    recorder = Counting()
    server = serve(chunked(delta("web", "a"), gates[0], 0.1, delta("web", "b"), gates[1], 0.1, *closing("web")))
    assert connect(server, ledger=recorder).send(STREAM).text == "ab"
    assert recorder.steps == ["on_open", *["on_reads"] * len(counts), "on_close"]
    assert len(counts) >= 2
    assert counts == sorted(set(counts)), "reads were handed on although nothing new had come"


@pytest.mark.parametrize(("periods", "counts"), [(3, [1, 2]), (10**9, [])])
def test_beside_a_busy_cell_reads_are_handed_on_less_often(monkeypatch, periods, counts):
    """The interpreter that writing takes is missing to the reading; after some periods they are handed on anyhow."""
    monkeypatch.setattr("famnb.client.engine.PROGRESS_S", 0.001)
    monkeypatch.setattr("famnb.client.engine.STARVED_PERIODS", periods)
    exchange = finished_exchange([])
    handed_on = []

    class Counting(MemoryRecorder):
        def on_reads(self, exchange):
            handed_on.append(len(exchange.reads))

    async def read(late_ms: int, until: int) -> None:
        """A read comes, and time passes until so many have been handed on, or twenty periods."""
        exchange.reads.append(Read(0, (b"{}",), late_ns=late_ms * 1_000_000))
        for _ in range(20):
            await asyncio.sleep(0.001)
            if until in handed_on:
                break

    async def run() -> None:
        with SafeRecorder(Counting()).record_progress(exchange):
            await read(20, 1)
            await read(20, 2)
            assert handed_on == counts
            while handed_on[-1:] != [10]:
                await read(0, 10)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_recorder_may_complete_the_reply(serve, connect):
    class Pricing(MemoryRecorder):
        def on_close(self, exchange):
            exchange.reply = dataclasses.replace(exchange.reply, cost="0.01 USD")
            return super().on_close(exchange)

    client = connect(serve(chunked(*sse_stream("web", "Hello"))), ledger=Pricing())
    assert client.send(STREAM).cost == "0.01 USD"
    assert client.last.cost == "0.01 USD"


class Broken(MemoryRecorder):
    """A recorder on a full disk, which fails in one of its methods or later, when it writes what was closed."""

    def __init__(self, where: str) -> None:
        super().__init__()
        failure = OSError("no space left on device")
        if where == "future":
            future: Future[None] = Future()
            future.set_exception(failure)
            self.on_close = lambda _: future
        else:
            setattr(self, where, Mock(side_effect=failure))


@pytest.mark.parametrize("where", ["on_open", "on_reads", "on_close", "future"])
def test_a_recorder_that_fails_costs_one_warning(caller, serve, connect, monkeypatch, where):
    monkeypatch.setattr("famnb.client.engine.PROGRESS_S", 0.01)
    client = connect(
        serve(chunked(delta("web", "Hel"), 0.1, delta("web", "lo"), *closing("web"))), ledger=Broken(where)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [caller.send(client, STREAM).text for _ in range(2)] == ["Hello", "Hello"]
    assert [str(warning.message) for warning in caught if "not recorded" in str(warning.message)] == [
        "calls are answered but not recorded: OSError: no space left on device"
    ]


def test_a_recorder_that_never_finishes_is_not_waited_for_for_ever(serve, connect, monkeypatch):
    monkeypatch.setattr("famnb.client.engine.DURABLE_S", 0.05)

    class Stuck(MemoryRecorder):
        def on_close(self, exchange):
            return Future()

    assert connect(serve(chunked(*sse_stream("web", "Hello"))), ledger=Stuck()).send(STREAM).text == "Hello"
