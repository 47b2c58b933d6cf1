"""Colours that can be told apart, on light and dark ground."""

from __future__ import annotations

import matplotlib

from famnb import plot
from famnb.model_colours import COLOURS
from famnb.plot.palette import LIGHT
from tests.support.plot_figures import SMALL_FRAMES
from tests.support.plot_frames import many_calls


def test_lines_can_be_told_apart_without_seeing_all_colours() -> None:
    """Colours of Okabe and Ito; where they repeat, the dashes differ."""
    lines = plot.latency(SMALL_FRAMES["many groups"]).axes[0].get_legend().get_lines()
    looks = [(line.get_color(), line.get_linestyle()) for line in lines if line.get_linestyle() != "None"]
    assert len(set(looks)) == len(looks) == 12
    assert {colour for colour, _ in looks} <= {*COLOURS[:-1], LIGHT.strong}


def test_a_dark_style_gives_dark_figures() -> None:
    """Matplotlib's own switch is enough; words become light."""
    with matplotlib.rc_context({"figure.facecolor": "black"}):
        figure = plot.latency(many_calls())
    assert max(figure.get_facecolor()[:3]) < 0.2
    assert min(matplotlib.colors.to_rgb(figure.axes[0].xaxis.label.get_color())) > 0.5
