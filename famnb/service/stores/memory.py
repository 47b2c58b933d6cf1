"""Responses kept in memory, as long as the service runs."""

from __future__ import annotations

from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import MOST, StoredResponse, not_continuable_error, unknown


class MemoryStore:
    """A store without a file."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._shelves: dict[str, dict[str, StoredResponse]] = {}

    async def add(self, key: str, stored: StoredResponse, /) -> None:
        shelf = self._shelves.setdefault(key, {})
        shelf[stored.id] = stored
        if len(shelf) > self._most:
            del shelf[next(iter(shelf))]

    async def end(self, key: str, stored: StoredResponse, /) -> None:
        shelf = self._shelves.get(key, {})
        if stored.id in shelf:
            shelf[stored.id] = stored

    async def get(self, key: str, id_: str, /) -> bytes:
        found = self._shelves.get(key, {}).get(id_)
        if found is None:
            raise unknown(id_)
        return found.body

    async def delete(self, key: str, id_: str, /) -> None:
        if self._shelves.get(key, {}).pop(id_, None) is None:
            raise unknown(id_)

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        found = self._shelves.get(key, {}).get(id_)
        if found is None or not found.is_continuable:
            raise not_continuable_error(id_, None if found is None else found.status)
        return found.conversation

    async def aclose(self) -> None:
        pass
