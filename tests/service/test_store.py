"""Stored responses: continued, branched, retrieved and deleted by their own key, in memory and in a file that outlives
the service; what cannot be stored is never promised.
"""

import asyncio
import contextlib
import json
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from famnb.errors import ConnectError, InvalidRequest
from famnb.request.neutral import PromptTurn
from famnb.service import Server, serve
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.service.store import ResponseStore, StoredResponse
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
    return serve(**{"store": file, "key": KEY, "time_scale": 0, **options})


def first_id(texts: Iterator[str]) -> str:
    """The id in the first event of a stream."""
    return next(texts).partition('"id":"')[2].partition('"')[0]


def refusal_reason(caller: ServiceClient, id_: str) -> str:
    """Why a response cannot be continued."""
    answer = caller.ask("responses", previous_response_id=id_)
    assert answer.status_code == 400
    assert error_of("responses", answer.json())["code"] == "previous_response_not_found"
    return str(error_of("responses", answer.json())["message"])


def create_response(caller: ServiceClient, prompt: str, **fields: object) -> tuple[str, str]:
    """The id and the text of a response."""
    body = caller.ask("responses", prompt, **fields).json()
    return body["id"], body["output"][0]["content"][0]["text"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on(api: ServiceClient, stream: bool):
    if stream:
        id_ = api.events("responses", "My name is Ada.")[0]["response"]["id"]
    else:
        id_, _ = create_response(api, "My name is Ada.")
    _, text = create_response(api, "What is my name?", previous_response_id=id_)
    assert "Earlier you said" in text
    assert "My name is Ada." in text


def is_not_continuable(caller: ServiceClient, id_: object) -> bool:
    """Whether continuing a response is refused, as it should be, whole and streamed."""
    answers = [caller.ask("responses", previous_response_id=id_, **more) for more in ({}, {"stream": True})]
    refused = [error_of("responses", answer.json()) for answer in answers if answer.status_code == 400]
    code = ("previous_response_not_found", "previous_response_id")
    assert all((error["code"], error["param"]) == code for error in refused)
    return len(refused) == 2


def test_what_is_not_stored_cannot_be_continued_or_retrieved(api: ServiceClient):
    forgotten, _ = create_response(api, "Forget this.", store=False)
    assert is_not_continuable(api, "")
    for id_ in (forgotten, "resp_unknown"):
        assert is_not_continuable(api, id_)
        assert api.get(f"{PATH}/{id_}").status_code == 404


def test_a_stored_response_is_retrieved_as_it_was(api: ServiceClient):
    whole = api.ask("responses")
    assert api.get(f"{PATH}/{whole.json()['id']}").content == whole.content
    final = api.events("responses")[-1]["response"]
    stored = api.get(f"{PATH}/{final['id']}").json()
    assert (stored["output"], stored["status"]) == (final["output"], "completed")


@pytest.mark.parametrize("cut_short", ["failed", "incomplete"])
def test_a_response_cut_short_is_stored_as_its_last_event_has_it(api: ServiceClient, cut_short: str):
    headers = {"x-famnb-fault": "error=3"} if cut_short == "failed" else {}
    body = minimal_body("responses", stream=True, max_output_tokens=5)
    events = decode_stream(api.post(PATH, json=body, headers=headers).content)
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    last = events[-1]["response"]
    (item,) = last["output"]
    assert (last["status"], item["status"], item["content"][0]["text"]) == (cut_short, "incomplete", text)
    assert (events[-2]["type"], events[-2]["item"]) == ("response.output_item.done", item)
    stored = api.get(f"{PATH}/{last['id']}").json()
    assert (stored["output"], stored["status"]) == (last["output"], cut_short)
    for name in ("error", "incomplete_details"):
        assert stored.get(name) == last.get(name)
    assert is_not_continuable(api, last["id"]) == (cut_short == "failed")


def test_a_deleted_response_is_gone_while_its_successors_go_on(api: ServiceClient):
    first, _ = create_response(api, "My name is Ada.")
    second, _ = create_response(api, "Noted?", previous_response_id=first)
    assert api.delete(f"{PATH}/{first}").json() == {"id": first, "object": "response", "deleted": True}
    assert api.get(f"{PATH}/{first}").status_code == 404
    assert api.delete(f"{PATH}/{first}").status_code == 404
    assert is_not_continuable(api, first)
    _, text = create_response(api, "What is my name?", previous_response_id=second)
    assert "My name is Ada." in text


def test_another_key_sees_nothing():
    keys = ["first-key", "second-key"]
    with serve(time_scale=0, key=keys) as shared, ServiceClient(shared) as owner, ServiceClient(shared) as other:
        other.headers["authorization"] = "Bearer second-key"
        id_, _ = create_response(owner, "A secret.")
        assert owner.get(f"{PATH}/{id_}").status_code == 200
        assert other.get(f"{PATH}/{id_}").status_code == 404
        assert other.delete(f"{PATH}/{id_}").status_code == 404
        assert is_not_continuable(other, id_)


def response(id_: str, *turns: PromptTurn) -> StoredResponse:
    """A finished response."""
    body = json.dumps({"id": id_}).encode()
    return StoredResponse(id=id_, status="completed", body=body, conversation=PriorConversation(turns))


def test_the_oldest_response_of_a_key_makes_room():
    async def use(store: ResponseStore) -> tuple[list[bool], PriorConversation]:
        await store.add("other", response("a"))
        before = PriorConversation()
        for id_ in "abcd":
            await store.add("key", response(id_, *before.turns, PromptTurn("user", id_)))
            before = await store.get_conversation("key", id_)
        stored = []
        for key, id_ in (("key", "a"), ("key", "b"), ("key", "c"), ("key", "d"), ("other", "a")):
            try:
                stored.append(await store.get(key, id_) == response(id_).body)
            except ServiceError:
                stored.append(False)
        await store.aclose()
        return stored, before

    stored, before = asyncio.run(use(ResponseStore(max_responses=2)))
    assert stored == [False, False, True, True, True]
    assert [turn.text for turn in before.turns] == ["a", "b", "c", "d"]


def test_a_file_outlives_the_service(file: Path):
    items = [{"role": "system", "content": "Speak plainly."}, {"role": "user", "content": "The root."}]
    with start_service(file) as server, ServiceClient(server) as caller:
        root = caller.ask("responses", "", input=items, instructions="Be a pirate.")
        after = {"previous_response_id": root.json()["id"]}
        left = caller.ask("responses", "The left branch.", **after)
        right = caller.events("responses", "The right branch.", **after)[-1]["response"]
        deleted, _ = create_response(caller, "Delete this.")
        beyond, _ = create_response(caller, "Beyond it.", previous_response_id=deleted)
        caller.delete(f"{PATH}/{deleted}").raise_for_status()
    with start_service(file, key=["second-key", KEY]) as server, ServiceClient(server) as caller:
        other_key = {"authorization": "Bearer second-key"}
        caller.headers["authorization"] = f"Bearer {KEY}"
        texts = [
            create_response(caller, "And now?", previous_response_id=id_)[1] for id_ in (left.json()["id"], right["id"])
        ]
        words = ("The root.", "Speak plainly.", "Be a pirate.", "The left branch.", "The right branch.")
        assert [[word in text for word in words] for text in texts] == [
            [True, True, False, True, False],
            [True, True, False, False, True],
        ]
        cached = [
            caller.ask("responses", instructions=words, **after).json()["usage"]["input_tokens_details"][
                "cached_tokens"
            ]
            for words in ("Be a pirate.", "Hurry.")
        ]
        assert (cached[0] > 0, cached[1]) == (True, 0)
        assert caller.get(f"{PATH}/{left.json()['id']}").content == left.content
        assert caller.get(f"{PATH}/{right['id']}").json()["output"] == right["output"]
        assert caller.get(f"{PATH}/{deleted}").status_code == 404
        assert "Delete this." in create_response(caller, "And now?", previous_response_id=beyond)[1]
        assert caller.get(f"{PATH}/{beyond}", headers=other_key).status_code == 404


def test_what_is_not_to_be_stored_never_reaches_the_file(file: Path):
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


def test_what_had_no_end_is_kept_as_such(file: Path):
    body = minimal_body("responses", "count to 99999", stream=True, max_output_tokens=9999)
    with start_service(file, time_scale=1) as server, ServiceClient(server) as caller:
        with caller.stream("POST", PATH, json=body) as stream:
            left = first_id(stream.iter_text())
        wait_until(lambda: caller.get(f"{PATH}/{left}").json()["status"] == "cancelled")
        answered = caller.ask("responses", "Hello.")
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
        assert caller.get(f"{PATH}/{answered.json()['id']}").content == answered.content
        assert "it is cancelled" in refusal_reason(caller, left)
        assert "it is failed" in refusal_reason(caller, killed)


def test_a_file_has_one_service(file: Path):
    with start_service(file) as server, ServiceClient(server) as caller:
        with pytest.raises(ConnectError, match=r"store: .*another service uses it.*choose another file"):
            start_service(file)
        id_, _ = create_response(caller, "Still there?")
        assert caller.get(f"{PATH}/{id_}").status_code == 200


def test_what_a_full_disk_cannot_keep_is_not_promised(file: Path):
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


@pytest.mark.full
def test_a_stream_whose_end_cannot_be_kept_fails(file: Path):
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


def not_a_store(file: Path) -> None:
    file.write_text("This is a letter, not a database. " * 200)


def another_database(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE letters (words TEXT)")


def of_the_future(file: Path) -> None:
    asyncio.run(ResponseStore(file).aclose())
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (not_a_store, "not a store of responses"),
        (another_database, "not a store of responses"),
        (of_the_future, "version 99, this famnb knows 2"),
        (Path.mkdir, "Is a directory"),
        (lambda file: file.parent.rmdir(), "No such file"),
    ],
)
def test_a_file_that_cannot_be_a_store_is_refused_at_the_start(file, prepare, reason):
    prepare(file)
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(InvalidRequest, match=rf"store: .*{file.name} cannot be used .*{reason}.*another file"):
        ResponseStore(file)
    assert (file.read_bytes() if file.is_file() else None) == before
