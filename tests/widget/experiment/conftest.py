"""The fixtures of experiments for the tests of what shows them."""

from tests.support.experiment_fixtures import client, connect, priced

__all__ = ["client", "connect", "priced"]
