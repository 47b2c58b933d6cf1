"""Responses in a file: conversations outlive the service, each key's own, and what cannot be kept is never promised."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from servicecalls import PATHS, Caller, decoded, minimal, said

from famnb.errors import ConnectError
from famnb.service import Server, serve
from famnb.service.prompt import Earlier, Turn
from famnb.service.refusal import Refusal
from famnb.service.stores.file import FileStore
from famnb.service.stores.memory import MemoryStore
from famnb.service.stores.store import Store, Stored

PATH = PATHS["responses"]
KEY = "the-key-of-these-tests"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a store is to be."""
    return tmp_path / "responses.sqlite"


def started(file: Path, **options: object) -> Server:
    """A service that keeps its responses in a file."""
    return serve(store=file, key=KEY, **{"time_scale": 0, **options})


def answered(caller: Caller, prompt: str, **fields: object) -> tuple[str, str]:
    """The id and the text of a response."""
    body = caller.ask("responses", prompt, **fields).json()
    return body["id"], body["output"][0]["content"][0]["text"]


def refused(caller: Caller, id_: str) -> str:
    """Why a response cannot be continued."""
    answer = caller.ask("responses", previous_response_id=id_)
    assert answer.status_code == 400
    assert said("responses", answer.json())["code"] == "previous_response_not_found"
    return str(said("responses", answer.json())["message"])


def test_a_conversation_goes_on_after_a_restart(file: Path) -> None:
    """Whole or streamed, branch by branch; instructions are not carried over, a system message of the input is."""
    items = [{"role": "system", "content": "Speak plainly."}, {"role": "user", "content": "The root."}]
    with started(file) as server, Caller(server) as caller:
        root, _ = answered(caller, "", input=items, instructions="Be a pirate.")
        left, _ = answered(caller, "The left branch.", previous_response_id=root)
        right = caller.events("responses", "The right branch.", previous_response_id=root)[0]["response"]["id"]
    with started(file) as server, Caller(server) as caller:
        texts = [answered(caller, "And now?", previous_response_id=id_)[1] for id_ in (root, left, right)]
    words = ("The root.", "Speak plainly.", "Be a pirate.", "The left branch.", "The right branch.")
    assert [[word in text for word in words] for text in texts] == [
        [True, True, False, False, False],
        [True, True, False, True, False],
        [True, True, False, False, True],
    ]


def test_what_was_seen_before_the_restart_counts_as_cached(file: Path) -> None:
    """The system text under which a conversation stood is kept with it."""
    with started(file) as server, Caller(server) as caller:
        id_, _ = answered(caller, "My name is Ada.", instructions="Be kind.")
    with started(file) as server, Caller(server) as caller:
        usages = [
            caller.ask("responses", previous_response_id=id_, instructions=words).json()["usage"]
            for words in ("Be kind.", "Be terse.")
        ]
    cached = [usage["input_tokens_details"]["cached_tokens"] for usage in usages]
    assert cached[0] > 0
    assert cached[1] == 0


def test_a_response_is_retrieved_after_a_restart_as_it_was(file: Path) -> None:
    """`GET` gives the whole reply's own bytes; what was deleted stays so, and what went past it goes on."""
    with started(file) as server, Caller(server) as caller:
        whole = caller.ask("responses", "My name is Ada.")
        first = whole.json()["id"]
        second, _ = answered(caller, "Noted?", previous_response_id=first)
    with started(file) as server, Caller(server) as caller:
        assert caller.get(f"{PATH}/{first}").content == whole.content
        assert caller.delete(f"{PATH}/{first}").json() == {"id": first, "object": "response", "deleted": True}
    with started(file) as server, Caller(server) as caller:
        assert caller.get(f"{PATH}/{first}").status_code == caller.delete(f"{PATH}/{first}").status_code == 404
        assert "is not stored" in refused(caller, first)
        _, text = answered(caller, "What is my name?", previous_response_id=second)
        assert "My name is Ada." in text


def test_what_is_not_to_be_stored_never_reaches_the_file(file: Path) -> None:
    """Of `store: false` there is no trace, of the key neither, and after a deletion nothing is left in the tables."""
    with started(file) as server, Caller(server) as caller:
        hidden, _ = answered(caller, "A secret word: xyzzy.", store=False)
        first, _ = answered(caller, "To be deleted.")
        second, _ = answered(caller, "This as well.", previous_response_id=first)
        assert caller.get(f"{PATH}/{hidden}").status_code == 404
        written = b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
        assert (b"xyzzy" in written, KEY.encode() in written, b"To be deleted." in written) == (False, False, True)
        for id_ in (first, second):
            caller.delete(f"{PATH}/{id_}")
    assert sqlite3.connect(file).execute("SELECT count(*) FROM responses").fetchone() == (0,)
    assert file.stat().st_mode & 0o077 == 0


def test_another_key_sees_nothing_after_a_restart(file: Path) -> None:
    """Whoever has the file's service under another key begins with nothing; the first key's owner loses nothing."""
    with started(file) as server, Caller(server) as caller:
        id_, _ = answered(caller, "A secret.")
    with serve(store=file, time_scale=0, key=["another-key", KEY]) as server, Caller(server) as caller:
        assert caller.get(f"{PATH}/{id_}").status_code == 404
        assert "is not stored" in refused(caller, id_)
        caller.headers["authorization"] = f"Bearer {KEY}"
        assert caller.get(f"{PATH}/{id_}").status_code == 200


def test_a_response_that_ran_when_the_service_was_killed_has_failed(file: Path) -> None:
    """Whoever learned its id finds it as `failed` afterwards, with an error, and cannot continue it."""
    with started(file, time_scale=1) as server, Caller(server) as caller:
        body = minimal("responses", "count to 99999", stream=True, max_output_tokens=9999)
        with caller.stream("POST", PATH, json=body) as stream:
            texts = stream.iter_text()
            id_ = next(texts).partition('"id":"')[2].partition('"')[0]
            assert caller.get(f"{PATH}/{id_}").json()["status"] == "in_progress"
            assert refused(caller, id_).endswith("it is in_progress; name a finished one, or send the whole input")
            psutil.Process(server.pid).kill()
    with started(file) as server, Caller(server) as caller:
        found = caller.get(f"{PATH}/{id_}").json()
        assert (found["status"], found["error"]["code"]) == ("failed", "server_error")
        assert "it is failed" in refused(caller, id_)


def not_a_store(file: Path) -> None:
    file.write_text("This is a letter, not a database. " * 200)


def another_database(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE letters (words TEXT)")


def of_the_future(file: Path) -> None:
    started(file).close()
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
    with pytest.raises(ConnectError, match=rf"store: .*{file.name} cannot be used .*{reason}.*another file"):
        started(file)
    assert (file.read_bytes() if file.is_file() else None) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="no file is read-only to root")
def test_a_read_only_file_is_refused_at_the_start(file: Path) -> None:
    """What cannot be kept is not promised."""
    started(file).close()
    file.chmod(0o400)
    with pytest.raises(ConnectError, match="ermission"):
        started(file)


def test_a_file_has_one_service(file: Path) -> None:
    """A second one is refused in words, and disturbs the first as little as its end leaves the file taken."""
    with started(file) as server, Caller(server) as caller:
        with pytest.raises(ConnectError, match="another service uses it"):
            started(file)
        id_, _ = answered(caller, "Still there?")
    with started(file) as server, Caller(server) as caller:
        assert caller.get(f"{PATH}/{id_}").status_code == 200


def test_what_a_full_disk_cannot_keep_is_not_promised(file: Path) -> None:
    """Whole, it is an error; streamed, it is refused or fails; without `store` calls go on, and with room all do."""
    with started(file) as server, Caller(server) as caller:
        before, _ = answered(caller, "Before.")
        process = psutil.Process(server.pid)
        process.rlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        answers = [caller.ask("responses", "Now.", stream=stream) for stream in (False, True)]
        assert [answer.status_code for answer in answers] == [500, 500]
        assert all("cannot be used now" in said("responses", answer.json())["message"] for answer in answers)
        assert caller.ask("responses", "Now.", store=False).status_code == 200
        assert caller.get(f"{PATH}/{before}").status_code == 200
        process.rlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        after, _ = answered(caller, "After.", previous_response_id=before)
        assert caller.get(f"{PATH}/{after}").status_code == 200


def test_a_stream_whose_end_cannot_be_kept_fails(file: Path) -> None:
    """The disk is full by the time it ends: its last event says so rather than `completed`, and so does `GET`."""
    with started(file, time_scale=1) as server, Caller(server) as caller:
        with caller.stream("POST", PATH, json=minimal("responses", "count to 5", stream=True)) as stream:
            chunks = stream.iter_bytes()
            got = next(chunks)
            process = psutil.Process(server.pid)
            process.rlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
            events = decoded(got + b"".join(chunks))
        id_ = events[0]["response"]["id"]
        assert (events[-1]["type"], events[-1]["response"]["status"]) == ("response.failed", "failed")
        assert caller.get(f"{PATH}/{id_}").json()["status"] == "failed"
        assert "it is failed" in refused(caller, id_)


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, file: Path) -> Callable[[int], Store]:
    """Makes a store of either kind that holds so many responses a key."""
    return lambda most: MemoryStore(most=most) if request.param == "memory" else FileStore(file, most=most)


def response(id_: str, **fields: object) -> Stored:
    """A finished response to one turn."""
    return Stored(
        id=id_, status="completed", body=json.dumps({"id": id_}).encode(), said=(Turn("user", id_),), **fields
    )


def test_the_oldest_response_of_a_key_makes_room(make: Callable[[int], Store]) -> None:
    """Beyond the limit the first is gone, for that key alone; a conversation that went past it is whole."""

    async def use(store: Store) -> tuple[list[bool], Earlier]:
        await store.add("other", response("a"))
        before = Earlier()
        for previous, id_ in ((None, "a"), ("a", "b"), ("b", "c"), ("c", "d")):
            await store.add("key", response(id_, previous=previous, earlier=before))
            before = await store.continued("key", id_)
        there = []
        for key, id_ in (("key", "a"), ("key", "b"), ("key", "c"), ("key", "d"), ("other", "a")):
            try:
                there.append(await store.get(key, id_) == response(id_).body)
            except Refusal:
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

    async def use(store: Store) -> Earlier:
        await store.add("key", response("a"))
        earlier = await store.continued("key", "a")
        await store.delete("key", "a")
        await store.add("key", response("b", previous="a", earlier=earlier))
        for id_ in ("c", "d"):
            await store.add("key", Stored(id=id_, previous="b"))
        await store.delete("key", "d")
        for id_ in ("c", "d"):
            await store.end("key", response(id_, previous="b", earlier=await store.continued("key", "b")))
        with pytest.raises(Refusal, match="no response 'd'"):
            await store.get("key", "d")
        try:
            return await store.continued("key", "c")
        finally:
            await store.aclose()

    assert [turn.text for turn in asyncio.run(use(make(9))).turns] == ["a", "b", "c"]


def test_all_that_wait_are_written_at_once_while_the_loop_goes_on(file: Path) -> None:
    """While one commit is under way the loop is free, and what comes meanwhile shares the next."""
    store, commits, begun, gate = FileStore(file), [], threading.Event(), threading.Event()

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
