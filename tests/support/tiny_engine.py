"""A real engine: llama.cpp's Python server with a tiny model of random weights made here."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.support.waiting import wait_until

NO_ENGINE = pytest.mark.skipif(
    not (find_spec("llama_cpp") and find_spec("gguf")),
    reason='no engine is installed; CMAKE_ARGS="-DLLAVA_BUILD=OFF" pip install "famnb[engines]"',
)

_END = 2
"""The token that ends an answer."""
_END_WEIGHT = 1.6
_CONSTANT = 60
_LETTERS = {f"<0x{byte:02X}>" for byte in range(0x21, 0x7F)} | set("abcdefghijklmnopqrstuvwxyz")


def write_model(path: Path, *, context: int) -> None:
    """Write a llama of one layer that knows letters and says some twenty of them; `context` is in tokens."""
    import gguf
    import numpy as np

    width, inner, heads = 32, 64, 2
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefghijklmnopqrstuvwxyz"]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * (len(words) - len(kinds))
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
    writer.add_chat_template("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:")
    rng = np.random.default_rng(0)
    square = {f"attn_{name}": (width, width) for name in ("q", "k", "v", "output")}
    layer = {**square, "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}
    shapes: dict[str, tuple[int, int]] = {f"blk.0.{name}": shape for name, shape in layer.items()}
    all_shapes = {"token_embd": (len(words), width), "output": (len(words), width), **shapes}
    tensors = {name: (0.5 * rng.standard_normal(shape)).astype(np.float32) for name, shape in all_shapes.items()}
    # Two numbers of the width are the same whatever was read. The first makes the end likely to follow a letter,
    # but not the colon of the template, lest an answer be empty; the second keeps bytes that are no letters from it.
    for name in ("blk.0.attn_output", "blk.0.ffn_down"):
        tensors[name][:2] = 0
    tensors["token_embd"][:, :2] = _CONSTANT
    tensors["token_embd"][words.index(f"<0x{ord(':'):02X}>"), 0] = -_CONSTANT
    is_letter = [word in _LETTERS for word in words]
    tensors["output"][:, 0] = 0
    tensors["output"][:, 1] = np.where(is_letter, 0, -_CONSTANT)
    tensors["output"][_END] = 0
    tensors["output"][_END, 0] = _END_WEIGHT
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
    """Run an engine whose model reads `context` tokens; yields its address once it answers."""
    path = folder / "tiny.gguf"
    write_model(path, context=context)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(path), "--port", str(port)]
    command += ["--n_ctx", str(context), "--interrupt_requests", "true"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/v1/models").status_code == 200
        except httpx.TransportError:
            return False

    try:
        # Its libraries take a minute to load where many others do, too.
        wait_until(answers, timeout=300)
        yield url
    finally:
        process.kill()
        process.wait()
