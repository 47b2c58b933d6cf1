"""What tells two scorers of one name apart: a short digest of how they score."""

from __future__ import annotations

import hashlib
from types import CodeType
from typing import Any


def fingerprint(*what: Any) -> str:
    """Eight hexadecimal digits: equal for equal plain values and for functions of equal code, in every process."""
    return hashlib.blake2b(repr([_plain(each) for each in what]).encode(), digest_size=4).hexdigest()


def _plain(value: Any) -> Any:
    """A value whose text is the same in every process."""
    match value:
        case CodeType():
            # Where it was written is no part of what it does.
            return value.co_code, value.co_names, value.co_varnames, [_plain(each) for each in value.co_consts]
        case frozenset():
            return sorted(map(repr, value))
        case tuple():
            return [_plain(each) for each in value]
        case _:
            return value
