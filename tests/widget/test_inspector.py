"""The inspector: a call's transcript, what went over the wire, and every event with its time."""

from __future__ import annotations

import html
from collections.abc import Iterator

import pytest

import famnb
from famnb.service import Server
from famnb.widget.html.facts import describe_clock
from famnb.widget.inspector import PAGE_LENGTH, Inspector


@pytest.fixture
def client(server: Server) -> Iterator[famnb.Client]:
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        yield client


def test_an_inspector_lays_everything_open(client: famnb.Client) -> None:
    """Request without the key, status and headers, every event with its time."""
    reply = client.ask("Why is the sky blue?", model="fam-2-5-pro", endpoint="messages", thinking=64, max_tokens=300)
    inspector = Inspector(reply, client.ledger)
    pages = {name: f"{inspector._descriptions[name].value}\n{raw.text}" for name, raw in inspector._raw.items()}
    assert "Why is the sky blue?" in inspector._transcript.value
    assert "/v1/messages" in pages["Request"]
    assert "Bearer ••••••" in pages["Request"]
    assert client._engine._credential.authorization().split()[-1] not in "".join(pages.values())
    assert "Status 200" in pages["Response"]
    assert "x-famnb-engine" in pages["Response"]
    assert describe_clock(reply.timing) in html.unescape(inspector._descriptions["Response"].value)
    assert f"Events 1 to {min(PAGE_LENGTH, len(reply.raw))} of {len(reply.raw)}" in inspector._table.value
    inspector._filter.value = "message_start"
    assert "1 of" in inspector._table.value
    assert inspector._copy_button.text.count("\n") == 1
    assert "message_start" in inspector._copy_button.text
    inspector._tabs.selected_index = 3
    assert 'src="data:image/png;base64,' in inspector._timeline.children[0].value


def test_a_refusal_of_a_stream_is_a_response_with_a_body(client: famnb.Client) -> None:
    """What came was no event stream: the service's words are in the response, and there are no events."""
    with pytest.raises(famnb.BadRequestError) as caught:
        client.ask("Why?", endpoint="responses", previous_response_id="resp_of_nobody")
    inspector = Inspector(caught.value.reply, client.ledger)
    assert '"code": "previous_response_not_found"' in inspector._raw["Response"].text
    assert "Status 400" in inspector._descriptions["Response"].value
    assert "No events" in inspector._table.value


def test_long_streams_are_paged(client: famnb.Client) -> None:
    """Later shows the next events, Earlier the first again; the buttons end where the events do."""
    reply = client.ask("Tell me everything.", model="fam-2-5-pro", endpoint="messages", max_tokens=2000)
    inspector = Inspector(reply, client.ledger)
    assert len(reply.raw) > PAGE_LENGTH
    assert inspector._earlier.disabled
    inspector._later.click()
    assert f"Events {PAGE_LENGTH + 1} to" in inspector._table.value
    inspector._earlier.click()
    assert "Events 1 to" in inspector._table.value


def test_what_was_never_recorded_cannot_be_opened(client: famnb.Client) -> None:
    """With the reason; an unknown id is a KeyError."""
    with pytest.raises(ValueError, match="was not recorded"):
        Inspector(famnb.Reply())
    with pytest.raises(KeyError):
        Inspector("call_none", client.ledger)
