"""Putting the parts together: which service `connect` finds, and that every call through it is recorded."""

import pytest

import famnb
from famnb.service.process import KEY_VARIABLE, SERVICE_URL


def test_without_a_key_the_embedded_service_answers(capsys: pytest.CaptureFixture[str]):
    with famnb.connect() as client:
        printed = capsys.readouterr().out
        reply = client.ask("Say hello.", endpoint="messages", max_tokens=20)
        with famnb.connect() as second:
            assert repr(second) == repr(client), "both share one service"
    assert "embedded service" in printed
    assert "simulated" in printed
    assert str(client.ledger.path) in printed
    assert reply.text
    row = famnb.calls().iloc[-1]
    assert row["call_id"] == reply.call_id
    assert row["simulated"]


def test_the_service_that_lab_started_is_used(server, monkeypatch, capsys):
    monkeypatch.setenv(SERVICE_URL, server.url)
    monkeypatch.setenv(KEY_VARIABLE, server.key)
    with famnb.connect() as client:
        assert server.url in capsys.readouterr().out
        assert client.ask("Hi", endpoint="responses", max_tokens=5).status == "incomplete"


def test_a_key_in_the_environment_goes_to_the_named_service(server, monkeypatch, capsys):
    monkeypatch.setenv("FAM_API_KEY", server.key)
    monkeypatch.setenv("FAM_BASE_URL", server.url)
    with famnb.connect() as client:
        assert client.ask("Hi", endpoint="chat", max_tokens=5).text
    printed = capsys.readouterr().out
    assert server.url in printed
    assert server.key not in printed


def test_a_key_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch):
    """A real key is never sent to a guessed address."""
    monkeypatch.setenv("FAM_API_KEY", "some-key")
    with pytest.raises(famnb.CredentialError, match="FAM_BASE_URL"):
        famnb.connect()
