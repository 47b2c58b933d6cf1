"""Costs of recorded kinds of replies, worked out by hand from vendors' prices: exact, or an interval that says so."""

from decimal import Decimal
from pathlib import Path
from typing import Any

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


def chat_body(model: str, usage: Body, **fields: Any) -> Body:
    choice = {"index": 0, "message": {"content": "Yes.", **fields.pop("message", {})}, "finish_reason": "stop"}
    return {"id": "c", "model": model, "choices": [choice], "usage": usage, **fields}


def prompt(tokens: int, output: int, *, cached: int = 0, **fields: Any) -> Body:
    details = {"prompt_tokens_details": {"cached_tokens": cached, **fields.pop("prompt", {})}}
    return {"prompt_tokens": tokens, "completion_tokens": output, "total_tokens": tokens + output, **details, **fields}


def message(model: str, **usage: Any) -> Body:
    counts = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    return {
        "id": "m",
        "model": model,
        "content": [{"type": "text", "text": "Yes."}],
        "stop_reason": "end_turn",
        "usage": counts | usage,
    }


def response(model: str, tokens: int, output: int, *items: Body, **fields: Any) -> Body:
    usage = {"input_tokens": tokens, "output_tokens": output, "input_tokens_details": {"cached_tokens": 0}}
    return {"id": "r", "model": model, "status": "completed", "output": [*items], "usage": usage, **fields}


SEARCH = {"type": "web_search_call", "id": "ws", "action": {"type": "search"}}
OPENED = {"type": "web_search_call", "id": "ws", "action": {"type": "open_page"}}
HOUR = {"ephemeral_1h_input_tokens": 400, "ephemeral_5m_input_tokens": 100}
FALLBACK = [
    {"type": "message", "model": "claude-sonnet-4-5", "input_tokens": 408, "output_tokens": 0},
    {"type": "fallback_message", "model": "claude-opus-4-8", "input_tokens": 412, "output_tokens": 264},
]
COMPACTION = [
    {
        "type": "compaction",
        "input_tokens": 100,
        "output_tokens": 131,
        "cache_creation_input_tokens": 55_096,
        "cache_creation": {"ephemeral_5m_input_tokens": 55_096},
    },
    {"type": "message", "input_tokens": 229, "output_tokens": 5},
]
for _iteration in [*FALLBACK, *COMPACTION]:
    _iteration.setdefault("cache_read_input_tokens", 0)
    _iteration.setdefault("cache_creation_input_tokens", 0)

COSTS: dict[str, tuple[Any, ...]] = {
    # what it is: dialect, the model asked for, the body, micro-USD by hand (low end), and the high end if it is another
    "cached input": (
        chat,
        "gpt-4o",
        chat_body("gpt-4o-2024-08-06", prompt(1000, 200, cached=600)),
        400 * Decimal("2.50") + 600 * Decimal("1.25") + 200 * Decimal("10"),
    ),
    "priority tier": (
        chat,
        "gpt-4o",
        chat_body("gpt-4o-2024-08-06", prompt(1000, 200, cached=600), service_tier="priority"),
        400 * Decimal("4.25") + 600 * Decimal("2.125") + 200 * Decimal("17"),
    ),
    "flex tier": (
        responses,
        "o4-mini",
        response("o4-mini-2025-04-16", 1000, 500, service_tier="flex"),
        1000 * Decimal("0.55") + 500 * Decimal("2.20"),
    ),
    "batch tier": (
        chat,
        "gpt-4o",
        chat_body("gpt-4o", prompt(1000, 200), service_tier="batch"),
        1000 * Decimal("1.25") + 200 * Decimal("5"),
    ),
    "a tier without a price": (
        messages,
        "claude-sonnet-4-5",
        message("claude-sonnet-4-5", input_tokens=1000, output_tokens=100, service_tier="priority"),
        Decimal(0),
        OPEN,
    ),
    "cache writes of an hour": (
        messages,
        "claude-sonnet-4-5",
        message(
            "claude-sonnet-4-5", input_tokens=10, output_tokens=20, cache_creation_input_tokens=500, cache_creation=HOUR
        ),
        10 * Decimal(3) + 100 * Decimal("3.75") + 400 * Decimal(6) + 20 * Decimal(15),
    ),
    "a cache read": (
        messages,
        "claude-sonnet-4-5",
        message("claude-sonnet-4-5-20250929", input_tokens=10, output_tokens=20, cache_read_input_tokens=1000),
        10 * Decimal(3) + 1000 * Decimal("0.30") + 20 * Decimal(15),
    ),
    "two searches at Anthropic": (
        messages,
        "claude-sonnet-4-5",
        message("claude-sonnet-4-5", input_tokens=9000, output_tokens=300, server_tool_use={"web_search_requests": 2}),
        9000 * Decimal(3) + 300 * Decimal(15) + 2 * Decimal("0.01") * 1_000_000,
    ),
    "a fallback to another model": (
        messages,
        "claude-sonnet-4-5",
        message("claude-opus-4-8", input_tokens=412, output_tokens=264, iterations=FALLBACK),
        408 * Decimal(3) + 412 * Decimal(5) + 264 * Decimal(25),
    ),
    "a compaction": (
        messages,
        "claude-sonnet-4-5",
        message("claude-sonnet-4-5", input_tokens=229, output_tokens=5, iterations=COMPACTION),
        100 * Decimal(3) + 55_096 * Decimal("3.75") + 131 * Decimal(15) + 229 * Decimal(3) + 5 * Decimal(15),
    ),
    "a search at OpenAI, a page that was opened is free": (
        responses,
        "gpt-4o",
        response("gpt-4o", 8000, 400, SEARCH, OPENED),
        8000 * Decimal("2.50") + 400 * Decimal(10) + Decimal("0.01") * 1_000_000,
    ),
    "a file search, which has no price per token": (
        responses,
        "gpt-4o",
        response("gpt-4o", 8000, 400, {"type": "file_search_call", "id": "fs"}),
        8000 * Decimal("2.50") + 400 * Decimal(10),
        OPEN,
    ),
    "audio in and out": (
        chat,
        "gpt-4o-audio",
        chat_body(
            "gpt-4o-audio",
            prompt(120, 90, prompt={"audio_tokens": 100}, completion_tokens_details={"audio_tokens": 70}),
        ),
        20 * Decimal("2.50") + 100 * Decimal(40) + 20 * Decimal(10) + 70 * Decimal(80),
    ),
    "audio at a price of text alone": (
        chat,
        "gpt-4o",
        chat_body("gpt-4o", prompt(120, 90, prompt={"audio_tokens": 100})),
        120 * Decimal("2.50") + 90 * Decimal(10),
        OPEN,
    ),
    "Azure's deployment by the model of the reply": (
        chat,
        "my-deployment",
        chat_body("gpt-4o-2024-08-06", prompt(1000, 200)),
        1000 * Decimal("2.50") + 200 * Decimal(10),
    ),
    "Gemini's thoughts, and its price above 200,000 tokens": (
        chat,
        "gemini-2.5-pro",
        chat_body(
            "gemini-2.5-pro",
            {
                "prompt_tokens": 250_000,
                "completion_tokens": 12,
                "total_tokens": 250_074,
                "prompt_tokens_details": {"cached_tokens": 0},
            },
        ),
        250_000 * Decimal("2.50") + 74 * Decimal(15),
    ),
    "DeepSeek's cache": (
        chat,
        "deepseek-chat",
        chat_body(
            "deepseek-chat",
            {"prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950, "prompt_cache_hit_tokens": 640},
        ),
        260 * Decimal("0.28") + 640 * Decimal("0.028") + 50 * Decimal("0.42"),
    ),
    "what the service says counts before any price": (
        chat,
        "sonar",
        chat_body("sonar", prompt(10, 251) | {"cost": {"total_cost": 0.00526}}),
        Decimal("0.00526") * 1_000_000,
    ),
    "tools that Groq ran": (
        chat,
        "groq/compound",
        chat_body("groq/compound", prompt(1000, 100), message={"executed_tools": [{"type": "search"}]}),
        1000 * Decimal("0.15") + 100 * Decimal("0.60"),
        OPEN,
    ),
}


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_what_the_vendors_prices_make_it(name: str, book: PriceBook):
    dialect, model, body, low, *open_end = COSTS[name]
    high = open_end[0] if open_end else low
    reply = fold(dialect.read(body))
    deployed = reply.model if model == "my-deployment" else ""
    cost = book.cost(model, reply.usage, has_cache_writes=dialect is messages, reply_model=deployed)
    assert cost is not None
    assert (cost.low * 1_000_000, cost.high * 1_000_000) == (low, high)
    assert cost.exact == (high == low)
    assert reply.warnings == ()
    if open_end:
        assert str(cost).startswith("≥ ")


def test_a_frame_has_the_same_costs(tmp_path: Path):
    names = [name for name, case in COSTS.items() if case[0] is chat]
    bodies = [COSTS[name][2] for name in names]
    with (
        FaultServer(*map(whole, bodies)) as server,
        famnb.Client(
            profile="azure", base_url=server.url, api_key="key-0123456789", ledger=tmp_path / "ledger.sqlite"
        ) as client,
    ):
        replies = [client.send(client.compose("chat", "Hello", model=COSTS[name][1])) for name in names]
    models = {COSTS[name][1] for name in names} - {"my-deployment"}
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
