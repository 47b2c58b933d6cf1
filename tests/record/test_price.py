"""What calls cost, from the bytes of every endpoint to the frame: sums by hand, and intervals against the truth."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import famnb
from famnb.endpoints import ENDPOINTS
from famnb.record import Ledger
from famnb.record.price import Cost
from famnb.service import Server
from tests.support.exchanges import at, chunk, exchange

PROMPTS = [
    "Why is the sky blue?",
    "def f(x): return [y ** 2 for y in range(x) if y % 3]  # what does this do?",
    "Übersetze: Der schnelle braune Fuchs springt über den faulen Hund.",
    "A table of the planets, please, with their moons. " * 6,
]


@pytest.fixture
def prices() -> Iterator[None]:
    """fam-2-5-pro at 1.25 in, 10 out, 0.31 cached, 1.60 written to the cache, USD a million."""
    famnb.prices.set("fam-2-5-pro", input="1.25", output=10, cached="0.31", cache_write="1.6")
    yield
    famnb.prices.unset("fam-2-5-pro")


def chat_usage(prompt: int, completion: int, *, cached: int, reasoning: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def completion(usage: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Hello"}
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def chat_stream(usage: dict[str, Any]) -> list[Any]:
    last = {**chunk(), "choices": [], "usage": usage}
    return [chunk({"content": "Hello"}), chunk(finish="stop"), last, b"[DONE]"]


def response(usage: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "output_text", "text": "Hello", "annotations": []}
    item = {"id": "i", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return {"id": "r", "object": "response", "status": "completed", "output": [item], "usage": usage}


def message(usage: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "text", "text": "Hello"}]
    return {"id": "m", "type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}


MINI = chat_usage(1200, 345, cached=200, reasoning=45)
WEB = chat_usage(2000, 800, cached=500, reasoning=300)
WHOLE = {
    "input_tokens": 2000,
    "output_tokens": 800,
    "total_tokens": 2800,
    "input_tokens_details": {"cached_tokens": 500},
    "output_tokens_details": {"reasoning_tokens": 300},
}
TOTALS = {name: WHOLE[name] for name in ("input_tokens", "output_tokens", "total_tokens")}
MESSAGE = {
    "input_tokens": 1500,
    "output_tokens": 800,
    "cache_creation_input_tokens": 100,
    "cache_read_input_tokens": 500,
}
UNSAID = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
EXACT = "0.000645", "0.01003", "0.01019"
"""1200·0.25 + 345·1, no cached price · 1500·1.25 + 500·0.31 + 800·10 · 1500·1.25 + 500·0.31 + 100·1.6 + 800·10."""

TABLE: list[tuple[str, bool, list[Any], tuple[str, str, str]]] = [
    ("chat", False, [completion(MINI)], (EXACT[0],) * 3),
    ("chat", True, chat_stream(MINI), (EXACT[0],) * 3),
    ("web", False, [completion(WEB)], (EXACT[1],) * 3),
    ("web", True, chat_stream(WEB), (EXACT[1],) * 3),
    # Input whose cached part is not said may all have been read from the cache; only messages can have written to it.
    ("web", False, [completion(UNSAID)], ("0.00135", "0.00041", "0.00135")),
    ("messages", False, [message({"input_tokens": 1000, "output_tokens": 10})], ("0.00135", "0.00041", "0.0017")),
    ("responses", False, [response(WHOLE)], (EXACT[1],) * 3),
    # The last event has three totals: up to 2000 tokens may have been read from the cache, or none.
    (
        "responses",
        True,
        [{"type": "response.completed", "response": response(TOTALS)}],
        ("0.0105", "0.00862", "0.0105"),
    ),
    ("messages", False, [message(MESSAGE)], (EXACT[2],) * 3),
    (
        "messages",
        True,
        [
            {"type": "message_start", "message": {**message(MESSAGE), "content": [], "stop_reason": None}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 800}},
        ],
        (EXACT[2],) * 3,
    ),
]


@pytest.mark.parametrize(("endpoint", "streamed", "events", "dollars"), TABLE)
def test_costs_are_those_reckoned_by_hand(prices, tmp_path, endpoint, streamed, events, dollars):
    ledger = Ledger(tmp_path / "costs.sqlite")
    call = exchange([at(300, *events)], endpoint=endpoint, streamed=streamed)
    ledger.on_open(call)
    ledger.on_close(call).result()
    cost = call.reply.cost
    assert (cost.usd, cost.low, cost.high) == tuple(map(Decimal, dollars))
    row = famnb.calls(ledger).iloc[0]
    assert [row["cost_usd"], row["cost_low_usd"], row["cost_high_usd"]] == [float(amount) for amount in dollars]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_intervals_contain_what_the_whole_reply_says_it_cost(prices: None, server: Server, endpoint: str):
    model = "fam-mini" if endpoint == "chat" else "fam-2-5-pro"
    reasoning = {"thinking": 200} if endpoint == "messages" else {"reasoning": {"effort": "high", "summary": "none"}}
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        for prompt in PROMPTS:
            options: dict[str, Any] = {"endpoint": endpoint, "model": model, "max_tokens": 64, **reasoning}
            whole, streamed = (client.ask(prompt, stream=stream, **options) for stream in (False, True))
            assert whole.cost.exact
            # Asked for its usage, a stream of `web` tells all of it; the others leave some of it out.
            assert streamed.cost.exact == (endpoint == "web")
            assert streamed.cost.low <= whole.cost.usd <= streamed.cost.high


def test_a_cost_reads_as_one_line_and_shows_its_ends():
    exact, estimate = (Cost(Decimal("0.001"), low, Decimal("0.001")) for low in (Decimal("0.001"), Decimal("0.0008")))
    assert [repr(exact), repr(estimate)] == ["<Cost $0.001>", "<Cost ≈ $0.001 ($0.0008–$0.001)>"]
    assert "at least" in estimate._repr_html_()
    assert "at least" not in exact._repr_html_()
