"""A frame of calls shows the columns people look for first, as text that says what is an estimate."""

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime

import pandas as pd
import pytest

from famnb.frame import calls
from famnb.frame.calls import CallsFrame
from famnb.record import Ledger
from tests.support.exchanges import exchange, spoken

START = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)


@pytest.fixture(autouse=True)
def wide_terminal() -> Iterator[None]:
    """Lines long enough for a whole row."""
    with pd.option_context("display.width", 400):
        yield


def record(ledger: Ledger, *texts: str, count: int = 1, counts: tuple[int, int] | None = (8, 3)) -> pd.DataFrame:
    """The frame of some equal calls."""
    for _ in range(count):
        call = exchange(spoken(*texts, counts=counts), started_at=START, prompt="Is it $5 or $6?")
        ledger.on_close(call)
    return calls(ledger)


def test_what_people_look_for_comes_first_and_all_columns_stay(ledger: Ledger):
    frame = record(ledger, "Hello, ", "world")
    head, row = repr(frame).splitlines()[:2]
    first = ["model", "endpoint", "status", "ttft_s", "e2e_s", "input_tokens", "output_tokens", "cost_usd", "prompt"]
    assert head.split() == [*first, "started_at", "call_id"]
    assert row.split()[1:9] == ["fam-mini", "chat", "completed", "0.200", "0.400", "8", "3", "$0.000005"]
    assert "2026-01-02 03:04:05.678 " in row
    assert f"1 row × {len(frame.columns)} columns" in repr(frame)
    assert len(frame.columns) > 50
    assert list(frame.columns[:3]) == ["model", "endpoint", "status"]
    assert frame.columns[-1] == "call_id"


def test_estimates_wear_their_mark(ledger: Ledger):
    assert " at most 16,384 " in repr(record(ledger, "a" * 400, counts=None))
    known = record(ledger, "a" * 400)
    assert "≈120 " in repr(known.assign(output_tokens=120, output_tokens_low=100, output_tokens_high=140))
    assert "≈" not in repr(known.iloc[1:]).splitlines()[1]


def test_a_selection_of_calls_shows_itself_alike_and_fewer_columns_as_ever(ledger: Ledger):
    frame = record(ledger, "Hi", count=3)
    assert "3 rows" in repr(frame)
    assert "2 rows" in repr(frame[frame["status"] == "completed"].tail(2))
    few = frame[["call_id", "status", "ttft_s"]]
    for other in (few, frame.describe(), frame.T, frame.groupby("model").count(), frame.assign(cost_usd=[{}] * 3)):
        plain = pd.DataFrame(other)
        assert (repr(other), other._repr_html_()) == (repr(plain), plain._repr_html_())
    with pd.option_context("display.max_columns", None):
        assert repr(frame) == repr(pd.DataFrame(frame))


def test_a_long_frame_shows_its_ends(ledger: Ledger):
    frame = pd.concat([record(ledger, "Hi")] * 100, ignore_index=True)
    lines = repr(frame).splitlines()
    assert [line.split()[0] for line in lines[1:12]] == ["0", "1", "2", "3", "4", "..", "95", "96", "97", "98", "99"]
    assert lines[-1].startswith("100 rows × ")
    assert frame._repr_html_().count("<tr") == 12


def test_the_table_in_a_notebook_is_no_formula_and_no_markup(ledger: Ledger):
    frame = record(ledger, "Hi").assign(prompt="<b>$5</b> or $6")
    html = frame._repr_html_()
    assert "&lt;b&gt;$5&lt;/b&gt; or $6" in html
    assert "mathjax_ignore" in html
    with pd.option_context("display.notebook_repr_html", False):
        assert frame._repr_html_() is None


def test_it_is_a_frame_like_any_other(ledger: Ledger):
    empty = calls(ledger)
    assert "0 rows" in repr(empty)
    frame = record(ledger, "Hi")
    assert isinstance(frame, CallsFrame)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(frame))
    assert type(calls(ledger, columns=["model", "status"])) is pd.DataFrame
    restored = pickle.loads(pickle.dumps(frame))
    assert (type(restored), restored.attrs) == (pd.DataFrame, {"definition": "famnb"})
    pd.testing.assert_frame_equal(restored, pd.DataFrame(frame))
