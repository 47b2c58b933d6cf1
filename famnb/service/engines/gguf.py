"""The head of a GGUF file, the format of llama.cpp's models: what a model is, and how much memory it takes.

    "GGUF" ── version ── number of tensors ── number of fields ── fields: name, type, value ── tensors

The package `gguf` makes an object of each word of a vocabulary: 14 s for a model of 98 MB. Here they are skipped.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from famnb.errors import InvalidRequest

_MAGIC = b"GGUF"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The `struct` format of each type of a number."""
_STRING, _ARRAY = 8, 9
# Layers may differ in a field, which is an array then; a vocabulary is longer.
_READ_ITEMS = 1024
"""The longest array that is read."""
_KV_BYTES = 2
"""Bytes of one number in the cache of keys and values (16-bit floats)."""
# Scores of 512 tokens, the most that llama.cpp reads at once, over the vocabulary, are the largest buffer by far.
_BATCH_TOKENS = 512
# Measured with models of 1 MB to 1 GB: the interpreter, llama.cpp and its graph.
_FIXED_BYTES = 150_000_000
"""What an engine takes with the smallest model."""


@dataclasses.dataclass(frozen=True, slots=True)
class GGUFHeader:
    """What a model says of itself."""

    fields: Mapping[str, Any]
    """By name, such as `general.architecture`; without arrays of over 1,024 items."""
    vocabulary: int
    """How many different tokens it knows."""
    size: int
    """Of the file, in bytes."""

    @property
    def context(self) -> int:
        """How many tokens it was trained to read; 0 if it does not say."""
        return int(self._value("context_length", 0))

    def estimate_memory(self, tokens: int) -> int:
        """Return how many bytes an engine takes that keeps `tokens` tokens, over all that it answers at once.

        It takes less where layers share or forget keys (sliding windows, recurrent layers).
        """
        layers, heads = int(self._value("block_count", 0)), int(self._value("attention.head_count", 1) or 1)
        width = int(self._value("embedding_length", 0)) // heads
        kv_heads = self._value("attention.head_count_kv", heads)
        numbers = sum(kv_heads) if isinstance(kv_heads, list) else int(kv_heads) * layers
        numbers *= int(self._value("attention.key_length", width)) + int(self._value("attention.value_length", width))
        return self.size + tokens * numbers * _KV_BYTES + self.vocabulary * _BATCH_TOKENS * 4 + _FIXED_BYTES

    def _value(self, name: str, default: Any) -> Any:
        value = self.fields.get(f"{self.fields.get('general.architecture')}.{name}", default)
        return max(value, default=0) if isinstance(value, list) and not name.endswith("_kv") else value


def read_header(path: Path) -> GGUFHeader:
    """Read the head of a model's file. Raises InvalidRequest if it cannot be read or is not GGUF."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
            if start == _MAGIC:
                return _read_fields(file, path.stat().st_size)
    except OSError as error:
        raise InvalidRequest(f"the model {path} cannot be read: {error.strerror or error}") from None
    # A file that was cut ends in the middle of a value, and one that is broken may announce a text of any length.
    except (ValueError, KeyError, OverflowError, MemoryError, struct.error):
        start = b""
    if not start:
        raise InvalidRequest(f"the model {path} is incomplete or broken: get it again")
    raise InvalidRequest(f"{path} is not a model in llama.cpp's format: expected a GGUF file, which begins with GGUF")


def _read_fields(file: BinaryIO, size: int) -> GGUFHeader:
    version, _tensors, count = _unpack(file, "IQQ")
    # Version 1 had counts of 32 bits; files of another byte order have a version in the millions.
    if not 2 <= version <= 0xFFFF:
        raise ValueError(version)
    fields, vocabulary = {}, 0
    for _ in range(count):
        name = _read_string(file)
        value = _read_value(file, *_unpack(file, "I"))
        if name == "tokenizer.ggml.tokens":
            vocabulary = value if isinstance(value, int) else len(value)
        else:
            fields[name] = value
    return GGUFHeader(fields, vocabulary, size)


def _read_value(file: BinaryIO, kind: int) -> Any:
    """Return a value; of a long array, its length."""
    if kind == _STRING:
        return _read_string(file)
    if kind != _ARRAY:
        return _unpack(file, _SCALARS[kind])[0]
    item, count = _unpack(file, "IQ")
    if count <= _READ_ITEMS:
        return [_read_value(file, item) for _ in range(count)]
    for _ in range(count) if item == _STRING else ():
        file.seek(_unpack(file, "Q")[0], os.SEEK_CUR)
    if item != _STRING:
        file.seek(count * struct.calcsize(f"<{_SCALARS[item]}"), os.SEEK_CUR)
    return count


def _read_string(file: BinaryIO) -> str:
    (size,) = _unpack(file, "Q")
    return file.read(size).decode(errors="replace")


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{layout}", file.read(struct.calcsize(f"<{layout}")))
