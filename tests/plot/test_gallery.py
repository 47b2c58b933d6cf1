"""Every figure at every size: text of at least 6 pt that lies on nothing, inside the figure, and room for the data."""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from famnb import plot
from famnb.plot.labels import shorten_names
from famnb.plot.layout import fit_names
from tests.plot.figure_boxes import faults
from tests.plot.plot_figures import DRAWS, REPLIES, draw_differences, draw_load, figure_text, legend_texts
from tests.support.plot_frames import events, many_calls

GALLERY: dict[str, Any] = {
    **DRAWS,
    "differences": draw_differences,
    "load": draw_load,
    # Of frames of calls they need no more than how many.
    "timeline": lambda frame, **more: plot.timeline([*REPLIES.values()][len(frame) % len(REPLIES)], **more),
    "gaps": lambda frame, **more: plot.gaps(events(streams=min(len(frame), 60) or 1)[: len(frame) * 60], **more),
}
"""Each figure as a function of a frame of calls, `width=`, `figsize=` and `ax=`; others than DRAWS are lines here."""
CROWDED = ("compare", "success", "pareto", "cost", "differences", "load")
"""Figures that are drawn of more groups than fit."""


@functools.cache
def gallery_frame(rows: int, groups: int) -> pd.DataFrame:
    """A frame of calls with long and short names, of several endpoints, a fifth of whose values is missing."""
    return many_calls(rows, models=groups, missing=0.2, name=f"fam-{groups}-a-model")


PRINT, SCREEN, SLIDE = (3.3, 2.6), (6.4, 4.8), (13.3, 7.5)
GROUNDS = ("light", "dark", "own axes")
FIXED_SIZES = [
    (name, size, ground, groups)
    for (f, name), (i, size), (j, ground), (k, groups) in itertools.product(
        *map(enumerate, (GALLERY, (PRINT, SCREEN, SLIDE), GROUNDS, (3, 12)))
    )
    if (f + i + j + k) % 3 == 0
]
"""Every figure at a third of the sizes, grounds and numbers of groups, so that each two meet in one or the next."""
TYPICAL = [
    *((name, PRINT, "light", 12) for name in ("latency", "pareto", "tokens")),
    *((name, PRINT, "own axes", 12) for name in ("cost", "compare")),
    ("load", PRINT, "dark", 12),
    ("timeline", SLIDE, "dark", 3),
    ("gaps", SCREEN, "own axes", 3),
]


def draw_on(name: str, figsize: tuple[float, float], ground: str, groups: int) -> Figure:
    """A figure of 240 calls, of our own or in the one axes of a dark figure of the caller's."""
    frame = gallery_frame(240, groups)
    with matplotlib.rc_context({"figure.facecolor": "white" if ground == "light" else "black"}):
        if ground != "own axes":
            return GALLERY[name](frame, figsize=figsize)
        figure = Figure(figsize, layout="constrained")
        return GALLERY[name](frame, ax=figure.add_subplot(facecolor="black"))


@pytest.mark.parametrize(
    ("name", "figsize", "ground", "groups"),
    [*TYPICAL, *(pytest.param(*case, marks=pytest.mark.full) for case in FIXED_SIZES if case not in TYPICAL)],
)
def test_a_figure_of_a_given_size_keeps_its_groups(
    name: str, figsize: tuple[float, float], ground: str, groups: int
) -> None:
    """By the boxes of the renderer: no text under 6 pt or on another, every group with its n, and "simulated".

    No name of a model is broken at a hyphen, which would read as two.
    """
    figure = draw_on(name, figsize, ground, groups)
    assert tuple(figure.get_size_inches()) == figsize
    assert [fault for fault in faults(figure) if ground != "own axes" or "of the width" not in fault] == []
    text = figure_text(figure)
    assert not re.search("names of [0-9]+ groups|-\n", text)
    if not name.startswith(("timeline", "gaps")):
        assert "imulated" in text
        counts = re.findall(r"\(n=[0-9,–]+[a-z\s]*\)", text)
        assert len(counts) >= (1 if name == "differences" else groups)


def test_names_that_are_cut_stay_apart_beside_the_rest() -> None:
    """Also where kinds of replies make more groups than fit, and the rest of them is one."""
    frame = gallery_frame(240, 12)
    figure = plot.latency(frame.assign(streamed=np.arange(240) // 12 % 2 == 0), figsize=PRINT)
    names = [text.partition(" (n=")[0] for text in legend_texts(figure)]
    assert len(set(names)) == len(names) == 12
    assert any("11, streamed" in name for name in names)
    alike = fit_names([f"a{'-' * 40}{letter}{'-' * 40}z{number}" for number, letter in enumerate("bcd")], 0.5, 8)
    assert len(set(alike)) == 3
    middles = [f"{letter}-{'-' * 40}{number}{'-' * 40}z" for letter in "ab" for number in range(2)]
    assert len(set(fit_names(middles, 0.5, 8))) == 4


@pytest.mark.parametrize("name", ["cost per hour", "pareto of scores", "success"])
def test_text_in_the_callers_axes_is_no_larger_than_its_ticks(name: str) -> None:
    figure = Figure((13.3, 7.5), layout="constrained")
    axes = figure.add_subplot()
    GALLERY[name](gallery_frame(240, 3), ax=axes)
    largest = axes.xaxis.get_major_ticks()[0].label1.get_fontsize()
    legend = axes.get_legend()
    texts = [*(legend.get_texts() if legend else []), *axes.get_yticklabels()]
    assert texts
    assert all(text.get_fontsize() <= largest for text in texts)


def test_no_tick_stands_beside_a_legend_in_the_callers_axes() -> None:
    figure = draw_on("pareto of scores", PRINT, "own axes", 12)
    assert max(figure.axes[0].get_yticks()) <= 1


def test_hours_beside_each_other_have_labels_that_do_not_meet() -> None:
    figure = Figure(PRINT, layout="constrained")
    plot.cost(many_calls(120, models=3, gap_s=300), per="hour", ax=figure.add_subplot())
    assert faults(figure) == []


@pytest.mark.parametrize("ground", ["dark", "transparent"])
def test_the_callers_text_is_read_on_the_callers_ground(ground: str) -> None:
    """Ticks, labels and title: light on black; on nothing between light and dark, to be read on any page."""
    figure = Figure(facecolor="black" if ground == "dark" else "none")
    axes = figure.add_subplot(facecolor="none")
    plot.latency(gallery_frame(60, 3), ax=axes)
    texts = [axes.xaxis.label, axes.yaxis.label, axes._left_title, *axes.get_xticklabels()]
    lightness = {round(float(np.mean(matplotlib.colors.to_rgb(text.get_color()))), 2) for text in texts}
    assert min(lightness) > 0.9 if ground == "dark" else 0.4 < min(lightness) <= max(lightness) < 0.6
    # Nothing is added to the figure but what is in the axes.
    assert (figure.axes, figure.texts, figure.get_facecolor()[:3]) == ([axes], [], (0, 0, 0))
    title = axes.get_title(loc="left").replace("\n", " ")
    assert title == "Time to first token by model, simulated"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "name", [name if name in ("compare", "load") else pytest.param(name, marks=pytest.mark.full) for name in CROWDED]
)
def test_what_has_no_room_in_the_smallest_size_is_counted(name: str) -> None:
    figure = GALLERY[name](gallery_frame(60, 12), figsize=(3, 2))
    assert tuple(figure.get_size_inches()) == (3, 2)
    assert re.search(r"No room for: |[0-9]+ others", figure_text(figure))


def test_what_a_small_figure_leaves_out_is_in_its_caption() -> None:
    figure = plot.latency(gallery_frame(60, 6), figsize=(3.3, 2.6))
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
    figure = Figure(figsize=(9, 7), layout=layout)
    for axes, name in zip(figure.subplots(2, 2).ravel(), ("latency", "tokens", "throughput", "cost"), strict=True):
        GALLERY[name](gallery_frame(60, 3), ax=axes)
    for _ in range(2):
        figure.draw_without_rendering()
    before = [axes.get_position().bounds for axes in figure.axes]
    assert [fault for fault in faults(figure) if "lies on" in fault or "off the figure" in fault] == []
    assert np.allclose([axes.get_position().bounds for axes in figure.axes], before, atol=0.002)
    assert "Time to first token by model" in figure.caption


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
