"""Responses stored in memory, for as long as the service runs."""

from __future__ import annotations

from famnb.service.prompt import PriorConversation
from famnb.service.stores.base import MAX_RESPONSES, StoredResponse, not_continuable_error, not_found_error


class MemoryStore:
    """A store without a file."""

    def __init__(self, *, max_responses: int = MAX_RESPONSES) -> None:
        self._max_responses = max_responses
        self._by_key: dict[str, dict[str, StoredResponse]] = {}
        """For each API key its responses by id, oldest first."""

    async def add(self, key: str, response: StoredResponse, /) -> None:
        responses = self._by_key.setdefault(key, {})
        responses[response.id] = response
        if len(responses) > self._max_responses:  # a dict keeps its order: the first is the oldest
            del responses[next(iter(responses))]

    async def finish(self, key: str, response: StoredResponse, /) -> None:
        responses = self._by_key.get(key, {})
        if response.id in responses:
            responses[response.id] = response

    async def get(self, key: str, id_: str, /) -> bytes:
        response = self._by_key.get(key, {}).get(id_)
        if response is None:
            raise not_found_error(id_)
        return response.body

    async def delete(self, key: str, id_: str, /) -> None:
        if self._by_key.get(key, {}).pop(id_, None) is None:
            raise not_found_error(id_)

    async def get_conversation(self, key: str, id_: str, /) -> PriorConversation:
        response = self._by_key.get(key, {}).get(id_)
        if response is None or not response.is_continuable:
            raise not_continuable_error(id_, None if response is None else response.status)
        return response.conversation

    async def aclose(self) -> None:
        pass
