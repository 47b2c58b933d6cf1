"""The fixtures of clients for the figures that read a ledger."""

from tests.support.experiment_fixtures import client, connect

__all__ = ["client", "connect"]
