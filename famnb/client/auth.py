"""The API key: checked at the door, kept out of sight, and put on a request at the last moment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NoReturn

from famnb.errors import CredentialError
from famnb.secret_patterns import MASK, SHORTEST, key_pattern

VARIABLE = "FAM_API_KEY"
_UNSPOKEN = frozenset({"authorization", "proxy-authorization", "set-cookie", "x-api-key"})


class Credential:
    """An API key that shows itself only on a request; it is held in a closure, so that no attribute has it.

    Whoever is given a key as text puts one of these in its place and only then calls `check`: the frames of an error,
    which a traceback may show with their variables, then hold no key. For the same reason the package reads the
    environment with `getenv` alone: such a traceback would show all of `environ`.
    """

    __slots__ = ("_fault", "_reveal", "found_in", "masked_bytes")

    masked_bytes: Callable[[bytes], bytes]
    """Gives bytes back with the key replaced, should a service have echoed it."""
    found_in: Callable[[str], list[tuple[int, int]]]
    """Where a text has the key, as (start, end)."""

    def __init__(self, key: object) -> None:
        self._fault = _fault(key)
        sound = key if isinstance(key, str) and not self._fault else ""
        raw, mask = sound.encode(), MASK.encode()
        written = re.compile(key_pattern(sound))
        written_raw = re.compile(key_pattern(sound).encode())

        def reveal() -> str:
            return sound

        def masked_bytes(data: bytes) -> bytes:
            return data.replace(raw, mask)

        def masked_spellings(data: bytes) -> bytes:
            return written_raw.sub(mask, data)

        def found_in(text: str) -> list[tuple[int, int]]:
            return [match.span() for match in written.finditer(text)] if len(sound) >= SHORTEST else []

        self._reveal = reveal
        self.found_in = found_in
        self.masked_bytes = bytes
        if len(sound) >= SHORTEST:
            # Most keys are spelled in one way alone, and every event of a stream passes here.
            self.masked_bytes = masked_bytes if written.pattern == re.escape(sound) else masked_spellings

    @classmethod
    def from_argument(cls, key: str | Credential | None) -> Credential:
        """The given key, or the one in the environment."""
        return key if isinstance(key, Credential) else cls(os.getenv(VARIABLE) if key is None else key)

    def check(self) -> None:
        """Raise CredentialError unless it is a key."""
        if self._fault:
            raise CredentialError(self._fault)

    def authorization(self) -> str:
        """The value of the `Authorization` header."""
        return f"Bearer {self._reveal()}"

    def masked(self, text: str) -> str:
        """The same for text."""
        key = self._reveal()
        return re.sub(key_pattern(key), MASK, text) if len(key) >= SHORTEST else text

    def masked_header(self, name: str, value: str) -> tuple[str, str]:
        """A response header that may be kept: no secret of any kind in it."""
        return (name, MASK) if name.lower() in _UNSPOKEN else (name, self.masked(value))

    def __repr__(self) -> str:
        return "<Credential>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a credential cannot be pickled or copied: make a new client where it is needed")


def _fault(key: object) -> str:
    """What is wrong with a key, and what to do; empty for a sound one."""
    match key:
        case None:
            return f"api_key: unset; pass api_key= or set {VARIABLE} in the environment"
        case str() if not key:
            fault = "empty"
        case str() if any(character.isspace() for character in key):
            fault = "with white space or a line end in it"
        case str() if not all("!" <= character <= "~" for character in key):
            fault = "with a character in it that no key has (expected printable ASCII)"
        case str():
            return ""
        case _:
            fault = f"a {type(key).__name__}, not a text"
    return f"api_key: {fault}; pass the key as the service's console shows it, or set {VARIABLE}"
