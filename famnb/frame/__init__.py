"""The ledger as tidy pandas frames, each a list of declared columns."""

from famnb.frame.calls import calls as calls
from famnb.frame.columns import CALLS as CALLS
from famnb.frame.columns import DELTAS as DELTAS
from famnb.frame.columns import SPEND as SPEND
from famnb.frame.columns import Column as Column
from famnb.frame.columns import describe as describe
from famnb.frame.deltas import deltas as deltas
from famnb.frame.spend import spend as spend
from famnb.frame.sql import sql as sql
