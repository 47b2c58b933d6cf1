"""The API key: checked at the door, kept out of sight, and put on a request at the last moment."""

from __future__ import annotations

import os
from typing import NoReturn

from famnb.errors import CredentialError

VARIABLE = "FAM_API_KEY"
MASK = "[key]"
SHORTEST = 8
_UNSPOKEN = frozenset({"authorization", "proxy-authorization", "set-cookie", "x-api-key"})


class Credential:
    """An API key that shows itself only on a request; it is held in a closure, so that no attribute has it."""

    __slots__ = ("_reveal",)

    def __init__(self, key: str) -> None:
        checked = _checked(key)

        def reveal() -> str:
            return checked

        self._reveal = reveal

    @classmethod
    def found(cls, key: str | None) -> Credential:
        """The given key, or the one in the environment."""
        if key is not None:
            return cls(key)
        if VARIABLE not in os.environ:
            raise CredentialError(f"api_key: unset; pass api_key= or set {VARIABLE} in the environment")
        return cls(os.environ[VARIABLE])

    def authorization(self) -> str:
        """The value of the `Authorization` header."""
        return f"Bearer {self._reveal()}"

    def masked(self, text: str) -> str:
        """The text with the key replaced, should a service have echoed it."""
        return text.replace(self._reveal(), MASK) if self._telling else text

    def masked_bytes(self, data: bytes) -> bytes:
        """The same for bytes."""
        return data.replace(self._reveal().encode(), MASK.encode()) if self._telling else data

    @property
    def _telling(self) -> bool:
        """Whether the key is long enough to be no word of ordinary text."""
        return len(self._reveal()) >= SHORTEST

    def masked_header(self, name: str, value: str) -> tuple[str, str]:
        """A response header that may be kept: no secret of any kind in it."""
        return (name, MASK) if name.lower() in _UNSPOKEN else (name, self.masked(value))

    def __repr__(self) -> str:
        return "<Credential>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a credential cannot be pickled or copied: make a new client where it is needed")


def _checked(key: object) -> str:
    match key:
        case str() if not key:
            fault = "empty"
        case str() if any(character.isspace() for character in key):
            fault = "with white space or a line end in it"
        case str() if not all("!" <= character <= "~" for character in key):
            fault = "with a character in it that no key has (expected printable ASCII)"
        case str():
            return key
        case _:
            fault = f"a {type(key).__name__}, not a text"
    raise CredentialError(f"api_key: {fault}; pass the key as the service's console shows it, or set {VARIABLE}")
