"""Many calls that end in every way there is: each leaves its row, and nothing else."""

import asyncio
import gc
import random
import threading

import psutil
import pytest

import famnb
from famnb.client.io_thread import io_thread
from tests.support.client_shells import KEY
from tests.support.fault_server import Action, chunked, whole
from tests.support.waiting import wait_until
from tests.support.wire_payloads import body, closing, delta, failure, opening, request

CALLS = 500
ENDLESS = chunked(*opening("web"), *[delta("web", "x"), 0.02] * 1000)
ENDINGS = [
    chunked(*opening("web"), delta("web", "Hello"), *closing("web")),
    whole(body("web", "Hello")),
    whole({"error": {"message": "no"}}, 400),
    whole(b"", 503),
    whole(b"<html>", 200),
    chunked(*opening("web"), delta("web", "Hel"), *failure("web")),
    chunked(*opening("web"), delta("web", "Hel"), Action.RESET, end=False),
    chunked(*opening("web"), delta("web", "Hel"), Action.CLOSE, end=False),
    chunked(*opening("web"), b"data: {broken\n\n"),
    [Action.RESET],
    ENDLESS,
    ENDLESS,
    ENDLESS,
]
STATUSES = {"completed", "failed", "cancelled", "interrupted"}


async def running_tasks() -> int:
    """Tasks of the I/O thread, this one left out."""
    return len(asyncio.all_tasks()) - 1


def list_resources() -> tuple[int, int, set[str]]:
    """What the process holds: the I/O thread's tasks, open files and sockets, and threads of famnb's own."""
    io = io_thread()
    tasks = io.submit(running_tasks()).result()
    threads = {thread.name for thread in threading.enumerate() if thread.name.startswith("famnb")}
    return tasks, psutil.Process().num_fds(), threads


@pytest.mark.full
def test_five_hundred_calls_leave_as_many_rows_and_nothing_else(serve, tmp_path, caplog):
    chance = random.Random(4)
    server = serve(choose=lambda _: chance.choice(ENDINGS))
    io_thread()
    ledger = famnb.Ledger(tmp_path / "calls.sqlite")
    before = list_resources()
    client = famnb.Client(base_url=server.url, api_key=KEY, ledger=ledger, retries=famnb.Retries(tries=1))
    streams = []
    for _ in range(CALLS):
        stream = client.engine.start(request("web"))
        streams.append(stream)
        late = chance.choice((0.0, 0.0, 0.01, 0.1, 0.3))
        threading.Timer(late, stream.stop).start() if late else chance.random() < 0.2 and stream.stop()
        if len(streams) % 50 == 0:
            for call in streams[-50:-20]:
                call.stop()
                assert call.wait(60)
    for stream in streams:
        stream.stop()
        assert stream.wait(60)
    client.close()
    frame = famnb.calls(ledger)
    assert len(frame) == len(ledger) == frame["call_id"].nunique() == CALLS
    assert set(frame["status"]) == STATUSES
    assert {stream.exchange.id: stream.reply.status for stream in streams} == dict(
        zip(frame["call_id"], frame["status"], strict=True)
    )
    ledger.close()
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()
    server.close()
    del client, stream, call, streams
    eventually_held(server, before)
    assert caplog.text == "", "asyncio complains of a future that nobody asked"


def eventually_held(server, before) -> None:
    """The server notices within its own pace that its peer has left; then no more is held than before."""

    def is_as_before() -> bool:
        gc.collect()
        tasks, files, threads = list_resources()
        # Less is fine: what an earlier test left may have ended meanwhile.
        return server.open == 0 and tasks <= before[0] and files <= before[1] and threads <= before[2]

    wait_until(is_as_before)
