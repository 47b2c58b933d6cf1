"""The inspector: a call's transcript, what went over the wire, and every event with its time."""

import json
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import HBox

import famnb
from famnb.service import Server, serve
from famnb.widget.html.facts import describe_clock
from famnb.widget.inspector import Inspector


def ask(inspector: Inspector, name: str, **args: object) -> Any:
    """What an intent of the page is answered."""
    sent: list[dict[str, Any]] = []
    inspector.send = lambda message, _buffers=None: sent.append(message)
    inspector.receive({"kind": "intent", "id": 1, "name": name, "args": args})
    answer = sent[-1]
    assert answer["ok"], sent
    return answer.get("value")


def test_an_inspector_lays_everything_open(client: famnb.Client, server: Server):
    reply = client.ask("Why is the sky blue?", model="fam-2-5-pro", endpoint="messages", thinking=64, max_tokens=300)
    inspector = Inspector(reply, client.ledger)
    call = inspector.view()
    assert "Why is the sky blue?" in call.transcript
    assert "/v1/messages" in call.request.text
    assert "Bearer ••••••" in call.request.text
    assert server.key not in str(call)
    assert "Status 200" in call.response.lines
    assert "x-famnb-engine" in call.response.text
    assert describe_clock(reply.timing) in call.response.lines
    assert call.event_count == len(reply.raw)
    assert call.timeline is None
    events = [line.split("\t") for line in ask(inspector, "read_part", part="events").split("\n")]
    assert [int(number) for number, _, _ in events] == list(range(1, len(reply.raw) + 1))
    assert json.loads(events[0][2])["type"] == "message_start"
    assert [float(t_s) for _, t_s, _ in events] == sorted(float(t_s) for _, t_s, _ in events)
    assert ask(inspector, "read_part", part="request").startswith(call.request.text[:20])
    pictures = set()
    for is_dark in (False, True):
        ask(inspector, "draw_timeline", dark=is_dark)
        timeline = inspector.view().timeline
        assert timeline.url.startswith("data:image/png;base64,")
        pictures.add(timeline.url)
    assert len(pictures) == 2


def test_a_refusal_of_a_stream_is_a_response_with_a_body(client: famnb.Client):
    with pytest.raises(famnb.BadRequestError) as caught:
        client.ask("Why?", endpoint="responses", previous_response_id="resp_of_nobody")
    call = Inspector(caught.value.reply, client.ledger).view()
    assert '"code": "previous_response_not_found"' in call.response.text
    assert "Status 400" in call.response.lines
    assert call.event_count == 0


def test_an_inspector_is_a_widget_that_leaves_the_call(client: famnb.Client):
    reply = client.ask("Why is the sky blue?", model="fam-mini", endpoint="chat", stream=False)
    inspector = Inspector(reply, client.ledger)
    assert HBox([inspector]).children == (inspector,)
    bundle, _ = inspector._repr_mimebundle_()
    assert "Why is the sky blue?" in bundle["text/html"]
    assert "Status 200" in bundle["text/html"]
    assert "Why is the sky blue?" in bundle["text/plain"]
    assert bundle["text/plain"].endswith("A famnb.Inspector: run this cell to use it.")


def test_what_was_never_recorded_cannot_be_opened(client: famnb.Client):
    with pytest.raises(ValueError, match="was not recorded"):
        Inspector(famnb.Reply())
    with pytest.raises(KeyError):
        Inspector("call_none", client.ledger)


@pytest.mark.parametrize(
    ("profile", "lines"),
    [
        ("fam", ["authorization: Bearer ••••••"]),
        pytest.param("openai", ["authorization: Bearer ••••••"], marks=pytest.mark.full),
        ("anthropic", ["x-api-key: ••••••", "anthropic-version: 2023-06-01"]),
        ("ollama", ["authorization: Bearer •••••• (if the client had a key)"]),
    ],
)
def test_the_head_of_a_request_is_that_of_its_profile(tmp_path: Path, profile: str, lines: list[str]):
    with (
        serve(time_scale=0, compat=True) as server,
        famnb.Client(
            profile=profile, base_url=server.url, api_key=server.key, ledger=tmp_path / "own.sqlite"
        ) as client,
    ):
        reply = client.ask("Hi", stream=False)
        text = Inspector(reply, client.ledger).view().request.text
    head, _, _ = text.partition("\n\n")
    assert head.splitlines()[1:] == [*lines, "content-type: application/json"]
    assert server.key not in text


def test_a_reply_is_found_in_the_ledger_of_the_connected_client_or_of_its_own(server, tmp_path, monkeypatch):
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "own.sqlite") as other:
        reply = other.ask("Hi", max_tokens=8)
        with monkeypatch.context() as patch:
            patch.setattr("famnb.client.connected.client", other)
            assert Inspector(reply).call.call_id == reply.call_id
    assert Inspector(reply).call.reply.call_id == reply.call_id
    assert famnb.Inspector(reply.call_id).call.reply.text == reply.text
    with pytest.raises(KeyError, match="pass `ledger="):
        Inspector("no-such-call")
