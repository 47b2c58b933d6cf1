"""`famnb.plot.explore`: the calls of a frame as points to hover over, to open, and to choose from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, cast

import matplotlib.figure
import pandas as pd

from famnb.errors import InvalidRequest
from famnb.plot.points import read_points
from famnb.record import Ledger
from famnb.record.ledger import HasLedger, ledger_of

if TYPE_CHECKING:
    from famnb.widget.explorer import Explorer


def explore(
    frame: pd.DataFrame,
    *,
    x: str = "started_at",
    y: str = "e2e_s",
    by: str | None = "model",
    log: Literal["", "x", "y", "xy"] = "",
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
) -> Explorer:
    """Each row a point of a scatter plot in the notebook: hover shows the call, a click opens it, brushing chooses.

        explorer = famnb.plot.explore(famnb.calls(), x="output_tokens", y="e2e_s", by="model")
        explorer                     # a widget; drag over points, then:
        explorer.selection           # the rows brushed, as a frame; all of them until then

    `x` and `y` are columns of numbers or of times, `by` a column of few values, which decides the colours; None is one
    colour. `log` names the axes that begin as logarithmic ones, which buttons change. All points but far outliers fill
    the first view, and a button shows these; a brushed part is zoomed into. A click on the name of a column sorts the
    list. Rows without a value of `x` or `y`, and warm-ups, are left out with a note. By keyboard, arrows go from call
    to call, Enter opens one, Space marks two corners of what is chosen, Escape chooses all again.
    A click opens the call as an `Inspector` does, from `ledger`: unless given, that of the latest `famnb.connect()`.
    KeyError for a column that is not there, ValueError for one that holds neither numbers nor times.
    """
    return cast("Explorer", show_points(frame, x=x, y=y, by=by, log=log, ledger=ledger))


def show_points(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    by: str | None,
    log: str = "",
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
    **of_figures: object,
) -> matplotlib.figure.Figure:
    """Return an Explorer of a frame, typed as the figure in whose place `interactive=True` asks for it.

    Raises InvalidRequest if any of `of_figures` is given, the arguments that only a figure can follow.
    """
    for name, value in of_figures.items():
        if value is not None:
            raise InvalidRequest(
                f"{name}: a widget is as wide as its page and has one panel; leave it out, or `interactive`"
            )
    points = read_points(frame, x=x, y=y, by=by, log=log)
    # The one import of a widget by a figure, which the contract of imports names. On use: a figure needs no ipywidgets.
    from famnb.widget.explorer import Explorer

    return cast(matplotlib.figure.Figure, Explorer(points, None if ledger is None else ledger_of(ledger)))
