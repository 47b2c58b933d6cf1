"""Options: what is wrong with one is said before anything starts."""

import math
from pathlib import Path

import httpx
import psutil
import pytest

from famnb.errors import ConnectError, CredentialError, InvalidRequest
from famnb.service import serve
from famnb.service.settings import Options


@pytest.mark.parametrize("key", ["", "two words", "line\n", "schlüssel", ["good", "not good"]])
def test_a_malformed_key_is_refused_without_being_shown(key: str | list[str]):
    with pytest.raises(CredentialError) as refused:
        serve(key=key)
    assert "words" not in str(refused.value)
    assert "schlüssel" not in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        {"time_scale": -1.0},
        {"time_scale": math.nan},
        {"requests_per_minute": math.nan},
        {"requests_per_minute": math.inf},
        {"burst": 0, "requests_per_minute": 1},
        {"concurrency": -1},
        {"fault": "fire"},
        {"body_limit": 0},
        {"upload_timeout": -1},
        {"log_format": "xml"},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object]):
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises((InvalidRequest, ConnectError), match=r"expected"):
        serve(**options)
    assert {child.pid for child in psutil.Process().children()} <= before


def test_an_option_that_does_not_exist_is_a_type_error():
    with pytest.raises(TypeError, match="speed"):
        serve(speed=1)


def test_keys_are_those_given_and_those_of_the_file(tmp_path: Path):
    file = tmp_path / "keys"
    file.write_text("# of the team\nfrom-the-file\n\n  another-one  \nfirst\n")
    with serve(key=["first", "second"], keys_file=file, time_scale=0) as server:
        assert server.key == "first"
        statuses = {
            key: httpx.get(f"{server.url}/metrics", headers={"authorization": f"Bearer {key}"}).status_code
            for key in ("first", "second", "from-the-file", "another-one", "# of the team", "other")
        }
    assert statuses == {
        "first": 200,
        "second": 200,
        "from-the-file": 200,
        "another-one": 200,
        "# of the team": 401,
        "other": 401,
    }
    assert Options(keys_file=file).keys() == ("from-the-file", "another-one", "first")


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot be read"), (b"# nothing\n", "no key"), (b"\xff", "text")]
)
def test_a_file_without_keys_is_refused(tmp_path: Path, content: bytes | None, reason: str):
    """A random key in their place would lock everybody out."""
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidRequest, match=reason):
        Options(keys_file=file)


LONG = "a-key-of-enough-letters"


@pytest.mark.parametrize(
    ("options", "keys", "dangers"),
    [
        ({}, ["short"], []),
        ({"host": "localhost", "allow_faults": True}, ["short"], []),
        ({"host": "0.0.0.0"}, [LONG], ["plain HTTP"]),
        ({"host": "192.168.1.7"}, [LONG, "short"], ["plain HTTP", "1 of 2 keys"]),
        ({"host": "::", "allow_faults": True}, [LONG], ["plain HTTP", "faults"]),
    ],
)
def test_what_is_dangerous_beyond_loopback_is_said(options: dict[str, object], keys: list[str], dangers: list[str]):
    warnings = Options(**options).warnings(keys)
    assert len(warnings) == len(dangers)
    assert all(danger in warning for danger, warning in zip(dangers, warnings, strict=True))
