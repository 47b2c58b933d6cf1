"""A figure in the colours of a dark page, without drawing its data again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from famnb.model_colours import COLOURS, PART_COLOURS
from famnb.plot.palette import DARK, LIGHT

Colour = tuple[float, float, float]
COLOURS_OF_LINES = ("color", "markerfacecolor", "markeredgecolor", "markerfacecoloralt")


@cache
def dark_counterparts() -> dict[Colour, Colour]:
    """The colours of light figures that others stand for on dark ground. Those of models and parts stay."""
    pairs = {getattr(LIGHT, name): getattr(DARK, name) for name in ("strong", "soft", "faint", "ground")}
    pairs |= {LIGHT.text_colour(colour): DARK.text_colour(colour) for colour in (*COLOURS, *PART_COLOURS.values())}
    return {_key(light): to_rgb(dark) for light, dark in pairs.items()}


def _key(colour: Any) -> Colour:
    red, green, blue = (round(part, 3) for part in to_rgb(colour))
    return red, green, blue


@contextlib.contextmanager
def dark_colours(figure: matplotlib.figure.Figure) -> Iterator[None]:
    """Have the figure's own colours of text, lines and ground be those for dark ground; any other stays as it is."""
    undo: list[Callable[[], Any]] = []
    try:
        for artist in figure.findobj():
            _darken(artist, undo)
        yield
    finally:
        for restore in undo:
            restore()


def _darken(artist: Artist, undo: list[Callable[[], Any]]) -> None:
    match artist:
        case Line2D():
            names: tuple[str, ...] = COLOURS_OF_LINES
        case Text():
            names = ("color",)
        case Patch() | Collection():
            names = ("facecolor", "edgecolor")
        case _:
            return
    for name in names:
        colour = getattr(artist, f"get_{name}")()
        dark = _dark_rows(colour) if isinstance(colour, np.ndarray) else _dark_one(colour)
        if dark is not None:
            setter = getattr(artist, f"set_{name}")
            undo.append(partial(setter, colour))
            setter(dark)


def _dark_one(colour: Any) -> Any:
    """The counterpart of a colour, as transparent as it is; None where there is none."""
    if isinstance(colour, str) and colour in ("none", "auto"):
        return None
    dark = dark_counterparts().get(_key(colour))
    return None if dark is None else (*dark, to_rgba(colour)[3])


def _dark_rows(colours: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The counterparts of the colours of a collection; None where none has one."""
    rows = [_dark_one(row) for row in colours]
    if not any(rows):
        return None
    return np.array([row if row is not None else tuple(old) for row, old in zip(rows, colours, strict=True)])
