"""Stored responses in stores of both kinds: continued, branched, retrieved and deleted, each by its own key alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from famnb.endpoints import ENDPOINTS
from famnb.events import Delta, Done, Ended, Event, Started
from famnb.request.neutral import PromptTurn
from famnb.service import Server
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import Store, StoredResponse, store_events
from famnb.service.stores.memory import MemoryStore
from famnb.service.stores.sqlite import SqliteStore
from famnb.wire import responses
from tests.support.forked_service import serve_forked
from tests.support.service_requests import PATHS, ServiceClient, decode_stream, error_of, minimal_body

PATH = PATHS["responses"]


@pytest.fixture(scope="module", params=["memory", "file"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceClient]:
    """A caller of a service with either kind of store."""
    store = tmp_path_factory.mktemp("store") / "responses.sqlite" if request.param == "file" else ""
    with serve_forked(time_scale=0, store=store) as server, ServiceClient(server) as caller:
        yield caller


def create_response(caller: ServiceClient, prompt: str, **fields: object) -> tuple[str, str]:
    """The id and the text of a response."""
    body = caller.ask("responses", prompt, **fields).json()
    return body["id"], body["output"][0]["content"][0]["text"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on(api: ServiceClient, stream: bool) -> None:
    """The next answer knows what was said before, whether that came whole or streamed."""
    if stream:
        id_ = api.events("responses", "My name is Ada.")[0]["response"]["id"]
    else:
        id_, _ = create_response(api, "My name is Ada.")
    _, text = create_response(api, "What is my name?", previous_response_id=id_)
    assert "Earlier you said" in text
    assert "My name is Ada." in text


def test_a_conversation_branches(api: ServiceClient) -> None:
    """Two answers to the same response do not know of each other."""
    root, _ = create_response(api, "The root.")
    left, _ = create_response(api, "The left branch.", previous_response_id=root)
    right, _ = create_response(api, "The right branch.", previous_response_id=root)
    _, text = create_response(api, "And now?", previous_response_id=right)
    assert left != right
    assert ("The root." in text, "The right branch." in text, "The left branch." in text) == (True, True, False)


def test_instructions_are_not_carried_over(api: ServiceClient) -> None:
    """The instructions of the earlier response are gone; a system message of its input stays."""
    items = [{"role": "system", "content": "Speak plainly."}, {"role": "user", "content": "Hello."}]
    id_, first = create_response(api, "", input=items, instructions="Be a pirate.")
    _, text = create_response(api, "And now?", previous_response_id=id_)
    assert ("Be a pirate." in first, "Be a pirate." in text, "Speak plainly." in text) == (True, False, True)


def test_what_was_seen_before_is_counted_as_cached(api: ServiceClient) -> None:
    """The repeated prefix is part of the input and named as cached; under other instructions nothing is."""
    id_, _ = create_response(api, "My name is Ada.", instructions="Be kind.")
    fresh = {"previous_response_id": id_, "instructions": "Be terse."}
    repeated = {"previous_response_id": id_, "instructions": "Be kind."}
    usage = api.ask("responses", "And now?", **repeated).json()["usage"]
    assert 0 < usage["input_tokens_details"]["cached_tokens"] < usage["input_tokens"]
    usage = api.ask("responses", "And now?", **fresh).json()["usage"]
    assert usage["input_tokens_details"]["cached_tokens"] == 0


def test_an_incomplete_response_can_be_continued(api: ServiceClient) -> None:
    """A response that met its cap is a response all the same."""
    body = api.ask("responses", "count to 100", max_output_tokens=5).json()
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert body["output"][0]["status"] == "incomplete"
    assert api.ask("responses", "Go on.", previous_response_id=body["id"]).status_code == 200


def is_not_continuable(caller: ServiceClient, id_: object) -> bool:
    """Whether continuing a response is refused as it should be, whole and streamed."""
    answers = [caller.ask("responses", previous_response_id=id_, **more) for more in ({}, {"stream": True})]
    errors = [error_of("responses", answer.json()) for answer in answers]
    return all(answer.status_code == 400 for answer in answers) and all(
        (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id") for error in errors
    )


def test_an_unknown_response_cannot_be_continued(api: ServiceClient) -> None:
    """An id that was never given is 400."""
    assert is_not_continuable(api, "resp_unknown")
    assert is_not_continuable(api, "")


def test_what_is_not_stored_cannot_be_continued_or_retrieved(api: ServiceClient) -> None:
    """`store: false` leaves nothing behind."""
    id_, _ = create_response(api, "Forget this.", store=False)
    assert is_not_continuable(api, id_)
    assert api.get(f"{PATH}/{id_}").status_code == 404


def test_a_failed_response_is_kept_but_not_continued(api: ServiceClient) -> None:
    """A failure inside a stream leaves a response with status `failed` and its error."""
    headers = {"x-famnb-fault": "error=3"}
    stream = api.post(PATH, json=minimal_body("responses", stream=True), headers=headers)
    id_ = stream.text.partition('"id":"')[2].partition('"')[0]
    body = api.get(f"{PATH}/{id_}").json()
    assert (body["status"], body["error"]["code"]) == ("failed", "server_error")
    assert is_not_continuable(api, id_)


def test_a_stored_response_is_retrieved_as_it_was(api: ServiceClient) -> None:
    """`GET` gives the whole reply's own bytes; of a streamed one, the same object."""
    whole = api.ask("responses")
    assert api.get(f"{PATH}/{whole.json()['id']}").content == whole.content
    final = api.events("responses")[-1]["response"]
    stored = api.get(f"{PATH}/{final['id']}").json()
    assert (stored["output"], stored["status"]) == (final["output"], "completed")


@pytest.mark.parametrize("cut_short", ["failed", "incomplete"])
def test_a_response_cut_short_is_stored_as_its_last_event_has_it(api: ServiceClient, cut_short: str) -> None:
    """With what had come, as an item that is done and incomplete."""
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
    assert [stored.get(name) for name in ("error", "incomplete_details")] == [
        last.get(name) for name in ("error", "incomplete_details")
    ]


def test_a_deleted_response_is_gone_while_its_successors_go_on(api: ServiceClient) -> None:
    """After `DELETE` it is 404, but a conversation that went past it continues."""
    first, _ = create_response(api, "My name is Ada.")
    second, _ = create_response(api, "Noted?", previous_response_id=first)
    assert api.delete(f"{PATH}/{first}").json() == {"id": first, "object": "response", "deleted": True}
    assert api.get(f"{PATH}/{first}").status_code == 404
    assert api.delete(f"{PATH}/{first}").status_code == 404
    assert is_not_continuable(api, first)
    _, text = create_response(api, "What is my name?", previous_response_id=second)
    assert "My name is Ada." in text


def test_another_key_sees_nothing(make_client: Callable[[Server], ServiceClient]) -> None:
    """Responses belong to the key that made them."""
    with serve_forked(time_scale=0, key=["first-key", "second-key"]) as shared:
        owner, other = make_client(shared), make_client(shared)
        other.headers["authorization"] = "Bearer second-key"
        id_, _ = create_response(owner, "A secret.")
        assert owner.get(f"{PATH}/{id_}").status_code == 200
        assert other.get(f"{PATH}/{id_}").status_code == 404
        assert other.delete(f"{PATH}/{id_}").status_code == 404
        assert is_not_continuable(other, id_)


def test_retrieving_needs_the_key(server: Server) -> None:
    """Without a key it is 401, in the shape of the endpoint."""
    answer = httpx.get(f"{server.url}{PATH}/resp_x")
    assert (answer.status_code, error_of("responses", answer.json())["code"]) == (401, "invalid_api_key")


def test_other_methods_say_what_is_allowed(api: ServiceClient) -> None:
    """A stored response can be retrieved and deleted, nothing else."""
    answer = api.post(f"{PATH}/resp_x", json={})
    assert answer.status_code == 405
    assert {"GET", "DELETE"} <= set(answer.headers["allow"].split(", "))


def test_items_and_a_text_mean_the_same(api: ServiceClient) -> None:
    """A plain text equals one user message."""
    _, text = create_response(api, "Hello there.")
    _, same = create_response(
        api, "", input=[{"role": "user", "content": [{"type": "input_text", "text": "Hello there."}]}]
    )
    assert text == same


def test_a_response_is_complete_in_the_store_before_its_last_event_goes_out() -> None:
    """Whoever has read the terminal event can continue the response at once: there is no moment in between."""
    store = MemoryStore()

    async def events() -> AsyncGenerator[Event]:
        for event in (Started("resp_1", "fam-2-5-pro", 1), Delta((0, 0), "text", "Hi"), Ended("stop"), Done()):
            yield event

    async def statuses() -> list[str]:
        passing = store_events(
            store,
            "key",
            events(),
            responses,
            endpoint=ENDPOINTS["responses"],
            response=StoredResponse(),
            streams=True,
        )
        return [json.loads(await store.get("key", "resp_1"))["status"] async for _ in passing]

    assert asyncio.run(statuses()) == ["in_progress", "in_progress", "in_progress", "completed"]


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
        stored = []
        for key, id_ in (("key", "a"), ("key", "b"), ("key", "c"), ("key", "d"), ("other", "a")):
            try:
                stored.append(await store.get(key, id_) == response(id_).body)
            except ServiceError:
                stored.append(False)
        await store.aclose()
        return stored, before

    stored, before = asyncio.run(use(make(2)))
    assert stored == [False, False, True, True, True]
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
