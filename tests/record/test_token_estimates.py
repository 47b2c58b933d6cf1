"""Estimated counts: from which history, how sure, and never unmarked."""

from decimal import Decimal

import pytest

import famnb
from famnb import ChatRequest, compose
from famnb.events import Usage
from famnb.record import Ledger
from famnb.record.serialize import hidden_cap, input_chars
from famnb.record.token_estimates import NO_CAP, PRIOR, TokenFit, TokenRatio, estimate_usage, fit_ratio
from tests.support.exchanges import exchange, spoken


@pytest.mark.parametrize(
    ("ratios", "fit"),
    [
        ([], PRIOR),
        ([0.3], TokenRatio(0.3, 0.15, 0.6, 1)),
        ([0.3] * 4, TokenRatio(0.3, pytest.approx(0.2), pytest.approx(0.45), 4)),
        ([0.3] * 400, TokenRatio(0.3, pytest.approx(0.3 / 1.05), pytest.approx(0.315), 400)),
    ],
)
def test_doubt_shrinks_as_replies_are_seen_and_never_ends(ratios: list[float], fit: TokenRatio):
    assert fit_ratio(ratios) == fit


def test_one_odd_reply_among_hundreds_does_not_widen_the_interval():
    ratio = fit_ratio([0.2] * 399 + [9.0])
    assert (ratio.mid, ratio.low, ratio.high) == pytest.approx((0.2, 0.2 / 1.05, 0.21))


def test_hidden_reasoning_may_be_all_that_the_cap_allows():
    fit = TokenFit(output=TokenRatio(0.25, 0.2, 0.3, 9), reasoned=TokenRatio(2.0, 1.0, 4.0, 9))
    figures = estimate_usage(Usage(input_tokens=1), input_chars=4, output_chars=10, fit=fit, hidden_cap=512)
    assert [u.output_tokens for u in figures] == [20, 2, 512]


@pytest.mark.parametrize(
    ("fields", "service", "cap"),
    [
        ({}, "sim", None),
        ({"reasoning": {"effort": "none"}}, "sim", None),
        ({"reasoning": {"effort": "low"}}, "sim", 2048),
        ({"endpoint": "chat", "reasoning": {"effort": "low"}}, "sim", 16_384),
        ({}, None, 2048),
        ({"reasoning": {"effort": "none"}, "max_tokens": 99}, "upstream", 99),
        ({"endpoint": "chat", "model": "lab/large"}, None, NO_CAP),
        ({"endpoint": "chat", "model": "openai/gpt-4o-mini", "max_tokens": 9}, None, None),
        ({"endpoint": "chat", "model": "openai/gpt-4o-mini", "reasoning": {"effort": "low"}}, None, NO_CAP),
    ],
)
def test_a_reply_may_hide_as_many_tokens_as_its_cap_unless_its_model_is_known_not_to_reason(fields, service, cap):
    request = compose(fields.get("endpoint", "web"), "Hi", **{k: v for k, v in fields.items() if k != "endpoint"})
    assert hidden_cap(request, service, shows_thinking=False) == cap


def test_thinking_that_is_shown_may_be_a_summary_of_a_real_models():
    request = compose("messages", "Hi", thinking=100, max_tokens=200)
    assert [hidden_cap(request, service, shows_thinking=True) for service in ("sim", None)] == [None, 200]


def test_without_a_cap_nothing_limits_what_came_nor_what_it_cost():
    usage, *ends = estimate_usage(
        Usage(input_tokens=1), input_chars=4, output_chars=10, fit=TokenFit(), hidden_cap=NO_CAP
    )
    assert [u.output_tokens for u in (usage, *ends)] == [2, 1, None]
    cost = famnb.prices.cost("fam-mini", usage, between=tuple(ends))
    assert (cost.exact, cost.high) == (False, Decimal("Infinity"))
    assert str(cost).startswith("≥ $0.00")


def test_replies_that_reasoned_teach_nothing_about_those_that_did_not(ledger: Ledger):
    ledger.on_close(exchange(spoken("a" * 10, counts=(16, 100)), reasoning={"effort": "high"}, service="sim"))
    ledger.on_close(exchange(spoken("a" * 10, counts=(16, 5)), service="sim")).result()
    fit = ledger.fits("fam-mini")["sim"]
    assert (fit.output.mid, fit.reasoned.mid) == (0.5, 10.0)


def test_estimates_are_marked_and_bounded():
    figures = estimate_usage(Usage(), input_chars=80, output_chars=400, fit=TokenFit())
    assert figures[0].estimated == ("input_tokens", "output_tokens", "total_tokens")
    counts = [(u.input_tokens, u.output_tokens, u.total_tokens) for u in figures]
    assert counts == [(20, 100, 120), (10, 50, 60), (80, 400, 480)]


@pytest.mark.parametrize(("total", "input_tokens", "source"), [(None, 20, "estimated"), (10, 3, "derived")])
def test_what_was_reported_stays_and_a_total_derives_what_is_missing(total, input_tokens, source):
    usage = Usage(output_tokens=7, total_tokens=total)
    usage, _, _ = estimate_usage(usage, input_chars=80, output_chars=400, fit=TokenFit())
    assert (usage.output_tokens, usage.source("output_tokens")) == (7, "reported")
    assert (usage.input_tokens, usage.source("input_tokens")) == (input_tokens, source)


@pytest.mark.parametrize("chars", [None, 0])
def test_nothing_to_measure_is_absent_not_zero(chars: int | None):
    assert estimate_usage(Usage(), input_chars=chars, output_chars=chars, fit=TokenFit())[0] == Usage()


@pytest.mark.parametrize(
    ("fields", "chars"),
    [
        ({}, 2 + 16),
        ({"system": "Be brief."}, 2 + 16 + 9 + 16),
        ({"endpoint": "messages", "system": "Be brief."}, 2 + 16 + 9 + 16),
        ({"endpoint": "responses"}, 2 + 16),
        ({"endpoint": "responses", "previous_response_id": "resp_1"}, None),
    ],
)
def test_a_message_is_longer_than_its_text(fields: dict[str, str], chars: int | None):
    assert input_chars(compose(fields.pop("endpoint", "chat"), "Hi", **fields)) == chars


def test_an_image_makes_the_text_no_measure_of_the_input():
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": "http://127.0.0.1/cat.png"}]
    assert input_chars(ChatRequest(model="fam-mini", messages=[{"role": "user", "content": parts}])) is None


def test_the_fit_comes_from_the_models_own_replies(ledger: Ledger):
    for _ in range(2):
        ledger.on_close(exchange(spoken("a" * 10, counts=(16, 5)), prompt="b" * 16))
        ledger.on_close(exchange(spoken("a" * 10, counts=(16, 10)), prompt="b" * 16, service="sim"))
    ledger.on_close(exchange(spoken("a" * 10), prompt="b" * 16))
    fits = ledger.fits("fam-mini")
    assert (fits[None].input.mid, fits[None].reasoned.mid, fits[None].reasoned.n) == (0.5, 0.5, 2)
    assert (fits["sim"].input.mid, fits["sim"].output.mid, fits["sim"].output.n) == (0.5, 1.0, 2)
    assert ledger.fits("unheard-of") == {}


def test_a_replys_cost_uses_the_fit(ledger: Ledger):
    ledger.on_close(exchange(spoken("a" * 10, counts=(16, 5)), prompt="b" * 16, service="sim")).result()
    silent = exchange(spoken("a" * 1000), prompt="b" * 16, service="sim")
    ledger.on_open(silent)
    ledger.flush()
    ledger.on_close(silent).result()
    cost = silent.reply.cost
    assert (float(cost.low), float(cost.usd), float(cost.high)) == pytest.approx((252e-6, 504e-6, 1008e-6))
