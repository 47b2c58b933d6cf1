"""What is on a canvas fits: no word cut off, in our own figure and in the caller's."""

from __future__ import annotations

import dataclasses

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from famnb import plot
from tests.plot.figure_boxes import faults
from tests.plot.plot_figures import DRAWS, FIGURES, FRAMES, figure_text
from tests.support.exchanges import exchange
from tests.support.plot_frames import priced_calls

TYPICAL_FRAMES = ("nothing but missing values", "no call", "one call")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_off_the_figure(name: str) -> None:
    """Of rare frames and replies: drawn without a warning, every word inside the figure."""
    figure = FIGURES[name]()
    assert [fault for fault in faults(figure) if "off the figure" in fault] == []
    assert figure.alt


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "kind", [*TYPICAL_FRAMES, *(pytest.param(kind, marks=pytest.mark.full) for kind in ("twenty groups", "long names"))]
)
@pytest.mark.parametrize("name", DRAWS)
def test_every_figure_bears_every_frame(name: str, kind: str) -> None:
    """In the narrowest width, where words have the least room."""
    figure = DRAWS[name](FRAMES[kind], width="column")
    assert faults(figure) == []
    assert figure.alt


@pytest.mark.parametrize("name", [r"a $\foo$ b", "costs $5 or $6"])
def test_dollar_signs_are_no_formula(name: str) -> None:
    """A name with two dollar signs is drawn as it is, in our own figure and in the caller's."""
    frame = priced_calls([name] * 2, [0.01, 0.02], off=2, ttft_s=[0.1, 0.2])
    for draw in (plot.latency, plot.cost):
        for figure in (draw(frame), draw(frame, ax=Figure().add_subplot())):
            figure.canvas.draw()
            assert {text.get_parse_math() for text in figure.findobj(Text) if name in text.get_text()} == {False}
    assert name in figure_text(plot.timeline(dataclasses.replace(exchange().reply, model=name)))
