"""How a process ends that still has clients, connections or calls: in order, and silently."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BEGIN = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]
from callers import KEY, Notebook
from faultserver import FaultServer, chunked, whole
from payloads import body, delta, request
from famnb.client import Client

class Telling(Notebook):
    def closed(self, exchange):
        print("recorded", exchange.reply.status, flush=True)
        return super().closed(exchange)

endless = chunked(*[delta("web", "x"), 0.01] * 1000)
server = FaultServer(choose=lambda asked: endless if b'"stream":true' in asked.body else whole(body("web", "Hello")))
client = Client(base_url=server.url, api_key=KEY, recorder=Telling())
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
    ("script", "told"),
    [
        (BEGIN, ["recorded completed"]),
        (BEGIN + RUNNING, ["recorded completed", "recorded cancelled"]),
        (BEGIN + RUNNING + "del client, stream", ["recorded completed", "recorded cancelled"]),
        (BEGIN + FORKED, ["recorded completed", "recorded completed"]),
    ],
    ids=["an open client", "a running call", "a call nobody holds", "a forked child"],
)
def test_a_process_ends_in_order(script, told):
    """A running call is stopped and recorded; nothing is printed about loops, sessions or tasks."""
    command = [sys.executable, "-X", "dev", "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout.splitlines(), ended.stderr, ended.returncode) == (told, "", 0)
