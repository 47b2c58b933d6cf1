"""A ledger that famnb wrote before its modules were renamed still opens, and everything read from it is the same.

`fixtures/ledger_before_renames.sqlite` holds calls of all four endpoints, whole and streamed; with thinking, hidden
reasoning and a tool call; failed, broken off, stopped, and left running by processes that died, one of them unnoticed;
before and after a change of price; and a small experiment with scores and votes. The JSON file beside it holds what
the code that wrote it read from it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

import famnb
from famnb.errors import FamnbError
from famnb.experiment import scorers
from famnb.experiment.resume import read_resume_state
from famnb.record import Ledger, ratings
from famnb.service.process import SERVICE_URL

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED: dict[str, Any] = json.loads((FIXTURES / "ledger_before_renames.json").read_text(encoding="utf-8"))
NOBODY = "http://127.0.0.1:9"
"""An address where no service listens: whatever were sent would fail."""


@pytest.fixture
def old_ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A copy of the old file, since reading it finishes the row of a call whose process died."""
    with Ledger(shutil.copy(FIXTURES / "ledger_before_renames.sqlite", tmp_path / "old.sqlite")) as ledger:
        yield ledger


@pytest.fixture(autouse=True)
def old_prices() -> Iterator[None]:
    """The prices of those days, with their change."""
    famnb.prices.set("fam-2-5-pro", input="1.25", output=10, cached="0.31")
    famnb.prices.set("fam-2-5-pro", input=2, output=12, cached="0.5", since=EXPECTED["price_change"])
    yield
    famnb.prices.unset("fam-2-5-pro")


def as_json(value: Any) -> Any:
    """A cell of a frame as the JSON file has it."""
    if pd.isna(value):
        return None
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, bool | int | float | str) else str(value)


def table(frame: pd.DataFrame) -> dict[str, Any]:
    rows = [[as_json(value) for value in row] for row in frame.astype(object).itertuples(index=False)]
    return {"columns": list(frame.columns), "dtypes": [str(dtype) for dtype in frame.dtypes], "rows": rows}


def small_experiment(client: famnb.Client, *, prompts: int) -> famnb.Experiment:
    """The recorded experiment, which had two prompts."""
    rows = [
        {"id": "a", "prompt": "Name a colour.", "expected": "blue"},
        {"id": "b", "prompt": "Name a number.", "expected": "7"},
        {"id": "c", "prompt": "Name a city.", "expected": "Paris"},
    ]
    return famnb.Experiment(
        rows[:prompts],
        variants={"cool": {"temperature": 0.1}, "warm": {"temperature": 0.9}},
        name="small",
        client=client,
        endpoint="chat",
        model="fam-mini",
        max_tokens=32,
        seed=3,
        scorers=[scorers.exact(), scorers.regex("[a-z]+")],
    )


def test_frames_of_an_old_ledger_are_the_same(old_ledger: Ledger) -> None:
    """Calls with their costs and estimates, by another tool's definitions, events, runs and spending."""
    frame = famnb.calls(old_ledger)
    # The columns of those days; more have come since, and they stand in another order.
    assert table(frame[EXPECTED["calls"]["columns"]]) == EXPECTED["calls"]
    by_vllm = famnb.calls(old_ledger, definition="vllm")
    assert table(by_vllm[["call_id", "ttft_s", "tpot_s", "e2e_s", "itl_s", "itl_n"]]) == EXPECTED["vllm"]
    events = famnb.deltas(list(frame["call_id"])[:12:3], old_ledger)
    assert table(events[EXPECTED["deltas"]["columns"]]) == EXPECTED["deltas"]
    assert table(famnb.runs(old_ledger)[EXPECTED["runs"]["columns"]]) == EXPECTED["runs"]
    spent = famnb.spend(old_ledger, by=["month", "model", "status"])
    # In those days a refused call counted as unpriced.
    spent.loc[spent["status"] == "failed", "unpriced_calls"] += 1
    assert table(spent[EXPECTED["spend"]["columns"]]) == EXPECTED["spend"]


def call_as_json(ledger: Ledger, call_id: str) -> dict[str, Any]:
    """One call: its reply read again from its bytes, and played again as a stream."""
    call = ledger.call(call_id)
    reply = call.reply
    events: int | None
    stream, error = ledger.replay(call_id, speed=0), None
    try:
        events = sum(1 for _ in stream)
    except FamnbError as replayed_error:
        events, error = None, type(replayed_error).__name__
    return {
        "text": reply.text,
        "thinking": reply.thinking,
        "status": reply.status,
        "complete": reply.complete,
        "finish_reason": reply.finish_reason,
        "stop_reason": reply.stop_reason,
        "error": None if reply.error is None else [type(reply.error).__name__, str(reply.error)],
        "usage": msgspec.to_builtins(reply.usage),
        "timing": msgspec.to_builtins(reply.timing),
        "tool_calls": [[tool_call.name, tool_call.arguments] for tool_call in reply.tool_calls],
        "cost": None if call.cost is None else [str(call.cost.usd), str(call.cost.low), str(call.cost.high)],
        "labels": call.labels,
        "body": call.body,
        "reads": len(call.reads),
        "replay_text": stream.reply.text,
        "replay_events": events,
        "replay_error": error,
    }


def test_replies_of_an_old_ledger_are_read_and_replayed_the_same(old_ledger: Ledger) -> None:
    """Text, thinking, tools, usage, timing, error, cost and labels of every call."""
    for call_id, expected in EXPECTED["replies"].items():
        found = json.loads(json.dumps(call_as_json(old_ledger, call_id)))
        # The latencies and figures of usage of those days; more have come since.
        for part in ("timing", "usage"):
            found[part] = {name: found[part][name] for name in expected[part]}
        assert found == expected
    assert set(EXPECTED["replies"]) == set(famnb.calls(old_ledger)["call_id"])


def test_scores_and_votes_of_an_old_ledger_are_the_same(old_ledger: Ledger) -> None:
    """By the identity of each scorer, and by voter."""
    call_ids = list(famnb.calls(old_ledger)["call_id"])
    scores = [
        [score.call_id, score.scorer, score.value, score.detail] for score in ratings.read_scores(old_ledger, call_ids)
    ]
    assert scores == EXPECTED["scores"]
    votes = [
        [vote.voter, vote.left_cell, vote.right_cell, vote.winner, vote.detail, vote.seed]
        for vote in ratings.read_votes(old_ledger, "small")
    ]
    assert votes == EXPECTED["votes"]


def test_an_experiment_in_an_old_ledger_goes_on_where_it_stopped(
    old_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cells, which a simulation answered, are found by their keys: nothing is sent again; new cells are planned."""
    monkeypatch.setenv(SERVICE_URL, NOBODY)  # so that it is known as a simulation
    with famnb.Client(base_url=NOBODY, api_key="none", ledger=old_ledger) as client:
        experiment = small_experiment(client, prompts=2)
        assert table(experiment.frame()[EXPECTED["experiment"]["columns"]]) == EXPECTED["experiment"]
        assert table(experiment.votes()) == EXPECTED["experiment_votes"]
        statuses = read_resume_state(old_ledger, "small").statuses
        assert {cell: sorted(found) for cell, found in statuses.items()} == EXPECTED["resume"]
        before = len(old_ledger)
        experiment.run()
        assert len(old_ledger) == before
        larger = small_experiment(client, prompts=3).frame()
        assert table(larger[["cell", "status"]]) == EXPECTED["larger_experiment"]
