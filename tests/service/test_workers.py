"""`--workers`: several processes are one service, with one store, one allowance for each key and one count."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from famnb.errors import ConnectError
from famnb.service import Server, serve
from famnb.service.auth import RateLimits
from famnb.service.errors import ServiceError
from famnb.service.metrics import render
from famnb.service.request_log import RequestRecord
from famnb.service.stores.sqlite import SqliteStore, is_worker_alive, name_worker
from famnb.service.workers import SharedMetrics, SharedRateLimiter
from tests.support.service_requests import PATHS, ServiceClient, minimal_body
from tests.support.waiting import wait_until

pytestmark = pytest.mark.full


def workers(server: Server) -> list[psutil.Process]:
    """The processes that answer."""
    found = []
    for child in psutil.Process(server.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # one that has just died
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(time_scale=0, workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[ServiceClient]:
    with ServiceClient(server) as caller:
        yield caller


def post(server: Server, path: str, **fields: object) -> httpx.Response:
    """Post on a connection of its own, which any worker may take."""
    headers = {"authorization": f"Bearer {server.key}"}
    return httpx.post(server.url + path, json=fields, headers=headers, timeout=30)


def test_every_endpoint_is_answered(api: ServiceClient, endpoint: str) -> None:
    """Whole and streamed, by as many processes as were asked for."""
    assert api.ask(endpoint).status_code == 200
    assert api.ask(endpoint, stream=True).status_code == 200


def test_what_one_stores_the_others_have(server: Server) -> None:
    """Conversations go on, and responses are there, whoever takes the connection."""
    assert len(workers(server)) == 2
    answer = post(server, PATHS["responses"], model="fam-2-5-pro", input="My name is Ada.").json()
    headers = {"authorization": f"Bearer {server.key}"}
    address = f"{server.url}{PATHS['responses']}/{answer['id']}"
    with ThreadPoolExecutor(8) as pool:
        fetched = list(pool.map(lambda _: httpx.get(address, headers=headers).json(), range(16)))
        fields = {"model": "fam-2-5-pro", "input": "And yours?", "previous_response_id": answer["id"]}
        continued = list(pool.map(lambda _: post(server, PATHS["responses"], **fields).status_code, range(16)))
    assert (fetched, set(continued)) == ([answer] * 16, {200})


def test_a_key_has_one_allowance() -> None:
    """Of a burst at once exactly those beyond it are refused, whoever takes them."""
    with serve(time_scale=0, workers=2, requests_per_minute=1, burst=10) as server:
        body = minimal_body("web", max_new_tokens=1)
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda _: post(server, PATHS["web"], **body).status_code, range(15)))
    assert sorted(statuses) == [200] * 10 + [429] * 5


def test_metrics_are_those_of_all(server: Server) -> None:
    """Whichever of them is asked, at most a second late."""

    def counted(caller: httpx.Client) -> set[str]:
        return {line for line in caller.get("/metrics").text.splitlines() if 'endpoint="chat",status="400"' in line}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: post(server, PATHS["chat"]), range(20)))
    for _ in range(4):
        with ServiceClient(server) as caller:
            wait_until(
                lambda caller=caller: counted(caller) == {'famnb_requests_total{endpoint="chat",status="400"} 20'}
            )


def test_a_worker_that_dies_is_replaced() -> None:
    """Its running responses have failed, and the service goes on."""
    with serve(time_scale=0, workers=2, allow_faults=True) as server, ServiceClient(server) as api:
        body = minimal_body("responses", stream=True)
        with api.stream("POST", PATHS["responses"], json=body, headers={"x-famnb-fault": "stall=2"}) as stream:
            lines = stream.iter_lines()
            id_ = json.loads(next(lines).removeprefix("data: "))["response"]["id"]
            with ServiceClient(server) as other:
                assert other.get(f"{PATHS['responses']}/{id_}").json()["status"] == "in_progress"
            before = workers(server)
            connections = {
                process.pid: sum(entry.status == psutil.CONN_ESTABLISHED for entry in process.net_connections("tcp"))
                for process in before
            }
            victim = next(process for process in before if connections[process.pid])
            victim.send_signal(signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                list(lines)
        wait_until(lambda: len(workers(server)) == 2 and victim not in workers(server))
        with ServiceClient(server) as other:
            assert other.get(f"{PATHS['responses']}/{id_}").json()["status"] == "failed"
            assert other.ask("web").status_code == 200


def test_all_of_them_end_together() -> None:
    """At the end of a `with` block as when the first process is killed."""
    with serve(time_scale=0, workers=2) as server:
        first = workers(server)
    with serve(time_scale=0, workers=2) as server:
        second = workers(server)
        psutil.Process(server.pid).kill()
        wait_until(lambda: not any(process.is_running() for process in (*first, *second)))


def test_a_file_is_one_service_s_and_remains(tmp_path: Path) -> None:
    """Another service is refused while workers use it, and finds all in it afterwards."""
    file = tmp_path / "responses.sqlite"
    with serve(time_scale=0, workers=2, store=file, key="a-key") as server:
        id_ = post(server, PATHS["responses"], model="fam-2-5-pro", input="Hello").json()["id"]
        for count in (1, 2):
            with pytest.raises(ConnectError, match="another service uses it"):
                serve(store=file, workers=count)
    with serve(store=file, key="a-key") as server:
        headers = {"authorization": "Bearer a-key"}
        assert httpx.get(f"{server.url}{PATHS['responses']}/{id_}", headers=headers).status_code == 200


def test_the_command_line_announces_one_service() -> None:
    """Its first line comes once all workers answer, and an interrupt ends them in order."""
    command = [sys.executable, "-m", "famnb", "serve", "--workers", "2", "--time-scale", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert line["pid"] == process.pid
        assert httpx.get(f"{line['url']}/health").json()["status"] == "ok"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=20)
    assert (process.returncode, out, error) == (0, "", "")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    """Two processes' connections to one file, as far as the file can tell."""
    file = tmp_path / "responses.sqlite"
    asyncio.run(SqliteStore(file).aclose())
    first, second = (SqliteStore(file, is_shared=True) for _ in range(2))
    second.worker = name_worker(psutil.Process().ppid())
    yield first, second
    for store in (first, second):
        asyncio.run(store.aclose())


def test_running_requests_count_together(stores: tuple[SqliteStore, SqliteStore]) -> None:
    """Those of a key in all processes, until they end; what a process answered when it died is answered no more."""
    limiters = [SharedRateLimiter(RateLimits(concurrency=2), store) for store in stores]
    of_the_dead = ("INSERT INTO running VALUES (?, '2 1.0', 5)", (stores[0].owner("key"),))

    async def run() -> None:
        await stores[0].submit(lambda file: file.execute(*of_the_dead), writes=True)
        async with limiters[0].admit("key"), limiters[1].admit("key"):
            async with limiters[0].admit("another key"):
                pass
            with pytest.raises(ServiceError, match="2 requests of this key"):
                async with limiters[0].admit("key"):
                    pass
        async with limiters[0].admit("key"), limiters[0].admit("key"):
            pass

    asyncio.run(run())


def test_a_dead_worker_s_counts_stay(stores: tuple[SqliteStore, SqliteStore]) -> None:
    """But what it was answering is answered no more."""
    own, other = (SharedMetrics(store) for store in stores)
    for metrics in (own, other):
        record = RequestRecord("req_1", "POST", "web", 0.0, 200)
        metrics.begin(record)
        metrics.begin(record)
        metrics.end(record)

    async def collect() -> list[str]:
        return render(await own.collect()).decode().splitlines()

    asyncio.run(other.publish())
    total, flying = 'famnb_requests_total{endpoint="web",status="200"} 2', 'famnb_requests_in_flight{endpoint="web"} '
    assert {total, f"{flying}2"} <= set(asyncio.run(collect()))
    died = "UPDATE samples SET worker = '2 1.0'"
    asyncio.run(stores[0].submit(lambda file: file.execute(died), writes=True))
    assert {total, f"{flying}1"} <= set(asyncio.run(collect()))


def test_a_process_is_known_by_more_than_its_number() -> None:
    """Which another may get."""
    own = name_worker(psutil.Process().pid)
    pid, created = own.split()
    assert is_worker_alive(own)
    assert not is_worker_alive(f"{pid} {float(created) - 100}")
