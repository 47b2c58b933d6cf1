"""The dashboard: what it shows is what the ledger has, little is sent, and model text stays text."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from ipywidgets import HBox

import famnb
from famnb.service import serve
from famnb.widget.dashboard.dashboard import Dashboard
from famnb.widget.dashboard.views import ALL, DashboardView, OverviewView
from famnb.widget.inspector import Inspector
from famnb.widget.tables import FigureView
from tests.support.waiting import wait_until
from tests.widget.conftest import ask, send_message

HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script>"


@pytest.fixture
def dashboard(client: famnb.Client) -> Iterator[Dashboard]:
    """A dashboard that has looked at the ledger; it looks again by itself, and at once by `poll`."""
    dashboard = Dashboard(client)
    dashboard.poll()
    yield dashboard
    dashboard.close()


def view_of(dashboard: Dashboard) -> DashboardView:
    with dashboard.lock:
        return dashboard.view()


def overview_of(dashboard: Dashboard) -> OverviewView:
    overview = view_of(dashboard).overview
    assert overview is not None
    return overview


def prompts_of(dashboard: Dashboard) -> list[str]:
    """The prompts of the calls in the list."""
    return [row.cells[-1] for row in overview_of(dashboard).calls.rows]


def values_of(dashboard: Dashboard) -> dict[str, str]:
    """What is chosen of each filter."""
    return {filter.key: filter.value for filter in view_of(dashboard).filters}


def test_an_empty_ledger_says_so(dashboard: Dashboard):
    assert view_of(dashboard).empty.startswith("No calls yet")
    assert view_of(dashboard).overview is None
    assert "No calls yet" in dashboard.saved()["text/html"]


def test_the_page_is_drawn_and_filtered_before_the_calls_are_read(client, monkeypatch):
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    may_read = threading.Event()

    def read(*args: object, **options: object) -> object:
        return may_read.wait(60) and famnb.calls(*args, **options)

    monkeypatch.setattr("famnb.widget.dashboard.overview.calls", read)
    slow = Dashboard(client)
    ask(slow, "set_filter", name="endpoint", value="messages")
    view = view_of(slow)
    assert (view.is_reading, view.empty) == (True, "Reading the calls …")
    assert values_of(slow)["endpoint"] == "messages"
    assert "still being read when this was saved" in slow.saved()["text/plain"]
    may_read.set()
    wait_until(lambda: not view_of(slow).is_reading)
    assert view_of(slow).empty.startswith("The one call is not of this model and endpoint")
    ask(slow, "set_filter", name="endpoint", value="")
    assert prompts_of(slow) == ["one"]
    slow.close()


def test_what_has_no_ledger_is_refused_in_words(capfd: pytest.CaptureFixture[str]):
    with pytest.raises(TypeError, match="expected a Ledger, a path, or a client that records; got 5"):
        Dashboard(5)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_figures_are_those_of_the_calls_and_say_what_they_leave_out(dashboard: Dashboard, client: famnb.Client):
    for prompt in ("one", "two"):
        client.ask(prompt, model="fam-mini", endpoint="chat", stream=False)
    client.ask("three", model="fam-2-5-pro", endpoint="messages")
    with pytest.raises(famnb.BadRequestError):
        client.ask("four", endpoint="responses", previous_response_id="resp_of_nobody")
    dashboard.poll()
    overview = overview_of(dashboard)
    figures: dict[str, FigureView] = {figure.key: figure for figure in overview.figures}
    assert (figures["calls"].value, figures["calls"].note) == ("4", "1 failed")
    assert figures["spend"].note == "1 of 3 calls without a price"
    assert figures["spend"].value.startswith("≥ $0.000")
    assert figures["time to first token"].note == "median of 3; 1 without an answer left out"
    assert (figures["errors"].value, figures["errors"].note) == ("1", "25.0% of 4 ended: 1 × BadRequestError")
    assert figures["tokens"].note.endswith("1 call without counts left out")
    assert "simulated: nothing was billed" in overview.note
    assert prompts_of(dashboard) == ["BadRequestError: four", "three", "two", "one"]
    assert [row.is_failed for row in overview.calls.rows] == [True, False, False, False]
    assert "messages" in overview.calls.rows[1].cells


def test_a_missing_price_can_be_set(dashboard: Dashboard, client: famnb.Client):
    client.ask("one", model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.poll()
    assert overview_of(dashboard).unpriced == ("fam-2-5-pro",)
    ask(dashboard, "set_price", model="fam-2-5-pro", input="cheap", output="10")
    assert "cheap" in dashboard.error
    ask(dashboard, "set_price", model="fam-2-5-pro", input="1.25", output="10")
    try:
        assert dashboard.error == ""
        dashboard.poll()
        assert overview_of(dashboard).unpriced == ()
        assert overview_of(dashboard).figures[0].value.startswith("$0.")
    finally:
        famnb.prices.unset("fam-2-5-pro")


def test_filters_leave_the_rest_out(dashboard: Dashboard, client: famnb.Client):
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    client.ask("two", model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.poll()
    assert {filter.key: filter.choices for filter in view_of(dashboard).filters}["model"] == (
        "",
        "fam-2-5-pro",
        "fam-mini",
    )
    ask(dashboard, "set_filter", name="model", value="fam-mini")
    assert prompts_of(dashboard) == ["one"]
    ask(dashboard, "set_filter", name="endpoint", value="messages")
    assert view_of(dashboard).empty.startswith("None of the 2 calls is of this model and endpoint")
    ask(dashboard, "set_filter", name="model", value="fam-none")
    assert "no calls are known of 'fam-none'" in dashboard.error
    assert values_of(dashboard)["model"] == "fam-mini"
    for name in ("model", "endpoint"):
        ask(dashboard, "set_filter", name=name, value="")
    assert len(prompts_of(dashboard)) == 2


def test_a_time_range_leaves_other_calls_out(dashboard: Dashboard, client: famnb.Client):
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    ask(dashboard, "set_filter", name="range", value="last hour")
    assert prompts_of(dashboard) == ["one"]
    ask(dashboard, "set_filter", name="range", value="yesterday")
    dashboard.poll()
    assert view_of(dashboard).empty.endswith(f"Earlier ones are under “{ALL}”.")
    ask(dashboard, "set_filter", name="range", value=ALL)
    assert prompts_of(dashboard) == ["one"]


def test_calls_are_sorted_by_duration_cost_and_time(dashboard: Dashboard, client: famnb.Client):
    for number, prompt in enumerate(("one", "two two", "three"), start=1):
        client.ask(prompt, model="fam-mini", endpoint="chat", max_tokens=5 * (number % 3) + 5)
    dashboard.poll()
    frame = famnb.calls(client.ledger)
    names = [column.name for column in overview_of(dashboard).calls.columns]
    for name, column in (("took", "e2e_s"), ("cost", "cost_usd"), ("started", "started_at")):
        for is_ascending in (False, True):
            ask(dashboard, "sort_rows", column=names.index(name))
            ids = [row.key for row in overview_of(dashboard).calls.rows]
            assert ids == frame.sort_values(column, ascending=is_ascending)["call_id"].tolist()
    assert overview_of(dashboard).calls.columns[0].order == "ascending"
    assert overview_of(dashboard).calls.title == "All calls"


def test_calls_are_grouped_by_model_or_endpoint(dashboard: Dashboard, client: famnb.Client):
    for model, endpoint in (("fam-mini", "chat"), ("fam-2-5-pro", "messages"), ("fam-2-5-mini", "messages")):
        client.ask("Hi", model=model, endpoint=endpoint, stream=False)
    dashboard.poll()
    overview = overview_of(dashboard)
    colours = {group.key: group.colour for group in overview.groups}
    assert list(colours) == ["fam-2-5-mini", "fam-2-5-pro", "fam-mini"]
    assert len(set(colours.values())) == 3
    calls = next(chart for chart in overview.charts if chart.key == "calls")
    assert [sum(filter(None, column)) for column in calls.values] == [1, 1, 1]
    ask(dashboard, "set_filter", name="by", value="endpoint")
    assert overview_of(dashboard).head[:2] == ("endpoint", "calls")
    assert {group.key: group.cells[0] for group in overview_of(dashboard).groups} == {"chat": "1", "messages": "2"}
    other = Dashboard(client)
    other.close()
    other.poll()
    assert {group.key: group.colour for group in overview_of(other).groups} == colours


def test_a_chosen_call_opens_stays_open_and_closes_and_an_unknown_one_stays_said(
    dashboard: Dashboard, client: famnb.Client
):
    reply = client.ask("one", model="fam-2-5-pro", endpoint="messages")
    dashboard.poll()
    ask(dashboard, "show_call", callId=reply.call_id)
    client.ask("two", model="fam-2-5-pro", endpoint="messages")
    dashboard.poll()
    assert view_of(dashboard).call.id == reply.call_id
    ask(dashboard, "close_call")
    assert view_of(dashboard).call is None
    ask(dashboard, "show_call", callId="call_none")
    dashboard.poll()
    assert "no call 'call_none'" in dashboard.error
    ask(dashboard, "show_call", callId=reply.call_id)
    assert dashboard.error == ""


def test_a_call_that_was_opened_while_it_ran_is_whole_when_it_has_ended(dashboard: Dashboard, client: famnb.Client):
    with (
        serve(fault="stall=5") as slow,
        famnb.Client(base_url=slow.url, api_key=slow.key, ledger=client.ledger) as waiting,
    ):
        stream = waiting.engine.start(famnb.compose("messages", "Why?", stream=True))
        wait_until(lambda: stream.reply.text)
        dashboard.poll()
        (row,) = overview_of(dashboard).calls.rows
        assert "running" in row.cells
        ask(dashboard, "show_call", callId=row.key)
        stream.stop()
        stream.wait(60)
    dashboard.poll()
    (row,) = overview_of(dashboard).calls.rows
    assert "cancelled" in row.cells
    assert "stopped" in view_of(dashboard).call.transcript


def test_only_what_has_changed_is_sent(dashboard: Dashboard, client: famnb.Client):
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    dashboard.poll()
    sent: list[dict[str, Any]] = []
    dashboard.send = lambda message, _buffers=None: sent.append(message)
    send_message(dashboard, kind="ready", page="1")
    sent.clear()
    dashboard.poll()
    dashboard.flush()
    assert sent == []
    reply = client.ask("two", model="fam-mini", endpoint="chat", stream=False)
    dashboard.poll()
    dashboard.flush()
    patch = wait_until(lambda: sent)[0]["patch"]
    assert set(patch) == {"overview"}
    assert "figures" in patch["overview"]
    assert set(patch["overview"]["calls"]["rows"]) == {"$", reply.call_id}


def test_a_ledger_that_cannot_be_read_is_said_and_the_next_look_may_work(dashboard: Dashboard, client: famnb.Client):
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    client.ledger.close()
    good = client.ledger.path.read_bytes()
    client.ledger.path.write_bytes(b"not a database" * 100)
    dashboard.poll()
    assert "cannot be read" in dashboard.error
    late = Dashboard(client)
    late.close()
    late.poll()
    assert view_of(late).empty.startswith("The calls cannot be read")
    client.ledger.path.write_bytes(good)
    dashboard.poll()
    assert dashboard.error == ""
    assert prompts_of(dashboard) == ["one"]


def test_closing_ends_the_looking(client: famnb.Client):
    before = set(threading.enumerate())
    dashboard = Dashboard(client)
    (watching,) = [thread for thread in set(threading.enumerate()) - before if thread.name == "famnb-dashboard"]
    dashboard.close()
    watching.join(60)
    assert not watching.is_alive()


def test_a_dashboard_is_a_widget_that_leaves_its_figures(dashboard: Dashboard, client: famnb.Client):
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    dashboard.poll()
    assert HBox([dashboard]).children == (dashboard,)
    bundle, _ = dashboard._repr_mimebundle_()
    assert bundle["text/html"].count("<table") == 3
    assert "fam-mini" in bundle["text/html"]
    assert "time to first token" in bundle["text/plain"]
    assert bundle["text/plain"].endswith("A famnb.Dashboard: run this cell to use it.")


def test_hostile_text_is_text_everywhere(dashboard: Dashboard, client: famnb.Client):
    reply = client.ask(HOSTILE, model="fam-2-5-pro", endpoint="messages", stream=False)
    dashboard.poll()
    inspector = Inspector(reply, client.ledger)
    pages = [inspector.view().transcript, inspector.saved()["text/html"], dashboard.saved()["text/html"]]
    assert not any("<img" in page or "<script" in page for page in pages)
