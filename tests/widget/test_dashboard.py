"""The dashboard and the inspector: what they show is what the ledger has, and model text stays text."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import pytest

import famnb
from famnb.service import Server
from famnb.widget.dashboard import ANY, Dashboard, figures
from famnb.widget.inspector import PAGE, Inspector

HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script>"


@pytest.fixture
def client(server: Server) -> Iterator[famnb.Client]:
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        yield client


@pytest.fixture
def dashboard(client: famnb.Client) -> Iterator[Dashboard]:
    """A dashboard that looks when it is told to."""
    made = Dashboard(client)
    made._ended.set()
    yield made
    made.close()


def test_an_empty_ledger_says_so(dashboard: Dashboard) -> None:
    """Words instead of zeros."""
    assert "No calls yet" in dashboard._figures.value
    assert dashboard._calls.options == ()
    assert dashboard._calls.layout.display == "none"


def test_what_has_no_ledger_is_refused_in_words(capfd: pytest.CaptureFixture[str]) -> None:
    """Once, as the error: nothing is said again when what was half made is thrown away."""
    with pytest.raises(TypeError, match="expected a Ledger, a path, or a client that records; got 5"):
        Dashboard(5)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_figures_are_those_of_the_calls(dashboard: Dashboard, client: famnb.Client) -> None:
    """Counts, spend with what has no price, failures, and the newest call on top."""
    for prompt in ("one", "two"):
        client.ask(prompt, model="fam-mini", endpoint="chat", stream=False)
    client.ask("three", model="fam-2-5-pro", endpoint="messages")
    dashboard.refresh()
    cost = famnb.calls(client)["cost_usd"].sum()
    shown = dashboard._figures.value
    assert ">3<" in shown
    assert "1 calls without a price" in shown
    assert "simulated: nothing was billed" in shown
    assert famnb.spend(client, by="month")["cost_usd"].sum() == cost
    first, _ = dashboard._calls.options[0]
    assert "three" in first
    assert "messages" in first


def test_filters_leave_the_rest_out(dashboard: Dashboard, client: famnb.Client) -> None:
    """By model and endpoint; choosing any again brings all back."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    client.ask("two", model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.refresh()
    assert dashboard._model.options == (ANY, "fam-2-5-pro", "fam-mini")
    dashboard._model.value = "fam-mini"
    assert [label.split()[-1] for label, _ in dashboard._calls.options] == ["one"]
    dashboard._endpoint.value = "messages"
    assert dashboard._calls.options == ()
    assert "None of the 2 calls is of this model and endpoint" in dashboard._figures.value
    dashboard._model.value = dashboard._endpoint.value = ANY
    assert len(dashboard._calls.options) == 2


def test_a_chosen_call_opens_and_stays_open(dashboard: Dashboard, client: famnb.Client) -> None:
    """New calls move the table, not what is open."""
    reply = client.ask("one", model="fam-2-5-pro", endpoint="messages")
    dashboard.refresh()
    dashboard._calls.value = reply.call_id
    (inspector,) = dashboard._opened.children
    client.ask("two", model="fam-2-5-pro", endpoint="messages")
    dashboard.refresh()
    assert inspector.call.call_id == reply.call_id == dashboard._calls.value


def test_a_call_that_was_opened_while_it_ran_is_whole_when_it_has_ended(
    dashboard: Dashboard, client: famnb.Client
) -> None:
    """It is laid open again by itself, with its end and every event."""
    with (
        famnb.serve(fault="stall=5") as slow,
        famnb.Client(base_url=slow.url, api_key=slow.key, ledger=client.ledger) as waiting,
    ):
        stream = waiting.start(famnb.compose("messages", "Why?", stream=True))
        while not stream.reply.text:
            time.sleep(0.01)
        dashboard.refresh()
        ((_, dashboard._calls.value),) = dashboard._calls.options
        (inspector,) = dashboard._opened.children
        assert inspector.call.status == "running"
        stream.stop()
        stream.wait(10)
    dashboard.refresh()
    assert inspector.call.status == "cancelled"
    assert "stopped" in inspector._transcript.value
    assert dashboard._inspector is inspector


def test_an_error_does_not_move_the_columns_of_the_table(dashboard: Dashboard, client: famnb.Client) -> None:
    """Its class stands before the prompt."""
    with pytest.raises(famnb.BadRequestError):
        client.ask("Bad.", endpoint="responses", previous_response_id="resp_of_nobody")
    client.ask("Good.", endpoint="responses", stream=False)
    dashboard.refresh()
    good, bad = (label for label, _ in dashboard._calls.options)
    assert good.index("Good.") == bad.index("BadRequestError: Bad.")


def test_a_call_that_cannot_be_opened_stays_said(dashboard: Dashboard, client: famnb.Client) -> None:
    """The next look at the ledger does not take the words away; opening another call does."""
    reply = client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    dashboard.refresh()
    dashboard._open("call_none")
    dashboard.refresh()
    assert "no call 'call_none'" in dashboard._unopened.value.replace("&#x27;", "'")
    dashboard._open(reply.call_id)
    assert dashboard._unopened.value == ""


def test_a_ledger_that_cannot_be_read_is_said_and_the_next_look_may_work(
    dashboard: Dashboard, client: famnb.Client
) -> None:
    """The words of the error stand under the table."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    client.ledger.close()
    good = client.ledger.path.read_bytes()
    client.ledger.path.write_bytes(b"not a database" * 100)
    dashboard.refresh()
    assert "cannot be read" in dashboard._trouble.value
    client.ledger.path.write_bytes(good)
    dashboard.refresh()
    assert dashboard._trouble.value == ""


def test_closing_ends_the_looking(client: famnb.Client) -> None:
    """No thread is left."""
    made = Dashboard(client)
    (watching,) = [thread for thread in threading.enumerate() if thread.name == "famnb-dashboard"]
    made.close()
    watching.join(10)
    assert not watching.is_alive()


def test_percentiles_need_enough_calls() -> None:
    """Three calls carry a median and no 95th percentile."""
    frame = famnb.calls().iloc[:0].reindex(range(3))
    frame["status"], frame["ttft_s"], frame["simulated"] = "completed", [0.1, 0.2, 0.3], False
    shown = figures(frame)
    assert "median of 3" in shown
    assert "95%" not in shown


def test_an_inspector_lays_everything_open(client: famnb.Client) -> None:
    """Request without the key, status and headers, every event with its time."""
    reply = client.ask("Why is the sky blue?", model="fam-2-5-pro", endpoint="messages", thinking=64, max_tokens=300)
    shown = Inspector(reply, client.ledger)
    pages = {name: f"{shown._heads[name].value}\n{raw.text}" for name, raw in shown._raw.items()}
    assert "Why is the sky blue?" in shown._transcript.value
    assert "/v1/messages" in pages["Request"]
    assert "Bearer ••••••" in pages["Request"]
    assert client._engine._credential.authorization().split()[-1] not in "".join(pages.values())
    assert "Status 200" in pages["Response"]
    assert "x-famnb-engine" in pages["Response"]
    assert f"Events 1 to {min(PAGE, len(reply.raw))} of {len(reply.raw)}" in shown._events.value
    shown._filter.value = "message_start"
    assert "1 of" in shown._events.value
    assert shown._copied.text.count("\n") == 1
    assert "message_start" in shown._copied.text
    shown._tabs.selected_index = 3
    assert 'src="data:image/png;base64,' in shown._timeline.children[0].value


def test_a_refusal_of_a_stream_is_a_response_with_a_body(client: famnb.Client) -> None:
    """What came was no event stream: the service's words are in the response, and there are no events."""
    with pytest.raises(famnb.BadRequestError) as caught:
        client.ask("Why?", endpoint="responses", previous_response_id="resp_of_nobody")
    shown = Inspector(caught.value.reply, client.ledger)
    assert '"code": "previous_response_not_found"' in shown._raw["Response"].text
    assert "Status 400" in shown._heads["Response"].value
    assert "No events" in shown._events.value


def test_long_streams_are_paged(client: famnb.Client) -> None:
    """Later shows the next events, Earlier the first again; the buttons end where the events do."""
    reply = client.ask("Tell me everything.", model="fam-2-5-pro", endpoint="messages", max_tokens=2000)
    shown = Inspector(reply, client.ledger)
    assert len(reply.raw) > PAGE
    assert shown._earlier.disabled
    shown._later.click()
    assert f"Events {PAGE + 1} to" in shown._events.value
    shown._earlier.click()
    assert "Events 1 to" in shown._events.value


def test_what_was_never_recorded_cannot_be_opened(client: famnb.Client) -> None:
    """With the reason; an unknown id is a KeyError."""
    with pytest.raises(ValueError, match="was not recorded"):
        Inspector(famnb.Reply())
    with pytest.raises(KeyError):
        Inspector("call_none", client.ledger)


def test_hostile_text_is_text_everywhere(dashboard: Dashboard, client: famnb.Client) -> None:
    """A prompt and the answer that quotes it: no element of theirs is in any HTML."""
    reply = client.ask(HOSTILE, model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.refresh()
    shown = Inspector(reply, client.ledger)
    heads = [head.value for head in shown._heads.values()]
    pages = [shown._transcript.value, *heads, shown._events.value, dashboard._figures.value]
    assert not any("<img" in page or "<script" in page for page in pages)
