"""The explorer: what its page gets, what a point says, what is brushed, and which call opens."""

import base64
import io

import numpy as np
import PIL.Image
import pytest
from ipywidgets import HBox

import famnb
from famnb.widget.explorer import UNSHOWN, WHOLE, Explorer, ExplorerView, PlotView
from tests.support.plot_frames import calls, many_calls, priced_calls
from tests.widget.conftest import ask

HOSTILE = "<img src=x onerror=alert(1)>\n\u202eabc"


def view_of(explorer: Explorer) -> ExplorerView:
    with explorer.lock:
        return explorer.view()


def plot_of(explorer: Explorer) -> PlotView:
    plot = view_of(explorer).plot
    assert plot is not None
    return plot


def places_of(explorer: Explorer) -> tuple[np.ndarray, np.ndarray]:
    """Where the points lie from the left and from the top; NaN for one that is not shown."""
    plot = plot_of(explorer)
    xs, ys = (np.frombuffer(places, "<u2") for places in (plot.xs, plot.ys))
    return np.where(xs == UNSHOWN, np.nan, xs / WHOLE), np.where(ys == UNSHOWN, np.nan, ys / WHOLE)


def test_places_are_shares_of_the_axes_from_the_left_and_the_top():
    explorer = famnb.plot.explore(calls(model=["a", "b", "a"], ttft_s=[0.25, 0.5, 0.125]), y="ttft_s")
    xs, ys = places_of(explorer)
    assert xs == pytest.approx([0.06 / 2.12, 0.5, 2.06 / 2.12], abs=1e-4)
    high = 500 + 0.03 * 375
    assert ys == pytest.approx([1 - 250 / high, 1 - 500 / high, 1 - 125 / high], abs=1e-4)
    plot = plot_of(explorer)
    assert plot.label == "time to first token (ms) against start (UTC)"
    assert [(group.key, group.count) for group in plot.groups] == [("a", "2"), ("b", "1")]
    ask(explorer, "hide_groups", groups=[0])
    assert list(np.isnan(places_of(explorer)[0])) == [True, False, True]


def test_the_points_are_drawn_for_the_page_and_lie_where_the_picture_has_them():
    explorer = famnb.plot.explore(
        calls(model=["a"] * 3, input_tokens=[1, 50, 99], e2e_s=[1.0, 2.0, 3.0]), x="input_tokens"
    )
    assert plot_of(explorer).picture is None
    pictures = {}
    for dark in (False, True):
        ask(explorer, "draw", width=640, dark=dark)
        pictures[dark] = plot_of(explorer).picture
    assert pictures[False].url != pictures[True].url
    data = base64.b64decode(pictures[False].url.partition(",")[2])
    image = np.asarray(PIL.Image.open(io.BytesIO(data)).convert("RGBA")).astype(int)
    height, width, _ = image.shape
    assert width == 2 * 640
    for x, y in zip(*places_of(explorer), strict=True):
        left = (pictures[False].left + x * pictures[False].width) * width
        top = (pictures[False].top + y * pictures[False].height) * height
        red, _, blue, _ = image[round(top), round(left)]
        assert blue > red + 50


def test_far_outliers_are_shown_when_they_are_asked_for_and_what_is_brushed_alone():
    explorer = famnb.plot.explore(
        calls(model=["a"] * 10, input_tokens=range(10), e2e_s=[*range(9), 9000]), x="input_tokens"
    )

    def count_points() -> tuple[int, tuple[str, ...]]:
        return int((~np.isnan(places_of(explorer)[0])).sum()), plot_of(explorer).zooms

    assert count_points() == (9, ("Show outliers",))
    ask(explorer, "zoom", to="Show outliers")
    assert count_points() == (10, ("Hide outliers",))
    ask(explorer, "zoom", to="Hide outliers")
    ask(explorer, "brush", spans=[[0, 0.5], [0, 1]])
    chosen = len(explorer.selection)
    ask(explorer, "zoom", to="Zoom in")
    assert count_points() == (chosen, ("Zoom out",))
    (left, right), _ = view_of(explorer).spans
    assert (left, right) == pytest.approx((0, 1))
    ask(explorer, "zoom", to="Zoom out")
    assert count_points()[0] == 10


def test_a_point_says_what_its_row_has():
    frame = priced_calls(
        ["m", "m"], [0.25, 0.5], off=1.2, ttft_s=[0.25, None], prompt=["Why?", HOSTILE * 9], e2e_s=[2.0, 3.0]
    ).assign(cost_high_usd=[0.3, 9.0], status=["failed", None])
    explorer = famnb.plot.explore(frame, x="input_tokens")
    ask(explorer, "describe_point", point=0)
    pointed = view_of(explorer).pointed
    assert (pointed.point, pointed.text) == (0, "Why?")
    assert "failed" in pointed.title.split(" · ")
    facts = dict(pointed.facts)
    assert (facts["first token"], facts["whole reply"], facts["cost"]) == ("250 ms", "2.00 s", "≈$0.25")
    ask(explorer, "describe_point", point=1)
    pointed = view_of(explorer).pointed
    assert "[U+202E]" in pointed.text
    assert len(pointed.text) == 120
    assert "first token" not in dict(pointed.facts)
    assert dict(pointed.facts)["cost"] == "at most $9.00"


def test_brushing_filters_the_frame():
    frame = many_calls(200)
    explorer = famnb.plot.explore(frame, x="input_tokens", y="e2e_s")
    assert explorer.selection.equals(frame)
    lengths: list[int] = []
    explorer.observe(lambda change: lengths.append(len(change["new"])), "selection")
    xs, ys = places_of(explorer)
    ask(explorer, "brush", spans=[[0.25, 0.75], [0.25, 0.75]])
    inside = frame[(xs >= 0.25) & (xs <= 0.75) & (ys >= 0.25) & (ys <= 0.75)]
    assert explorer.selection.equals(inside)
    assert 0 < len(inside) < len(frame)
    ask(explorer, "hide_groups", groups=[0])
    assert explorer.selection.equals(inside[inside["model"] == "model-02"])
    chosen = view_of(explorer).chosen
    assert chosen.title == f"{len(explorer.selection)} of 200 rows chosen"
    assert [row.key for row in chosen.rows] == [str(row) for row in explorer.selection.index[::-1]]
    ask(explorer, "brush", spans=None)
    ask(explorer, "hide_groups", groups=[])
    assert explorer.selection.equals(frame)
    assert lengths == [len(inside), len(inside[inside["model"] == "model-02"]), 100, 200]


def test_the_list_is_as_long_as_one_reads():
    chosen = view_of(famnb.plot.explore(many_calls(300))).chosen
    assert chosen.title == "300 rows; the last 100"
    assert [row.key for row in chosen.rows] == [str(row) for row in range(299, 199, -1)]


def test_a_point_and_a_row_open_their_call(client: famnb.Client):
    for prompt in ("one", "two", "three"):
        client.ask(prompt, model="fam-mini", endpoint="chat", max_tokens=50)
    explorer = famnb.plot.explore(famnb.calls(client), ledger=client.ledger)
    ask(explorer, "show_row", row=1)
    assert view_of(explorer).opened == "1"
    assert "two" in view_of(explorer).call.transcript
    ask(explorer, "show_row", row=2)
    assert "three" in view_of(explorer).call.transcript
    ask(explorer, "close_call")
    assert view_of(explorer).call is None


def test_a_call_that_cannot_be_opened_is_said_under_the_plot(client: famnb.Client):
    explorer = famnb.plot.explore(many_calls(3), ledger=client)
    ask(explorer, "show_row", row=0)
    assert "pass `ledger=famnb.Ledger(path)`" in explorer.error
    ask(explorer, "close_call")
    assert explorer.error == ""
    nameless = famnb.plot.explore(many_calls(3).drop(columns="call_id"), ledger=client)
    ask(nameless, "show_row", row=0)
    assert "names no call" in nameless.error


def test_an_explorer_is_a_widget_that_leaves_a_picture():
    explorer = famnb.plot.explore(many_calls(50))
    assert HBox([explorer]).children == (explorer,)
    bundle, _ = explorer._repr_mimebundle_()
    assert 'src="data:image/png;base64,' in bundle["text/html"]
    assert "Time to the end of the answer against start by model" in bundle["text/plain"]
    assert bundle["text/plain"].endswith("run this cell to use them.")


def test_an_empty_frame_says_why():
    for frame, why in ((calls(), "there are no calls in this frame"), (calls(model=["a"]), "none of these 1 call has")):
        explorer = famnb.plot.explore(frame)
        assert why in view_of(explorer).empty
        assert view_of(explorer).plot is None
        assert why in explorer.saved()["text/plain"]
        assert len(explorer.selection) == 0


def test_the_list_is_sorted_by_a_column_and_back():
    """The largest first, then the smallest; the column says which."""
    explorer = famnb.plot.explore(calls(model=["b", "a", "c"], e2e_s=[2.0, 3.0, 1.0]), x="e2e_s")

    def sort(name: str) -> tuple[list[str], str]:
        names = [column.name for column in view_of(explorer).chosen.columns]
        ask(explorer, "sort_rows", column=names.index(name))
        rows = view_of(explorer).chosen
        model = names.index("model")
        return [row.cells[model] for row in rows.rows], rows.columns[names.index(name)].order

    assert sort("whole reply") == (["a", "b", "c"], "descending")
    assert sort("whole reply") == (["c", "b", "a"], "ascending")
    assert sort("model") == (["c", "b", "a"], "descending")


def test_an_axis_is_logarithmic_where_that_is_asked_for():
    frame = calls(model=["a", "b", "a"], e2e_s=[2.0, 3.0, 4.0], input_tokens=[0, 5, 500])
    explorer = famnb.plot.explore(frame, x="input_tokens", log="x")
    assert [(scale.key, scale.is_log) for scale in plot_of(explorer).scales] == [("x", True), ("y", False)]
    assert "1 of 3 rows have no input tokens" in plot_of(explorer).notes[0]
    edge = np.log(1.2) / np.log(144)
    assert places_of(explorer)[0] == pytest.approx([edge, 1 - edge], abs=1e-4)
    ask(explorer, "toggle_log", axis="x")
    assert places_of(explorer)[0] == pytest.approx([5 / 514.85, 500 / 514.85], abs=1e-4)
    with pytest.raises(famnb.InvalidRequest, match="log: start is not a number"):
        famnb.plot.explore(frame, log="xy")
