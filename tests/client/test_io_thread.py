"""The turns that threads take while calls run; how a process ends that still has clients, connections or calls."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from famnb.client.io_thread import SWITCH_S
from tests.support.fault_server import chunked
from tests.support.waiting import wait_until
from tests.support.wire_payloads import closing, delta, request

ROOT = Path(__file__).parents[2]
BEGIN = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.client_shells import KEY, Notebook
from tests.support.fault_server import FaultServer, chunked, whole
from tests.support.wire_payloads import body, delta, request
from famnb.client.client import BlockingClient

class Telling(Notebook):
    def on_close(self, exchange):
        print("recorded", exchange.reply.status, flush=True)
        return super().on_close(exchange)

endless = chunked(*[delta("web", "x"), 0.01] * 1000)
server = FaultServer(choose=lambda asked: endless if b'"stream":true' in asked.body else whole(body("web", "Hello")))
client = BlockingClient(base_url=server.url, api_key=KEY, recorder=Telling())
client.send(request("web", stream=False))
"""
RUNNING = """
stream = client.start(request("web"))
next(iter(stream))
"""
FORKED = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=client.send, args=[request("web", stream=False)])
child.start()
child.join(20)
"""


@pytest.mark.parametrize(
    ("script", "last"),
    [
        pytest.param("", "completed", id="an open client"),
        pytest.param(RUNNING, "interrupted", id="a running call"),
        pytest.param(f"{RUNNING}del client, stream", "interrupted", id="a call nobody holds"),
        pytest.param(f"{RUNNING}stream.stop()", "cancelled", id="a stopped call"),
        pytest.param(f"{RUNNING}client.close()", "cancelled", id="a closed client"),
        pytest.param(FORKED, "completed", id="a forked child"),
    ],
)
def test_a_process_ends_in_order(script, last):
    """A running call is recorded as interrupted, a stopped one as cancelled; no loop or task complains."""
    command = [sys.executable, "-X", "dev", "-c", BEGIN + script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    told = ["recorded completed", *([f"recorded {last}"] if script else [])]
    # asyncio's debug mode remarks on every callback that took 0.1 s, as any may on a loaded machine.
    complaints = [line for line in ended.stderr.splitlines() if not line.startswith("Executing <")]
    assert (ended.stdout.splitlines(), complaints, ended.returncode) == (told, [], 0)


@pytest.fixture
def interval():
    """The process's own interval, which a test may change."""
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def test_threads_take_quick_turns_while_calls_run(serve, connect, interval):
    """From the first call to the end of the last; then the interval is what it was."""
    gates = [threading.Event(), threading.Event()]
    client = connect(serve(*(chunked(delta("web", "a"), gate, *closing("web")) for gate in gates)))
    for gate in gates:
        next(iter(stream := client.stream(request("web"))))
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        gate.set()
        assert stream.result().text == "a"
        wait_until(lambda: sys.getswitchinterval() == interval)


def test_an_interval_of_the_users_own_stays(serve, connect, interval):
    """One that is chosen while a call runs is not undone at its end."""
    gate = threading.Event()
    with connect(serve(chunked(delta("web", "a"), gate, *closing("web")))).stream(request("web")) as stream:
        next(iter(stream))
        sys.setswitchinterval(2 * interval)
        gate.set()
        assert stream.result().text == "a"
    wait_until(lambda: not stream.running)
    assert sys.getswitchinterval() == pytest.approx(2 * interval)
