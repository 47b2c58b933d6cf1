"""`kill -9` under load: every response that was acknowledged is there afterwards, as it was, and continues."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from pathlib import Path

import httpx
import psutil

from famnb.service import Server, serve
from tests.support.service_requests import PATHS, ServiceClient, decode_stream
from tests.support.waiting import wait_until

PATH = PATHS["responses"]


ROUNDS = 5


CLIENTS = 4


class Client(threading.Thread):
    """Makes responses as fast as it can, each continuing one of its own, whole and streamed in turn, until cut off."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__()
        self.whole: dict[str, bytes] = {}
        """The acknowledged body of each whole reply, by id."""
        self.streamed: dict[str, object] = {}
        """The output in the terminal event of each stream."""
        self.error: Exception | None = None
        self._server = server
        self._rng = random.Random(seed)
        self.start()

    def run(self) -> None:
        try:
            with ServiceClient(self._server) as caller, contextlib.suppress(httpx.TransportError):
                while True:
                    self._make(caller)
        except Exception as error:
            self.error = error

    def _make(self, caller: ServiceClient) -> None:
        done = [*self.whole, *self.streamed]
        previous = self._rng.choice(done[-4:]) if done and self._rng.random() < 0.9 else ...
        prompt = f"count to 3, please, this is number {len(done)}"
        if self._rng.random() < 0.5:
            answer = caller.ask("responses", prompt, previous_response_id=previous)
            self.whole[answer.raise_for_status().json()["id"]] = answer.content
            return
        with caller.stream("POST", PATH, json=body(prompt, previous)) as stream:
            last = decode_stream(stream.raise_for_status().read())[-1]
        assert last["type"] == "response.completed"
        self.streamed[last["response"]["id"]] = last["response"]["output"]


def body(prompt: str, previous: object) -> dict[str, object]:
    fields = {"model": "fam-2-5-mini", "input": prompt, "stream": True, "max_output_tokens": 40}
    return fields if previous is ... else {**fields, "previous_response_id": previous}


def kill_at_work(server: Server, clients: list[Client], rng: random.Random) -> None:
    """Kill the service at a random moment of its work."""

    def have_worked() -> bool:
        return all(len(client.whole) + len(client.streamed) >= 5 for client in clients if client.is_alive())

    wait_until(have_worked, timeout=60)
    time.sleep(rng.uniform(0, 0.4))
    psutil.Process(server.pid).kill()
    for client in clients:
        client.join()


def test_what_was_acknowledged_before_a_kill_is_there_afterwards(tmp_path: Path) -> None:
    """Byte for byte by `GET`, and each is continued by `previous_response_id`; round after round, in one file."""
    rng = random.Random(3)
    whole: dict[str, bytes] = {}
    streamed: dict[str, object] = {}
    for turn in range(ROUNDS + 1):
        with serve(store=tmp_path / "store.sqlite", time_scale=0, key="one-key-for-all-rounds") as server:
            with ServiceClient(server) as caller:
                assert {id_: caller.get(f"{PATH}/{id_}").content for id_ in whole} == whole
                assert {id_: caller.get(f"{PATH}/{id_}").json()["output"] for id_ in streamed} == streamed
                ids = [*whole, *streamed]
                for id_ in rng.sample(ids, min(40, len(ids))):
                    assert caller.ask("responses", "Go on.", previous_response_id=id_).status_code == 200
            if turn == ROUNDS:
                break
            clients = [Client(server, seed=turn * CLIENTS + n) for n in range(CLIENTS)]
            kill_at_work(server, clients, rng)
        assert [client.error for client in clients if client.error] == []
        for client in clients:
            whole |= client.whole
            streamed |= client.streamed
    assert len(whole) > ROUNDS * CLIENTS
    assert len(streamed) > ROUNDS * CLIENTS
