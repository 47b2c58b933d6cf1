"""A real engine behind all four endpoints: llama.cpp's Python server with a tiny model of random weights made here."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.service_requests import PATHS, ServiceClient, minimal_body
from tests.support.upstream_servers import fetch_reply, start_gateway
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (find_spec("llama_cpp") and find_spec("gguf")),
        reason='no engine is installed; CMAKE_ARGS="-DLLAVA_BUILD=OFF" pip install "famnb[engines]"',
    ),
]


CAPS = {"chat": "max_tokens", "web": "max_new_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}


CONTEXT = 1024


SCHEMA = {"type": "object", "properties": {"sunny": {"type": "boolean"}}, "required": ["sunny"]}


def tiny_model(path: Path) -> None:
    """Write a llama of one layer that knows letters and says anything."""
    import gguf
    import numpy as np

    width, inner, heads = 32, 64, 2
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefghijklmnopqrstuvwxyz"]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * (len(words) - len(kinds))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
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
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:")
    rng = np.random.default_rng(0)
    square = {f"attn_{name}": (width, width) for name in ("q", "k", "v", "output")}
    layer = {**square, "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}
    shapes: dict[str, tuple[int, int]] = {f"blk.0.{name}": shape for name, shape in layer.items()}
    for name, shape in {"token_embd": (len(words), width), "output": (len(words), width), **shapes}.items():
        writer.add_tensor(f"{name}.weight", (0.5 * rng.standard_normal(shape)).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the engine, once it answers."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    tiny_model(path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(path), "--port", str(port)]
    command += ["--n_ctx", str(CONTEXT), "--interrupt_requests", "true"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/v1/models").status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_until(answers, timeout=60)
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def api(engine: str) -> Iterator[ServiceClient]:
    with start_gateway(engine, upstream_model=()) as caller:
        yield caller


@pytest.mark.parametrize("stream", [False, True])
def test_every_endpoint_is_answered(api: ServiceClient, endpoint: str, stream: bool) -> None:
    """With text, a proven end, and the counts that the engine gives: for whole replies all, for streams none."""
    reply = fetch_reply(api, endpoint, stream=stream, **{CAPS[endpoint]: 16})
    assert reply.text
    assert (reply.complete, reply.model) == (True, minimal_body(endpoint)["model"])
    assert reply.finish_reason in ("length", "stop")
    if stream:
        assert reply.usage.output_tokens is None
    else:
        assert reply.usage.input_tokens
        assert reply.usage.output_tokens


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("named", [True, False])
def test_a_required_tool_is_called(api: ServiceClient, stream: bool, named: bool) -> None:
    """With arguments that its schema allows."""
    tools = [{"type": "function", "function": {"name": "tell_weather", "parameters": SCHEMA}}]
    choice: Any = {"type": "function", "function": {"name": "tell_weather"}} if named else "required"
    reply = fetch_reply(api, "web", stream=stream, tools=tools, tool_choice=choice)
    (call,) = reply.tool_calls
    assert (call.name, reply.finish_reason) == ("tell_weather", "tool_calls")
    assert isinstance(call.arguments["sunny"], bool)


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_is_kept(api: ServiceClient, stream: bool) -> None:
    """Though this engine refuses `json_schema` and wants the schema in another way."""
    chat = {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}
    responses = {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    for endpoint, form in {"chat": chat, "web": chat, "responses": responses}.items():
        assert isinstance(json.loads(fetch_reply(api, endpoint, stream=stream, **form).text)["sunny"], bool)


def test_a_conversation_goes_on(api: ServiceClient) -> None:
    """By `previous_response_id`, on an engine that stores nothing."""
    first = api.ask("responses", max_output_tokens=8).json()
    second = api.ask("responses", previous_response_id=first["id"], max_output_tokens=8).json()
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


def test_a_prompt_that_is_too_long_is_an_error(api: ServiceClient, endpoint: str) -> None:
    """A 400; but streamed this engine breaks off without a word, which is a 500, and no harm to the next call."""
    too_long = {"prompt": "long " * CONTEXT, CAPS[endpoint]: 16}
    for _ in range(3):
        whole, streamed = (api.ask(endpoint, **too_long, stream=stream) for stream in (False, True))
        assert (whole.status_code, "maximum context length" in whole.text) == (400, True)
        assert (streamed.status_code, "the engine behind this service" in streamed.text) == (500, True)


def test_a_stream_that_the_engine_drops_for_the_next_request_has_failed(api: ServiceClient) -> None:
    """This engine serves one at a time: it ends the first stream with [DONE] and no finish reason."""
    free = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "t", "parameters": free}}
    body = minimal_body("web", stream=True, max_new_tokens=900, tools=[tool], tool_choice="required")
    # Now and then this engine (llama-cpp-python 0.3.36) goes on with the first reply for long before it drops it.
    api.timeout = 60
    with api.stream("POST", PATHS["web"], json=body) as first:
        lines = first.iter_lines()
        begun = next(lines)
        try:
            second = fetch_reply(api, "web", stream=True, max_new_tokens=4)
        except httpx.ReadTimeout:
            pytest.skip("the engine goes on with the first reply, so that there is no dropped stream to look at")
        rest = "\n".join(lines)
    assert begun.startswith("data: ")
    assert second.complete is True
    assert "the engine behind this service broke off" in rest
    assert '"finish_reason":"' not in rest
