"""The ledger as tidy pandas frames, each a list of declared columns."""

from famnb.frame.calls import calls
from famnb.frame.columns import CALLS, DELTAS, SPEND, Column, describe
from famnb.frame.deltas import deltas
from famnb.frame.spend import spend
from famnb.frame.sql import sql

__all__ = [
    "CALLS",
    "DELTAS",
    "SPEND",
    "Column",
    "calls",
    "deltas",
    "describe",
    "spend",
    "sql",
]
