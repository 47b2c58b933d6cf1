"""Points of a frame: where rows lie, what is left out, and which lie in a part of the plane."""

import numpy as np
import pandas as pd
import pytest

from famnb.errors import InvalidRequest, UnknownName
from famnb.plot.points import Axis, draw, read_axis, read_points
from tests.plot.plot_figures import FRAMES, figure_text
from tests.support.plot_frames import START_US, calls, many_calls


def test_numbers_are_in_the_axis_unit_and_times_in_seconds():
    frame = calls(ttft_s=[0.25, 0.5])
    assert read_axis(frame, "ttft_s").label == "time to first token (ms)"
    assert list(read_axis(frame, "ttft_s").values) == [250, 500]
    started = read_axis(frame, "started_at")
    assert (started.kind, list(started.values)) == ("time", [START_US / 1e6, START_US / 1e6 + 1])
    as_text = frame.assign(started_at=frame["started_at"].map(str))
    assert list(read_axis(as_text, "started_at").values) == list(started.values)


def test_rows_without_a_place_are_left_out_and_counted():
    frame = calls(model=["a", "b", "a", "b"], ttft_s=[0.1, None, 0.3, 0.4], warmup=[False, False, False, True])
    frame.index = pd.Index([5, 5, 6, 6])
    points = read_points(frame, x="started_at", y="ttft_s", by="model")
    assert list(points.frame.index) == [5, 6]
    assert (points.groups, list(points.codes)) == (["a", "b"], [0, 0])
    assert points.notes == [
        "1 of 3 rows have no start or time to first token and are not drawn.",
        "1 warm-up call is left out.",
    ]


def test_what_cannot_be_drawn_is_refused_in_words():
    frame = many_calls(4)
    with pytest.raises(UnknownName, match=r"no column 'e2e'; it has model, .* Did you mean 'e2e_s'\?"):
        read_points(frame, x="started_at", y="e2e", by="model")
    with pytest.raises(InvalidRequest, match="'prompt' holds no numbers; x and y are columns of numbers or of times"):
        read_points(frame, x="prompt", y="e2e_s", by="model")
    with pytest.raises(InvalidRequest, match="expected a DataFrame"):
        read_points([1, 2], x="a", y="b", by=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_every_shape_are_drawn_or_say_why_not(name: str):
    points = read_points(FRAMES[name], x="started_at", y="ttft_s", by="model")
    text = figure_text(draw(points)).replace("\n", " ")
    assert ("Nothing to draw" in text) == bool(points.empty) == (len(points.frame) == 0)
    if not points.empty:
        assert f"(n={int((points.codes == 0).sum()):,})" in text


@pytest.mark.parametrize(
    ("values", "is_log", "limits"),
    [
        ([1.0, 100.0], False, (0, 102.97)),
        ([100.0, 110.0], False, (99.7, 110.3)),
        ([5.0, 5.0], False, (4.5, 5.5)),
        ([0.0, 12.0, 100.0], True, (10, 120)),
        ([*range(10, 60)], False, (0, 60.47)),
        ([*range(10, 60), 9000], False, (0, 60.47)),
        ([1.0, 2.0, 9000.0], False, (0, 9269.97)),
    ],
)
def test_an_axis_begins_at_zero_where_that_is_near_and_leaves_far_outliers_out(values, is_log, limits):
    axis = Axis("x", "x", "x", np.array(values, float), is_log=is_log)
    assert axis.bulk_limits() == pytest.approx(limits)
    ends = axis.bulk_limits()
    assert [axis.value_at(axis.shares(value, ends), ends) for value in limits] == pytest.approx(limits)
