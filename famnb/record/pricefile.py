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


def default_path() -> Path:
    """The file that FAMNB_PRICES names, else `prices.toml` in the user's configuration folder."""
    return Path(os.getenv("FAMNB_PRICES") or Path(platformdirs.user_config_dir("famnb")) / "prices.toml").expanduser()


def read(path: Path) -> tuple[Price, ...]:
    """The entries of a file; raises InvalidRequest, saying which entry and field, and OSError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: this is not TOML ({error}); expected tables that begin with [[price]]") from None
    tables = content.pop("price", [])
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        found = f"got {', '.join(content)}" if content else "got one table [price]"
        raise InvalidRequest(f"{path}: expected nothing but tables that begin with [[price]]; {found}")
    return tuple(_entry(path, number, table) for number, table in enumerate(tables, start=1))


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


def _entry(path: Path, number: int, table: dict[str, Any]) -> Price:
    where = f"{path}, price {number}"
    if unknown := [name for name in table if name not in _FIELDS]:
        raise InvalidRequest(f"{where}: there is no {', '.join(unknown)}; there are {', '.join(_FIELDS)}")
    if missing := [name for name in _REQUIRED if name not in table]:
        raise InvalidRequest(f"{where}: {', '.join(missing)} missing")
    if not isinstance(table["model"], str):
        raise InvalidRequest(f"{where}: model: expected a name in quotes; got {table['model']!r}")
    try:
        return entry(**table, source=str(path))
    except InvalidRequest as error:
        raise InvalidRequest(f"{where}: {error}") from None


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
