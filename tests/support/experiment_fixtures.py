"""Fixtures for tests that run experiments: clients that record, and prices; a conftest imports them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import famnb
from famnb.service import Server


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[..., famnb.Client]]:
    """Makes clients of a service that record in this test's ledger, closed at its end."""
    clients: list[famnb.Client] = []

    def make(server: Server, **options: object) -> famnb.Client:
        clients.append(
            famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "ledger.sqlite", **options)
        )
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[..., famnb.Client], server: Server) -> famnb.Client:
    """A client of the service that does not wait."""
    return connect(server)


@pytest.fixture
def prices() -> Iterator[None]:
    """The two models have prices: 1 and 4, 0.2 and 1 USD per million tokens."""
    famnb.prices.set("fam-2-5-pro", input=1, output=4)
    famnb.prices.set("fam-2-5-mini", input="0.2", output=1)
    yield
    for model in ("fam-2-5-pro", "fam-2-5-mini"):
        famnb.prices.unset(model)
