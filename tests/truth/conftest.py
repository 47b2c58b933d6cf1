"""What the tests of truth share: prices that are known, and clients that record."""

from collections.abc import Iterator

import pytest

import famnb
from tests.support.experiment_fixtures import connect
from tests.truth.truth_experiments import MODELS, PRICE

__all__ = ["connect"]


@pytest.fixture(autouse=True, scope="module")
def prices() -> Iterator[None]:
    """Every model has the same price, with a discount for cached input."""
    for model in MODELS:
        famnb.prices.set(model, **PRICE)
    yield
    for model in MODELS:
        famnb.prices.unset(model)
