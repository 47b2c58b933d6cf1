"""Every figure at every size: text of at least 6 pt that lies on nothing and inside the figure, and room for the data.

Pairs of conditions are all drawn; with FAMNB_GALLERY=all so is their whole product.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from famnb import plot
from famnb.plot.labels import shorten_names
from tests.plot.figure_boxes import faults
from tests.plot.plot_figures import DRAWS, REPLIES, draw_differences, figure_text, legend_texts
from tests.support.plot_frames import events, many_calls

GALLERY: dict[str, Any] = {
    **DRAWS,
    "differences": draw_differences,
    # Of frames of calls they need no more than how many.
    "timeline": lambda frame, **more: plot.timeline([*REPLIES.values()][len(frame) % len(REPLIES)], **more),
    "gaps": lambda frame, **more: plot.gaps(events(streams=min(len(frame), 60) or 1)[: len(frame) * 60], **more),
}
"""Each figure as a function of a frame of calls, `width=`, `figsize=` and `ax=`. A new one is a line here."""
CROWDED = ("compare", "success", "pareto", "cost", "differences")
"""Figures that are drawn of more groups than fit."""
SIZES = ("column", "page", "slide")
THEMES = ("light", "dark")
ROWS = (0, 1, 3, 60, 100_000)
GROUPS = (1, 3, 12)
KINDS = ("mixed", "all missing")
# Read now: a test sees no variable of famnb's.
IS_WHOLE = os.environ.get("FAMNB_GALLERY") == "all"
Case = tuple[str, str, int, int, str]


def cases(figure: int = 0) -> Iterator[Case]:
    """Conditions to draw a figure under: all if asked for, else so that each two meet in one figure or the next.

    `figure` is the number of the figure.
    """
    if IS_WHOLE:
        yield from itertools.product(SIZES, THEMES, ROWS, GROUPS, KINDS)
        return
    for (i, rows), (j, groups) in itertools.product(enumerate(ROWS), enumerate(GROUPS)):
        # Of each number of rows one of three has no data, and each size and theme is met.
        if (i + 2 * j + figure) % 3:
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


@pytest.mark.full
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", GALLERY)
def test_a_figure_is_readable_under_all_conditions(name: str) -> None:
    """No text on text or data, none below 6 pt, none off the figure, more than half of the width for the axes."""
    wrong = {}
    for case in cases([*GALLERY].index(name)):
        size, theme, rows, groups, kind = case
        with matplotlib.rc_context({"figure.facecolor": "white" if theme == "light" else "black"}):
            figure = GALLERY[name](gallery_frame(rows, groups, kind), width=size)
        if found := faults(figure):
            wrong[case] = found
    assert wrong == {}


PRINT, SCREEN, SLIDE = (3.3, 2.6), (6.4, 4.8), (13.3, 7.5)
GROUNDS = ("light", "dark", "own axes")
FIXED_SIZES = [
    (name, size, ground, groups)
    for (f, name), (i, size), (j, ground), (k, groups) in itertools.product(
        *map(enumerate, (GALLERY, (PRINT, SCREEN, SLIDE), GROUNDS, (3, 12)))
    )
    if IS_WHOLE or (f + i + j + k) % 3 == 0
]
"""Every figure at a third of the sizes, grounds and numbers of groups, so that each two meet in one or the next."""
TYPICAL = [
    *((name, PRINT, "light", 12) for name in ("latency", "compare", "pareto", "throughput", "tokens", "success")),
    *((name, PRINT, "own axes", 12) for name in ("cost", "compare", "throughput")),
    ("differences", PRINT, "dark", 12),
    ("timeline", SLIDE, "dark", 3),
    ("gaps", SCREEN, "own axes", 3),
]


def draw_on(name: str, figsize: tuple[float, float], ground: str, groups: int) -> Figure:
    """A figure of 240 calls, of our own or in the one axes of a dark figure of the caller's."""
    frame = gallery_frame(240, groups, "mixed")
    with matplotlib.rc_context({"figure.facecolor": "white" if ground == "light" else "black"}):
        if ground != "own axes":
            return GALLERY[name](frame, figsize=figsize)
        own = Figure(figsize, layout="constrained")
        return GALLERY[name](frame, ax=own.add_subplot(facecolor="black"))


@pytest.mark.parametrize(
    ("name", "figsize", "ground", "groups"),
    [*TYPICAL, *(pytest.param(*case, marks=pytest.mark.full) for case in FIXED_SIZES if case not in TYPICAL)],
)
def test_a_figure_of_a_given_size_keeps_its_groups(
    name: str, figsize: tuple[float, float], ground: str, groups: int
) -> None:
    """By the boxes of the renderer: no text under 6 pt or on another, every group with its n, and "simulated"."""
    figure = draw_on(name, figsize, ground, groups)
    assert tuple(figure.get_size_inches()) == figsize
    assert [fault for fault in faults(figure) if ground != "own axes" or "of the width" not in fault] == []
    text = figure_text(figure)
    assert not re.search("names of [0-9]+ groups", text)
    if not name.startswith(("timeline", "gaps")):
        assert "imulated" in text
        counts = re.findall(r"\(n=[0-9,–]+[a-z\s]*\)", text)
        assert len(counts) >= (1 if name == "differences" else groups)


@pytest.mark.parametrize("ground", ["dark", "transparent"])
def test_the_callers_text_is_read_on_the_callers_ground(ground: str) -> None:
    """Ticks, labels and title: light on black; on nothing between light and dark, to be read on any page."""
    own = Figure(facecolor="black" if ground == "dark" else "none")
    axes = own.add_subplot(facecolor="none")
    plot.latency(gallery_frame(60, 3, "mixed"), ax=axes)
    texts = [axes.xaxis.label, axes.yaxis.label, axes._left_title, *axes.get_xticklabels()]
    lightness = {round(float(np.mean(matplotlib.colors.to_rgb(text.get_color()))), 2) for text in texts}
    assert min(lightness) > 0.9 if ground == "dark" else 0.4 < min(lightness) <= max(lightness) < 0.6


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CROWDED)
def test_what_has_no_room_in_the_smallest_size_is_counted(name: str) -> None:
    figure = GALLERY[name](gallery_frame(60, 12, "mixed"), figsize=(3, 2))
    assert tuple(figure.get_size_inches()) == (3, 2)
    assert re.search(r"No room for: |[0-9]+ others", figure_text(figure))


@pytest.mark.full
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [name for name in GALLERY if name not in CROWDED])
def test_a_given_size_is_kept_and_what_has_no_room_is_said(name: str) -> None:
    """At 4 by 3 inches, with six groups: still readable, and the caption has all that the figure says elsewhere."""
    frame = gallery_frame(60, 6, "mixed")
    figure, free = GALLERY[name](frame, figsize=(4, 3)), GALLERY[name](frame)
    assert tuple(figure.get_size_inches()) == (4, 3)
    assert faults(figure) == []
    assert free.alt.split(": ")[0] in figure.caption


def test_what_a_small_figure_leaves_out_is_in_its_caption() -> None:
    figure = plot.latency(gallery_frame(60, 6, "mixed"), figsize=(3.3, 2.6))
    assert "No room for: numbers of the legend" in figure_text(figure)
    assert "○ median" not in figure_text(figure)
    assert "○ median" in figure.caption
    assert "calls have no time to first token" in figure.caption


def test_a_name_that_is_cut_is_cut_alike_and_whole_in_the_caption() -> None:
    names = [f"provider/{middle}-of-a-model-with-a-very-long-name" for middle in ("one", "two")]
    frame = many_calls(60).assign(model=lambda frame: np.where(frame["model"] == "model-01", *names))
    figure = plot.latency(frame, width="column")
    assert len({text for text in legend_texts(figure) if "(n=30)" in text}) == 2
    assert all(name in figure.caption for name in names)
    assert shorten_names(["v10", "a" * 40]) == ["v10", f"{'a' * 15}…{'a' * 14}"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("layout", ["constrained", pytest.param("tight", marks=pytest.mark.full)])
def test_the_callers_figure_keeps_its_order(layout: str) -> None:
    """With a layout of matplotlib's, nothing of one axes reaches another, however often it is drawn."""
    own = Figure(figsize=(9, 7), layout=layout)
    for axes, name in zip(own.subplots(2, 2).ravel(), ("latency", "tokens", "throughput", "cost"), strict=True):
        GALLERY[name](gallery_frame(60, 3, "mixed"), ax=axes)
    for _ in range(2):
        own.draw_without_rendering()
    before = [axes.get_position().bounds for axes in own.axes]
    assert [fault for fault in faults(own) if "lies on" in fault or "off the figure" in fault] == []
    assert np.allclose([axes.get_position().bounds for axes in own.axes], before, atol=0.002)
    assert "Time to first token by model" in own.caption


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": "colum"}, "width: expected one of column, page, slide, or None; got 'colum'"),
        ({"width": "page", "figsize": (4, 3)}, "give either `figsize` or `width`"),
        ({"figsize": (1, 1)}, "figsize: 1 × 1 inches; expected 3.0 × 2.0 to 100 × 100"),
        ({"figsize": 4}, "figsize: expected a width and a height in inches, got 4"),
        ({"width": "page", "ax": Figure().add_subplot()}, "ax: the axes have the size of your own figure"),
    ],
)
def test_a_size_that_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        plot.latency(many_calls(10), **options)
