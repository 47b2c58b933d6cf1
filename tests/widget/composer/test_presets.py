"""Presets in a real file: saved, loaded, kept from keys and image data."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from famnb.endpoints import compose
from famnb.errors import InvalidRequest
from famnb.profiles import find_profile
from famnb.request import Request
from famnb.widget.composer import presets
from tests.support.strategies import requests

FAM = find_profile("fam")
REQUEST = compose("web", "What is a tide?", system="Be brief.", temperature=0.2)


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in a folder that is not there yet."""
    path = tmp_path / "config" / "presets.json"
    monkeypatch.setenv("FAMNB_PRESETS", str(path))
    return path


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests)
def test_any_request_comes_back_from_a_preset(request: Request):
    presets.save("any", request, FAM)
    assert presets.load("any", FAM) == request


def test_presets_are_listed_deleted_and_named_where_one_is_missing():
    assert presets.names() == ()
    for name in (" tides ", "other"):
        presets.save(name, REQUEST, FAM)
    assert presets.names() == ("other", "tides")
    presets.delete("tides")
    with pytest.raises(InvalidRequest, match=r"no 'tides'.*there are other"):
        presets.load("tides", FAM)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data:image/png;base64," + "iVBORw0KGgo" * 40, "the data of an image"),
        ("Bearer very-secret-0123456789", "looks like a key"),
    ],
)
def test_neither_the_data_of_an_image_nor_a_key_is_saved(path: Path, monkeypatch, text: str, words: str):
    monkeypatch.setenv("FAM_API_KEY", "very-secret-0123456789")
    with pytest.raises(InvalidRequest, match=words):
        presets.save("leak", compose("chat", "Look", system=text), FAM)
    assert not path.exists()


def test_what_this_version_does_not_know_stays_in_the_file(path: Path):
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 9, "theme": "x", "presets": {"new": {"voice": "low"}}}))
    presets.save("mine", REQUEST, FAM)
    content = json.loads(path.read_text())
    assert (content["version"], content["theme"], content["presets"]["new"]) == (9, "x", {"voice": "low"})
    with pytest.raises(InvalidRequest, match=r"'new' in .*expected profile, endpoint and body"):
        presets.load("new", FAM)


@pytest.mark.parametrize("text", ["{", "[]", '{"presets": []}'])
def test_an_invalid_file_is_refused_and_left_alone(path: Path, text: str):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=r"[Ee]xpected|this is not JSON"):
        presets.save("x", REQUEST, FAM)
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 81])
def test_a_name_says_something(name: str):
    with pytest.raises(InvalidRequest, match="expected a name"):
        presets.save(name, REQUEST, FAM)
