"""The fixtures of experiments for the tests of what shows them."""

from tests.support.experiment_fixtures import client, connect, prices

__all__ = ["client", "connect", "prices"]
