"""Responses in a file: conversations outlive the service, and what cannot be stored is never promised."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
import pytest

from famnb.errors import ConnectError, InvalidRequest
from famnb.request.neutral import PromptTurn
from famnb.service import Server
from famnb.service.stores.base import StoredResponse
from famnb.service.stores.sqlite import SqliteStore
from tests.support.forked_service import serve_forked
from tests.support.service_requests import PATHS, ServiceClient, decode_stream, error_of, minimal_body
from tests.support.waiting import wait_until

PATH = PATHS["responses"]


KEY = "the-key-of-these-tests"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a store is to be."""
    return tmp_path / "responses.sqlite"


def start_service(file: Path, **options: object) -> Server:
    """A service that keeps its responses in a file."""
    return serve_forked(**{"store": file, "key": KEY, "time_scale": 0, **options})


def create_response(caller: ServiceClient, prompt: str, **fields: object) -> tuple[str, str]:
    """The id and the text of a response."""
    body = caller.ask("responses", prompt, **fields).json()
    return body["id"], body["output"][0]["content"][0]["text"]


def first_id(texts: Iterator[str]) -> str:
    """The id in the first event of a stream."""
    return next(texts).partition('"id":"')[2].partition('"')[0]


def refusal_reason(caller: ServiceClient, id_: str) -> str:
    """Why a response cannot be continued."""
    answer = caller.ask("responses", previous_response_id=id_)
    assert answer.status_code == 400
    assert error_of("responses", answer.json())["code"] == "previous_response_not_found"
    return str(error_of("responses", answer.json())["message"])


@pytest.fixture(scope="module")
def restarted_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceClient, dict[str, Any]]]:
    """A caller of a service that was restarted and has a second key now, and the answers given before."""
    file = tmp_path_factory.mktemp("store") / "responses.sqlite"
    items = [{"role": "system", "content": "Speak plainly."}, {"role": "user", "content": "The root."}]
    with start_service(file) as server, ServiceClient(server) as caller:
        root = caller.ask("responses", "", input=items, instructions="Be a pirate.")
        after = {"previous_response_id": root.json()["id"]}
        left = caller.ask("responses", "The left branch.", **after)
        right = caller.events("responses", "The right branch.", **after)[-1]["response"]
        kind = caller.ask("responses", "My name is Ada.", instructions="Be kind.")
        deleted, _ = create_response(caller, "Delete this.")
        beyond, _ = create_response(caller, "Beyond it.", previous_response_id=deleted)
        caller.delete(f"{PATH}/{deleted}").raise_for_status()
    before = {"root": root, "left": left, "right": right, "kind": kind, "deleted": deleted, "beyond": beyond}
    with start_service(file, key=["second-key", KEY]) as server, ServiceClient(server) as caller:
        caller.headers["authorization"] = f"Bearer {KEY}"
        yield caller, before


Restarted = tuple[ServiceClient, dict[str, Any]]


def test_a_conversation_goes_on_after_a_restart(restarted_service: Restarted) -> None:
    """Whole or streamed, branch by branch; instructions are not carried over, a system message of the input is."""
    caller, before = restarted_service
    ids = before["root"].json()["id"], before["left"].json()["id"], before["right"]["id"]
    texts = [create_response(caller, "And now?", previous_response_id=id_)[1] for id_ in ids]
    words = ("The root.", "Speak plainly.", "Be a pirate.", "The left branch.", "The right branch.")
    assert [[word in text for word in words] for text in texts] == [
        [True, True, False, False, False],
        [True, True, False, True, False],
        [True, True, False, False, True],
    ]


def test_what_was_seen_before_the_restart_counts_as_cached(restarted_service: Restarted) -> None:
    """The system text under which a conversation stood is kept with it."""
    caller, before = restarted_service
    after = {"previous_response_id": before["kind"].json()["id"]}
    usages = [caller.ask("responses", instructions=words, **after).json()["usage"] for words in ("Be kind.", "Hurry.")]
    cached = [usage["input_tokens_details"]["cached_tokens"] for usage in usages]
    assert (cached[0] > 0, cached[1]) == (True, 0)


def test_a_response_is_retrieved_after_a_restart_as_it_was(restarted_service: Restarted) -> None:
    """`GET` gives the whole reply's own bytes; of a streamed one, the same object."""
    caller, before = restarted_service
    assert caller.get(f"{PATH}/{before['left'].json()['id']}").content == before["left"].content
    body = caller.get(f"{PATH}/{before['right']['id']}").json()
    assert (body["status"], body["output"]) == ("completed", before["right"]["output"])


def test_what_was_deleted_before_a_restart_stays_so(restarted_service: Restarted) -> None:
    """It is 404 and cannot be continued, while the conversation that went past it is whole."""
    caller, before = restarted_service
    assert caller.get(f"{PATH}/{before['deleted']}").status_code == 404
    assert "is not stored" in refusal_reason(caller, before["deleted"])
    assert "Delete this." in create_response(caller, "And now?", previous_response_id=before["beyond"])[1]


def test_another_key_sees_nothing_after_a_restart(restarted_service: Restarted) -> None:
    """Whoever else may call the restarted service has nothing of the first key's."""
    caller, before = restarted_service
    id_, second = before["kind"].json()["id"], {"authorization": "Bearer second-key"}
    assert caller.get(f"{PATH}/{id_}", headers=second).status_code == 404
    body = minimal_body("responses", previous_response_id=id_)
    assert caller.post(PATH, json=body, headers=second).status_code == 400
    assert caller.get(f"{PATH}/{id_}").status_code == 200


def test_what_is_not_to_be_stored_never_reaches_the_file(file: Path) -> None:
    """Of `store: false` there is no trace, of the key neither, and after a deletion nothing is left in the tables."""
    with start_service(file) as server, ServiceClient(server) as caller:
        hidden, _ = create_response(caller, "A secret word: xyzzy.", store=False)
        first, _ = create_response(caller, "To be deleted.")
        second, _ = create_response(caller, "This as well.", previous_response_id=first)
        assert caller.get(f"{PATH}/{hidden}").status_code == 404
        written = b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
        assert (b"xyzzy" in written, KEY.encode() in written, b"To be deleted." in written) == (False, False, True)
        for id_ in (first, second):
            caller.delete(f"{PATH}/{id_}")
    assert sqlite3.connect(file).execute("SELECT count(*) FROM responses").fetchone() == (0,)
    assert file.stat().st_mode & 0o077 == 0


def test_what_had_no_end_is_kept_as_such(file: Path) -> None:
    """A response whose caller left is `cancelled`, one that the kill interrupted `failed`; neither goes on."""
    body = minimal_body("responses", "count to 99999", stream=True, max_output_tokens=9999)
    with start_service(file, time_scale=1) as server, ServiceClient(server) as caller:
        with caller.stream("POST", PATH, json=body) as stream:
            left = first_id(stream.iter_text())
        wait_until(lambda: caller.get(f"{PATH}/{left}").json()["status"] == "cancelled")
        with caller.stream("POST", PATH, json=body) as stream:
            texts = stream.iter_text()
            killed = first_id(texts)
            assert caller.get(f"{PATH}/{killed}").json()["status"] == "in_progress"
            assert "it is in_progress" in refusal_reason(caller, killed)
            psutil.Process(server.pid).kill()
    with start_service(file) as server, ServiceClient(server) as caller:
        bodies = [caller.get(f"{PATH}/{id_}").json() for id_ in (left, killed)]
        assert [response["status"] for response in bodies] == ["cancelled", "failed"]
        assert bodies[1]["error"]["code"] == "server_error"
        assert "it is cancelled" in refusal_reason(caller, left)
        assert "it is failed" in refusal_reason(caller, killed)


def test_the_command_line_has_the_store(file: Path) -> None:
    """`famnb serve --store FILE`, killed right after its answer, has left that answer in the file."""
    command = [sys.executable, "-m", "famnb", "serve", "--key", KEY, "--time-scale", "0", "--store", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        headers = {"authorization": f"Bearer {KEY}"}
        answer = httpx.post(f"{url}{PATH}", json=minimal_body("responses"), headers=headers)
        process.kill()

    async def read_stored() -> bytes:
        store = SqliteStore(file)
        try:
            return await store.get(KEY, answer.json()["id"])
        finally:
            await store.aclose()

    assert asyncio.run(read_stored()) == answer.content


def test_a_file_has_one_service(file: Path) -> None:
    """A second one is refused in words, and does not disturb the first."""
    with start_service(file) as server, ServiceClient(server) as caller:
        with pytest.raises(ConnectError, match=r"store: .*another service uses it.*choose another file"):
            start_service(file)
        id_, _ = create_response(caller, "Still there?")
        assert caller.get(f"{PATH}/{id_}").status_code == 200


def test_what_a_full_disk_cannot_keep_is_not_promised(file: Path) -> None:
    """Whole, it is an error; streamed, it is refused or fails; without `store` calls go on, and with room all do."""
    with start_service(file) as server, ServiceClient(server) as caller:
        before, _ = create_response(caller, "Before.")
        process = psutil.Process(server.pid)
        process.rlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        answers = [caller.ask("responses", "Now.", stream=stream) for stream in (False, True)]
        assert [answer.status_code for answer in answers] == [500, 500]
        assert all("cannot be used now" in error_of("responses", answer.json())["message"] for answer in answers)
        assert caller.ask("responses", "Now.", store=False).status_code == 200
        assert caller.get(f"{PATH}/{before}").status_code == 200
        process.rlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        after, _ = create_response(caller, "After.", previous_response_id=before)
        assert caller.get(f"{PATH}/{after}").status_code == 200


def test_a_stream_whose_end_cannot_be_kept_fails(file: Path) -> None:
    """The disk is full by the time it ends: its last event says so rather than `completed`, and so does `GET`."""
    with start_service(file, time_scale=1) as server, ServiceClient(server) as caller:
        with caller.stream("POST", PATH, json=minimal_body("responses", "count to 5", stream=True)) as stream:
            chunks = stream.iter_bytes()
            received = next(chunks)
            process = psutil.Process(server.pid)
            process.rlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
            events = decode_stream(received + b"".join(chunks))
        id_ = events[0]["response"]["id"]
        assert (events[-1]["type"], events[-1]["response"]["status"]) == ("response.failed", "failed")
        assert caller.get(f"{PATH}/{id_}").json()["status"] == "failed"
        assert "it is failed" in refusal_reason(caller, id_)


def response(id_: str, **fields: object) -> StoredResponse:
    """A finished response to one turn."""
    return StoredResponse(
        id=id_, status="completed", body=json.dumps({"id": id_}).encode(), turns=(PromptTurn("user", id_),), **fields
    )


def test_all_that_wait_are_written_at_once_while_the_loop_goes_on(file: Path) -> None:
    """While one commit is under way the loop is free, and what comes meanwhile shares the next."""
    store, commits, begun, gate = SqliteStore(file), [], threading.Event(), threading.Event()

    def trace(sql: str) -> None:
        if sql == "COMMIT":
            commits.append(sql)
            begun.set()
            gate.wait(10)

    async def use() -> tuple[int, int]:
        store._connection.set_trace_callback(trace)
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


def test_turns_have_the_names_in_a_file_that_older_files_have() -> None:
    """A conversation stored by an earlier version is read, tool calls and their results included."""
    old = [
        {"role": "assistant", "text": "", "images": [], "calls": [{"id": "c", "name": "f", "arguments": "{}"}]},
        {"role": "tool", "text": "4", "images": [], "calls": [], "answers": "c"},
    ]
    turns = msgspec.convert(old, tuple[PromptTurn, ...])
    assert (turns[0].tool_calls[0].name, turns[1].tool_call_id) == ("f", "c")
    assert [set(turn) for turn in msgspec.to_builtins(turns)] == [
        {"role", "text", "images", "calls", "answers", "name"}
    ] * 2
