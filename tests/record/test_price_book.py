"""The price book: whose price holds when, and what follows from it."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from famnb.errors import InvalidRequest
from famnb.events import Usage
from famnb.record import Cost, PriceBook

MILLION = 1_000_000


def make_usage(input_tokens: int, output_tokens: int, **more: object) -> Usage:
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, **more)


def usd(book: PriceBook, model: str, usage: Usage, at: datetime | None = None) -> Decimal | None:
    cost = book.cost(model, usage, at)
    return cost and cost.usd


@pytest.fixture
def book() -> PriceBook:
    return PriceBook()


def test_fam_mini_costs_what_the_document_says_up_to_the_end_of_its_tier(book: PriceBook):
    assert book.cost("fam-mini", make_usage(200_000, 16_000)) == Cost(*[Decimal("0.066")] * 3)
    assert usd(book, "fam-mini", make_usage(255_999, 0)) == Decimal("0.06399975")
    assert book.cost("fam-mini", make_usage(256_000, 0)) is None


def test_without_a_price_or_a_count_there_is_no_cost(book: PriceBook):
    for model in ("fam-2-5-pro", "fam-2-5-mini", "someone/else", ""):
        assert book.cost(model, make_usage(1000, 1000)) is None
    for usage in (Usage(output_tokens=5), Usage(input_tokens=5)):
        assert book.cost("fam-mini", usage) is None


def test_the_users_price_wins_and_can_be_taken_back(book: PriceBook):
    book.set("fam-mini", input=2, output="4.50")
    assert usd(book, "fam-mini", make_usage(MILLION, MILLION)) == Decimal("6.50")
    book.unset("fam-mini")
    assert usd(book, "fam-mini", make_usage(100_000, 0)) == Decimal("0.025")


def test_a_call_is_priced_by_the_book_of_its_day(book: PriceBook):
    book.set("fam-mini", input=1, output=1, since="2026-03-01")
    book.set("fam-mini", input=2, output=2, since=datetime(2026, 6, 1, tzinfo=UTC))
    costs = [
        usd(book, "fam-mini", make_usage(100_000, 0), datetime(2026, month, 1, tzinfo=UTC)) for month in (2, 3, 5, 6)
    ]
    assert costs == [Decimal("0.025"), Decimal("0.1"), Decimal("0.1"), Decimal("0.2")]
    # One without a date holds for calls that are already made.
    book.set("fam-2-5-pro", input=1, output=10)
    assert usd(book, "fam-2-5-pro", make_usage(MILLION, 0), datetime(2020, 1, 1, tzinfo=UTC)) == 1


def test_tiers_go_by_the_number_of_input_tokens(book: PriceBook):
    book.set("m", input=1, output=0, until_context=1000)
    assert book.cost("m", make_usage(1000, 0)) is None
    book.set("m", input=3, output=0)
    assert [usd(book, "m", make_usage(count, 0)) for count in (999, 1000)] == [Decimal("0.000999"), Decimal("0.003")]


def test_a_service_s_price_leaves_other_services_and_earlier_days_to_the_others(book: PriceBook):
    book.set("fam-mini", input=9, output=9, service="openai", since="2026-03-01")
    book.set("only-there", input=1, output=1, service="openai")
    for month, service, dollars in ((2, "openai", "0.025"), (3, "openai", "0.9"), (3, "azure", "0.025")):
        moment = datetime(2026, month, 1, tzinfo=UTC)
        cost = book.cost("fam-mini", make_usage(100_000, 0), moment, service=service)
        assert cost is not None
        assert cost.usd == Decimal(dollars)
    assert book.cost("only-there", make_usage(1, 1), service="azure") is None


def test_a_price_of_a_service_without_a_profile_is_refused_since_no_call_would_have_it(book: PriceBook):
    with pytest.raises(InvalidRequest, match="no profile 'gpu:8000'; expected one of fam, "):
        book.set("m", input=1, output=1, service="gpu:8000")


def test_the_same_entry_set_again_is_replaced(book: PriceBook):
    book.set("m", input=9, output=9)
    book.set("m", input=1, output=1)
    assert usd(book, "m", make_usage(MILLION, 0)) == 1
    assert [entry.model for entry in book].count("m") == 1


def test_an_estimated_count_is_an_interval(book: PriceBook):
    cost = book.cost("fam-mini", make_usage(1000, 1000, estimated=("output_tokens",)))
    assert cost == Cost(Decimal("0.00125"), Decimal("0.00075"), Decimal("0.00225"))
    assert str(cost) == "≈ $0.00125 ($0.00075–$0.00225)"


def test_the_book_shows_who_says_so(book: PriceBook):
    book.set("<b>m</b>", input=1, output=2, since="2026-03-01")
    assert "the API's document" in repr(book)
    assert "2026-03-01  you" in repr(book)
    html = book._repr_html_()
    assert "&lt;b&gt;m&lt;/b&gt;" in html
    assert ">you</td>" in html
