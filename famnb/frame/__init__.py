"""The ledger as tidy pandas frames, each a list of declared columns."""

from famnb.frame.columns import CALLS, DELTAS, RUNS, Column, describe
from famnb.frame.percall import calls
from famnb.frame.perevent import deltas
from famnb.frame.perrun import runs

__all__ = ["CALLS", "DELTAS", "RUNS", "Column", "calls", "deltas", "describe", "runs"]
