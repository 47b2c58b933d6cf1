"""Responses stored in memory, for as long as the service runs."""

from __future__ import annotations

import collections
import itertools
import sys

from famnb.request.neutral import PromptTurn
from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import MAX_RESPONSES, StoredResponse, not_continuable_error, not_found_error

# Thousands of usual conversations, and little beside what an engine takes.
MAX_BYTES = 256_000_000
"""How many bytes all stored responses may take; beyond that the oldest of the key that has most is deleted."""
_OBJECT_BYTES = 200
"""About what a response takes beside its texts, and a turn beside its own."""


class MemoryStore:
    """A store without a file."""

    def __init__(self, *, max_responses: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._shelves: collections.defaultdict[str, _Shelf] = collections.defaultdict(_Shelf)
        """The responses of each API key; only keys of the service get here, never a caller's invention."""

    async def add(self, key: str, response: StoredResponse, /) -> None:
        shelf = self._shelves[key]
        shelf.put(response)
        if len(shelf.responses) > self._max_responses:
            shelf.delete_oldest()
        self._make_room()

    async def finish(self, key: str, response: StoredResponse, /) -> None:
        shelf = self._shelves[key]
        if response.id in shelf.responses:
            shelf.put(response)
            self._make_room()

    async def get(self, key: str, id_: str, /) -> bytes:
        response = self._shelves[key].responses.get(id_)
        if response is None:
            raise not_found_error(id_)
        return response.body

    async def delete(self, key: str, id_: str, /) -> None:
        if id_ not in self._shelves[key].responses:
            raise not_found_error(id_)
        self._shelves[key].delete(id_)

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        response = self._shelves[key].responses.get(id_)
        if response is None or not response.is_continuable:
            raise not_continuable_error(id_, None if response is None else response.status)
        return response.conversation

    async def aclose(self) -> None:
        pass

    def _make_room(self) -> None:
        while sum(shelf.bytes for shelf in self._shelves.values()) > self._max_bytes:
            max(self._shelves.values(), key=lambda shelf: shelf.bytes).delete_oldest()


class _Shelf:
    """The responses of one API key, and how much memory they take together."""

    def __init__(self) -> None:
        self.responses: dict[str, StoredResponse] = {}
        """By id, oldest first."""
        self.bytes = 0
        self._turn_uses: collections.Counter[int] = collections.Counter()
        """How many responses hold each turn, by its identity: those of one conversation share its turns."""

    def put(self, response: StoredResponse) -> None:
        """Add a response, or replace the one with its id."""
        self._count(response, 1)
        if response.id in self.responses:
            self._count(self.responses[response.id], -1)
        self.responses[response.id] = response

    def delete(self, id_: str) -> None:
        """Delete a response; its turns stay for as long as others hold them."""
        self._count(self.responses.pop(id_), -1)

    def delete_oldest(self) -> None:
        """Delete the response that was added first."""
        self.delete(next(iter(self.responses)))

    def _count(self, response: StoredResponse, sign: int) -> None:
        """Add what a response takes, or with -1 subtract it; a turn counts once, however many responses hold it."""
        self.bytes += sign * (len(response.body) + sys.getsizeof(response.system) + _OBJECT_BYTES)
        for turn in itertools.chain(response.prior.turns, response.turns):
            uses = self._turn_uses[id(turn)] + sign
            if uses == (1 if sign > 0 else 0):
                self.bytes += sign * _turn_bytes(turn)
            if uses:
                self._turn_uses[id(turn)] = uses
            else:
                del self._turn_uses[id(turn)]


def _turn_bytes(turn: PromptTurn) -> int:
    texts = (turn.text, *turn.images, *(call.arguments for call in turn.tool_calls))
    return _OBJECT_BYTES + sum(map(sys.getsizeof, texts))
