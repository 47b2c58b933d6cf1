"""A figure in the colours of a dark page: as it is saved, and both images of one drawing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.backends.backend_agg import RendererAgg
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
    red, green, blue = to_rgb(colour)
    return round(float(red), 3), round(float(green), 3), round(float(blue), 3)


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


class LightAndDarkRenderer(RendererBase):
    """Draws what it is told to on two images: as it is, and with the colours for dark ground.

    Most of the time of a drawing goes into finding out what to draw, which two drawings would do twice.
    """

    def __init__(self, width: int, height: int, dpi: float) -> None:
        super().__init__()
        new_renderer: Any = RendererAgg  # untyped in matplotlib
        self.light, self.dark = new_renderer(width, height, dpi), new_renderer(width, height, dpi)

    def images(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return both images, height x width x RGBA."""
        return np.asarray(self.light.buffer_rgba()), np.asarray(self.dark.buffer_rgba())

    # The arguments of all methods have matplotlib's own names, by which it gives some of them.

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:  # noqa: N803
        self.light.draw_path(gc, path, transform, rgbFace)
        with _dark_context(gc):
            self.dark.draw_path(gc, path, transform, _darken_rgba(rgbFace))

    def draw_markers(self, gc: Any, *shapes: Any) -> None:
        *paths, face = shapes if len(shapes) == 5 else (*shapes, None)
        self.light.draw_markers(gc, *paths, face)
        with _dark_context(gc):
            self.dark.draw_markers(gc, *paths, _darken_rgba(face))

    def draw_path_collection(
        self,
        gc: Any,
        master_transform: Any,
        paths: Any,
        all_transforms: Any,
        offsets: Any,
        offset_trans: Any,
        facecolors: Any,
        edgecolors: Any,
        *styles: Any,
        **options: Any,
    ) -> None:
        places = master_transform, paths, all_transforms, offsets, offset_trans
        self.light.draw_path_collection(gc, *places, facecolors, edgecolors, *styles, **options)
        colours = (_darken_rows(np.asarray(rows)) for rows in (facecolors, edgecolors))
        # Only as of matplotlib 3.11 hatches of collections have colours of their own.
        if options.get("hatchcolors") is not None:
            options["hatchcolors"] = _darken_rows(np.asarray(options["hatchcolors"]))
        with _dark_context(gc):
            self.dark.draw_path_collection(gc, *places, *colours, *styles, **options)

    def draw_gouraud_triangles(self, *arguments: Any) -> None:
        for renderer in (self.light, self.dark):
            renderer.draw_gouraud_triangles(*arguments)

    def draw_image(self, *arguments: Any) -> None:
        for renderer in (self.light, self.dark):
            renderer.draw_image(*arguments)

    def draw_text(self, gc: Any, *arguments: Any, **options: Any) -> None:
        self.light.draw_text(gc, *arguments, **options)
        with _dark_context(gc):
            self.dark.draw_text(gc, *arguments, **options)

    def draw_tex(self, gc: Any, *arguments: Any, **options: Any) -> None:
        self.light.draw_tex(gc, *arguments, **options)
        with _dark_context(gc):
            self.dark.draw_tex(gc, *arguments, **options)

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        width, height, descent = self.light.get_text_width_height_descent(s, prop, ismath)
        return width, height, descent

    def get_canvas_width_height(self) -> tuple[float, float]:
        width, height = self.light.get_canvas_width_height()
        return width, height

    def points_to_pixels(self, points: Any) -> Any:
        return self.light.points_to_pixels(points)

    def option_image_nocomposite(self) -> bool:
        return bool(self.light.option_image_nocomposite())


@contextlib.contextmanager
def _dark_context(context: GraphicsContextBase) -> Iterator[None]:
    """Have the colours of strokes, text and hatches be those for dark ground."""
    stroke, hatch = context.get_rgb(), context.get_hatch_color()
    context.set_foreground(_darken_rgba(stroke), isRGBA=True)
    if hatch is not None:
        context.set_hatch_color(_darken_rgba(hatch))
    try:
        yield
    finally:
        context.set_foreground(stroke, isRGBA=True)
        if hatch is not None:
            context.set_hatch_color(hatch)


def _darken_rgba(colour: Any) -> Any:
    """The counterpart of a colour of numbers, or the colour itself where it has none."""
    if colour is None:
        return None
    dark = dark_counterparts().get(_key(colour))
    return colour if dark is None else (*dark, *colour[3:])


def _darken_rows(colours: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    dark = _dark_rows(colours) if len(colours) else None
    return colours if dark is None else dark
