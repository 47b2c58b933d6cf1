"""Frames of many calls: counts estimated column by column are those of one call, chosen columns, runs."""

import contextlib
import itertools
import sqlite3
from datetime import UTC, datetime

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from famnb.events import COUNTS, Usage
from famnb.frame import calls
from famnb.frame.columnar_reader import CHUNK
from famnb.record import Ledger, schema, sql, token_estimates
from tests.support.exchanges import exchange, spoken

START = datetime(2026, 1, 1, tzinfo=UTC)


class Fitted(Ledger):
    """A ledger whose fits are given."""

    def fits(self, model: str) -> dict[str | None, token_estimates.TokenFit]:
        known = token_estimates.TokenFit(
            token_estimates.TokenRatio(0.3, 0.2, 0.4),
            token_estimates.TokenRatio(0.25, 0.2, 0.3),
            token_estimates.TokenRatio(2, 1, 9),
        )
        return {"sim": known} if model == "m" else {}


COUNT = st.none() | st.integers(0, 5000)
CALL = st.fixed_dictionaries(
    dict.fromkeys((*COUNTS, "input_chars", "output_chars", "hidden_cap"), COUNT)
    | {"model": st.sampled_from(["m", "n"]), "service": st.sampled_from([None, "sim"])}
)


@settings(max_examples=15)
@given(st.lists(CALL, min_size=4, max_size=12))
def test_many_calls_are_estimated_as_one_is(tmp_path_factory: pytest.TempPathFactory, some: list[dict]):
    """Counts, their sources and both ends equal those of `estimate_usage`, whatever is missing."""
    ledger = Fitted(tmp_path_factory.mktemp("many") / "ledger.sqlite")
    with contextlib.closing(schema.open_to_write(ledger.path)) as connection:
        for index, call in enumerate(some):
            sources = {f"{count}_source": "reported" for count in COUNTS if call[count] is not None}
            row = {"id": f"c{index}", "started_us": index, "status": "completed", "http_status": 200, **call, **sources}
            connection.execute(sql.insert("calls", tuple(row), otherwise="FAIL"), [*row.values()])
    frame = calls(ledger)
    for index, call in enumerate(some):
        usage = Usage(*(call[count] for count in COUNTS))
        expected, *expected_ends = token_estimates.estimate_usage(
            usage,
            input_chars=call["input_chars"],
            output_chars=call["output_chars"],
            fit=ledger.fits(call["model"]).get(call["service"], token_estimates.TokenFit()),
            hidden_cap=call["hidden_cap"],
        )
        found = {name: None if pd.isna(value) else value for name, value in frame.iloc[index].items()}
        for count in COUNTS:
            assert found[count] == getattr(expected, count)
            assert found[f"{count}_source"] == expected.source(count)
        for count, (name, end) in itertools.product(
            ("input_tokens", "output_tokens"), zip(("low", "high"), expected_ends, strict=True)
        ):
            assert found[f"{count}_{name}"] == getattr(end, count)


def test_chosen_columns_are_those_of_the_whole_frame(ledger: Ledger):
    """In the order asked for; an unknown name is refused."""
    ledger.on_close(exchange(spoken("Hi", counts=(8, 3))))
    ledger.on_close(exchange(spoken("Hi")))
    whole = calls(ledger)
    for name in whole.columns:
        pd.testing.assert_frame_equal(calls(ledger, columns=[name]), whole[[name]])
    assert list(calls(ledger, columns=("ttft_s", "model"))) == ["ttft_s", "model"]
    assert list(calls(ledger, columns=["model", "ttft_s"], definition="vllm")) == ["model", "ttft_s"]
    with pytest.raises(ValueError, match="columns: 'ttft'"):
        calls(ledger, columns=["ttft"])


def test_every_cell_is_what_the_ledger_holds(ledger: Ledger):
    """Awkward words, integers of all sizes, numbers that only the last rows have, and more words than a byte counts."""
    ledger.on_close(exchange()).result()
    words = ['a"b\\', "l1\nl2", "\x00\x1f,", "\U0001f600 é", "", "null", None, *(f"w{number}" for number in range(300))]
    integers = [0, -1, None, 2**53, -(2**53)]
    columns = {
        "id": [f"c{index:05}" for index in range(CHUNK + 9)],
        "model": words,
        "tag": words[::-1],
        "error": words[:7],
        "thinking_latency_ms": integers,
        "ttfb_s": [index / 7 for index in range(11)],
        "think_s": [*[None] * CHUNK, *range(9)],
        "complete": [None, 0, 1],
    }
    rows = [[values[index % len(values)] for values in columns.values()] for index in range(CHUNK + 9)]
    with sqlite3.connect(ledger.path) as connection:
        connection.executemany(
            f"INSERT INTO calls ({', '.join(columns)}, started_us, status, endpoint) "
            f"VALUES ({'?,' * len(columns)} ?, 'failed', 'web')",
            [[*row, index] for index, row in enumerate(rows)],
        )
    # The newest is the last.
    frame = calls(ledger).iloc[:-1].rename(columns={"call_id": "id"})[[*columns]].astype(object)
    assert frame.where(frame.notna(), None).values.tolist() == rows
    assert len(calls(ledger, limit=CHUNK)) == CHUNK
    assert calls(ledger, limit=1)["endpoint"].iloc[0] == "chat"
