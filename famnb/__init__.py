"""famnb: a notebook workbench and measuring instrument for a text-generation API.

The public face; every name loads its part of the house on first use, so that importing costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from famnb import plot as plot
    from famnb import stats as stats
    from famnb.client import Deadlines as Deadlines
    from famnb.client import Retries as Retries
    from famnb.client import Stream as Stream
    from famnb.endpoints import ENDPOINTS as ENDPOINTS
    from famnb.endpoints import compose as compose
    from famnb.errors import APIStatusError as APIStatusError
    from famnb.errors import AuthenticationError as AuthenticationError
    from famnb.errors import BadRequestError as BadRequestError
    from famnb.errors import BudgetExceeded as BudgetExceeded
    from famnb.errors import Cancelled as Cancelled
    from famnb.errors import ConnectError as ConnectError
    from famnb.errors import CredentialError as CredentialError
    from famnb.errors import DeadlineError as DeadlineError
    from famnb.errors import FamnbError as FamnbError
    from famnb.errors import FirstEventTimeout as FirstEventTimeout
    from famnb.errors import IdleTimeout as IdleTimeout
    from famnb.errors import Interrupted as Interrupted
    from famnb.errors import InvalidRequest as InvalidRequest
    from famnb.errors import LedgerError as LedgerError
    from famnb.errors import NotFoundError as NotFoundError
    from famnb.errors import NotRecorded as NotRecorded
    from famnb.errors import ParseError as ParseError
    from famnb.errors import PoolTimeout as PoolTimeout
    from famnb.errors import ProcessEnded as ProcessEnded
    from famnb.errors import RateLimitError as RateLimitError
    from famnb.errors import ResponseFormatError as ResponseFormatError
    from famnb.errors import ServerError as ServerError
    from famnb.errors import StreamDecodeError as StreamDecodeError
    from famnb.errors import StreamError as StreamError
    from famnb.errors import StreamInterrupted as StreamInterrupted
    from famnb.errors import TotalTimeout as TotalTimeout
    from famnb.errors import WorkerLost as WorkerLost
    from famnb.experiment import grid as grid
    from famnb.experiment import scorers as scorers
    from famnb.frame import calls as calls
    from famnb.frame import deltas as deltas
    from famnb.frame import runs as runs
    from famnb.frame import spend as spend
    from famnb.magic import load_ipython_extension as load_ipython_extension
    from famnb.record import Ledger as Ledger
    from famnb.record import prices as prices
    from famnb.reply import Block as Block
    from famnb.reply import Reply as Reply
    from famnb.reply import fold as fold
    from famnb.request import ChatRequest as ChatRequest
    from famnb.request import MessagesRequest as MessagesRequest
    from famnb.request import ResponsesRequest as ResponsesRequest
    from famnb.request import WebChatRequest as WebChatRequest
    from famnb.request import tool as tool
    from famnb.service import serve as serve
    from famnb.study import Experiment as Experiment
    from famnb.widget import Composer as Composer
    from famnb.widget.board.board import Board as Board
    from famnb.widget.dashboard import Dashboard as Dashboard
    from famnb.widget.inspector import Inspector as Inspector
    from famnb.workbench import AsyncClient as AsyncClient
    from famnb.workbench import Client as Client
    from famnb.workbench import connect as connect

__version__ = "0.1.0"

_HOMES = {
    "client": ("Deadlines", "Retries", "Stream"),
    "endpoints": ("ENDPOINTS", "compose"),
    "errors": (
        "APIStatusError",
        "AuthenticationError",
        "BadRequestError",
        "BudgetExceeded",
        "Cancelled",
        "ConnectError",
        "CredentialError",
        "DeadlineError",
        "FamnbError",
        "FirstEventTimeout",
        "IdleTimeout",
        "Interrupted",
        "InvalidRequest",
        "LedgerError",
        "NotFoundError",
        "NotRecorded",
        "ParseError",
        "PoolTimeout",
        "ProcessEnded",
        "RateLimitError",
        "ResponseFormatError",
        "ServerError",
        "StreamDecodeError",
        "StreamError",
        "StreamInterrupted",
        "TotalTimeout",
        "WorkerLost",
    ),
    "experiment": ("grid", "scorers"),
    "frame": ("calls", "deltas", "runs", "spend"),
    "magic": ("load_ipython_extension",),
    "record": ("Ledger", "prices"),
    "reply": ("Block", "Reply", "fold"),
    "request": ("ChatRequest", "MessagesRequest", "ResponsesRequest", "WebChatRequest", "tool"),
    "service": ("serve",),
    "study": ("Experiment",),
    "widget": ("Composer",),
    "widget.board.board": ("Board",),
    "widget.dashboard": ("Dashboard",),
    "widget.inspector": ("Inspector",),
    "workbench": ("AsyncClient", "Client", "connect"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names} | {"plot": "", "stats": ""}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"famnb has no {name!r}; it has {', '.join(__all__)}")
    module = importlib.import_module(f"famnb.{_HOME[name] or name}")
    value = getattr(module, name) if _HOME[name] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
