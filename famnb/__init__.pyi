"""The public names of famnb for type checkers and editors; `__init__.py` has where each is found."""

from typing import Any

from . import errors as errors
from . import export as export
from . import plot as plot
from . import profiles as profiles
from . import prompts as prompts
from .api import AsyncClient as AsyncClient
from .api import Client as Client
from .api import connect as connect
from .billing import bill as bill
from .client.config import Deadlines as Deadlines
from .client.retry import Retries as Retries
from .endpoints import compose as compose
from .errors import *  # noqa: F403 - every exception; none of them is completed
from .experiment import scorers as scorers
from .experiment.variants import grid as grid
from .experiment_api import Experiment as Experiment
from .frame import calls as calls
from .frame import deltas as deltas
from .frame import spend as spend
from .frame import sql as sql
from .load import Load as Load
from .record import Ledger as Ledger
from .record import prices as prices
from .reply import Reply as Reply
from .request import ChatRequest as ChatRequest
from .request import MessagesRequest as MessagesRequest
from .request import ResponsesRequest as ResponsesRequest
from .request import WebChatRequest as WebChatRequest
from .request import tool as tool
from .saved_files import open as open
from .service import serve as serve
from .widget.board.board import Board as Board
from .widget.composer.composer import Composer as Composer
from .widget.dashboard.dashboard import Dashboard as Dashboard
from .widget.inspector import Inspector as Inspector

__version__: str
__all__: list[str]

def load_ipython_extension(shell: Any) -> None: ...
