"""The colours of figures: a palette that does not need all colour vision, and words on light or dark ground."""

from __future__ import annotations

import dataclasses
from typing import Any

import matplotlib
from matplotlib.colors import to_hex, to_rgb, to_rgba

# Okabe and Ito's palette without its yellow, which is too pale for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
HATCHES = ("", "////", "....")
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]


PLAIN: dict[str, Any] = {"parse_math": False}
"""For words that hold names or money: two dollar signs are no formula."""


@dataclasses.dataclass(frozen=True, slots=True)
class Palette:
    """The colours of words and lines on a light or a dark ground."""

    strong: str
    soft: str
    faint: str
    ground: str

    def line(self, place: int) -> dict[str, Any]:
        """Colour and dash of the line at a place of the legend; no two of the first 28 are alike."""
        colour = COLOURS[place % len(COLOURS)]
        dash = DASHES[place // len(COLOURS) % len(DASHES)]
        return {"color": self.strong if colour == "#000000" else colour, "linestyle": dash}

    def face(self, place: int) -> dict[str, Any]:
        """Colour and hatch of the area at a place of the legend; no two of the first 21 are alike."""
        return {
            "facecolor": self.line(place)["color"],
            "hatch": HATCHES[place // len(COLOURS) % len(HATCHES)],
            "edgecolor": self.ground,
            "linewidth": 0.6,
        }

    def words(self, colour: str) -> str:
        """A colour dark enough (on dark ground: light enough) to be read as words."""
        mixed = zip(to_rgb(colour), to_rgb(self.strong), strict=True)
        red, green, blue = (0.58 * part + 0.42 * ink for part, ink in mixed)
        return to_hex((red, green, blue))


LIGHT = Palette(strong="#1f2328", soft="#59636e", faint="#d9dee3", ground="#ffffff")
DARK = Palette(strong="#f0f3f6", soft="#a5afba", faint="#4a525b", ground="#111418")


def ink_on(ground: Any) -> Palette:
    """Light words on dark ground, dark words on light ground."""
    red, green, blue = to_rgb(ground)
    ink = LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else DARK
    return dataclasses.replace(ink, ground=to_hex((red, green, blue)))


def ink_of_style() -> Palette:
    """Dark where matplotlib's style is dark, as after `plt.style.use("dark_background")`; light otherwise."""
    ground = matplotlib.rcParams["figure.facecolor"]
    if to_rgba(ground)[3] == 0 or ink_on(ground).strong == LIGHT.strong:
        return LIGHT
    return DARK
