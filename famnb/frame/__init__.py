"""The ledger as tidy pandas frames, each a list of declared columns."""

from famnb.frame.columns import CALLS, DELTAS, RUNS, SPEND, Column, describe
from famnb.frame.percall import calls
from famnb.frame.perevent import deltas
from famnb.frame.perrun import runs
from famnb.frame.perspend import spend

__all__ = ["CALLS", "DELTAS", "RUNS", "SPEND", "Column", "calls", "deltas", "describe", "runs", "spend"]
