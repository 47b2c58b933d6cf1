"""`famnb.open`: what was saved as one HTML file, as the widget or experiment that it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec

from famnb.client.client import BaseClient
from famnb.errors import InvalidRequest
from famnb.experiment_api import Experiment
from famnb.widget.board.board import Board
from famnb.widget.composer.composer import Composer
from famnb.widget.html.page import read_data


class _Kind(msgspec.Struct):
    kind: str
    is_matrix: bool = False


def open(path: str | os.PathLike[str], client: BaseClient | None = None) -> Any:
    """Open a file of `composer.save`, `board.save`, `matrix.save` or `exp.report` as what it was, an Experiment last.

    It has what was recorded, replies, figures, scores and notes included, wherever and by whomever it was saved, and
    nothing of it is added to your ledger. A chat or a board goes on with `client`, by default that of
    `famnb.connect()`. An experiment can be summarised, drawn, scored and voted on, and not run; another report has what
    was added. Raises InvalidRequest for a file that holds nothing to open or is damaged, OSError for one that
    cannot be read.
    """
    data = read_data(path)
    openers: dict[str, Callable[[], Any]] = {
        "chat": lambda: Composer.from_page(data, client),
        "board": lambda: Board.from_page(data, client),
        "experiment": lambda: Experiment.from_report(data),
    }
    try:
        head = msgspec.json.decode(data, type=_Kind)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"{path}: the file is damaged ({error})") from None
    if head.kind not in openers:
        raise InvalidRequest(f"{path}: holds a {head.kind!r:.40}, which this famnb does not know: update famnb")
    opened = openers[head.kind]()
    return opened.matrix() if head.is_matrix else opened
