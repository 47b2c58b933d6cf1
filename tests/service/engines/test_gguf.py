"""The head of a GGUF file: what a model says of itself, and how much memory it takes."""

from pathlib import Path

import pytest

from famnb.errors import InvalidRequest
from famnb.service.engines.gguf import read_header
from tests.support.tiny_engine import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path, context=1024)
    return path


def test_a_header_has_what_the_gguf_library_wrote(model: Path):
    header = read_header(model)
    assert (header.context, header.vocabulary, header.size) == (1024, 287, model.stat().st_size)
    assert header.fields["general.architecture"] == "llama"
    assert header.fields["tokenizer.ggml.eos_token_id"] == 2
    assert str(header.fields["tokenizer.chat_template"]).startswith("{%- for tool in")


def test_memory_grows_with_the_tokens_by_the_keys_and_values_of_each_layer(model: Path):
    """One layer of two heads, 16 numbers each, twice (keys and values) of 2 bytes."""
    header = read_header(model)
    assert header.estimate_memory(1000) - header.estimate_memory(0) == 1000 * 1 * 2 * (16 + 16) * 2
    assert header.estimate_memory(0) > header.size


def test_what_is_no_model_is_refused_in_words(model: Path, tmp_path: Path):
    whole = model.read_bytes()
    contents = {"text": b"hello", "empty": b"", "cut": whole[:2000], "head": whole[:20]}
    expected = {"text": "expected a GGUF file", "empty": "broken", "cut": "broken", "head": "broken"}
    for name, content in contents.items():
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(content)
        with pytest.raises(InvalidRequest, match=expected[name]):
            read_header(path)
    with pytest.raises(InvalidRequest, match=r"none\.gguf cannot be read"):
        read_header(tmp_path / "none.gguf")
