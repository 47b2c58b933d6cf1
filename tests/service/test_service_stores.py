"""Both kinds of store keep the same promises; a file that cannot keep them is refused before anything is promised."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from famnb.errors import InvalidRequest
from famnb.request.neutral import PromptTurn
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import Store, StoredResponse
from famnb.service.stores.memory import MemoryStore
from famnb.service.stores.sqlite import SqliteStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a store is to be."""
    return tmp_path / "responses.sqlite"


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, file: Path) -> Callable[[int], Store]:
    """Makes a store of either kind that holds so many responses a key."""
    return lambda most: (
        MemoryStore(max_responses=most) if request.param == "memory" else SqliteStore(file, max_responses=most)
    )


def response(id_: str, **fields: object) -> StoredResponse:
    """A finished response to one turn."""
    return StoredResponse(
        id=id_, status="completed", body=json.dumps({"id": id_}).encode(), turns=(PromptTurn("user", id_),), **fields
    )


def test_the_oldest_response_of_a_key_makes_room(make: Callable[[int], Store]) -> None:
    """Beyond the limit the first is gone, for that key alone; a conversation that went past it is whole."""

    async def use(store: Store) -> tuple[list[bool], PriorConversation]:
        await store.add("other", response("a"))
        before = PriorConversation()
        for previous, id_ in ((None, "a"), ("a", "b"), ("b", "c"), ("c", "d")):
            await store.add("key", response(id_, previous_id=previous, prior=before))
            before = await store.get_conversation("key", id_)
        there = []
        for key, id_ in (("key", "a"), ("key", "b"), ("key", "c"), ("key", "d"), ("other", "a")):
            try:
                there.append(await store.get(key, id_) == response(id_).body)
            except ServiceError:
                there.append(False)
        await store.aclose()
        return there, before

    there, before = asyncio.run(use(make(2)))
    assert there == [False, False, True, True, True]
    assert [turn.text for turn in before.turns] == ["a", "b", "c", "d"]


def test_a_response_whose_predecessor_is_deleted_while_it_runs_keeps_the_conversation(
    make: Callable[[int], Store],
) -> None:
    """It has read all of it and goes on from there; a response that is deleted itself while it runs stays so."""

    async def use(store: Store) -> PriorConversation:
        await store.add("key", response("a"))
        earlier = await store.get_conversation("key", "a")
        await store.delete("key", "a")
        await store.add("key", response("b", previous_id="a", prior=earlier))
        for id_ in ("c", "d"):
            await store.add("key", StoredResponse(id=id_, previous_id="b"))
        await store.delete("key", "d")
        for id_ in ("c", "d"):
            await store.finish("key", response(id_, previous_id="b", prior=await store.get_conversation("key", "b")))
        with pytest.raises(ServiceError, match="no response 'd'"):
            await store.get("key", "d")
        try:
            return await store.get_conversation("key", "c")
        finally:
            await store.aclose()

    assert [turn.text for turn in asyncio.run(use(make(9))).turns] == ["a", "b", "c"]


def test_all_that_wait_are_written_at_once_while_the_loop_goes_on(file: Path) -> None:
    """While one commit is under way the loop is free, and what comes meanwhile shares the next."""
    store, commits, begun, gate = SqliteStore(file), [], threading.Event(), threading.Event()

    def traced(sql: str) -> None:
        if sql == "COMMIT":
            commits.append(sql)
            begun.set()
            gate.wait(10)

    async def use() -> tuple[int, int]:
        store._connection.set_trace_callback(traced)
        first = asyncio.create_task(store.add("key", response("first")))
        await asyncio.to_thread(begun.wait, 10)
        more = [asyncio.create_task(store.add("key", response(str(n)))) for n in range(50)]
        await asyncio.sleep(0.01)
        done = sum(task.done() for task in (first, *more))
        gate.set()
        await asyncio.gather(first, *more)
        await store.aclose()
        return done, len(commits)

    assert asyncio.run(use()) == (0, 2)


def not_a_store(file: Path) -> None:
    file.write_text("This is a letter, not a database. " * 200)


def another_database(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE letters (words TEXT)")


def of_the_future(file: Path) -> None:
    asyncio.run(SqliteStore(file).aclose())
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (not_a_store, "no store of responses"),
        (another_database, "no store of responses"),
        (of_the_future, "version 99, this famnb knows up to 1: update famnb"),
        (Path.mkdir, "Is a directory"),
        (lambda file: file.parent.rmdir(), "No such file"),
    ],
)
def test_a_file_that_cannot_be_a_store_is_refused_at_the_start(
    file: Path, prepare: Callable[[Path], object], reason: str
) -> None:
    """In words, with the file's name and what to do; the file is as it was."""
    prepare(file)
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(InvalidRequest, match=rf"store: .*{file.name} cannot be used .*{reason}.*another file"):
        SqliteStore(file)
    assert (file.read_bytes() if file.is_file() else None) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="no file is read-only to root")
def test_a_read_only_file_is_refused_at_the_start(file: Path) -> None:
    """What cannot be kept is not promised."""
    asyncio.run(SqliteStore(file).aclose())
    file.chmod(0o400)
    with pytest.raises(InvalidRequest, match="ermission"):
        SqliteStore(file)
