"""Small multiples: a panel for each value of a column."""

import pytest
from matplotlib.figure import Figure

from famnb import plot
from tests.plot.figure_boxes import faults
from tests.plot.plot_figures import DRAWS, FACETED
from tests.support.plot_frames import many_calls


@pytest.mark.filterwarnings("error")
@pytest.mark.full
@pytest.mark.parametrize("name", FACETED)
def test_small_multiples_share_their_scale(name: str):
    figure = DRAWS[name](many_calls(240, models=12), facet="endpoint")
    assert [fault for fault in faults(figure) if "off the figure" in fault] == []
    assert [axes.get_title(loc="left").split(" ")[0] for axes in figure.axes] == [
        "chat",
        "messages",
        "responses",
        "web",
    ]
    assert len({axes.get_xlim() for axes in figure.axes}) == len({axes.get_ylim() for axes in figure.axes}) == 1
    assert len(figure.legends) == 1


def test_a_facet_does_not_fit_into_one_axes():
    with pytest.raises(ValueError, match="give either `facet` or `ax`"):
        plot.latency(many_calls(), facet="endpoint", ax=Figure().add_subplot())
