"""Options: what is wrong with one is said before anything starts."""

import math

import psutil
import pytest

from famnb.errors import ConnectError, CredentialError, InvalidRequest
from famnb.service import serve


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
        {"profile": "closed"},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object]):
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises((InvalidRequest, ConnectError), match=r"expected"):
        serve(**options)
    assert {child.pid for child in psutil.Process().children()} <= before
