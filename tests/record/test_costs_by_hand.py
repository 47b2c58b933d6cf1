"""Costs of recorded kinds of replies, worked out by hand from vendors' prices: exact, or an interval that says so."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import famnb
from famnb.record.price_book import PriceBook
from famnb.reply import fold
from famnb.wire import chat, messages, responses
from tests.support.fault_server import FaultServer, whole

Body = dict[str, Any]
OPEN = Decimal("Infinity")


@pytest.fixture(scope="module")
def book() -> PriceBook:
    """USD per million tokens, as vendors' price pages have them; searches are USD each."""
    prices = PriceBook()
    prices.set("gpt-4o", input="2.50", cached="1.25", output="10", search="0.01")
    prices.set("gpt-4o", input="4.25", cached="2.125", output="17", tier="priority")
    prices.set("gpt-4o", input="1.25", output="5", tier="batch")
    prices.set("o4-mini", input="1.10", cached="0.275", output="4.40")
    prices.set("o4-mini", input="0.55", cached="0.138", output="2.20", tier="flex")
    prices.set("gpt-4o-audio", input="2.50", output="10", audio_input="40", audio_output="80")
    prices.set(
        "claude-sonnet-4-5", input=3, output=15, cached="0.30", cache_write="3.75", cache_write_1h=6, search="0.01"
    )
    prices.set("claude-opus-4-8", input=5, output=25, cached="0.50", cache_write="6.25", cache_write_1h=10)
    prices.set("gemini-2.5-pro", input="1.25", output=10, until_context=200_001)
    prices.set("gemini-2.5-pro", input="2.50", output=15)
    prices.set("deepseek-chat", input="0.28", cached="0.028", output="0.42")
    prices.set("sonar", input=1, output=1)
    prices.set("groq/compound", input="0.15", output="0.60")
    return prices


class Case(NamedTuple):
    """A reply, and what it costs by hand in millionths of a USD; without an upper end if that is open."""

    dialect: Any
    model: str
    """The model that was asked for; replies name it with a date."""
    body: Body
    low: Decimal
    high: Decimal


def case(dialect: Any, model: str, body: Body, by_hand: str) -> Case:
    """A case whose cost is a sum of products, such as "400*2.50 + 200*10"; " + ?" leaves its upper end open."""
    *terms, last = by_hand.split(" + ")
    terms += [] if last == "?" else [last]
    low = sum((math.prod(map(Decimal, term.split("*"))) for term in terms), Decimal())
    return Case(dialect, model, {"model": f"{model}-2026-01-31", **body}, low, OPEN if last == "?" else low)


def of_chat(model: str, usage: Body, by_hand: str, /, **fields: Any) -> Case:
    choice = {"index": 0, "message": {"content": "Yes.", **fields.pop("message", {})}, "finish_reason": "stop"}
    return case(chat, model, {"id": "c", "choices": [choice], "usage": usage, **fields}, by_hand)


def prompt(tokens: int, output: int, *, cached: int = 0, **fields: Any) -> Body:
    details = {"prompt_tokens_details": {"cached_tokens": cached, **fields.pop("prompt", {})}}
    return {"prompt_tokens": tokens, "completion_tokens": output, "total_tokens": tokens + output, **details, **fields}


def of_messages(tokens: int, output: int, by_hand: str, *, answers: str = "claude-sonnet-4-5", **usage: Any) -> Case:
    counts = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    counts |= {"input_tokens": tokens, "output_tokens": output, **usage}
    content = [{"type": "text", "text": "Yes."}]
    body = {"id": "m", "model": answers, "content": content, "stop_reason": "end_turn", "usage": counts}
    return case(messages, "claude-sonnet-4-5", body, by_hand)


def of_responses(model: str, tokens: int, output: int, by_hand: str, *items: Body, **fields: Any) -> Case:
    usage = {"input_tokens": tokens, "output_tokens": output, "input_tokens_details": {"cached_tokens": 0}}
    return case(
        responses, model, {"id": "r", "status": "completed", "output": [*items], "usage": usage, **fields}, by_hand
    )


def iteration(kind: str, tokens: int, output: int, **fields: Any) -> Body:
    counts = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    return {"type": kind, "input_tokens": tokens, "output_tokens": output, **counts, **fields}


SEARCH = {"type": "web_search_call", "id": "ws", "action": {"type": "search"}}
OPENED = {"type": "web_search_call", "id": "ws", "action": {"type": "open_page"}}
FILES = {"type": "file_search_call", "id": "fs"}
HOUR = {"ephemeral_1h_input_tokens": 400, "ephemeral_5m_input_tokens": 100}
FALLBACK = [
    iteration("message", 408, 0, model="claude-sonnet-4-5"),
    iteration("fallback_message", 412, 264, model="claude-opus-4-8"),
]
WRITTEN = {"cache_creation_input_tokens": 55_096, "cache_creation": {"ephemeral_5m_input_tokens": 55_096}}
COMPACTION = [iteration("compaction", 100, 131, **WRITTEN), iteration("message", 229, 5)]
LISTENED = {"prompt": {"audio_tokens": 100}}
SPOKEN = {**LISTENED, "completion_tokens_details": {"audio_tokens": 70}}
GEMINI = {**prompt(250_000, 12), "total_tokens": 250_074}
DEEPSEEK = {"prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950, "prompt_cache_hit_tokens": 640}
CASES = {
    "cached input": of_chat("gpt-4o", prompt(1000, 200, cached=600), "400*2.50 + 600*1.25 + 200*10"),
    "priority tier": of_chat(
        "gpt-4o", prompt(1000, 200, cached=600), "400*4.25 + 600*2.125 + 200*17", service_tier="priority"
    ),
    "flex tier": of_responses("o4-mini", 1000, 500, "1000*0.55 + 500*2.20", service_tier="flex"),
    "batch tier": of_chat("gpt-4o", prompt(1000, 200), "1000*1.25 + 200*5", service_tier="batch"),
    "a tier without a price": of_messages(1000, 100, "0 + ?", service_tier="priority"),
    "cache writes of an hour": of_messages(
        10, 20, "10*3 + 100*3.75 + 400*6 + 20*15", cache_creation_input_tokens=500, cache_creation=HOUR
    ),
    "a cache read": of_messages(10, 20, "10*3 + 1000*0.30 + 20*15", cache_read_input_tokens=1000),
    "two searches at Anthropic": of_messages(
        9000, 300, "9000*3 + 300*15 + 2*0.01*1000000", server_tool_use={"web_search_requests": 2}
    ),
    "a fallback to another model": of_messages(
        412, 264, "408*3 + 412*5 + 264*25", answers="claude-opus-4-8", iterations=FALLBACK
    ),
    "a compaction": of_messages(229, 5, "100*3 + 55096*3.75 + 131*15 + 229*3 + 5*15", iterations=COMPACTION),
    "a search at OpenAI, a page that was opened is free": of_responses(
        "gpt-4o", 8000, 400, "8000*2.50 + 400*10 + 0.01*1000000", SEARCH, OPENED
    ),
    "a file search, which has no price": of_responses("gpt-4o", 8000, 400, "8000*2.50 + 400*10 + ?", FILES),
    "audio in and out": of_chat("gpt-4o-audio", prompt(120, 90, **SPOKEN), "20*2.50 + 100*40 + 20*10 + 70*80"),
    "audio at a price of text alone": of_chat("gpt-4o", prompt(120, 90, **LISTENED), "120*2.50 + 90*10 + ?"),
    "Azure's deployment by the model of the reply": of_chat(
        "my-deployment", prompt(1000, 200), "1000*2.50 + 200*10", model="gpt-4o-2024-08-06"
    ),
    "Gemini's thoughts, and its price above 200,000 tokens": of_chat("gemini-2.5-pro", GEMINI, "250000*2.50 + 74*15"),
    "DeepSeek's cache": of_chat("deepseek-chat", DEEPSEEK, "260*0.28 + 640*0.028 + 50*0.42"),
    "what the service says counts before any price": of_chat(
        "sonar", {**prompt(10, 251), "cost": {"total_cost": 0.00526}}, "0.00526*1000000"
    ),
    "tools that Groq ran": of_chat(
        "groq/compound", prompt(1000, 100), "1000*0.15 + 100*0.60 + ?", message={"executed_tools": [{"type": "search"}]}
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_cost_is_what_the_vendors_prices_make_it(name: str, book: PriceBook):
    dialect, model, body, low, high = CASES[name]
    reply = fold(dialect.read(body))
    deployed = reply.model if model == "my-deployment" else ""
    cost = book.cost(model, reply.usage, has_cache_writes=dialect is messages, reply_model=deployed)
    assert cost is not None
    assert (cost.low * 1_000_000, cost.high * 1_000_000) == (low, high)
    assert cost.exact == (high == low)
    assert reply.warnings == ()
    assert str(cost).startswith("≥ ") == (high == OPEN)


def test_a_frame_has_the_same_costs(tmp_path: Path):
    cases = [case for case in CASES.values() if case.dialect is chat]
    with (
        FaultServer(*(whole(case.body) for case in cases)) as server,
        famnb.Client(
            profile="azure", base_url=server.url, api_key="key-0123456789", ledger=tmp_path / "ledger.sqlite"
        ) as client,
    ):
        replies = [client.send(client.compose("chat", "Hello", model=case.model)) for case in cases]
    models = {case.model for case in cases} - {"my-deployment"}
    try:
        for model in models:
            famnb.prices.set(model, input="2.50", cached="1.25", output="10", audio_input=40, audio_output=80)
        famnb.prices.set("gpt-4o", input="4.25", cached="2.125", output="17", tier="priority")
        frame = famnb.calls(tmp_path / "ledger.sqlite").set_index("call_id")
        for reply in replies:
            options: Any = {"has_cache_writes": False, "reply_model": reply.model}
            cost = famnb.prices.cost(reply.request.model, reply.usage, **options)
            assert cost is not None
            row = frame.loc[reply.call_id]
            assert (row["cost_low_usd"], row["cost_high_usd"]) == (float(cost.low), float(cost.high))
    finally:
        for model in models:
            famnb.prices.unset(model)
