"""Many streams at once, each ended by either side at a random moment: every one ends, and nothing is left behind.

FAMNB_ABORTS is how many times over; twice unless it is set.
"""

from __future__ import annotations

import gc
import os
import random
import threading

import psutil
import pytest

from famnb.client.retry import Retries
from famnb.client.transport import StampedTransport
from famnb.client.transport.connection import Body, Connection
from tests.support.fault_server import Action, Received, Script, chunked
from tests.support.proxy_server import ProxyServer
from tests.support.waiting import wait_until
from tests.support.wire_payloads import closing, delta, opening, request

ROUNDS = int(os.getenv("FAMNB_ABORTS", "2"))
STREAMS = 256
STATUSES = {"completed", "failed", "cancelled", "interrupted"}


def script(chance: random.Random) -> Script:
    """A stream that goes on, is complete, is closed or reset; anywhere."""
    words = [step for _ in range(chance.randint(0, 10)) for step in (chance.random() * 0.02, delta("web", "x"))]
    match chance.randrange(6):
        case 0:
            return [chance.choice([Action.CLOSE, Action.RESET])]
        case 1:
            return chunked(*opening("web"), *words, *closing("web"))
        case 2 | 3:
            return [*chunked(*opening("web"), *words, end=False), chance.choice([Action.CLOSE, Action.RESET])]
        case _:
            return chunked(*opening("web"), *words, Action.STALL)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("route", ["plain", "tls", "tunnel"])
def test_streams_ended_by_either_side(serve, connect, certificate, route):
    """Each has one of the statuses; no connection, file or object of theirs is left."""
    chance, lock = random.Random(route), threading.Lock()

    def choose(received: Received) -> Script:
        if b"the last" in received.body:
            return chunked(*opening("web"), delta("web", "Hello"), *closing("web"))
        with lock:
            return script(chance)

    encrypted = route in ("tls", "tunnel")
    # A handshake costs a hundred times what a stream does.
    streams = STREAMS // 8 if encrypted else STREAMS
    server = serve(choose=choose, tls=certificate.server_context() if encrypted else None)
    with ProxyServer() as proxy:
        transport = StampedTransport(
            tls=certificate.client_context() if encrypted else None, proxy=proxy.url if route == "tunnel" else None
        )
        client = connect(server, retries=Retries(tries=1), connections=streams, transport=transport)
        assert client.send(request("web", "the last")).text == "Hello"
        objects = count_connections()
        for _ in range(ROUNDS):
            calls = [client.engine.start(request("web")) for _ in range(streams)]
            for call in chance.sample(calls, len(calls)):
                # What goes on for ever must be stopped; all else is stopped where it happens to be.
                threading.Timer(chance.random() * 0.3, call.stop).start()
            assert all(call.wait(60) for call in calls), "a call hangs"
            assert {call.reply.status for call in calls} <= STATUSES
            assert client.engine.in_use == 0
        del calls, call
        assert client.send(request("web", "the last")).text == "Hello"
        client.close()
        assert transport.connections == 0
        wait_until(lambda: server.open == 0)
        wait_until(lambda: count_connections() <= objects)
        peers = (server.url, proxy.url)
        wait_until(lambda: not connections_to(peers))


def count_connections() -> int:
    """How much is left in memory of connections."""
    gc.collect()
    return sum(isinstance(value, Body | Connection) for value in gc.get_objects())


def connections_to(urls: tuple[str, ...]) -> list[object]:
    """This process's sockets that are connected to these addresses."""
    ports = {int(url.rpartition(":")[2]) for url in urls}
    found = psutil.Process().net_connections("tcp")
    return [each for each in found if each.raddr and each.raddr.port in ports and each.status == "ESTABLISHED"]
