"""The dashboard: what it shows is what the ledger has, and model text stays text."""

from __future__ import annotations

import gc
import html
import threading
from collections.abc import Iterator

import pytest

import famnb
from famnb.service import Server
from famnb.widget.dashboard import ANY, Dashboard, figures_html
from famnb.widget.inspector import Inspector
from tests.support.waiting import wait_until

HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script>"


@pytest.fixture
def client(server: Server) -> Iterator[famnb.Client]:
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        yield client


@pytest.fixture
def dashboard(client: famnb.Client) -> Iterator[Dashboard]:
    """A dashboard that looks when it is told to."""
    made = Dashboard(client)
    made._closed.set()
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
    assert "1 of 3 calls without a price" in shown
    assert "≈ " in shown  # the input of a messages stream is estimated
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
        wait_until(lambda: stream.reply.text)
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
    assert "no call 'call_none'" in html.unescape(str(dashboard._open_trouble.value))
    dashboard._open(reply.call_id)
    assert dashboard._open_trouble.value == ""


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
    shown = figures_html(frame)
    assert "median of 3" in shown
    assert "95%" not in shown


def test_hostile_text_is_text_everywhere(dashboard: Dashboard, client: famnb.Client) -> None:
    """A prompt and the answer that quotes it: no element of theirs is in any HTML."""
    reply = client.ask(HOSTILE, model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.refresh()
    inspector = Inspector(reply, client.ledger)
    heads = [head.value for head in inspector._descriptions.values()]
    pages = [inspector._transcript.value, *heads, inspector._table.value, dashboard._figures.value]
    assert not any("<img" in page or "<script" in page for page in pages)
