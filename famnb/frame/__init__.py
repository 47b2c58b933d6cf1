"""The ledger as tidy pandas frames, each a list of declared columns."""

from famnb.frame.calls import calls
from famnb.frame.columns import CALLS, DELTAS, RUNS, SPEND, Column, describe
from famnb.frame.deltas import deltas
from famnb.frame.runs import runs
from famnb.frame.spend import spend
from famnb.frame.sql import sql

__all__ = [
    "CALLS",
    "DELTAS",
    "RUNS",
    "SPEND",
    "Column",
    "calls",
    "deltas",
    "describe",
    "runs",
    "spend",
    "sql",
]
