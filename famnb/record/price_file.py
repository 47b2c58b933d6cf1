"""A user's own prices as a small TOML file: read with the place of every fault, written so that people can edit it.

[[price]]
model = "fam-2-5-pro"
input = 1.25            # USD per million tokens, as are all of these
output = 10
cached = 0.31           # optional: input read from the cache
cache_write = 1.60      # optional: input written to it
since = 2026-01-01      # optional: from when it holds
until_context = 200000  # optional: for calls of fewer input tokens
"""

from __future__ import annotations

import inspect
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import platformdirs

from famnb.errors import InvalidRequest
from famnb.record.price import Price, entry

_FIELDS = tuple(name for name in inspect.signature(entry).parameters if name != "source")
_REQUIRED = ("model", "input", "output")
_HEAD = re.compile(r"\s*\[\[\s*[\"']?price[\"']?\s*\]\]")


def default_path() -> Path:
    """The file that FAMNB_PRICES names, else `prices.toml` in the user's configuration folder."""
    return Path(os.getenv("FAMNB_PRICES") or Path(platformdirs.user_config_dir("famnb")) / "prices.toml").expanduser()


def read(path: Path) -> tuple[Price, ...]:
    """The entries of a file; raises InvalidRequest, saying which line, entry and field, and OSError."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin every file with a byte order mark
        content = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: this is not TOML ({error}); expected tables that begin with [[price]]") from None
    tables = content.pop("price", [])
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        found = f"got {', '.join(content)}" if content else "got one table [price]"
        raise InvalidRequest(f"{path}: expected nothing but tables that begin with [[price]]; {found}")
    entries: dict[tuple[object, ...], int] = {}
    made: list[Price] = []
    for number, table in enumerate(tables, start=1):
        try:
            price = _entry(table, source=str(path))
            before = entries.setdefault((price.model, price.since, price.until_context), number)
            if before != number:
                raise InvalidRequest(
                    f"model, since and until_context are those of price {before}; one of the two must go"
                )
        except InvalidRequest as error:
            key = str(error).partition(":")[0]
            raise InvalidRequest(f"{path}, {_line(text, number, key)}price {number}: {error}") from None
        made.append(price)
    return tuple(made)


def write(path: Path, entries: Iterable[Price]) -> None:
    """Write the entries, in place of what the file held, all of it or nothing; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "# Prices in USD per million tokens, for famnb.\n" + "".join(map(_table, entries))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _entry(table: dict[str, Any], *, source: str) -> Price:
    if unknown := [name for name in table if name not in _FIELDS]:
        raise InvalidRequest(f"{unknown[0]}: there is no such field; there are {', '.join(_FIELDS)}")
    if missing := [name for name in _REQUIRED if name not in table]:
        raise InvalidRequest(f"{', '.join(missing)} missing")
    if not isinstance(table["model"], str):
        raise InvalidRequest(f"model: expected a name in quotes; got {table['model']!r}")
    return entry(**table, source=source)


def _line(text: str, number: int, key: str) -> str:
    """Where the table of this number has a key, or else begins, as "line 3, "; empty where that cannot be told."""
    lines = text.splitlines()
    heads = [place for place, line in enumerate(lines) if _HEAD.match(line)]
    if number > len(heads):
        return ""
    begin = heads[number - 1]
    end = heads[number] if number < len(heads) else len(lines)
    named = (place for place in range(begin, end) if lines[place].partition("=")[0].strip().strip("\"'") == key)
    return f"line {next(named, begin) + 1}, "


def _table(price: Price) -> str:
    values: dict[str, str] = {"model": json.dumps(price.model, ensure_ascii=False)}
    for name in ("input", "output", "cached", "cache_write"):
        amount = getattr(price, name)
        if amount is not None:
            values[name] = f"{amount:f}"
    if price.since is not None:
        day = price.since.timetz() == time(tzinfo=price.since.tzinfo)
        values["since"] = f"{price.since:%Y-%m-%d}" if day else price.since.isoformat()
    if price.until_context is not None:
        values["until_context"] = str(price.until_context)
    return "\n[[price]]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
