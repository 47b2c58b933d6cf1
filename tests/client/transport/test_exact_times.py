"""What is called exact is: bytes that belong to no event, and come after it, do not move its time."""

import asyncio
import contextlib
import socket
import sys
import threading
import time

import httpx
import pytest

from famnb.client.response_reader import ResponseReader
from famnb.client.transport import StampedTransport
from famnb.endpoints import ENDPOINTS
from tests.support.fault_server import chunk, head
from tests.support.wire_payloads import delta

ROUNDS = 40
PAUSE_S = 0.006
HOLD_S = 0.02
# Far more than the two clocks are known to differ by.
TOLERANCE_NS = 100_000
EVENT = delta("web", "x")
WRITES = {
    "a comment": (EVENT, b": wait\n\n"),
    "the next event's name": (EVENT, b"event: message\n"),
    "the next event's beginning": (EVENT, b"da", b'ta: {"choices": []}\n\n'),
    "a chunk's end": (chunk(EVENT)[:-2], b"\r\n"),
    "a chunk's head": (chunk(EVENT), b"5\r\n", b": w\n\n\r\n"),
    "a comment in a chunk": (chunk(EVENT), chunk(b": wait\n\n")),
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what TCP brings")
@pytest.mark.parametrize("name", WRITES)
def test_what_comes_between_events_moves_no_exact_time(name):
    """It comes 6 ms after the event, and both wait for a loop that looks every 20 ms: no claim is off by 0.1 ms.

    The kernel merges some of them, and of these the time is not known. The first event is read before more is sent, so
    that there is one to merge with nothing.
    """
    first, *others = WRITES[name]
    sent, listener = [], socket.create_server(("127.0.0.1", 0))
    has_read = threading.Semaphore(0)
    coding = {"transfer_encoding": "chunked"} if first[:1] != b"d" else {"connection": "close"}

    def serve():
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            connection.recv(10_000)
            connection.sendall(head(200, content_type="text/event-stream", **coding))
            has_read.acquire()
            for n in range(ROUNDS):
                before_ns = time.perf_counter_ns()
                connection.sendall(first)
                sent.append((before_ns, time.perf_counter_ns()))
                if n == 0:
                    has_read.acquire()
                for other in others:
                    time.sleep(PAUSE_S)
                    connection.sendall(other)
                time.sleep(PAUSE_S)

    async def hold():
        while True:
            time.sleep(HOLD_S)  # noqa: ASYNC251 - the loop is to be kept from looking
            await asyncio.sleep(0.001)

    async def read(url):
        reader = ResponseReader(ENDPOINTS["web"], streamed=True)
        transport = StampedTransport()

        def feed(data, stamp):
            reader.feed(data, stamp.t_ns, stamp.late_ns, blurred=stamp.blurred, merged=stamp.merged)
            has_read.release()

        response = await transport.handle_async_request(httpx.Request("POST", url))
        has_read.release()
        holder = asyncio.create_task(hold())
        with pytest.raises(httpx.RemoteProtocolError) if "transfer_encoding" in coding else contextlib.nullcontext():
            await response.stream.deliver(feed)
        holder.cancel()
        await transport.aclose()
        return reader.reads

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        reads = asyncio.run(read(f"http://127.0.0.1:{listener.getsockname()[1]}"))
    thread.join()
    errors_ns, index = [], 0
    for arrival in reads:
        count = sum(b"content" in data for data in arrival.data)
        if count and arrival.is_exact:
            before_ns, after_ns = sent[index]
            errors_ns.append(max(before_ns - arrival.t_ns, arrival.t_ns - after_ns, 0))
        index += count
    assert index == ROUNDS
    assert errors_ns
    assert max(errors_ns) < TOLERANCE_NS
