"""The ledger as tidy pandas frames, each a list of declared columns."""

from famnb.frame.columns import CALLS, DELTAS, Column, describe
from famnb.frame.percall import calls
from famnb.frame.perevent import deltas

__all__ = ["CALLS", "DELTAS", "Column", "calls", "deltas", "describe"]
