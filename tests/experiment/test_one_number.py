"""Every place that states what the same calls cost says the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

import famnb
from famnb import Inspector
from famnb.experiment.summary import summary
from famnb.record import Ledger
from famnb.widget.dashboard.charts import Groups, Timeline, draw_charts
from famnb.widget.dashboard.overview import READ_COLUMNS, headlines
from tests.plot.plot_figures import figure_text
from tests.support.exchanges import exchange, spoken

NOW = datetime(2026, 11, 11, 12, tzinfo=UTC)


@pytest.fixture
def recorded(tmp_path):
    """A ledger with one call of fam-mini, of so many characters, and its reply."""

    def record(**fields):
        ledger = Ledger(tmp_path / "one.sqlite")
        labels = {"experiment": "one", "variant": "A", "prompt_id": "p", "cell": "c"}
        call = exchange(started_at=NOW - timedelta(minutes=5), labels=labels, **fields)
        ledger.on_close(call).result()
        return ledger, call.reply

    return record


def places(ledger, reply):
    """What each place says of the cost, by its name."""
    calls = famnb.calls(ledger)
    feed = famnb.calls(ledger, columns=READ_COLUMNS)
    timeline = Timeline.over(NOW - timedelta(hours=1), NOW)
    charts = {chart.key: chart for chart in draw_charts(feed, timeline, Groups.of(feed, "model"))}
    (bar,) = [words for words in charts["spend"].words if "fam-mini" in words]
    figure = headlines(feed)[0]
    return {
        "reply.cost": str(reply.cost),
        "calls": repr(calls),
        "spend": repr(famnb.spend(ledger)),
        "spend in a notebook": re.sub("<[^>]+>", "", famnb.spend(ledger)._repr_html_()),
        "Inspector": repr(Inspector(reply).saved()),
        "Dashboard": f"{figure.value} ({figure.note})",
        "bar": bar.partition(": ")[0],
        "bar of a group": bar.partition(": ")[2],
        "figure": figure_text(famnb.plot.cost(calls)),
        "summary": summary(calls.assign(warmup=False)).text_columns()["cost"][0],
        "bill": repr(famnb.bill(ledger, now=NOW)),
    }


@pytest.mark.parametrize(
    ("fields", "amount"),
    [
        ({"reads": spoken("Hi", counts=(1000, 200))}, "$0.00045"),
        pytest.param({"reads": spoken("a" * 400, counts=None)}, "at most $0.0164", marks=pytest.mark.full),
        pytest.param(
            {"reads": spoken("a" * 400, counts=None), "service": "sim"}, "at most $0.000409", marks=pytest.mark.full
        ),
        ({"reads": spoken("a" * 400, counts=None), "model": "fam-mini", "max_tokens": 130}, "≈ $0.000102"),
    ],
)
def test_the_cost_of_the_same_calls_is_one_text(recorded, fields, amount):
    texts = places(*recorded(**fields))
    # A cell of a table has no room for the space.
    short = amount.replace("≈ ", "≈")
    assert {name: text for name, text in texts.items() if amount not in text and short not in text} == {}
