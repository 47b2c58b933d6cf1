"""Addresses and deadlines are checked before anything is sent."""

import math

import pytest

from famnb.api import Client
from famnb.client.config import Deadlines
from famnb.errors import InvalidRequest
from tests.support.client_shells import KEY
from tests.support.fault_server import whole
from tests.support.wire_payloads import body, request

ADDRESSES = [
    "",
    "api.example.com",
    "ftp://x",
    "http://",
    "http://h:99999",
    "http://a b",
    "http://h/?a=1",
    "http://h/#x",
]


@pytest.mark.parametrize(
    ("url", "words"),
    [*((url, "base_url") for url in ADDRESSES), ("https://user:secret@example.com", "api_key"), (None, "FAM_BASE_URL")],
)
def test_an_invalid_address_or_one_with_a_password_is_refused(url, words):
    with pytest.raises(InvalidRequest, match=words) as caught:
        Client(base_url=url, api_key=KEY)
    assert "secret" not in str(caught.value)


def test_the_addresses_of_the_environment_belong_together(monkeypatch, serve):
    """Both are read; a given `base_url` leaves neither in force, so that no key goes where it was not meant to."""
    here, there = serve(whole(body("web", "here"))), serve(whole(body("web", "there")))
    monkeypatch.setenv("FAM_BASE_URL", here.url)
    monkeypatch.setenv("FAM_ALT_BASE_URL", there.url)
    with Client(api_key=KEY) as client:
        assert client.send(request("web", stream=False)).text == "there"
    with Client(base_url=here.url, api_key=KEY) as client:
        assert client.send(request("web", stream=False)).text == "here"


@pytest.mark.parametrize("seconds", [0, -1, math.nan, True, "5", None])
def test_a_senseless_deadline_is_refused(seconds):
    with pytest.raises(InvalidRequest, match="idle"):
        Deadlines(idle=seconds)
    assert Deadlines(idle=math.inf).idle == math.inf
