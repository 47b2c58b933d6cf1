"""The dashboard: what it shows is what the ledger has, little is sent, and model text stays text."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from ipywidgets import HBox

import famnb
from famnb.service import Server, serve
from famnb.widget.dashboard.dashboard import Dashboard
from famnb.widget.dashboard.overview import CallFeed
from famnb.widget.dashboard.time_ranges import ALL, RANGES
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
    made.refresh()
    yield made
    made.close()


def says(dashboard: Dashboard, **message: object) -> None:
    """What the page sends."""
    dashboard._on_message(dashboard, message, None)


def rows(dashboard: Dashboard) -> list[dict[str, str]]:
    """The calls in the list."""
    listed: list[dict[str, str]] = dashboard.describe()["calls"]["rows"]
    return listed


def figures(dashboard: Dashboard) -> dict[str, tuple[str, str]]:
    """Value and note of each headline figure."""
    return {name: (value, note) for name, value, note in dashboard.describe()["figures"]}


def sent_by(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the dashboard sends from now on, to a page that has said `ready`."""
    says(dashboard, kind="ready", page="1")
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(Dashboard, "send", lambda _self, message, _buffers=None: sent.append(message))
    return sent


def test_an_empty_ledger_says_so(dashboard: Dashboard) -> None:
    """Words instead of zeros."""
    assert dashboard.describe()["empty"].startswith("No calls yet")
    assert rows(dashboard) == []
    assert "No calls yet" in dashboard.snapshot()["text/html"]


def test_the_page_is_drawn_and_filtered_before_the_calls_are_read(
    client: famnb.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell ends at once; what is chosen meanwhile counts for the calls when they come."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    may_read, read = threading.Event(), CallFeed.refresh
    monkeypatch.setattr(CallFeed, "refresh", lambda feed: may_read.wait(60) and read(feed))
    slow = Dashboard(client)
    says(slow, kind="ready", page="1")
    says(slow, kind="filter", name="endpoint", value="messages")
    parts = slow.describe()
    assert (parts["reading"], parts["empty"]) == (True, "Reading the calls …")
    assert parts["filters"]["chosen"]["endpoint"] == "messages"
    assert "still being read when this was saved" in slow.snapshot()["text/plain"]
    may_read.set()
    wait_until(lambda: not slow.describe()["reading"])
    assert slow.describe()["empty"].startswith("The one call is not of this model and endpoint")
    says(slow, kind="filter", name="endpoint", value="")
    assert len(rows(slow)) == 1
    slow.close()


def test_what_has_no_ledger_is_refused_in_words(capfd: pytest.CaptureFixture[str]) -> None:
    """Once, as the error: nothing is said again when what was half made is thrown away."""
    with pytest.raises(TypeError, match="expected a Ledger, a path, or a client that records; got 5"):
        Dashboard(5)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_figures_are_those_of_the_calls_and_say_what_they_leave_out(dashboard: Dashboard, client: famnb.Client) -> None:
    """Counts, spend with what has no price, answers, failures, tokens; the newest call on top."""
    for prompt in ("one", "two"):
        client.ask(prompt, model="fam-mini", endpoint="chat", stream=False)
    client.ask("three", model="fam-2-5-pro", endpoint="messages")
    with pytest.raises(famnb.BadRequestError):
        client.ask("four", endpoint="responses", previous_response_id="resp_of_nobody")
    dashboard.refresh()
    shown = figures(dashboard)
    assert shown["calls"] == ("4", "1 failed")
    assert shown["spend"][1] == "1 of 3 calls without a price"
    assert shown["spend"][0].startswith("≥ $0.000")
    assert shown["time to first token"][1] == "median of 3; 1 without an answer left out"
    assert shown["errors"] == ("1", "25.0% of 4 ended: 1 × BadRequestError")
    assert shown["tokens"][1].endswith("1 call without counts left out")
    assert "simulated: nothing was billed" in dashboard.describe()["note"]
    assert [row["prompt"] for row in rows(dashboard)] == [
        "BadRequestError: four",
        "three",
        "two",
        "one",
    ]
    assert rows(dashboard)[1]["endpoint"] == "messages"


def test_filters_leave_the_rest_out(dashboard: Dashboard, client: famnb.Client) -> None:
    """By model and endpoint; choosing any again brings all back; a value that is none changes nothing."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    client.ask("two", model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.refresh()
    assert dashboard.describe()["filters"]["choices"]["model"] == ["", "fam-2-5-pro", "fam-mini"]
    says(dashboard, kind="filter", name="model", value="fam-mini")
    assert [row["prompt"] for row in rows(dashboard)] == ["one"]
    says(dashboard, kind="filter", name="endpoint", value="messages")
    assert rows(dashboard) == []
    assert dashboard.describe()["empty"].startswith("None of the 2 calls is of this model and endpoint")
    says(dashboard, kind="filter", name="model", value="fam-none")
    assert dashboard.describe()["filters"]["chosen"]["model"] == "fam-mini"
    for name in ("model", "endpoint"):
        says(dashboard, kind="filter", name=name, value="")
    assert len(rows(dashboard)) == 2


def test_a_time_range_leaves_earlier_calls_out(
    dashboard: Dashboard, client: famnb.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not shown is said to be there."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    monkeypatch.setitem(RANGES, "last hour", timedelta(0))
    says(dashboard, kind="filter", name="range", value="last hour")
    dashboard.refresh()
    assert dashboard.describe()["empty"].endswith(f"Earlier ones are under “{ALL}”.")
    says(dashboard, kind="filter", name="range", value=ALL)
    assert len(rows(dashboard)) == 1


def test_calls_are_grouped_by_model_or_endpoint(dashboard: Dashboard, client: famnb.Client) -> None:
    """A row and a colour each, the same in every chart; their sums are those of the headline."""
    for model, endpoint in (("fam-mini", "chat"), ("fam-2-5-pro", "messages"), ("fam-2-5-mini", "messages")):
        client.ask("Hi", model=model, endpoint=endpoint, stream=False)
    dashboard.refresh()
    charts = dashboard.describe()["charts"]
    assert [group["label"] for group in charts["groups"]] == ["fam-2-5-mini", "fam-2-5-pro", "fam-mini"]
    assert len({group["colour"] for group in charts["groups"]}) == 3
    colours = {group["label"]: group["colour"] for group in charts["groups"]}
    calls = next(chart for chart in charts["charts"] if chart["name"] == "calls")
    assert [sum(column) for column in calls["values"]] == [1, 1, 1]
    says(dashboard, kind="filter", name="by", value="endpoint")
    table = dashboard.describe()["table"]
    labels = [group["label"] for group in dashboard.describe()["charts"]["groups"]]
    assert dict(zip(labels, (row[0] for row in table["rows"]), strict=True)) == {"chat": "1", "messages": "2"}
    other = Dashboard(client)
    other.close()
    other.refresh()
    assert {group["label"]: group["colour"] for group in other.describe()["charts"]["groups"]} == colours


def test_a_span_of_a_chart_lists_its_calls_and_opens_the_only_one(dashboard: Dashboard, client: famnb.Client) -> None:
    """As a click on the chart does; Show all lists the latest of all again."""
    reply = client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    dashboard.refresh()
    says(dashboard, kind="span", index=0)
    parts = dashboard.describe()
    assert parts["calls"]["title"].startswith("Calls of ")
    assert parts["calls"]["span"] == 0
    assert parts["call"]["id"] == reply.call_id
    says(dashboard, kind="span")
    assert dashboard.describe()["calls"]["title"] == "Latest calls"


def test_a_chosen_call_opens_stays_open_and_closes(dashboard: Dashboard, client: famnb.Client) -> None:
    """New calls move the list, not what is open."""
    reply = client.ask("one", model="fam-2-5-pro", endpoint="messages")
    dashboard.refresh()
    says(dashboard, kind="open", id=reply.call_id)
    client.ask("two", model="fam-2-5-pro", endpoint="messages")
    dashboard.refresh()
    assert dashboard.describe()["call"]["id"] == reply.call_id
    says(dashboard, kind="events", filter="message_start")
    assert dashboard.describe()["events"]["summary"].endswith("hold the text")
    says(dashboard, kind="shut")
    assert dashboard.describe()["call"] is None


def test_a_call_that_was_opened_while_it_ran_is_whole_when_it_has_ended(
    dashboard: Dashboard, client: famnb.Client
) -> None:
    """It is laid open again by itself, with its end and every event."""
    with (
        serve(fault="stall=5") as slow,
        famnb.Client(base_url=slow.url, api_key=slow.key, ledger=client.ledger) as waiting,
    ):
        stream = waiting.engine.start(famnb.compose("messages", "Why?", stream=True))
        wait_until(lambda: stream.reply.text)
        dashboard.refresh()
        assert [row["status"] for row in rows(dashboard)] == ["running"]
        says(dashboard, kind="open", id=rows(dashboard)[0]["id"])
        stream.stop()
        stream.wait(60)
    dashboard.refresh()
    assert [row["status"] for row in rows(dashboard)] == ["cancelled"]
    assert "stopped" in dashboard.describe()["call"]["transcript"]


def test_only_what_has_changed_is_sent(
    dashboard: Dashboard, client: famnb.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing while nothing happens; a new call sends figures and list, not the filters."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    dashboard.refresh()
    sent = sent_by(dashboard, monkeypatch)
    dashboard.refresh()
    assert sent == []
    client.ask("two", model="fam-mini", endpoint="chat", stream=False)
    dashboard.refresh()
    (message,) = sent
    assert message["kind"] == "changes"
    assert {"figures", "calls"} <= set(message)
    assert "filters" not in message


def test_a_call_that_cannot_be_opened_stays_said(dashboard: Dashboard, client: famnb.Client) -> None:
    """The next look at the ledger does not take the words away; opening another call does."""
    reply = client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    dashboard.refresh()
    says(dashboard, kind="open", id="call_none")
    dashboard.refresh()
    assert "no call 'call_none'" in dashboard._trouble
    says(dashboard, kind="open", id=reply.call_id)
    assert dashboard._trouble == ""


def test_a_ledger_that_cannot_be_read_is_said_and_the_next_look_may_work(
    dashboard: Dashboard, client: famnb.Client
) -> None:
    """The words of the error stand under the table."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    client.ledger.close()
    good = client.ledger.path.read_bytes()
    client.ledger.path.write_bytes(b"not a database" * 100)
    dashboard.refresh()
    assert "cannot be read" in dashboard._trouble
    late = Dashboard(client)
    late.close()
    late.refresh()
    assert late.describe()["empty"].startswith("The calls cannot be read")
    client.ledger.path.write_bytes(good)
    dashboard.refresh()
    assert dashboard._trouble == ""
    assert len(rows(dashboard)) == 1


def test_closing_ends_the_looking(client: famnb.Client) -> None:
    """No thread is left."""
    made = Dashboard(client)
    (watching,) = [thread for thread in threading.enumerate() if thread.name == "famnb-dashboard"]
    made.close()
    watching.join(60)
    assert not watching.is_alive()


def test_a_dashboard_is_a_widget_that_leaves_its_figures(dashboard: Dashboard, client: famnb.Client) -> None:
    """It can stand in a box; without a kernel its figures and latest calls are left as tables."""
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    dashboard.refresh()
    assert HBox([dashboard]).children == (dashboard,)
    bundle, _ = dashboard._repr_mimebundle_()
    assert bundle["text/html"].count("<table") == 3
    assert "fam-mini" in bundle["text/html"]
    assert "time to first token" in bundle["text/plain"]
    assert bundle["text/plain"].endswith("A famnb.Dashboard: run this cell to use it.")


def test_hostile_text_is_text_everywhere(dashboard: Dashboard, client: famnb.Client) -> None:
    """A prompt and the answer that quotes it: no element of theirs is in any HTML, and none of it is widget state."""
    reply = client.ask(HOSTILE, model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.refresh()
    inspector = Inspector(reply, client.ledger)
    pages = [inspector.view().call.transcript, inspector.saved()["text/html"], dashboard.snapshot()["text/html"]]
    assert not any("<img" in page or "<script" in page for page in pages)
    traits = {name: value for name, value in dashboard.get_state().items() if name not in ("_esm", "_css")}
    assert "alert" not in json.dumps(traits)
