"""The feed of calls: the same as the whole ledger, of which each look reads only the end."""

from collections.abc import Iterator

import pandas as pd
import pytest

import famnb
from famnb.service import Server
from famnb.widget.dashboard import overview
from famnb.widget.dashboard.overview import FEED_COLUMNS, CallFeed


@pytest.fixture
def client(server: Server) -> Iterator[famnb.Client]:
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        yield client


def whole(client: famnb.Client) -> pd.DataFrame:
    """All calls, as the ledger has them now."""
    return famnb.calls(client, columns=FEED_COLUMNS)


def same(feed: CallFeed, frame: pd.DataFrame) -> bool:
    """Whether a feed has exactly these calls."""
    plain = frame.astype(dict.fromkeys(frame.select_dtypes("category").columns, object))
    return feed.frame.equals(plain)


def test_the_feed_is_the_ledger_however_it_changes(client: famnb.Client, monkeypatch: pytest.MonkeyPatch):
    feed = CallFeed(client.ledger)
    feed.refresh()
    client.ask("one", model="fam-mini", endpoint="chat", stream=False)
    client.ask("two", model="fam-2-5-pro", endpoint="messages", stream=False)
    assert feed.refresh()
    assert same(feed, whole(client))
    assert not feed.refresh()
    monkeypatch.setattr(overview, "FEED_OVERLAP", overview.FEED_OVERLAP * 0)
    client.ask("three", model="fam-2-5-mini", endpoint="responses", stream=False)
    assert feed.refresh()
    assert same(feed, whole(client))
    famnb.prices.set("fam-2-5-pro", input=1, output=2)
    try:
        assert feed.refresh()
        assert feed.frame["cost_usd"].notna().sum() == 2
    finally:
        famnb.prices.unset("fam-2-5-pro")
    client.ledger.prune(keep=1)
    feed.refresh()
    assert len(feed.frame) == 1
    assert same(feed, whole(client))
