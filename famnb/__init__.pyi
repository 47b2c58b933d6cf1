"""The public names of famnb, each listed once, for type checkers, editors and `famnb.__getattr__` alike."""

from . import errors as errors
from . import plot as plot
from . import profiles as profiles
from . import stats as stats
from .api import AsyncClient as AsyncClient
from .api import Client as Client
from .api import connect as connect
from .client.config import Deadlines as Deadlines
from .client.live_call import Stream as Stream
from .client.retry import Retries as Retries
from .client.transport import StampedTransport as StampedTransport
from .endpoints import ENDPOINTS as ENDPOINTS
from .endpoints import compose as compose
from .errors import *  # noqa: F403 - every exception; none of them is completed
from .experiment import scorers as scorers
from .experiment.baseline import compare_experiments as compare_experiments
from .experiment.variants import grid as grid
from .experiment_api import Experiment as Experiment
from .frame.calls import calls as calls
from .frame.csv_file import read_csv as read_csv
from .frame.deltas import deltas as deltas
from .frame.runs import runs as runs
from .frame.spend import spend as spend
from .magic import load_ipython_extension as load_ipython_extension
from .record.ledger import Ledger as Ledger
from .record.price_book import prices as prices
from .reply import Block as Block
from .reply import Reply as Reply
from .reply import fold as fold
from .request import ChatRequest as ChatRequest
from .request import MessagesRequest as MessagesRequest
from .request import ResponsesRequest as ResponsesRequest
from .request import WebChatRequest as WebChatRequest
from .request import tool as tool
from .service.process import serve as serve
from .widget.board.board import Board as Board
from .widget.composer.composer import Composer as Composer
from .widget.dashboard.dashboard import Dashboard as Dashboard
from .widget.inspector import Inspector as Inspector

__version__: str
__all__: list[str]
