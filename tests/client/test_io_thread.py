"""The turns that threads take while calls run; how a process ends that still has clients, connections or calls."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from famnb.client.io_thread import FULL_COLLECTION_EVERY, SWITCH_S
from tests.support.fault_server import chunked
from tests.support.waiting import wait_until
from tests.support.wire_payloads import closing, delta, request

ROOT = Path(__file__).parents[2]
BEGIN = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.client_shells import KEY, MemoryRecorder
from tests.support.fault_server import FaultServer, chunked, whole
from tests.support.wire_payloads import body, delta, request
from famnb.client.client import BlockingClient

class Telling(MemoryRecorder):
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
QUIETLY = """
import warnings
warnings.simplefilter("ignore")
"""
FORKED = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=client.send, args=[request("web", stream=False)])
child.start()
child.join(60)
"""


@pytest.mark.parametrize(
    ("script", "last"),
    [
        pytest.param("", "completed", id="an open client"),
        pytest.param(RUNNING, "interrupted", id="a running call"),
        pytest.param(f"{RUNNING}{QUIETLY}del client, stream", "cancelled", id="a call nobody holds"),
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
    # asyncio's debug mode remarks on every callback that took 0.1 s, as any may on a loaded machine; since Python 3.12
    # a fork is warned of while threads run, with the line that forks.
    remarks = r"Executing <.*|.*DeprecationWarning: This process .* is multi-threaded.*|  self.pid = os.fork\(\)"
    complaints = [line for line in ended.stderr.splitlines() if not re.fullmatch(remarks, line)]
    assert (ended.stdout.splitlines(), complaints, ended.returncode) == (told, [], 0)


@pytest.fixture
def turns():
    """The process's own switch interval and thresholds of the garbage collector, which a test may change."""
    before = sys.getswitchinterval(), gc.get_threshold()
    yield before
    sys.setswitchinterval(before[0])
    gc.set_threshold(*before[1])


def turns_now():
    return sys.getswitchinterval(), gc.get_threshold()


def test_nothing_keeps_the_interpreter_for_long_while_calls_run(serve, connect, turns):
    """Threads take quick turns and full collections are rare, until the end of the last call; then all is as before."""
    gates = [threading.Event(), threading.Event()]
    client = connect(serve(*(chunked(delta("web", "a"), gate, *closing("web")) for gate in gates)))
    for gate in gates:
        next(iter(stream := client.stream(request("web"))))
        assert turns_now() == (pytest.approx(SWITCH_S), (*turns[1][:2], FULL_COLLECTION_EVERY))
        gate.set()
        assert stream.result().text == "a"
        wait_until(lambda: turns_now() == turns)


@pytest.mark.parametrize(
    ("thresholds", "hurried"),
    [((0, 10, 10), (0, 10, 100)), ((700, 10, 0), (700, 10, 0)), ((50_000, 20, 1000), (50_000, 20, 1000))],
)
def test_what_the_user_has_chosen_stays(serve, connect, turns, thresholds, hurried):
    """No collections, or fewer of them; and an interval that is chosen while a call runs is not undone at its end."""
    gc.set_threshold(*thresholds)
    gate = threading.Event()
    with connect(serve(chunked(delta("web", "a"), gate, *closing("web")))).stream(request("web")) as stream:
        next(iter(stream))
        assert gc.get_threshold() == hurried
        sys.setswitchinterval(2 * turns[0])
        chosen = turns_now()
        gate.set()
        assert stream.result().text == "a"
    wait_until(lambda: not stream.running)
    assert turns_now() == chosen
