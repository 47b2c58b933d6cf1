"""The colours of figures: a set that does not need full colour vision, and text on light or dark ground.

A figure drawn in light colours is drawn again for a dark page within `dark_colours`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import matplotlib
import matplotlib.figure
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgb, to_rgba, to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from famnb.model_colours import COLOURS, PART_COLOURS

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]
# From the third line on, and where colours repeat, dashes tell lines apart, also in print and without colour vision.
DASHES: tuple[Any, ...] = ((0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)), (0, (9, 2)))
# Where a figure has replies of both kinds, dashes say of which a line is and nothing else, until colours repeat.
KIND_DASHES: dict[str, tuple[Any, ...]] = {"streamed": ("-", (0, (12, 1.5))), "whole": ((0, (4, 2)), (0, (1.5, 1.5)))}
MARKERS = "os^DvPX"
HATCHES = ("", "////", "....")

PLAIN_TEXT: dict[str, Any] = {"parse_math": False}
"""Options for text that holds names or amounts: two dollar signs in it are not a formula."""


@dataclasses.dataclass(frozen=True, slots=True)
class Palette:
    """The colours of text, lines and areas on a light or a dark ground."""

    strong: str
    soft: str
    faint: str
    ground: str
    dot_alpha: float = 0.65
    """How opaque dots are that may lie on each other: on dark ground more, on which dark colours are hard to see."""
    slots: tuple[int, ...] = ()
    """The number that decides the style of each group, by its index; without one it is the index itself."""
    kinds: tuple[str, ...] = ()
    """Whether each group is of "streamed" or "whole" replies; "" or nothing if it is of both, or of anything else."""
    colours: tuple[str | None, ...] = ()
    """The colour of each group that has one of its own, as parts of a call do."""

    def line_style(self, index: int) -> dict[str, Any]:
        """Colour and dash of the line of a group; no two of the first 28 are alike."""
        slot = self._slot(index)
        colour = self.colours[index] if index < len(self.colours) else None
        kind = self.kinds[index] if index < len(self.kinds) else ""
        if kind:
            dash = KIND_DASHES[kind][min(self.cycle(index), 1)]
        else:
            # Seven colours and four dashes have no common factor: four slots of one colour have four dashes.
            dash = "-" if slot < 2 or colour else DASHES[(slot - 2) % len(DASHES)]
        colour = colour or COLOURS[slot % len(COLOURS)]
        # Black would not be seen on dark ground.
        return {"color": self.strong if colour == "#000000" else colour, "linestyle": dash}

    def marker(self, index: int) -> str:
        """The marker of a group; no two of the first 49 have marker and colour alike."""
        slot = self._slot(index)
        return MARKERS[(slot + slot // len(COLOURS)) % len(MARKERS)]

    def area_style(self, index: int) -> dict[str, Any]:
        """Colour and hatch of the area of a group; no two of the first 21 are alike."""
        return {
            "facecolor": self.line_style(index)["color"],
            "hatch": HATCHES[self.cycle(index) % len(HATCHES)],
            "edgecolor": self.ground,
            "linewidth": 0.6,
        }

    def dot_style(self, index: int) -> dict[str, Any]:
        """Colour and opacity of the dots of a group, which may lie on each other."""
        colour = self.line_style(index)["color"]
        return {"color": colour, "linestyle": "none", "alpha": self.dot_alpha, "markeredgewidth": 0}

    def cycle(self, index: int) -> int:
        """Return how often the colours were all used before a group's turn."""
        return self._slot(index) // len(COLOURS)

    def _slot(self, index: int) -> int:
        return self.slots[index] if index < len(self.slots) else index

    def text_colour(self, colour: str) -> str:
        """Return the colour, darkened (on dark ground: lightened) until it can be read as text."""
        # Mixed with the colour of text, more than half kept, so that it is still known as the colour of its line.
        channels = zip(to_rgb(colour), to_rgb(self.strong), strict=True)
        red, green, blue = (0.58 * part + 0.42 * strong for part, strong in channels)
        return to_hex((red, green, blue))


LIGHT = Palette(strong="#1f2328", soft="#59636e", faint="#d9dee3", ground="#ffffff")
DARK = Palette(strong="#f0f3f6", soft="#a5afba", faint="#4a525b", ground="#111418", dot_alpha=0.95)
# Between the two: at 4.4 to 1 on white and 4.2 to 1 on near-black it can be read on both.
NEUTRAL = Palette(strong="#767e87", soft="#767e87", faint="#9aa3ad", ground="none")
"""For a transparent ground, of which nobody knows what is behind it."""


def palette_on(ground: Any) -> Palette:
    """The palette for a ground of that colour: light text on a dark one, dark text on a light one."""
    red, green, blue = to_rgb(ground)
    # How bright the eye finds each primary (ITU-R BT.601).
    palette = LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else DARK
    return dataclasses.replace(palette, ground=to_hex((red, green, blue)))


def palette_over(*grounds: Any) -> Palette:
    """The palette for what stands on grounds that lie on each other, the uppermost first; NEUTRAL if none is opaque."""
    return next((palette_on(ground) for ground in grounds if to_rgba(ground)[3] > 0.5), NEUTRAL)


def palette_of_style() -> Palette:
    """DARK where matplotlib's style is dark, as after `plt.style.use("dark_background")`; LIGHT otherwise."""
    ground = matplotlib.rcParams["figure.facecolor"]
    # Transparent ground, as the inline backend sets it, says nothing about the page.
    if to_rgba(ground)[3] == 0 or palette_on(ground).strong == LIGHT.strong:
        return LIGHT
    return DARK


Colour = tuple[float, float, float]
_COLOUR_PROPERTIES: dict[Any, tuple[str, ...]] = {
    Line2D: ("color", "markerfacecolor", "markeredgecolor", "markerfacecoloralt"),
    Text: ("color",),
    Patch: ("facecolor", "edgecolor"),
    Collection: ("facecolor", "edgecolor"),
}


@cache
def dark_counterparts() -> dict[Colour, Colour]:
    """The colours of light figures that others stand for on dark ground. Those of models and parts stay."""
    pairs = {getattr(LIGHT, name): getattr(DARK, name) for name in ("strong", "soft", "faint", "ground")}
    # matplotlib's own text, ticks and spines, on axes that are the caller's.
    pairs["#000000"] = DARK.strong
    pairs |= {LIGHT.text_colour(colour): DARK.text_colour(colour) for colour in (*COLOURS, *PART_COLOURS.values())}
    return {_round_colour(light): to_rgb(dark) for light, dark in pairs.items()}


def _round_colour(colour: Any) -> Colour:
    red, green, blue = to_rgb(colour)
    return round(float(red), 3), round(float(green), 3), round(float(blue), 3)


@contextlib.contextmanager
def dark_colours(figure: matplotlib.figure.Figure) -> Iterator[None]:
    """Have the figure's own colours of text, lines and ground be those for dark ground; any other stays as it is."""
    undo: list[Callable[[], Any]] = []
    try:
        for artist in figure.findobj():
            # Only dots are translucent and without a line between them.
            if isinstance(artist, Line2D) and artist.get_linestyle() == "None" and (alpha := artist.get_alpha()):
                undo.append(partial(artist.set_alpha, alpha))
                artist.set_alpha(DARK.dot_alpha)
            for name in next((names for kind, names in _COLOUR_PROPERTIES.items() if isinstance(artist, kind)), ()):
                colour = getattr(artist, f"get_{name}")()
                if isinstance(colour, str) and colour in ("none", "auto"):
                    continue
                rows = to_rgba_array(colour)
                counterparts = [dark_counterparts().get(_round_colour(row)) for row in rows]
                if any(counterparts):
                    dark = [(*new, row[3]) if new else tuple(row) for new, row in zip(counterparts, rows, strict=True)]
                    setter = getattr(artist, f"set_{name}")
                    undo.append(partial(setter, colour))
                    setter(dark if isinstance(artist, Collection) else dark[0])
        yield
    finally:
        for restore in undo:
            restore()
