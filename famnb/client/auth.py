"""Credential: the API key, and the caller's own headers and query, which may hold secrets too."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from famnb.errors import CredentialError
from famnb.profiles.profile import Profile
from famnb.secret_patterns import MASK, MIN_KEY_LENGTH, find_keys, key_pattern

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
    """An API key, and the caller's own headers and query, which show themselves only on a request.

    No attribute holds a secret: what needs one is a bound method of a dict or a pattern, which shows neither in its
    repr. Whoever is given a key as text puts one of these in its place and only then calls `check`: the frames of an
    error, which a traceback may show with their variables, then hold no key. For the same reason the package reads the
    environment with `getenv` alone: such a traceback would show all of `environ`.
    """

    def __init__(
        self,
        key: object,
        *,
        header: str = "authorization",
        variable: str = VARIABLE,
        headers: object = None,
        query: object = None,
    ) -> None:
        """`header` carries the key, and `variable` is the one to name where it is unset; `headers` are further headers,
        `query` what follows every address.

        With an empty `variable` no key is sent unless one is given.
        """
        self.variable = variable
        """The environment variable to name where the key is at fault; empty where none is needed."""
        # A header of the caller's own, such as a token of Entra's, may take the place of the key.
        names = {str(name).lower() for name in headers} if isinstance(headers, Mapping) else set()
        self._fault = (
            ("" if key is None and "authorization" in names else _find_fault(key, variable))
            or _find_mapping_fault("headers", headers)
            or _find_mapping_fault("query", query)
        )
        text, others, pairs = "", dict[str, str](), dict[str, str]()
        if not self._fault:
            text = str(key or "")
            others = {name.lower(): value for name, value in headers.items()} if isinstance(headers, Mapping) else {}
            pairs = dict(query) if isinstance(query, Mapping) else {}
        carried = {header: f"Bearer {text}" if header == "authorization" else text} if text else {}
        self.headers: Callable[[], dict[str, str]] = {**carried, **others}.copy
        """The headers that carry the key, and the caller's own, in lower case."""
        self.query: Callable[[], dict[str, str]] = pairs.copy
        """The caller's own parameters of every address."""
        self.open_headers = {name: value for name, value in others.items() if not _is_secret(name, value)}
        """Those of the caller's own headers that are not secrets."""
        self.open_query = {name: value for name, value in pairs.items() if not _is_secret(name, value)}
        """Those of the caller's own parameters that are not secrets."""
        more = [value for name, value in [*others.items(), *pairs.items()] if _is_secret(name, value)]
        self.has_more_secrets = bool(more)
        """Whether the caller's own headers or query hold secrets besides the key."""
        secrets = [_SCHEME.sub("", secret, count=1) for secret in [text, *more]]
        # A very short key would be found in ordinary words.
        secrets = [secret for secret in dict.fromkeys(secrets) if len(secret) >= MIN_KEY_LENGTH]
        # Compiled once: several texts of every call pass here, and each event of a stream. `(?!)` matches nothing.
        pattern = re.compile("|".join(map(key_pattern, secrets)) or "(?!)")
        self._find_matches = pattern.finditer
        self.mask: Callable[[str], str] = functools.partial(pattern.sub, MASK) if secrets else str
        """Replaces a secret in a text, should a user or a service have put it there."""
        self.mask_bytes: Callable[[bytes], bytes] = bytes
        """`mask` for bytes: the events and bodies of a response."""
        if secrets:
            self.mask_bytes = functools.partial(re.compile(pattern.pattern.encode()).sub, MASK.encode())

    @classmethod
    def from_argument(
        cls, key: str | Credential | None, profile: Profile, headers: object = None, query: object = None
    ) -> Credential:
        """The given key, or the one in the environment that the profile names; not yet checked."""
        if isinstance(key, Credential):
            return key
        if key is None:
            key = next(filter(None, map(os.getenv, profile.key_variables)), None)
        variable = profile.key_variables[0] if profile.needs_key else ""
        return cls(key, header=profile.key_header, variable=variable, headers=headers, query=query)

    def check(self) -> None:
        """Raise CredentialError if it cannot be a key."""
        if self._fault:
            raise CredentialError(self._fault)

    def find(self, text: str) -> list[tuple[int, int]]:
        """The places of a secret in a text, as (start, end)."""
        return [match.span() for match in self._find_matches(text)]

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
    hint = f", or set {variable}" if variable else ""
    return f"api_key: {fault}; pass the key as the service's console shows it{hint}"


def _find_mapping_fault(setting: str, texts: object) -> str:
    """What is wrong with the caller's own headers or query, without their values; empty if nothing is."""
    if texts is None:
        return ""
    if not isinstance(texts, Mapping):
        return f"{setting}: expected texts by name, got a {type(texts).__name__}"
    for name, value in texts.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return f"{setting}: expected texts by name; the value of {name!r:.80} is not a text"
        if setting == "headers" and not _HEADER_NAME.fullmatch(name):
            return f"headers: {name!r:.80} is no name of a header"
        if setting == "headers" and not (value.isascii() and value.isprintable()):
            return f"headers: the value of {name!r} is not a text of printable ASCII"
    return ""


def _is_secret(name: str, value: str) -> bool:
    """Whether the value of a header or parameter is a secret: by its name, or as it looks like a key."""
    return bool(_SECRET_NAME.search(name) or find_keys(value))
