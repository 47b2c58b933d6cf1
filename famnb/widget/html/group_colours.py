"""The colours of groups, such as models, as a page draws them."""

from __future__ import annotations

from typing import Any

from famnb.model_colours import COLOURS


def page_style(slot: int) -> dict[str, Any]:
    """Return the colour of a group by its number, and how often the colours were all used before it."""
    colour = COLOURS[slot % len(COLOURS)]
    # Black would not be seen on a dark page.
    return {"colour": "currentColor" if colour == "#000000" else colour, "cycle": slot // len(COLOURS)}
