"""The colours of figures: a set that does not need full colour vision, and text on light or dark ground."""

from __future__ import annotations

import dataclasses
from typing import Any

import matplotlib
from matplotlib.colors import to_hex, to_rgb, to_rgba

from famnb.model_colours import COLOURS

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]
# From the third line on, and where colours repeat, dashes tell lines apart, also in print and without colour vision.
DASHES: tuple[Any, ...] = ((0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)), (0, (9, 2)))
MARKERS = "os^DvPX"
HATCHES = ("", "////", "....")

PLAIN_TEXT: dict[str, Any] = {"parse_math": False}
"""Options for text that holds names or amounts: two dollar signs in it are no formula."""


@dataclasses.dataclass(frozen=True, slots=True)
class Palette:
    """The colours of text, lines and areas on a light or a dark ground."""

    strong: str
    soft: str
    faint: str
    ground: str
    slots: tuple[int, ...] = ()
    """The number that decides the style of each group, by its index; without one it is the index itself."""

    def line_style(self, index: int) -> dict[str, Any]:
        """Colour and dash of the line of a group; no two of the first 28 are alike."""
        colour = COLOURS[self._slot(index) % len(COLOURS)]
        slot = self._slot(index)
        # Seven colours and four dashes have no common factor: four slots of one colour have four dashes.
        dash = "-" if slot < 2 else DASHES[(slot - 2) % len(DASHES)]
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
DARK = Palette(strong="#f0f3f6", soft="#a5afba", faint="#4a525b", ground="#111418")


def palette_on(ground: Any) -> Palette:
    """The palette for a ground of that colour: light text on a dark one, dark text on a light one."""
    red, green, blue = to_rgb(ground)
    # How bright the eye finds each primary (ITU-R BT.601).
    palette = LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else DARK
    return dataclasses.replace(palette, ground=to_hex((red, green, blue)))


def palette_of_style() -> Palette:
    """DARK where matplotlib's style is dark, as after `plt.style.use("dark_background")`; LIGHT otherwise."""
    ground = matplotlib.rcParams["figure.facecolor"]
    # Transparent ground, as the inline backend sets it, says nothing about the page.
    if to_rgba(ground)[3] == 0 or palette_on(ground).strong == LIGHT.strong:
        return LIGHT
    return DARK
