"""The user's own prices: kept in a file, read again, and refused with the place of the fault."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from famnb.errors import InvalidRequest
from famnb.events import Usage
from famnb.record.price_book import PriceBook
from tests.support.fault_server import FaultServer, whole

FILE = """
[[price]]
model = "fam-2-5-pro"
input = 1.25
output = 10
cached = 0.31

[[price]]
model = "fam-2-5-pro"
input = 2
output = 20
since = 2026-03-01
until_context = 200000
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where FAMNB_PRICES points."""
    path = tmp_path / "prices.toml"
    monkeypatch.setenv("FAMNB_PRICES", str(path))
    return path


def test_prices_of_the_file_hold_from_the_first_question(file: Path) -> None:
    file.write_text(FILE)
    book = PriceBook(use_file=True)
    before, after = datetime(2026, 2, 28, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    cost = book.cost("fam-2-5-pro", Usage(1_000_000, 100_000, cached_tokens=400_000), before)
    assert cost is not None
    assert cost.usd == Decimal("0.75") + Decimal("0.124") + 1
    price = book.price("fam-2-5-pro", at=after)
    assert price is not None
    assert (price.input, price.source) == (2, str(file))
    assert book.price("fam-2-5-pro", at=after, context=200_000) is None


def test_what_is_set_in_the_process_wins_over_the_file(file: Path) -> None:
    file.write_text('[[price]]\nmodel = "fam-mini"\ninput = 1\noutput = 1\n')
    book = PriceBook(use_file=True)
    assert book.price("fam-mini").input == 1  # type: ignore[union-attr]
    book.set("fam-mini", input=3, output=3)
    assert [(price.input, price.source) for price in book] == [(3, "you")]


def test_every_field_of_a_price_is_kept_to_the_last_digit_beside_what_the_file_held(file: Path) -> None:
    file.write_text(FILE)
    book = PriceBook(use_file=True)
    moment = "2026-05-01T12:30:00+02:00"
    book.set('odd "name" é\x7f', input="0.0000001", output=1, search="0.01", tier="flex", since=moment, keep=True)
    book.set("fam-2-5-pro", input=9, output=9, service="vllm", keep=True)
    found = {(price.model, price.service, price.since): price for price in PriceBook(use_file=True)}
    odd = found['odd "name" é\x7f', None, datetime(2026, 5, 1, 10, 30, tzinfo=UTC)]
    assert (odd.input, odd.search, odd.tier, odd.cached) == (Decimal("0.0000001"), Decimal("0.01"), "flex", None)
    assert found["fam-2-5-pro", "vllm", None].input == 9
    assert found["fam-2-5-pro", None, datetime(2026, 3, 1, tzinfo=UTC)].until_context == 200_000


GOOD = '[[price]]\nmodel = "a"\ninput = 1\noutput = 1\nsince = 2026-01-01\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[price]\n", "not TOML .*line 1"),
        ("x = 1\n", "nothing but tables that begin with"),
        ('[price]\nmodel = "a"\n', "got one table"),
        ('[[price]]\nmodel = "a"\ninput = 1\n', "price 1: output missing"),
        (f"{GOOD}ouput = 2\n", "price 1: ouput: there is no such field; the amounts are input, output, cached"),
        ('[[price]]\nmodel = "a"\ninput = -1\noutput = 1\n', r"prices.toml, price 1: input: a price is a number"),
        ('[[price]]\nmodel = "a"\ninput = nan\noutput = 1\n', "price 1: input: a price is a number"),
        (f"{GOOD}service = 5\n", "price 1: service: expected the name of a profile"),
        ("[[price]]\nmodel = 3\ninput = 1\noutput = 1\n", "price 1: model: expected the name of a model, got 3"),
        ('[[price]]\nmodel = "a"\ninput = 1\noutput = 1\nsince = "soon"\n', "price 1: since: expected a date or time"),
        ('[[price]]\nmodel = "a"\ninput = 1\noutput = 1\nsince = 7\n', "price 1: since: expected a date or time"),
        ('[[price]]\nmodel = "a"\ninput = 1\noutput = 1\nuntil_context = 0\n', "until_context: expected a number"),
        (f"{GOOD}# next\n{GOOD}", r"price 2: model, service, since, until_context and tier are those of price 1"),
        (f"{GOOD}\n{GOOD.replace('output = 1', 'output = true')}", r"price 2: output: a price is a number"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_of_the_fault(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    book = PriceBook(use_file=True)
    with pytest.raises(InvalidRequest, match=words):
        book.load()
    with pytest.warns(RuntimeWarning, match="the price file is not used"):
        assert book.price("fam-mini") is not None
    assert book.price("fam-mini") is not None


def test_a_file_may_begin_with_a_byte_order_mark(file: Path) -> None:
    file.write_text(GOOD, encoding="utf-8-sig")
    assert [price.model for price in PriceBook((), use_file=True)] == ["a"]


def test_a_file_that_is_not_there_is_no_trouble_unless_asked_for(file: Path) -> None:
    book = PriceBook(use_file=True)
    assert book.price("fam-mini") is not None
    with pytest.raises(FileNotFoundError):
        book.load()


def test_what_is_set_is_kept_for_the_next_process_with_its_date(file: Path) -> None:
    file.write_text(FILE)
    book = PriceBook(use_file=True)
    book.set("fam-2-5-pro", input=7, output=8, since="2026-02-01", keep=True)
    book.set("passing", input=1, output=1, keep=False)
    after = datetime(2026, 3, 1, tzinfo=UTC)
    for reader in (book, PriceBook(use_file=True)):
        price = reader.price("fam-2-5-pro", at=after)
        assert price is not None
        assert (price.input, price.source) == (7, f"you, {datetime.now(UTC):%Y-%m-%d}")
    assert PriceBook(use_file=True).price("passing") is None
    book.unset("fam-2-5-pro")
    assert {price.input for price in PriceBook(use_file=True) if price.model == "fam-2-5-pro"} == {Decimal("1.25"), 2}


def test_the_environment_says_whether_prices_are_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PriceBook(use_file=True).set("m", input=1, output=1)
    assert not file.exists()
    monkeypatch.delenv("FAMNB_KEEP_PRICES")
    PriceBook(use_file=True).set("m", input=1, output=1)
    assert 'model = "m"' in file.read_text()


def test_a_file_that_cannot_be_read_is_left_alone_and_the_price_holds(file: Path) -> None:
    file.write_text("[[price")
    book = PriceBook(use_file=True)
    with pytest.warns(RuntimeWarning, match="the price is not kept"):
        book.set("m", input=1, output=1, keep=True)
    assert file.read_text() == "[[price"
    with pytest.warns(RuntimeWarning, match="the price file is not used"):
        assert book.price("m") is not None


def test_vendors_prices_come_by_one_call_with_their_date(file: Path) -> None:
    entry = {"litellm_provider": "openai", "input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06}
    body = json.dumps({"gpt-x": entry, "other": entry}).encode()
    with FaultServer(get=whole(body, content_type="application/json")) as server:
        book = PriceBook(use_file=True)
        assert book.fetch("gpt-*", source=f"{server.url}/prices.json") == file
    price = PriceBook(use_file=True).price("gpt-x")
    assert price is not None
    assert (price.input, price.source) == (2, f"prices.json, {datetime.now(UTC):%Y-%m-%d}")
    assert book.price("other") is None
