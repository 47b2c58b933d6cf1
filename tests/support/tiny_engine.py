"""A real engine: llama.cpp with a tiny model of random weights made here."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from famnb.service.engines.llama_cpp import EngineOptions, start_engine

ENGINE_KEY = "TINY_ENGINE_KEY"
"""The environment variable that holds its key while it runs."""
_END = 2
"""The token that ends an answer."""
_END_WEIGHT = 1.6
_CONSTANT = 60
# As llama.cpp expects it of models that call tools. Where one may be called, the prompt ends with the exclamation mark
# after which the weights make a call certain.
_TEMPLATE = """{%- for tool in tools or [] %}{{ 'tool: ' }}{{ tool | tojson }}{{ '\\n' }}{% endfor %}
{%- for message in messages %}{{ message.role + ': ' }}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}</tool_call>' }}{% endfor %}{{ '\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ 'assistant' + ('!' if tools and messages[-1].role != 'tool' else ':') }}{% endif %}"""
"""The prompt of a conversation."""
_CALL = "<tool_call>"
"""The token that begins a call of a tool."""
# Without a comma, with which a second call could follow.
_LETTERS = {f"<0x{byte:02X}>" for byte in range(0x22, 0x7F) if byte != ord(",")} | set("abcdefghijklmnopqrstuvwxyz")


def write_model(path: Path, *, context: int, template: str = _TEMPLATE) -> None:
    """Write a llama of one layer that says some twenty letters, and calls a tool if it may; `context` is in tokens."""
    width, inner, heads = 32, 64, 2
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words += ["▁", *"abcdefghijklmnopqrstuvwxyz", _CALL]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * (len(words) - len(kinds) - 1) + [gguf.TokenType.USER_DEFINED]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_dimension_count(width // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * len(words))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(_END)
    writer.add_chat_template(template)
    rng = np.random.default_rng(0)
    square = {f"attn_{name}": (width, width) for name in ("q", "k", "v", "output")}
    layer = {**square, "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}
    shapes: dict[str, tuple[int, int]] = {f"blk.0.{name}": shape for name, shape in layer.items()}
    all_shapes = {"token_embd": (len(words), width), "output": (len(words), width), **shapes}
    tensors = {name: (0.5 * rng.standard_normal(shape)).astype(np.float32) for name, shape in all_shapes.items()}
    # Three numbers of the width are the same whatever was read before. The first makes the end likely to follow a
    # letter, but not what the template ends with, lest an answer be empty; the second keeps all but letters from an
    # answer; the third has a call follow an exclamation mark, and the end an angle bracket, with which a call ends.
    for name in ("blk.0.attn_output", "blk.0.ffn_down"):
        tensors[name][:3] = 0
    colon, exclamation_mark, bracket = (words.index(f"<0x{ord(letter):02X}>") for letter in ":!>")
    tensors["token_embd"][:, :3] = (_CONSTANT, _CONSTANT, 0)
    tensors["token_embd"][[colon, exclamation_mark], 0] = -_CONSTANT
    tensors["token_embd"][exclamation_mark, 2] = _CONSTANT
    tensors["token_embd"][bracket, 2] = -_CONSTANT
    tensors["output"][:, :3] = [(0, 0 if word in _LETTERS else -_CONSTANT, 0) for word in words]
    tensors["output"][_END, :3] = (_END_WEIGHT, 0, -2 * _CONSTANT)
    tensors["output"][words.index(_CALL), 2] = 2 * _CONSTANT
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextlib.contextmanager
def run_engine(folder: Path, *, context: int = 4096) -> Iterator[str]:
    """Run an engine whose tiny model reads `context` tokens, as `run_model` does."""
    path = folder / "tiny.gguf"
    write_model(path, context=context)
    with run_model(path, context=context) as url:
        yield url


@contextlib.contextmanager
def run_model(path: Path, *, context: int = 4096) -> Iterator[str]:
    """Run an engine with a model; yields its address once it answers, its key in ENGINE_KEY."""
    child = start_engine(EngineOptions(path.stem, str(path), context=context))
    with contextlib.closing(child), pytest.MonkeyPatch.context() as environment:
        environment.setenv(ENGINE_KEY, child.message["key"])
        yield child.message["url"]
