"""Presets in a real file: saved, loaded, kept from keys and image data, read across versions."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.composer import presets
from famnb.widget.form.draft import Draft, draft_of, read_draft
from famnb.widget.form.images import PromptImage
from tests.support.strategies import requests

PNG = "data:image/png;base64," + "iVBORw0KGgo" * 40
DRAFT = Draft(
    endpoint="web",
    prompt="What is a tide?",
    system="Be brief.",
    pictures=(PromptImage("https://example.org/cat.png"),),
    raw={("model",): "fam-2-5-pro", ("reasoning", "effort"): "high", ("temperature",): "warm"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file in a folder that is not there yet."""
    return tmp_path / "config" / "presets.json"


def test_a_preset_is_the_form_again(path: Path):
    assert presets.names(path) == ()
    assert presets.save(path, " tides ", DRAFT) == ()
    presets.save(path, "other", Draft(endpoint="chat", raw={("model",): "fam-mini"}))
    assert presets.load(path, "tides") == (DRAFT, ())
    assert presets.names(path) == ("other", "tides")
    presets.delete(path, "tides")
    assert presets.names(path) == ("other",)
    with pytest.raises(InvalidRequest, match=r"no 'tides'.*there are other"):
        presets.load(path, "tides")


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests)
def test_any_request_comes_back_from_a_preset(path: Path, request: Request):
    presets.save(path, "any", draft_of(request))
    assert read_draft(presets.load(path, "any").draft).request == request


def test_the_data_of_an_image_is_never_saved(path: Path):
    talk = json.dumps([{"role": "user", "content": [{"type": "image_url", "image_url": PNG}]}])
    draft = Draft(endpoint="chat", prompt="x", pictures=(PromptImage(PNG, "cat.png"),), raw={("messages",): talk})
    said = presets.save(path, "cat", draft)
    assert "iVBOR" not in path.read_text()
    assert ["image" in sentence for sentence in said] == [True, True]
    assert presets.load(path, "cat").draft == Draft(endpoint="chat", prompt="x")


@pytest.mark.parametrize("where", ["prompt", "system", "raw"])
def test_a_key_is_never_saved(path: Path, monkeypatch: pytest.MonkeyPatch, where: str):
    monkeypatch.setenv("FAM_API_KEY", "very-secret-0123456789")
    words = "Bearer very-secret-0123456789"
    draft = Draft(endpoint="chat", **{where: {("temperature",): words} if where == "raw" else words})
    with pytest.raises(InvalidRequest, match="looks like a key"):
        presets.save(path, "leak", draft)
    assert not path.exists()


def test_what_this_version_does_not_know_is_left_out_and_stays_in_the_file(path: Path):
    path.parent.mkdir()
    entry = {"endpoint": "messages", "prompt": "hi", "voice": "low", "fields": {"temperature": "0.2", "mood": "good"}}
    path.write_text(json.dumps({"version": 9, "theme": "x", "presets": {"new": entry}}))
    draft, left_out = presets.load(path, "new")
    assert draft == Draft(endpoint="messages", prompt="hi", raw={("temperature",): "0.2"})
    assert left_out == ("`mood` is left out: messages has no such field or value",)
    presets.save(path, "mine", DRAFT)
    content = json.loads(path.read_text())
    assert (content["version"], content["theme"], content["presets"]["new"]) == (9, "x", entry)


@pytest.mark.parametrize("text", ["{", "[]", '{"presets": []}', '{"presets": {"x": {"endpoint": 7}}}'])
def test_a_file_that_is_none_is_refused_and_left_alone(path: Path, text: str):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=r"[Ee]xpected|this is not JSON"):
        presets.load(path, "x")
    if "endpoint" not in text:
        with pytest.raises(InvalidRequest):
            presets.save(path, "x", DRAFT)
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 81])
def test_a_name_says_something(path: Path, name: str):
    with pytest.raises(InvalidRequest, match="expected a name"):
        presets.save(path, name, DRAFT)
