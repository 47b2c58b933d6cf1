"""How a process ends that still has clients, connections or calls; what a call leaves of its settings."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEGIN = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.client_shells import KEY, MemoryRecorder
from tests.support.fault_server import FaultServer, chunked, whole
from tests.support.wire_payloads import body, delta, request
from famnb.api import Client

class Telling(MemoryRecorder):
    def on_close(self, exchange):
        print("recorded", exchange.reply.status, flush=True)
        return super().on_close(exchange)

endless = chunked(*[delta("web", "x"), 0.01] * 1000)
server = FaultServer(choose=lambda asked: endless if b'"stream":true' in asked.body else whole(body("web", "Hello")))
client = Client(base_url=server.url, api_key=KEY, ledger=Telling())
"""
CALL = """
client.send(request("web", stream=False))
"""
CLOSED_AT_EXIT = """
import atexit
atexit.register(client.close)  # handlers run in reverse order, this one after that of the first call's thread
"""
RUNNING = f"""{CALL}
stream = client.engine.start(request("web"))
next(iter(stream))
"""
QUIETLY = """
import warnings
warnings.simplefilter("ignore")
"""
FORKED = f"""{CALL}
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=client.send, args=[request("web", stream=False)])
child.start()
child.join(60)
"""


@pytest.mark.parametrize(
    ("script", "statuses"),
    [
        pytest.param(CALL, ["completed"], id="an open client"),
        pytest.param(
            f"{CLOSED_AT_EXIT}{CALL}",
            ["completed"],
            id="a client closed after its thread has ended",
            marks=pytest.mark.full,
        ),
        pytest.param(RUNNING, ["completed", "interrupted"], id="a running call"),
        pytest.param(
            f"{RUNNING}{QUIETLY}del client, stream",
            ["completed", "cancelled"],
            id="a call nobody holds",
            marks=pytest.mark.full,
        ),
        pytest.param(
            f"{RUNNING}stream.stop()", ["completed", "cancelled"], id="a stopped call", marks=pytest.mark.full
        ),
        pytest.param(
            f"{RUNNING}client.close()", ["completed", "cancelled"], id="a closed client", marks=pytest.mark.full
        ),
        pytest.param(FORKED, ["completed", "completed"], id="a forked child"),
    ],
)
def test_a_process_ends_in_order(script, statuses):
    command = [sys.executable, "-X", "dev", "-c", BEGIN + script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    records = [f"recorded {status}" for status in statuses]
    # asyncio's debug mode remarks on every callback that took 0.1 s, as any may on a loaded machine; since Python 3.12
    # a fork is warned of while threads run, with the line that forks.
    remarks = r"Executing <.*|.*DeprecationWarning: This process .* is multi-threaded.*|  self.pid = os.fork\(\)"
    complaints = [line for line in ended.stderr.splitlines() if not re.fullmatch(remarks, line)]
    assert (ended.stdout.splitlines(), complaints, ended.returncode) == (records, [], 0)
