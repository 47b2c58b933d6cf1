"""Prices of the community's file become entries of the user's own, with the file's name and date as their source."""

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest

import famnb
from famnb.cli import main
from famnb.errors import InvalidRequest
from famnb.record.price_book import PriceBook, read_community_prices

COMMUNITY = {
    "sample_spec": {"litellm_provider": "one of …", "mode": "one of …", "input_cost_per_token": 0.0},
    "gpt-x": {
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 2.5e-07,
        "output_cost_per_token": 1e-06,
        "cache_read_input_token_cost": 2.5e-08,
    },
    "openrouter/gpt-x": {
        "litellm_provider": "openrouter",
        "input_cost_per_token": 9e-06,
        "output_cost_per_token": 9e-06,
    },
    "openrouter/lab/only-there": {
        "litellm_provider": "openrouter",
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 2e-06,
    },
    "long-context": {
        "litellm_provider": "anthropic",
        "input_cost_per_token": 3e-06,
        "input_cost_per_token_above_200k_tokens": 6e-06,
        "output_cost_per_token": 1.5e-05,
        "output_cost_per_token_above_200k_tokens": 2.25e-05,
        "cache_creation_input_token_cost": 3.75e-06,
    },
    "without-a-vendor": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
    "speech": {"litellm_provider": "openai", "mode": "audio_speech", "input_cost_per_character": 1.5e-05},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model_prices.json"
    path.write_text(json.dumps(COMMUNITY), encoding="utf-8")
    os.utime(path, (1_790_000_000, 1_790_000_000))
    return path


def test_prices_are_per_million_and_name_their_source(file: Path):
    prices = {price.model: price for price in read_community_prices(file, ["gpt-*", "lab/*", "speech"])}
    assert sorted(prices) == ["gpt-x", "lab/only-there"]
    price = prices["gpt-x"]
    assert (price.input, price.output, price.cached) == (Decimal("0.25"), Decimal(1), Decimal("0.025"))
    assert price.source == "model_prices.json, 2026-09-21"


def test_a_price_for_long_input_is_a_tier(file: Path):
    book = PriceBook(read_community_prices(file, ["long-context"]))
    for tokens, input_price, output_price in ((200_000, 3, 15), (200_001, 6, Decimal("22.5"))):
        price = book.price("long-context", context=tokens)
        assert (price.input, price.output, price.cache_write) == (input_price, output_price, Decimal("3.75"))


@pytest.mark.parametrize(("text", "message"), [("{", "this is not JSON"), ("[1]", "expected an object of models")])
def test_another_file_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=message):
        read_community_prices(path, ["*"])


def test_the_command_writes_them_into_the_user_s_file(file: Path, capsys: pytest.CaptureFixture[str]):
    path = Path(os.environ["FAMNB_PRICES"])
    path.write_text('[[price]]\nmodel = "mine"\ninput = 1\noutput = 2\n')
    famnb.prices.load()
    assert main(["prices", "import", str(file), "gpt-x"]) == 0
    assert "1 price of gpt-x written to" in capsys.readouterr().out
    assert main(["prices", "import", str(file), "gpt-x", "long-context"]) == 0
    famnb.prices.load()
    entries = [(price.model, price.source) for price in famnb.prices if price.model != "fam-mini"]
    community = "model_prices.json, 2026-09-21"
    assert entries == [
        ("gpt-x", community),
        ("long-context", community),
        ("long-context", community),
        ("mine", str(path)),
    ]
    assert main(["prices"]) == 0
    assert community in capsys.readouterr().out


def test_prices_at_one_service(file: Path, capsys: pytest.CaptureFixture[str]):
    Path(os.environ["FAMNB_PRICES"]).touch()
    famnb.prices.load()
    assert main(["prices", "import", str(file), "gpt-x", "--service", "openrouter"]) == 0
    assert "1 price of gpt-x at openrouter written to" in capsys.readouterr().out
    assert main(["prices", "import", str(file), "gpt-x", "--service", "mine"]) == 0
    capsys.readouterr()
    for model, service in (("long-context", "openrouter"), ("gpt-x", "gemini"), ("lab/only-there", "mine")):
        assert main(["prices", "import", str(file), model, "--service", service]) == 1
        assert f"has no price of {model} at {service}" in capsys.readouterr().err
    famnb.prices.load()
    entries = [(price.model, price.service, price.input) for price in famnb.prices if price.model != "fam-mini"]
    assert entries == [("gpt-x", "mine", Decimal("0.25")), ("gpt-x", "openrouter", Decimal(9))]
    capsys.readouterr()
    assert main(["prices"]) == 0
    assert " mine " in capsys.readouterr().out


def test_the_command_says_what_it_cannot_do(file: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["prices", "import", str(file), "nothing"]) == 1
    assert "has no price of nothing" in capsys.readouterr().err
    assert main(["prices", "import", str(file)]) == 2
    assert "the ledger has no calls: name the models" in capsys.readouterr().err
    assert main(["prices", "import", str(file), "--service", "openrouter"]) == 2
    assert "the ledger has no calls at openrouter: name the models" in capsys.readouterr().err
