"""Credential, the API key and the caller's own headers and query, which may hold secrets too: checked when they are
given, held where no attribute shows them, read when a request is sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from famnb.errors import CredentialError
from famnb.profiles.profile import Profile
from famnb.secret_patterns import MASK, MIN_KEY_LENGTH, find_keys, key_pattern, known_keys

VARIABLE = "FAM_API_KEY"
# A cookie is a secret of its own; the others are what a proxy or a debugging service may echo of the request.
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "set-cookie", "x-api-key", "api-key"})
_SECRET_NAME = re.compile(
    r"key|token|secret|auth(?!or(?!i[sz]))|cookie|passw|credential|signature|^sig$|^code$", re.IGNORECASE
)
"""In the name of a caller's own header or parameter, says that its value is a secret."""
_SCHEME = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)
"""What may stand before a secret in a header."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Credential:
    """An API key that shows itself only on a request; it is held in closures, so that no attribute has it.

    Whoever is given a key as text puts one of these in its place and only then calls `check`: the frames of an error,
    which a traceback may show with their variables, then hold no key. For the same reason the package reads the
    environment with `getenv` alone: such a traceback would show all of `environ`.
    """

    __slots__ = (
        "_fault",
        "find",
        "has_more_secrets",
        "headers",
        "mask",
        "mask_bytes",
        "open_headers",
        "open_query",
        "query",
        "variable",
    )

    headers: Callable[[], dict[str, str]]
    """The headers that carry the key, and the caller's own, in lower case."""
    query: Callable[[], dict[str, str]]
    """The caller's own parameters of every address."""
    mask: Callable[[str], str]
    """Replaces the key in a text, should a user or a service have put it there."""
    mask_bytes: Callable[[bytes], bytes]
    """`mask` for bytes: the events and bodies of a response."""
    find: Callable[[str], list[tuple[int, int]]]
    """The places of the key in a text, as (start, end)."""

    def __init__(
        self,
        key: object,
        *,
        header: str = "authorization",
        variable: str = VARIABLE,
        own: object = None,
        query: object = None,
    ) -> None:
        """`own` are further headers, `query` what follows every address; `header` carries the key, and `variable` is
        the one to name where it is unset.

        An empty `variable` has the key be left out where there is none.
        """
        self.variable = variable
        """The environment variable to name where the key is at fault; empty where none is needed."""
        self._fault = _find_fault(key, variable) or _find_header_fault(own) or _find_query_fault(query)
        text = key if isinstance(key, str) and not self._fault else ""
        others = _own_headers(own) if not self._fault else {}
        pairs = dict(query) if isinstance(query, Mapping) and not self._fault else {}
        carried = {header: f"Bearer {text}" if header == "authorization" else text} if text else {}
        headers = {**carried, **others}
        self.headers: Callable[[], dict[str, str]] = lambda: headers
        self.query: Callable[[], dict[str, str]] = lambda: pairs
        more = [value for name, value in [*others.items(), *pairs.items()] if _is_secret(name, value)]
        self.has_more_secrets = bool(more)
        """Whether the caller's own headers or query hold secrets besides the key."""
        self.open_headers = {name: value for name, value in others.items() if not _is_secret(name, value)}
        """Those of the caller's own headers that are no secrets."""
        self.open_query = {name: value for name, value in pairs.items() if not _is_secret(name, value)}
        """Those of the caller's own parameters that are no secrets."""
        # A very short key would be found in ordinary words.
        secrets = [_SCHEME.sub("", secret, count=1) for secret in [text, *more]]
        secrets = [secret for secret in dict.fromkeys(secrets) if len(secret) >= MIN_KEY_LENGTH]
        if not secrets:
            self.mask, self.mask_bytes, self.find = str, bytes, lambda _: []
            return
        # Compiled once: several texts of every call pass here, and each event of a stream.
        pattern, raw_mask = re.compile("|".join(map(key_pattern, secrets))), MASK.encode()
        raw_pattern = re.compile(pattern.pattern.encode())
        self.mask = lambda data: pattern.sub(MASK, data)
        self.find = lambda data: [match.span() for match in pattern.finditer(data)]
        # Most keys can be spelled in one way alone, and replacing is several times faster than a pattern.
        if pattern.pattern == re.escape(secrets[0]):
            raw = secrets[0].encode()
            self.mask_bytes = lambda data: data.replace(raw, raw_mask)
        else:
            self.mask_bytes = lambda data: raw_pattern.sub(raw_mask, data)

    @classmethod
    def from_argument(
        cls, key: str | Credential | None, profile: Profile, own: object = None, query: object = None
    ) -> Credential:
        """The given key, or the one in the environment that the profile names; not yet checked."""
        if isinstance(key, Credential):
            return key
        if key is None:
            key = next(filter(None, map(os.getenv, profile.key_variables)), None)
        variable = profile.key_variables[0] if profile.needs_key else ""
        return cls(key, header=profile.key_header, variable=variable, own=own, query=query)

    def check(self) -> None:
        """Raise CredentialError if it cannot be a key."""
        if self._fault:
            raise CredentialError(self._fault)

    def mask_header(self, name: str, value: str) -> tuple[str, str]:
        """Return a response header as it may be kept, without a secret of any kind."""
        return (name, MASK) if name.lower() in _SECRET_HEADERS else (name, self.mask(value))

    def __repr__(self) -> str:
        return "<Credential>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a credential cannot be pickled or copied: make a new client where it is needed")


def _find_fault(key: object, variable: str) -> str:
    """What is wrong with a key, and what to do; empty if nothing is."""
    match key:
        case None if not variable:
            return ""
        case None:
            return f"api_key: unset; pass api_key= or set {variable} in the environment"
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
    place = f", or set {variable}" if variable else ""
    return f"api_key: {fault}; pass the key as the service's console shows it{place}"


def _find_header_fault(own: object) -> str:
    """What is wrong with the caller's own headers, without their values; empty if nothing is."""
    if own is None:
        return ""
    if not isinstance(own, Mapping):
        return f"headers: expected texts by name, got a {type(own).__name__}"
    for name, value in own.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            return f"headers: {name!r:.80} is no name of a header"
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            return f"headers: the value of {name!r} is not a text of printable ASCII"
    return ""


def _find_query_fault(query: object) -> str:
    """What is wrong with the caller's own query, without its values; empty if nothing is."""
    if query is None:
        return ""
    if not isinstance(query, Mapping):
        return f"query: expected texts by name, got a {type(query).__name__}"
    wrong = [name for name, value in query.items() if not isinstance(name, str) or not isinstance(value, str)]
    return f"query: expected texts by name; that of {wrong[0]!r:.80} is none" if wrong else ""


def _is_secret(name: str, value: str) -> bool:
    """Whether the value of a header or parameter is a secret: by its name, or as it looks like a key."""
    return bool(_SECRET_NAME.search(name) or find_keys(value, known_keys()))


def _own_headers(own: object) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in own.items()} if isinstance(own, Mapping) else {}
