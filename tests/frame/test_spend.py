"""What calls cost, added up: nothing invented where no price or no usage is known."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

import famnb
from famnb.frame.spend import is_unpriced
from famnb.record import Ledger
from famnb.service import Server
from tests.support.exchanges import exchange, spoken


@pytest.fixture
def client(server: Server) -> Iterator[famnb.Client]:
    """Two calls of fam-mini, one of a model without a price, and one that fails."""
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        for prompt in ("one", "two"):
            client.ask(prompt, endpoint="chat", model="fam-mini", stream=False)
        client.ask("three", endpoint="messages", model="fam-2-5-pro", stream=False)
        stranger = famnb.Client(base_url=server.url, api_key="wrong-key", ledger=client.ledger)
        with stranger, pytest.raises(famnb.AuthenticationError):
            stranger.ask("four", endpoint="messages", model="fam-2-5-mini")
        yield client


def test_spending_by_model_is_the_sum_of_its_calls(client: famnb.Client):
    calls = famnb.calls(client)
    found = famnb.spend(client, by="model").set_index("model")
    mini = calls[calls["model"] == "fam-mini"]
    assert found.loc["fam-mini", "cost_usd"] == pytest.approx(mini["cost_usd"].sum())
    assert found.loc["fam-mini", "output_tokens"] == mini["output_tokens"].sum()
    assert found["calls"].to_dict() == {"fam-mini": 2, "fam-2-5-pro": 1, "fam-2-5-mini": 1}
    assert found["unpriced_calls"].to_dict() == {"fam-mini": 0, "fam-2-5-pro": 1, "fam-2-5-mini": 0}
    assert found.loc["fam-2-5-pro", "cost_usd"] is pd.NA
    assert found["simulated_calls"].sum() == 4


@pytest.mark.parametrize(
    ("period", "begins"),
    [("hour", "2026-01-01 00:00"), ("day", "2026-01-01"), ("week", "2025-12-29"), ("month", "2026-01-01")],
)
def test_periods_begin_at_wall_time_of_the_zone(ledger: Ledger, period: str, begins: str):
    ledger.on_close(exchange(started_at=datetime(2025, 12, 31, 23, 30, tzinfo=UTC)))
    found = famnb.spend(ledger, by=period, tz="Europe/Paris")
    assert (found[period].tolist(), found["calls"].tolist()) == ([pd.Timestamp(begins)], [1])


def test_several_words_make_a_row_each_and_filters_are_those_of_calls(client: famnb.Client):
    found = famnb.spend(client, by=["day", "endpoint"], endpoint="chat")
    assert list(found.columns[:2]) == ["day", "endpoint"]
    assert found[["endpoint", "calls"]].values.tolist() == [["chat", 2]]
    failed = famnb.spend(client, by=["model", "model"], status="failed")
    assert failed[["model", "calls"]].values.tolist() == [["fam-2-5-mini", 1]]


def test_no_calls_are_no_rows_of_the_same_columns(client: famnb.Client):
    none, some = famnb.spend(client, tag="none such"), famnb.spend(client)
    assert len(none) == 0
    assert list(none.dtypes.items()) == list(some.dtypes.items())


@pytest.mark.parametrize("by", ["colour", [], ["day", "colour"], None, 3])
def test_an_unknown_word_is_refused_with_the_known_ones(ledger: Ledger, by: object):
    with pytest.raises(ValueError, match="by: expected one or several of hour, day, week, month, model"):
        famnb.spend(ledger, by=by)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tz: expected the name of a time zone, such as 'Europe/Paris', got 'Mars/X'"):
        famnb.spend(ledger, tz="Mars/X")


def test_what_cannot_have_been_billed_is_not_unpriced():
    """Refused, not accepted, not sent, not over; what brought no response, or broke off, may have been billed."""
    rows = {
        "answered": ("completed", 200, None, 1),
        "cut off": ("failed", 200, "StreamInterrupted", 1),
        "no response": ("failed", None, "FirstEventTimeout", 1),
        "refused": ("failed", 400, "BadRequestError", 1),
        "overloaded": ("failed", 503, "ServerError", 3),
        "no connection": ("failed", None, "ConnectError", 3),
        "stopped before": ("cancelled", None, None, 0),
        "running": ("running", 200, None, 1),
        "planned": ("planned", None, None, None),
    }
    frame = pd.DataFrame.from_dict(rows, "index", columns=["status", "http_status", "error", "attempts"])
    frame = frame.astype({"http_status": "Int64", "attempts": "Int64"}).assign(cost_usd=pd.NA)
    assert list(frame.index[is_unpriced(frame)]) == ["answered", "cut off", "no response"]
    assert not is_unpriced(frame.assign(cost_usd=0.1)).any()


def test_sums_of_estimates_have_their_ends(client: famnb.Client):
    client.ask("five " * 20, endpoint="chat", model="fam-mini", stream=True)
    calls, by_model = famnb.calls(client), famnb.spend(client, by="model").set_index("model")
    for name in ("input_tokens_low", "input_tokens_high", "output_tokens_low", "output_tokens_high"):
        known = calls.loc[calls["model"] == "fam-mini", name]
        assert by_model.loc["fam-mini", name] == known.sum()
    assert by_model.loc["fam-mini", "output_tokens_low"] < by_model.loc["fam-mini", "output_tokens_high"]


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [("yesterday", None, [0, 1]), ("yesterday", "today", [1]), ("last 7 days", None, [0, 1, 6]), ("today", None, [0])],
)
def test_days_have_names(ledger: Ledger, since: str, until: str | None, days: list[int]) -> None:
    """By the clock of this machine: calls of now, of yesterday's noon, and six and eight days ago."""
    now = datetime.now().astimezone()
    for ago in (8, 6, 1, 0):
        moment = now - timedelta(days=ago) if ago != 1 else (now - timedelta(days=1)).replace(hour=12)
        ledger.on_close(exchange(spoken("Hi"), started_at=moment, labels={"tag": str(ago)}))
    assert sorted(map(int, famnb.spend(ledger, by="tag", since=since, until=until)["tag"])) == days
