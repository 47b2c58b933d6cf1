"""A user's own prices as a TOML file, which errors name by line and entry, and which people can edit.

[[price]]
model = "fam-2-5-pro"
input = 1.25            # USD per million tokens, as are all of these
output = 10
cached = 0.31           # optional: input read from the cache
cache_write = 1.60      # optional: input written to it
since = 2026-01-01      # optional: from when it holds
until_context = 200000  # optional: for calls of fewer input tokens
service = "openrouter"  # optional: at this one alone, a profile's name or a host; it counts before a price for all
source = "the vendor"   # optional: where it comes from; else this file
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
from collections.abc import Iterable
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import platformdirs

from famnb.atomic_write import atomic_write
from famnb.errors import InvalidRequest
from famnb.record.price import USER, Price, parse_price

_FIELDS = tuple(inspect.signature(parse_price).parameters)
_REQUIRED = ("model", "input", "output")
_HEAD = re.compile(r"\s*\[\[\s*[\"']?price[\"']?\s*\]\]")


def default_path() -> Path:
    """Return the file that FAMNB_PRICES names, else `prices.toml` in the user's configuration folder."""
    return Path(os.getenv("FAMNB_PRICES") or Path(platformdirs.user_config_dir("famnb")) / "prices.toml").expanduser()


def read(path: Path) -> tuple[Price, ...]:
    """Return the prices in a file. Raises InvalidRequest, naming line, entry and field, or OSError."""
    data = path.read_bytes()
    # Loaded late: few have a price file, and this is called for everybody's first call.
    import tomllib

    try:
        text = data.decode("utf-8-sig")  # some editors begin every file with a byte order mark
        content = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: this is not TOML ({error}); expected tables that begin with [[price]]") from None
    tables = content.pop("price", [])
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        got = ", ".join(content) if content else "one table [price]"
        raise InvalidRequest(f"{path}: expected nothing but tables that begin with [[price]]; got {got}")
    number_of: dict[tuple[object, ...], int] = {}
    prices: list[Price] = []
    for number, table in enumerate(tables, start=1):
        try:
            price = _parse_table(table, source=str(path))
            first = number_of.setdefault((price.model, price.service, price.since, price.until_context), number)
            if first != number:
                raise InvalidRequest(
                    f"model, service, since and until_context are those of price {first}; one of the two must go"
                )
        except InvalidRequest as error:
            key = str(error).partition(":")[0]  # every message of ours begins with the field it is about
            raise InvalidRequest(f"{path}, {_find_line(text, number, key)}price {number}: {error}") from None
        prices.append(price)
    return tuple(prices)


def write(path: Path, prices: Iterable[Price]) -> None:
    """Write these prices in place of what the file held, all of it or nothing. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file itself is the source of what names no other.
    prices = [dataclasses.replace(price, source="") if price.source in (USER, str(path)) else price for price in prices]
    text = "# Prices in USD per million tokens, for famnb.\n" + "".join(map(_format_table, prices))
    atomic_write(path, text.encode())


def _parse_table(table: dict[str, Any], *, source: str) -> Price:
    if unknown := [name for name in table if name not in _FIELDS]:
        raise InvalidRequest(f"{unknown[0]}: there is no such field; there are {', '.join(_FIELDS)}")
    if missing := [name for name in _REQUIRED if name not in table]:
        raise InvalidRequest(f"{', '.join(missing)} missing")
    if not isinstance(table["model"], str):
        raise InvalidRequest(f"model: expected a name in quotes; got {table['model']!r}")
    if not isinstance(table.get("source", ""), str):
        raise InvalidRequest(f"source: expected words in quotes; got {table['source']!r}")
    return parse_price(**{"source": source, **table})


def _find_line(text: str, number: int, key: str) -> str:
    """The line of a key in the n-th table, else the table's first, as "line 3, "; empty if it cannot be found.

    `tomllib` gives no line numbers for values, so the text is searched; a file may also have its prices in one array,
    where no line is found.
    """
    lines = text.splitlines()
    heads = [index for index, line in enumerate(lines) if _HEAD.match(line)]
    if number > len(heads):
        return ""
    start = heads[number - 1]
    end = heads[number] if number < len(heads) else len(lines)
    matches = (index for index in range(start, end) if lines[index].partition("=")[0].strip().strip("\"'") == key)
    return f"line {next(matches, start) + 1}, "


def _format_table(price: Price) -> str:
    values: dict[str, str] = {"model": json.dumps(price.model, ensure_ascii=False)}
    for name in ("input", "output", "cached", "cache_write"):
        amount = getattr(price, name)
        if amount is not None:
            values[name] = f"{amount:f}"
    if price.since is not None:
        is_midnight = price.since.timetz() == time(tzinfo=price.since.tzinfo)
        values["since"] = f"{price.since:%Y-%m-%d}" if is_midnight else price.since.isoformat()
    if price.until_context is not None:
        values["until_context"] = str(price.until_context)
    if price.service:
        values["service"] = json.dumps(price.service, ensure_ascii=False)
    if price.source:
        values["source"] = json.dumps(price.source, ensure_ascii=False)
    return "\n[[price]]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
