"""Every figure at every size: text of at least 8 pt that lies on nothing and inside the figure, and room for the data.

Pairs of conditions are all drawn; with FAMNB_GALLERY=all so is their whole product.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

from tests.support.figure_boxes import faults
from tests.support.plot_figures import DRAWS, draw_differences
from tests.support.plot_frames import many_calls

GALLERY: dict[str, Any] = {**DRAWS, "differences": draw_differences}
"""Each figure as a function of a frame of calls, `width=`, `figsize=` and `ax=`."""
SIZES = ("column", "page", "slide")
THEMES = ("light", "dark")
ROWS = (0, 1, 3, 60, 100_000)
GROUPS = (1, 3, 12)
KINDS = ("mixed", "all missing")
Case = tuple[str, str, int, int, str]


def cases() -> Iterator[Case]:
    """Conditions to draw under: all of them if asked for, else so that each two values come together."""
    if os.environ.get("FAMNB_GALLERY") == "all":
        yield from itertools.product(SIZES, THEMES, ROWS, GROUPS, KINDS)
        return
    for (i, rows), (j, groups) in itertools.product(enumerate(ROWS), enumerate(GROUPS)):
        # Of each number of rows one of three has no data, and each size and theme is met.
        yield SIZES[(i + j) % 3], THEMES[(j + i // 2) % 2], rows, groups, KINDS[j == (i + 1) % 3]


@functools.cache
def gallery_frame(rows: int, groups: int, kind: str) -> pd.DataFrame:
    """A frame of calls with long and short names, of several endpoints, a fifth of whose values is missing."""
    once = min(rows, 1_000)
    frame = many_calls(
        max(once, 1), models=groups, missing=0.2 if kind == "mixed" else 1.1, name=f"fam-{groups}-a-model"
    )
    frame = pd.concat([frame] * max(rows // max(once, 1), 1), ignore_index=True).iloc[:rows]
    days = pd.to_timedelta(np.arange(rows) // 1_000, unit="h")
    return frame.assign(started_at=frame["started_at"] + days)


@pytest.mark.parametrize("name", GALLERY)
def test_a_figure_is_readable_under_all_conditions(name: str) -> None:
    """No text on text or data, none below 8 pt, none off the figure, more than half of the width for the axes."""
    wrong = {}
    for case in cases():
        size, theme, rows, groups, kind = case
        with matplotlib.rc_context({"figure.facecolor": "white" if theme == "light" else "black"}):
            figure = GALLERY[name](gallery_frame(rows, groups, kind), width=size)
        if found := faults(figure):
            wrong[case] = found
    assert wrong == {}


@pytest.mark.parametrize("figsize", [(4, 3), (3, 2.2)])
@pytest.mark.parametrize("name", ["compare", "success", "pareto", "cost", "differences"])
def test_a_given_size_is_kept_and_what_has_no_room_left_out(name: str, figsize: tuple[float, float]) -> None:
    """Twelve groups do not fit into four inches by three: what is drawn is readable."""
    figure = GALLERY[name](gallery_frame(60, 12, "mixed"), figsize=figsize)
    assert tuple(figure.get_size_inches()) == figsize
    assert faults(figure) == []
