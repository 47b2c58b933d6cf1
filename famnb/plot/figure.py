"""A matplotlib figure that shows itself in a notebook."""

from __future__ import annotations

import base64
import contextlib
import html
import io
from typing import Any, cast

import matplotlib
import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg

from famnb.plot.palette import LIGHT, dark_colours, palette_of_style, palette_on

# With the width of `layout.WIDTHS`, 800 pixels of the page.
DPI = 100
PIXEL_RATIO = 2
"""Pixels of the image per pixel of the page, for screens of high density."""


# Lab says in an attribute of the page which theme it has, VS Code and marimo in a class. A page that removes styles, as
# Lab does of notebooks that are not trusted, shows the light one.
_BOTH = """<div class="famnb-figure"><style>
:is([data-jp-theme-light="false"], .vscode-dark, .vscode-high-contrast:not(.vscode-high-contrast-light), .dark)
.famnb-figure .famnb-on-light {{display: none}}
:is([data-jp-theme-light="false"], .vscode-dark, .vscode-high-contrast:not(.vscode-high-contrast-light), .dark)
.famnb-figure .famnb-on-dark {{display: inline !important}}
@media print {{.famnb-figure .famnb-on-light {{display: inline !important}}
.famnb-figure .famnb-on-dark {{display: none !important}}}}
</style><img class="famnb-on-light" style="{style}" alt="{alt}" width="{width}" height="{height}" src="{light}"><img
class="famnb-on-dark" hidden style="display: none; {style}" alt="{alt}" width="{width}" height="{height}"
src="{dark}"></div>"""
_CARD = (
    "max-width: 100%; height: auto; border-radius: 9px; outline: 1px solid rgba(128,128,128,0.35); outline-offset: -1px"
)


class Figure(matplotlib.figure.Figure):
    """A figure that shows itself as the value of a notebook cell, without pyplot and without a magic command."""

    alt = ""
    """What the figure shows, in words, for those who cannot see it."""
    caption = ""
    """All that the figure says, as text: facts, notes and whole names, also what it has no room to show."""

    def __init__(self, **options: Any) -> None:
        super().__init__(dpi=DPI, facecolor=palette_of_style().ground, edgecolor="none", **options)
        # Measuring text needs a renderer, of which a figure without a canvas of its own would make a new one each time.
        FigureCanvasAgg(self)

    def savefig(self, fname: Any, *, dark: bool = False, **options: Any) -> None:
        """Save the figure as matplotlib does, with the text of SVG and PDF files as text; `dark` for a dark ground."""
        # Else SVG has outlines, which no editor and no search finds, and PDF fonts that some publishers refuse.
        fonts = matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42})
        with fonts, dark_colours(self) if dark else contextlib.nullcontext():
            super().savefig(fname, **options)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        width, height = self.get_size_inches() * self.dpi
        size = {"width": round(width), "height": round(height), "alt": self.alt}
        image = self.to_png()
        bundle = {"image/png": image, "text/plain": repr(self)}
        if palette_on(self.get_facecolor()).strong == LIGHT.strong:
            # A figure that the user's style made dark is dark on any page.
            attributes = size | {"alt": html.escape(self.alt), "style": _CARD}
            bundle["text/html"] = _BOTH.format(light=_data_uri(image), dark=self.to_uri(dark=True), **attributes)
        return bundle, {"image/png": size}

    def to_png(self, *, dark: bool = False) -> bytes:
        """A PNG image for a page, of twice as many pixels as it takes there."""
        buffer, canvas, dpi = io.BytesIO(), cast(Any, self.canvas), self.dpi
        self.dpi = dpi * PIXEL_RATIO
        try:
            with dark_colours(self) if dark else contextlib.nullcontext():
                canvas.print_png(buffer)
        finally:
            self.dpi = dpi
        return buffer.getvalue()

    def to_uri(self, *, dark: bool = False) -> str:
        """The PNG image as a data URI."""
        return _data_uri(self.to_png(dark=dark))

    def to_html(self) -> str:
        """HTML with the image, for light pages and for dark ones unless the user's style made the figure dark."""
        image = f'<img alt="{html.escape(self.alt)}" style="{_CARD}" src="{{}}">'
        return self._repr_mimebundle_()[0].get("text/html") or image.format(self.to_uri())

    def __repr__(self) -> str:
        return f"<Figure: {self.alt}>" if self.alt else super().__repr__()


def _data_uri(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"
