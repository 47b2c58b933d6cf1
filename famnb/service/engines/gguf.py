"""The head of a GGUF file, the format of llama.cpp's models: what a model is, and how much memory it takes.

    "GGUF" ── version ── number of tensors ── number of fields ── fields: name, type, value ── tensors

The package `gguf` makes an object of each word of a vocabulary: 14 s for a model of 98 MB. Here they are skipped.
"""

from __future__ import annotations

import dataclasses
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[: len(_MAGIC)] == _MAGIC:
                return _Reader(data).read()
    except OSError as error:
        raise InvalidRequest(f"the model {path} cannot be read: {error.strerror or error}") from None
    # `mmap` refuses an empty file; a file that was cut ends in the middle of a value.
    except (ValueError, KeyError, IndexError, struct.error):
        raise InvalidRequest(f"the model {path} is incomplete or broken: get it again") from None
    raise InvalidRequest(f"{path} is not a model in llama.cpp's format: expected a GGUF file, which begins with GGUF")


class _Reader:
    """Reads values one after the other."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._offset = len(_MAGIC)

    def read(self) -> GGUFHeader:
        version, _tensors, count = self._unpack("IQQ")
        # Version 1 had counts of 32 bits; files of another byte order have a version in the millions.
        if not 2 <= version <= 0xFFFF:
            raise ValueError(version)
        fields, vocabulary = {}, 0
        for _ in range(count):
            name = self._read_string()
            value = self._read_value(*self._unpack("I"))
            if name == "tokenizer.ggml.tokens":
                vocabulary = value if isinstance(value, int) else len(value)
            elif value is not None:
                fields[name] = value
        return GGUFHeader(fields, vocabulary, len(self._data))

    def _read_value(self, kind: int) -> Any:
        """Return a value; of a long array, its length."""
        if kind == _STRING:
            return self._read_string()
        if kind != _ARRAY:
            return self._unpack(_SCALARS[kind])[0]
        item, count = self._unpack("IQ")
        if count <= _READ_ITEMS:
            return [self._read_value(item) for _ in range(count)]
        if item == _STRING:
            for _ in range(count):
                self._offset += 8 + int.from_bytes(self._data[self._offset : self._offset + 8], "little")
        else:
            self._offset += count * struct.calcsize(f"<{_SCALARS[item]}")
        if self._offset > len(self._data):
            raise IndexError(self._offset)
        return count

    def _read_string(self) -> str:
        (size,) = self._unpack("Q")
        text = self._data[self._offset : self._offset + size]
        if len(text) < size:
            raise IndexError(size)
        self._offset += size
        return text.decode(errors="replace")

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._data, self._offset)
        self._offset += struct.calcsize(f"<{layout}")
        return values
