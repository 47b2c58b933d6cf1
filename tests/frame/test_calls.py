"""The frames: every call in its row, no number without its source, each tool's latencies as that tool defines them."""

import dataclasses
import inspect
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

import famnb
from famnb.errors import AuthenticationError, IdleTimeout
from famnb.frame import CALLS, DELTAS, calls, deltas, describe
from famnb.record import Ledger, prices
from famnb.reply import Reply
from tests.support.exchanges import MS, at, chunk, exchange, spoken, usage


@pytest.fixture
def pro_price() -> Iterator[None]:
    """A price for fam-2-5-pro while the test runs: 1 and 10 dollars a million."""
    prices.set("fam-2-5-pro", input=1, output=10)
    yield
    prices.unset("fam-2-5-pro")


def row(ledger: Ledger, call: object, **options: object) -> pd.Series:
    """The row of one call, once it is recorded."""
    ledger.on_close(call).result()
    frame = calls(ledger, **options)
    return frame[frame["call_id"] == call.id].iloc[0]


def test_an_empty_ledger_gives_all_columns_and_types(ledger: Ledger):
    empty = calls(ledger)
    assert list(empty.columns) == [column.name for column in CALLS]
    ledger.on_close(exchange()).result()
    full = calls(ledger)
    assert len(empty) == 0
    plain = [column.name for column in CALLS if column.dtype != "category"]
    assert empty[plain].dtypes.equals(full[plain].dtypes)
    assert {str(kind) for kind in empty.dtypes} == {
        *("string", "category", "boolean", "Int64", "Float64", "datetime64[us, UTC]")
    }


def test_a_call_in_its_row(ledger: Ledger):
    call = exchange(
        spoken("Hello, ", "wor", "ld", counts=(8, 3)),
        prompt="x" * 300,
        service="sim",
        started_at=datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC),
        labels={"experiment": "first", "tag": "warm"},
    )
    got = row(ledger, call)
    assert got["started_at"] == pd.Timestamp("2026-02-03T04:05:06.000789Z")
    words = ["endpoint", "model", "status", "finish_reason", "stop_reason", "service", "experiment", "tag"]
    assert list(got[words]) == ["chat", "fam-mini", "completed", "stop", "stop", "sim", "first", "warm"]
    assert list(got[["complete", "streamed", "simulated"]]) == [True, True, True]
    assert got["prompt"] == "x" * 200
    assert list(got[["text_chars", "thinking_chars", "attempts", "http_status"]]) == [12, 0, 1, 200]
    assert list(got[["ttfb_s", "ttft_s", "ttfa_s", "e2e_s"]]) == [0.09, 0.2, 0.2, 0.5]
    assert got["icl_p50_s"] == got["icl_max_s"] == pytest.approx(0.1)
    assert (got["tpot_s"], got["output_tps"]) == (pytest.approx(0.1), pytest.approx(6))
    assert list(got[["input_tokens", "output_tokens", "total_tokens"]]) == [8, 3, 11]
    assert list(got[["input_tokens_source", "output_tokens_source", "cached_tokens_source"]]) == [
        *("reported", "reported", "absent")
    ]
    assert (
        got[["think_s", "thinking_latency_ms", "icl_p95_s", "error", "cached_tokens", "reasoning_tokens"]].isna().all()
    )
    assert got["cost_usd"] == got["cost_low_usd"] == got["cost_high_usd"] == pytest.approx(8 * 0.25e-6 + 3e-6)


PLANNED = {"experiment": "e", "variant": "warm", "cell": "k", "prompt_id": "p1", "repeat": "2", "warmup": "true"}


def test_a_planned_call_says_which_prompt_it_asks_and_how_often(ledger: Ledger):
    planned = row(ledger, exchange(labels=PLANNED))
    assert list(planned[["experiment", "variant", "prompt_id", "repeat", "warmup"]]) == ["e", "warm", "p1", 2, True]
    alone = row(ledger, exchange(labels={"repeat": "often", "warmup": "maybe"}))
    assert alone[["experiment", "variant", "prompt_id", "repeat", "warmup"]].isna().all()


def test_a_prompts_hash_is_that_of_all_of_it(ledger: Ledger):
    exchanges = [
        exchange(prompt="x" * 300),
        exchange(prompt="x" * 300 + "y"),
        exchange(prompt="x" * 300, endpoint="messages", system="Be brief."),
    ]
    for call in exchanges:
        ledger.on_close(call)
    frame = calls(ledger).set_index("call_id").loc[[call.id for call in exchanges]]
    first, second, third = frame["prompt_hash"]
    assert (first == third, first == second, len(first), frame["prompt"].nunique()) == (True, False, 32, 1)


def test_tags_of_prompts_are_columns_where_any_call_has_them(ledger: Ledger):
    ledger.on_close(exchange())
    tags = {"topic": "sums", "level": 3}
    ledger.on_close(exchange(labels={**PLANNED, "prompt_tags": json.dumps(tags)}))
    ledger.on_close(exchange(labels={**PLANNED, "prompt_tags": '{"topic":"food","model":"car"}'})).result()
    frame = calls(ledger)
    assert list(frame["topic"].fillna("none")) == ["none", "sums", "food"]
    assert (str(frame["level"].dtype), frame["level"].sum(), frame["prompt_model"].iloc[2]) == ("Int64", 3, "car")
    assert list(frame.groupby("topic")["e2e_s"].count()) == [1, 1]
    assert list(calls(ledger, columns=["topic", "model"])) == ["topic", "model"]
    with pytest.raises(ValueError, match="columns: 'topics'"):
        calls(ledger, columns=["topics", "model"])


def test_what_the_caller_waited_is_a_column(ledger: Ledger):
    retried = exchange()
    retried.wait_ns, retried.attempts = 4_500 * MS, 3
    assert list(row(ledger, retried)[["wait_s", "e2e_s", "attempts"]]) == [4.5, 0.4, 3]
    assert row(ledger, exchange())["wait_s"] is pd.NA


def test_the_model_that_answered_stands_beside_the_one_asked_for(ledger: Ledger):
    reads = [at(10, chunk({"content": "Hi"}) | {"model": "fam-mini-0613"}), at(20, chunk(finish="stop"), b"[DONE]")]
    assert list(row(ledger, exchange(reads))[["model", "reply_model"]]) == ["fam-mini", "fam-mini-0613"]


def test_a_stream_without_usage_is_estimated_and_says_so(ledger: Ledger):
    got = row(ledger, exchange(spoken("a" * 400), prompt="b" * 64, service="sim"))
    assert list(got[["input_tokens_low", "input_tokens", "input_tokens_high"]]) == [10, 20, 80]
    assert list(got[["output_tokens_low", "output_tokens", "output_tokens_high"]]) == [50, 100, 400]
    assert got["total_tokens"] == 120
    assert set(got[["input_tokens_source", "output_tokens_source", "total_tokens_source"]]) == {"estimated"}
    assert got["cost_usd"] == pytest.approx(105e-6)
    assert (got["cost_low_usd"], got["cost_high_usd"]) == (pytest.approx(52.5e-6), pytest.approx(420e-6))
    assert got[["tpot_s", "output_tps"]].isna().all()
    reported = row(ledger, exchange(spoken("a" * 400, counts=(8, 3))), columns=["call_id", "output_tokens_high"])
    assert reported["output_tokens_high"] == 3
    lost = exchange([], status=None)
    lost.reply = Reply(status="failed")
    assert row(ledger, lost)[["input_tokens_low", "output_tokens_high"]].isna().all()


def test_a_model_that_may_reason_unseen_may_have_used_all_that_its_cap_allows(ledger: Ledger):
    """Without a cap nothing limits its tokens: there is no upper end, and none of their sums."""
    got = row(ledger, exchange(spoken("a" * 400), max_tokens=900))
    assert list(got[["output_tokens_low", "output_tokens", "output_tokens_high"]]) == [50, 100, 900]
    got = row(ledger, exchange(spoken("a" * 400), model="lab/large"))
    assert (got["output_tokens"], got["output_tokens_high"]) == (100, pd.NA)
    sums = famnb.spend(ledger, by="model").set_index("model")
    assert (sums.loc["fam-mini", "output_tokens_high"], sums.loc["lab/large", "output_tokens_high"] is pd.NA) == (
        900,
        True,
    )


def test_estimates_learn_from_the_ledgers_own_replies(ledger: Ledger):
    for _ in range(4):
        ledger.on_close(exchange(spoken("a" * 10, counts=(13, 5)), prompt="b" * 10, service="sim"))
    got = row(ledger, exchange(spoken("a" * 400), prompt="b" * 64, service="sim"))
    assert list(got[["input_tokens", "output_tokens"]]) == [40, 200]
    costs = got[["cost_low_usd", "cost_usd", "cost_high_usd"]]
    assert list(costs) == pytest.approx([(26 * 0.25 + 133) * 1e-6, 210e-6, (60 * 0.25 + 300) * 1e-6])


def test_a_continued_conversation_is_not_estimated(ledger: Ledger):
    fields = {"endpoint": "responses", "previous_response_id": "resp_1"}
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "four"}
    ended = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [], "usage": None}}
    got = row(ledger, exchange([at(10, delta), at(20, ended)], **fields))
    assert (got["input_tokens"] is pd.NA, got["output_tokens"]) == (True, 1)


def test_a_price_set_later_gives_earlier_calls_a_cost(ledger: Ledger, pro_price: None):
    call = exchange(spoken("Hi", counts=(1000, 100)), endpoint="web")
    prices.unset("fam-2-5-pro")
    assert row(ledger, call)["cost_usd"] is pd.NA
    prices.set("fam-2-5-pro", input=1, output=10)
    assert calls(ledger)["cost_usd"].iloc[0] == pytest.approx(0.002)
    # What a call cost when it was recorded outlives its price.
    ledger.on_close(exchange(spoken("Hi", counts=(1000, 100)), endpoint="web")).result()
    prices.unset("fam-2-5-pro")
    assert calls(ledger)["cost_usd"].iloc[1] == pytest.approx(0.002)


def test_failed_calls_stay_as_rows(ledger: Ledger):
    refused = exchange([], status=401)
    refused.reply = Reply(status="failed", error=AuthenticationError("wrong key", status=401))
    got = row(ledger, refused)
    assert list(got[["status", "error", "error_message", "http_status"]]) == [
        *("failed", "AuthenticationError", "wrong key", 401)
    ]
    assert got[["ttft_s", "e2e_s", "input_tokens", "output_tokens", "cost_usd"]].isna().all()
    assert (got["input_tokens_source"], got["streamed"]) == ("absent", True)
    silent = exchange(spoken("Hel")[:2])
    silent.reply = dataclasses.replace(silent.reply, status="failed", error=IdleTimeout("silence", seconds=60.0))
    assert list(row(ledger, silent)[["error", "text_chars", "ttft_s"]]) == ["IdleTimeout", 3, 0.2]


def test_a_call_nobody_answered_is_neither_simulated_nor_real(ledger: Ledger):
    """Without a response there is no status, and no engine to speak of."""
    lost = exchange([], status=None)
    lost.reply = Reply(status="failed")
    assert row(ledger, lost)[["simulated", "http_status", "service"]].isna().all()


def test_a_running_call_has_a_row_and_no_numbers_yet(ledger: Ledger):
    ledger.on_open(exchange())
    (got,) = calls(ledger).to_dict("records")
    assert got["status"] == "running"
    assert pd.isna([got[name] for name in ("text_chars", "output_tokens", "cost_usd", "complete")]).all()


def test_filters_choose_rows(ledger: Ledger):
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    exchanges = [
        exchange(endpoint="chat", started_at=noon, labels={"experiment": "a", "tag": "x"}),
        exchange(endpoint="web", started_at=noon + timedelta(hours=1), labels={"experiment": "a"}),
        exchange(endpoint="web", started_at=noon + timedelta(hours=2), labels={"experiment": "b"}),
    ]
    exchanges[2].reply = dataclasses.replace(exchanges[2].reply, status="cancelled")
    for call in reversed(exchanges):
        ledger.on_close(call)

    def choose(**filters: object) -> list[int]:
        return [[call.id for call in exchanges].index(call_id) for call_id in calls(ledger, **filters)["call_id"]]

    assert choose() == [0, 1, 2]
    times = ["2026-01-02T13:00", "2026-01-02T22:00+09:00", np.datetime64("2026-01-02T13:00"), noon + timedelta(hours=1)]
    times += [pd.Timestamp("2026-01-02 13:00"), pd.Timestamp("2026-01-02 08:00", tz="America/New_York")]
    assert [(choose(since=moment), choose(until=moment)) for moment in times] == [([1, 2], [0])] * len(times)
    assert choose(since=noon.date(), until=noon.date() + timedelta(days=1)) == [0, 1, 2]
    assert choose(until=noon.date()) == []
    assert choose(since=timedelta(hours=1)) == []
    assert (choose(model="fam-mini"), choose(endpoint=["web", "chat"])) == ([0], [0, 1, 2])
    assert (choose(experiment="a"), choose(experiment="a", endpoint="web"), choose(tag="x")) == ([0, 1], [1], [0])
    assert (choose(status="cancelled"), choose(status=[])) == ([2], [])
    assert choose(limit=2) == [1, 2]


def test_the_ledger_may_be_given_in_several_ways(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    ledger.on_close(exchange()).result()

    class Recorded:
        pass

    client = Recorded()
    client.ledger = ledger
    monkeypatch.setenv("FAMNB_LEDGER", str(ledger.path))
    frames = [calls(source) for source in (ledger, ledger.path, str(ledger.path), client, None)]
    assert [len(frame) for frame in frames] == [1] * 5
    with pytest.raises(TypeError, match="expected a Ledger, a path, or a client that records"):
        calls(42)


MEASURED = [
    at(100, chunk({"role": "assistant", "content": ""})),
    at(200, chunk({"content": "a"})),
    at(230, chunk({"content": "b"})),
    at(260, chunk({"content": "c"})),
    at(270, chunk(finish="stop")),
    at(280, usage(9, 4), b"[DONE]"),
]
"""A stream with a role chunk, three texts, a finish chunk and a usage chunk that counts four tokens."""


@pytest.mark.parametrize(
    ("definition", "ttft_s", "itl_s", "tpot_s", "e2e_s"),
    [
        ("famnb", 0.200, 0.030, 0.020, 0.280),
        # From the role chunk on; gaps 100, 30, 30, 10 ms; (270 - 100) / 3; the finish chunk is the last with choices.
        ("vllm", 0.100, 0.0425, 0.170 / 3, 0.270),
        # From the first text on; (260 - 200) / 3; 260 / 4, the wait included; until the stream closes.
        ("guidellm", 0.200, 0.020, 0.065, 0.280),
        # From the first to the last text; (260 - 200) / 3; no such figure; the last text.
        ("aiperf", 0.200, 0.020, None, 0.260),
    ],
)
def test_latencies_as_other_tools_define_them(ledger, definition, ttft_s, itl_s, tpot_s, e2e_s):
    got = row(ledger, exchange(MEASURED), definition=definition)
    itl = "icl_p50_s" if definition == "famnb" else "itl_s"
    assert list(got[["ttft_s", itl, "e2e_s"]]) == pytest.approx([ttft_s, itl_s, e2e_s])
    assert got["tpot_s"] is pd.NA if tpot_s is None else got["tpot_s"] == pytest.approx(tpot_s)


def test_without_usage_guidellm_counts_pieces_and_the_others_have_no_value(ledger: Ledger):
    call = exchange([*MEASURED[:5], at(280, b"[DONE]")])
    assert list(row(ledger, call, definition="guidellm")[["itl_s", "itl_n", "tpot_s"]]) == pytest.approx(
        [0.03, 2, 0.26 / 3]
    )
    assert row(ledger, call, definition="vllm")["tpot_s"] is pd.NA
    assert row(ledger, call, definition="aiperf")["itl_s"] is pd.NA


def test_thinking_counts_for_all_but_tools_do_not_for_aiperf(ledger: Ledger):
    call = {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": "{}"}}]}
    reads = [
        at(50, chunk({"reasoning_content": "hm"})),
        at(80, chunk(call)),
        at(90, chunk(finish="tool_calls"), b"[DONE]"),
    ]
    first = {name: row(ledger, exchange(reads), definition=name)["ttft_s"] for name in ("vllm", "guidellm", "aiperf")}
    assert first == {"vllm": 0.05, "guidellm": 0.05, "aiperf": 0.05}
    first = {name: row(ledger, exchange(reads[1:]), definition=name)["ttft_s"] for name in ("guidellm", "aiperf")}
    assert (first["guidellm"], first["aiperf"] is pd.NA) == (0.08, True)


@pytest.mark.parametrize("definition", ["vllm", "guidellm", "aiperf"])
def test_a_call_that_did_not_end_in_order_is_in_no_tools_figures(ledger: Ledger, definition: str):
    stopped = exchange(MEASURED[:3])
    stopped.reply = dataclasses.replace(stopped.reply, status="cancelled")
    assert row(ledger, stopped, definition=definition)[["ttft_s", "itl_s", "tpot_s", "e2e_s"]].isna().all()
    whole = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    got = row(ledger, exchange([at(300, whole)], streamed=False), definition=definition)
    assert (got["e2e_s"], got["ttft_s"] is pd.NA) == (0.3, True)


def test_deltas_has_one_row_an_event(ledger: Ledger):
    call = exchange(
        [at(100, chunk({"role": "assistant"}), chunk({"content": "Hé"})), at(250, chunk(finish="stop"), b"[DONE]")]
    )
    ledger.on_close(call).result()
    frame = deltas(call.id, ledger)
    assert list(frame.columns) == [column.name for column in DELTAS]
    assert list(frame["seq"]) == [0, 1, 2, 3]
    assert list(frame["batch"]) == [0, 0, 1, 1]
    assert list(frame["t_s"]) == [0.1, 0.1, 0.25, 0.25]
    assert list(frame["type"]) == ["chat.completion.chunk"] * 3 + ["[DONE]"]
    assert list(frame["chars"]) == [0, 2, 0, 0]
    assert list(frame["text"].dropna()) == ["Hé"]


def test_deltas_tells_what_arrived_from_what_could_be_seen():
    reads = [
        msgspec.structs.replace(at(100, chunk({"content": "a"})), late_ns=40_000_000),
        msgspec.structs.replace(at(200, chunk({"content": "b"}), chunk(finish="stop")), late_ns=20_000_000),
        at(300, b"[DONE]"),
    ]
    frame = deltas(exchange(reads).reply)
    assert list(frame["exact"]) == [True, False, False, False]
    assert list((frame["t_s"] * 1000 + frame["late_ms"]).dropna()) == [140, 220, 220]


def test_deltas_names_the_block(ledger: Ledger):
    reads = [
        at(1, {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        at(2, {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}}),
        at(3, {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        at(4, {"type": "content_block_stop", "index": 1}),
        at(5, b"{not JSON"),
    ]
    frame = deltas(exchange(reads, endpoint="messages").reply)
    assert list(frame["block"].fillna(-1)) == [1, 1, 0, 1, -1]
    assert list(frame["kind"].astype("string").fillna("-")) == ["text", "text", "thinking", "-", "-"]
    assert list(frame["type"])[4] == "invalid"


def test_deltas_leaves_out_calls_of_endpoints_that_are_not_known(ledger: Ledger):
    a, b = exchange(spoken("a")), exchange(spoken("b"))
    for call in (a, b):
        ledger.on_close(call).result()
    with sqlite3.connect(ledger.path) as file:
        file.execute("UPDATE calls SET endpoint = 'later' WHERE id = ?", (a.id,))
    assert set(deltas(ledger=ledger)["call_id"]) == {b.id}
    with pytest.raises(famnb.InvalidRequest, match="later"):
        deltas(a.id, ledger)


def test_deltas_takes_what_is_at_hand(ledger: Ledger):
    a, b = exchange(spoken("a")), exchange(spoken("b"))
    whole = exchange([at(1, {"choices": [{"message": {"content": "w"}, "finish_reason": "stop"}]})], streamed=False)
    for item in (a, b, whole):
        ledger.on_close(item).result()
    call = ledger.call(a.id)
    lengths = {
        "one": [len(deltas(which, ledger)) for which in (a.id, a.reply, call)],
        "both": [len(deltas(which, ledger)) for which in ([a.id, b.id], [a.reply, b.id], calls(ledger), None)],
        "none": [len(deltas(which, ledger)) for which in ([], whole.reply, whole.id)],
    }
    assert lengths == {"one": [4] * 3, "both": [8] * 4, "none": [0] * 3}
    with pytest.raises(KeyError, match="no call 'call_0'"):
        deltas("call_0", ledger)
    for which in (3, [3], [None], pd.DataFrame({"id": ["call_1"]})):
        with pytest.raises(TypeError, match=r"call_ids: expected an id, a Reply, a RecordedCall"):
            deltas(which, ledger)


def test_every_column_says_what_it_means():
    table = describe()
    assert list(table.index) == [column.name for column in CALLS]
    assert table["meaning"].str.endswith(".").all()
    for function, columns in ((famnb.calls, CALLS), (famnb.deltas, DELTAS)):
        assert [c.name for c in columns if f"\n{c.name} ({c.dtype}" not in inspect.getdoc(function)] == []
    assert list(describe(DELTAS).index) == [column.name for column in DELTAS]


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"limit": -1}, "limit: expected"),
        ({"limit": "3"}, "limit: expected"),
        ({"until": 3}, "until: expected a date or time"),
        ({"since": pd.NaT}, "since: expected"),
        ({"since": timedelta(days=10**6)}, "since: expected"),
        ({"model": 3}, "model: expected a text or several, got 3"),
        ({"tag": ["a", None]}, "tag: expected a text or several"),
        ({"endpoint": ["chat", "chats"]}, "endpoint: 'chats' is not one of chat, responses, web, messages"),
        ({"status": "done"}, "status: 'done' is not one of"),
        ({"definition": "vLLM"}, "definition: 'vLLM' is not one of"),
        ({"columns": []}, "columns: expected at least one"),
    ],
)
def test_a_filter_that_is_a_slip_is_refused(ledger: Ledger, filters: dict[str, Any], words: str):
    ledger.on_close(exchange()).result()
    with pytest.raises(ValueError, match=words):
        calls(ledger, **filters)
