"""Credential, the API key: checked when it is given, held where no attribute shows it, read when a request is sent."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NoReturn

from famnb.errors import CredentialError
from famnb.secret_patterns import MASK, MIN_KEY_LENGTH, key_pattern

VARIABLE = "FAM_API_KEY"
# A cookie is a secret of its own; the others are what a proxy or a debugging service may echo of the request.
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "set-cookie", "x-api-key"})


class Credential:
    """An API key that shows itself only on a request; it is held in closures, so that no attribute has it.

    Whoever is given a key as text puts one of these in its place and only then calls `check`: the frames of an error,
    which a traceback may show with their variables, then hold no key. For the same reason the package reads the
    environment with `getenv` alone: such a traceback would show all of `environ`.
    """

    __slots__ = ("_fault", "_reveal", "find", "mask", "mask_bytes")

    mask: Callable[[str], str]
    """Replaces the key in a text, should a user or a service have put it there."""
    mask_bytes: Callable[[bytes], bytes]
    """`mask` for bytes: the events and bodies of a response."""
    find: Callable[[str], list[tuple[int, int]]]
    """The places of the key in a text, as (start, end)."""

    def __init__(self, key: object) -> None:
        self._fault = _find_fault(key)
        text = key if isinstance(key, str) and not self._fault else ""
        self._reveal: Callable[[], str] = lambda: text
        # A very short key would be found in ordinary words.
        if len(text) < MIN_KEY_LENGTH:
            self.mask, self.mask_bytes, self.find = str, bytes, lambda _: []
            return
        # Compiled once: several texts of every call pass here, and each event of a stream.
        pattern, raw, raw_mask = re.compile(key_pattern(text)), text.encode(), MASK.encode()
        raw_pattern = re.compile(pattern.pattern.encode())
        self.mask = lambda data: pattern.sub(MASK, data)
        self.find = lambda data: [match.span() for match in pattern.finditer(data)]
        # Most keys can be spelled in one way alone, and replacing is several times faster than a pattern.
        if pattern.pattern == re.escape(text):
            self.mask_bytes = lambda data: data.replace(raw, raw_mask)
        else:
            self.mask_bytes = lambda data: raw_pattern.sub(raw_mask, data)

    @classmethod
    def from_argument(cls, key: str | Credential | None) -> Credential:
        """The given key, or the one in the environment; not yet checked."""
        return key if isinstance(key, Credential) else cls(os.getenv(VARIABLE) if key is None else key)

    def check(self) -> None:
        """Raise CredentialError if it cannot be a key."""
        if self._fault:
            raise CredentialError(self._fault)

    def authorization(self) -> str:
        """The value of the `Authorization` header."""
        return f"Bearer {self._reveal()}"

    def mask_header(self, name: str, value: str) -> tuple[str, str]:
        """Return a response header as it may be kept, without a secret of any kind."""
        return (name, MASK) if name.lower() in _SECRET_HEADERS else (name, self.mask(value))

    def __repr__(self) -> str:
        return "<Credential>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a credential cannot be pickled or copied: make a new client where it is needed")


def _find_fault(key: object) -> str:
    """What is wrong with a key, and what to do; empty if nothing is."""
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
