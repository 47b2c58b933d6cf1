"""A matplotlib figure that shows itself in a notebook."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
import matplotlib.figure
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import FancyBboxPatch

from famnb.plot.palette import LIGHT, Palette

# With the width of `layout.WIDTHS`, 800 pixels of the page.
DPI = 100
PIXEL_RATIO = 2
"""Pixels of the image per pixel of the page, for screens of high density."""
CORNER_RADIUS_IN = 0.09


class Figure(matplotlib.figure.Figure):
    """A figure that shows itself as the value of a notebook cell, without pyplot and without a magic command."""

    alt = ""
    """What the figure shows, in words, for those who cannot see it."""
    caption = ""
    """All that the figure says, as text: facts, notes and whole names, also what it has no room to show."""

    def __init__(self, *, palette: Palette = LIGHT, **options: Any) -> None:
        layout = ConstrainedLayoutEngine(w_pad=0.16, h_pad=0.16)
        super().__init__(dpi=DPI, layout=layout, facecolor=palette.ground, edgecolor="none", **options)
        # Measuring text needs a renderer, of which a figure without a canvas of its own would make a new one each time.
        FigureCanvasAgg(self)
        self._card = FancyBboxPatch(
            (0, 0),
            1,
            1,
            boxstyle=f"round,pad=0,rounding_size={CORNER_RADIUS_IN}",
            transform=self.dpi_scale_trans,
            edgecolor=palette.faint,
            linewidth=0.8,
            zorder=-10,
            visible=False,
        )
        self._card.set_in_layout(False)
        self.add_artist(self._card)

    def draw(self, renderer: RendererBase) -> None:
        """Draw, with the card under everything fitted to the size the figure has now."""
        # A figure's height is what it needs, which is known after the card was made.
        width, height = self.get_size_inches()
        edge = 0.01
        self._card.set_bounds(edge, edge, width - 2 * edge, height - 2 * edge)
        super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure as matplotlib does, with the text of SVG and PDF files as text."""
        # Else SVG has outlines, which no editor and no search finds, and PDF fonts that some publishers refuse.
        with matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42}):
            super().savefig(fname, **options)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        width, height = self.get_size_inches() * self.dpi
        size = {"width": round(width), "height": round(height), "alt": self.alt}
        return {"image/png": self._png(), "text/plain": repr(self)}, {"image/png": size}

    def _png(self) -> bytes:
        """A PNG image: a card with round corners, nothing around it, on light and dark pages alike."""
        buffer = io.BytesIO()
        self._card.set(visible=True, facecolor=self.get_facecolor())
        try:
            self.savefig(buffer, format="png", dpi=self.dpi * PIXEL_RATIO, facecolor="none")
        finally:
            # The card is for the page only: a figure that the user saves is an ordinary rectangle.
            self._card.set_visible(False)
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"<Figure: {self.alt}>" if self.alt else super().__repr__()
