"""An M/M/c queue that speaks chat completions, in a process of its own: c servers, exponential service times.

usage: python -m tests.support.queue_server SERVERS MEAN_S SEED, which prints its address once it accepts connections.
"""

import asyncio
import contextlib
import json
import random
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import uvicorn
from scipy import stats
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

CHUNK = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": None}]}
LAST = {
    "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}


@contextlib.contextmanager
def serve_queue(servers: int, mean_s: float, seed: int = 1) -> Iterator[str]:
    """Run such a queue and yield its address."""
    command = [sys.executable, "-m", __name__, str(servers), str(mean_s), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def share_within(limit_s: float, rate: float, servers: int, mean_s: float) -> float:
    """The share of calls of an M/M/c queue that are over within a time, by its law; 0 where it grows without end."""
    service, load = 1 / mean_s, rate * mean_s
    if load >= servers:
        return 0.0
    # Erlang's C, the share that waits, by way of his B.
    blocked = stats.poisson.pmf(servers, load) / stats.poisson.cdf(servers, load)
    waits = blocked / (1 - load / servers * (1 - blocked))
    # Where both are alike the formula is 0 / 0; next to it is near enough.
    drain = (servers * service - rate) * (1 + 1e-9)
    at_once = stats.expon.sf(limit_s, scale=mean_s)
    # The wait is exponential with the rate `drain`, the service with the rate `service`; their sum is over the limit.
    both = (drain * at_once - service * stats.expon.sf(limit_s, scale=1 / drain)) / (drain - service)
    return float(1 - (1 - waits) * at_once - waits * both)


def _make_app(servers: int, mean_s: float, seed: int) -> Starlette:
    rng, free = random.Random(seed), asyncio.Semaphore(servers)

    async def answer(_: Request) -> StreamingResponse:
        async with free:
            await asyncio.sleep(rng.expovariate(1 / mean_s))

        async def events() -> AsyncIterator[bytes]:
            for payload in (json.dumps(CHUNK), json.dumps(LAST), "[DONE]"):
                yield f"data: {payload}\n\n".encode()

        return StreamingResponse(events(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])


async def _main(servers: int, mean_s: float, seed: int) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        # Sockets inherit it; asyncio would not set it on those of a listener that it is given.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # It is listening already: who calls before the server is ready waits in the backlog.
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(_make_app(servers, mean_s, seed), log_level="warning")
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
