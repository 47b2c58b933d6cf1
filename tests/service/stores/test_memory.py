"""The store in memory: how much of it responses may take."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from famnb.request.neutral import PromptTurn
from famnb.service.errors import ServiceError
from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import StoredResponse
from famnb.service.stores.memory import MemoryStore

NEW = PriorConversation()


def response(id_: str, text: str, prior: PriorConversation = NEW) -> StoredResponse:
    """A finished response to one turn."""
    body = json.dumps({"id": id_}).encode()
    return StoredResponse(id=id_, status="completed", body=body, prior=prior, turns=(PromptTurn("user", text),))


def find_stored(store: MemoryStore, key: str, *ids: str) -> list[str]:
    """Which of these responses a key has."""
    found = []
    for id_ in ids:
        try:
            asyncio.run(store.get(key, id_))
        except ServiceError:
            continue
        found.append(id_)
    return found


def test_the_oldest_responses_of_the_key_that_has_most_make_room() -> None:
    """Another key's single response stays, though it is older than all."""
    store = MemoryStore(max_bytes=100_000)

    async def fill() -> None:
        await store.add("small", response("a", "x" * 10_000))
        for number in range(20):
            await store.add("large", response(f"b{number}", "x" * 10_000))

    asyncio.run(fill())
    assert find_stored(store, "small", "a") == ["a"]
    kept = find_stored(store, "large", *(f"b{number}" for number in range(20)))
    assert kept == [f"b{number}" for number in range(12, 20)]


def test_the_turns_of_one_conversation_are_counted_once() -> None:
    """Sixty responses of one conversation hold sixty turns, not sixty times thirty; those of others hold their own."""
    store = MemoryStore(max_bytes=100_000)

    async def converse(prefix: str, count: int) -> None:
        prior = NEW
        for number in range(count):
            await store.add("key", response(f"{prefix}{number}", "x" * 1_000, prior))
            prior = await store.get_conversation("key", f"{prefix}{number}")

    asyncio.run(converse("a", 60))
    assert len(find_stored(store, "key", *(f"a{number}" for number in range(60)))) == 60
    asyncio.run(converse("b", 60))
    assert find_stored(store, "key", "a0") == []
    assert len(find_stored(store, "key", *(f"b{number}" for number in range(60)))) == 60


@pytest.mark.parametrize("replaces", [True, False])
def test_what_is_finished_or_deleted_frees_its_room(replaces: bool) -> None:
    """A thousand times the limit passes through, one at a time, and a small response that was first is still there."""
    store = MemoryStore(max_bytes=50_000)

    async def pass_through() -> None:
        await store.add("key", response("first", "x"))
        for number in range(1_000):
            await store.add("key", StoredResponse(id="running"))
            await store.finish("key", response("running", f"{number}" * 10_000))
            if not replaces:
                await store.delete("key", "running")

    asyncio.run(pass_through())
    assert find_stored(store, "key", "first", "running") == (["first", "running"] if replaces else ["first"])


def test_a_conversation_that_is_too_large_alone_is_not_stored() -> None:
    """Rather than to let it take whatever it needs."""
    store = MemoryStore(max_bytes=50_000)
    text = "x" * 60_000
    assert sys.getsizeof(text) > 50_000
    asyncio.run(store.add("key", response("a", text)))
    assert find_stored(store, "key", "a") == []
