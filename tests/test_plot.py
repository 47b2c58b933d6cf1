"""The figures: what they say, that they show themselves, and that they bear no data, little data and odd data."""

from __future__ import annotations

import dataclasses
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib
import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from nbclient import NotebookClient

from famnb import plot
from famnb.errors import AuthenticationError
from famnb.frame import CALLS
from famnb.frame.columns import frame as framed
from famnb.record import Ledger
from famnb.reply import Reply
from tests.support.exchanges import at, chunk, exchange, spoken

SECOND = 1_000_000


def calls(**columns: list[Any]) -> pd.DataFrame:
    """A frame of calls with some columns given; the others are missing, but for the start: one call a second."""
    n = len(next(iter(columns.values()), []))
    given = {"started_at": [1_790_000_000 * SECOND + place * SECOND for place in range(n)], **columns}
    return framed(CALLS, {column.name: given.get(column.name, [None] * n) for column in CALLS})


def priced(model: list[str], cost: list[float | None], *, off: float = 1.0, **more: list[Any]) -> pd.DataFrame:
    """Calls with costs that may be `off` by a factor either way."""
    low, high = [c and c / off for c in cost], [c and c * off for c in cost]
    used = {"input_tokens": [1] * len(cost), "output_tokens": [1] * len(cost)}
    return calls(model=model, cost_usd=cost, cost_low_usd=low, cost_high_usd=high, **{**used, **more})


def words(figure: Figure) -> str:
    """All that a figure says."""
    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_visible())


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


@pytest.mark.parametrize(("n", "shown"), [(1, set()), (2, {"median"}), (19, {"median"}), (20, {"median", "p95"})])
def test_a_percentile_is_shown_where_n_carries_it(n: int, shown: set[str]) -> None:
    """The median needs two values, the 95th percentile twenty; n stands beside the name."""
    figure = plot.latency(calls(model=["fam-mini"] * n, ttft_s=[0.1 + place / 100 for place in range(n)]))
    said = " ".join(legend(figure))
    assert f"fam-mini (n={n})" in said
    assert {name for name in ("median", "p95") if name in said} == shown


def test_a_latency_has_its_unit_and_its_values() -> None:
    """Below a second in milliseconds, from a second up in seconds; the median of 1, 2, 4 s is 2 s."""
    assert plot.latency(calls(model=["m"], ttft_s=[0.25])).axes[0].get_xlabel() == "time to first token (ms)"
    figure = plot.latency(calls(model=["m"] * 3, e2e_s=[4.0, 1.0, 2.0]), metric="e2e_s")
    assert figure.axes[0].get_xlabel() == "time to the end of the reply (s)"
    assert "○ median 2.00 s" in legend(figure)
    assert list(figure.axes[0].lines[0].get_xdata()) == [1.0, 1.0, 2.0, 4.0]


def test_calls_without_a_value_are_counted_not_drawn() -> None:
    """They are in no share, and a footnote says how many; a group without any stays in the legend."""
    figure = plot.latency(calls(model=["a", "a", "b"], ttft_s=[0.1, None, None]))
    assert "2 of 3 calls have no time to first token" in words(figure)
    assert {"a (n=1)", "b (n=0)"} <= set(legend(figure))


def test_costs_add_up_with_their_interval() -> None:
    """Three calls of 1, 2 and 3 cents, off by at most a factor of two, are 3 to 12 cents."""
    figure = plot.cost(priced(["m"] * 3, [0.01, 0.02, 0.03], off=2))
    assert "about $0.06 ($0.03 to $0.12)" in legend(figure)
    assert "about $0.06 ($0.03 to $0.12) for 3 calls" in words(figure)
    assert plot.cost(priced(["m"], [0.5])).alt == "Cost by model: $0.50 for 1 call; m (n=1), $0.50"


def test_calls_without_a_price_are_named_with_the_way_to_set_one() -> None:
    """They are not taken for free; calls without usage are told apart."""
    frame = priced(["fam-mini", "fam-2-5-pro", "fam-mini"], [0.01, None, None], input_tokens=[1, 1, None])
    said = words(plot.cost(frame)).replace("\n", " ")
    assert "1 call of fam-2-5-pro, for want of a price" in said
    assert 'famnb.prices.set("fam-2-5-pro", input=…, output=…)' in said
    assert "1 call whose token counts are not known" in said
    assert "$0.01 for 1 call" in said


THOUGHTFUL = [
    at(400, chunk({"reasoning_content": "hmm "})),
    at(900, chunk({"reasoning_content": "yes"})),
    at(1000, chunk({"content": "Because"})),
    at(2000, chunk({"content": " of light"})),
    at(2100, chunk(finish="stop"), b"[DONE]"),
]


def test_a_timeline_tells_waiting_thinking_and_answer() -> None:
    """Bands with their durations, marks at first token, first answer and end, and how much came of each kind."""
    said = words(plot.timeline(exchange(THOUGHTFUL).reply))
    for fact in ("waiting  400 ms", "thinking  600 ms", "answer  1.10 s", "first token", "first answer", "end"):
        assert fact in said
    assert "thinking: 7 characters" in said
    assert "answer: 16 characters" in said


@pytest.mark.parametrize(
    ("status", "mark"), [("cancelled", "stopped"), ("interrupted", "cut off"), ("failed", "failed")]
)
def test_a_timeline_marks_an_end_that_was_not_the_replys_own(status: str, mark: str) -> None:
    """A stop, a cut and a failure are named at the end and in the facts."""
    reply = dataclasses.replace(exchange(THOUGHTFUL[:3]).reply, status=status)
    figure = plot.timeline(reply)
    assert mark in words(figure).split("\n")
    assert f"{mark} 1.00 s" in figure.alt


def test_a_timeline_is_drawn_from_a_reply_a_call_or_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """All three give the same picture."""
    made = exchange(THOUGHTFUL)
    with Ledger() as ledger:
        ledger.closed(made).result()
        assert len({plot.timeline(which).alt for which in (made.reply, ledger.call(made.id), made.id)}) == 1


def test_simulated_data_says_so() -> None:
    """All of it, or how much of it; a real service's data says nothing of the kind."""
    part = {"model": ["m"] * 3, "ttft_s": [0.1] * 3, "simulated": [True, False, None]}
    assert "Simulated: 1 of 3 calls were answered by a simulated engine" in words(plot.latency(calls(**part)))
    assert "Simulated: all calls were" in words(plot.cost(priced(["m"], [0.1], simulated=[True])))
    made = exchange(THOUGHTFUL).reply
    assert "Simulated" in words(plot.timeline(dataclasses.replace(made, service="sim")))
    assert "imulated" not in words(plot.timeline(made)) + words(
        plot.latency(calls(**{**part, "simulated": [False] * 3}))
    )


LONG = "accounts/a-provider-with-a-long-name/models/a-model-with-an-even-longer-name-70b-instruct-2026-01-31"
FRAMES = {
    "no calls": calls(),
    "one call": priced(["m"], [0.1], off=2, ttft_s=[0.5], simulated=[True]),
    "all missing": calls(model=["m"] * 3, status=["failed"] * 3),
    "no group": priced([None, None], [0.1, 0.2], ttft_s=[0.1, 0.2]),
    "equal values": priced(["m"] * 30, [0.0] * 30, ttft_s=[0.0] * 30),
    "long names": priced([LONG, LONG[::-1]] * 15, [0.1] * 30, off=3, ttft_s=[0.2] * 30, simulated=[True] * 30),
    "many groups": priced(
        [f"model-{n}" for n in range(12)] * 20, [0.1] * 240, ttft_s=list(np.geomspace(0.01, 90, 240))
    ),
    "a long time": priced(
        ["m"] * 5,
        [0.1] * 5,
        ttft_s=[0.1] * 5,
        started_at=[day * 86_400 * SECOND for day in (20000, 20003, 20010, 20011, 20400)],
    ),
}
REPLIES = {
    "nothing": Reply(),
    "refused": Reply(status="failed", endpoint="chat", error=AuthenticationError("wrong key " * 40, status=401)),
    "at once": exchange(
        [at(5, {"choices": [{"message": {"content": "Hi"}, "finish_reason": "length"}]})], streamed=False
    ).reply,
    "one instant": exchange([at(400, *(event for read in THOUGHTFUL for event in read.data))]).reply,
    "only thinking": exchange(THOUGHTFUL[:2]).reply,
    "only a role": exchange(spoken()[:1]).reply,
    "a long name": dataclasses.replace(exchange(THOUGHTFUL).reply, model=LONG, finish_reason="length", service="sim"),
}
FIGURES = {
    **{f"latency of {name}": lambda frame=frame: plot.latency(frame) for name, frame in FRAMES.items()},
    **{f"cost of {name}": lambda frame=frame: plot.cost(frame) for name, frame in FRAMES.items()},
    **{f"timeline of {name}": lambda reply=reply: plot.timeline(reply) for name, reply in REPLIES.items()},
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FIGURES)
def test_no_word_is_cut_off(name: str) -> None:
    """With no data, one value, long names or many groups: drawn without a warning, every word inside the figure."""
    figure = FIGURES[name]()
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    outside = []
    for text in figure.findobj(Text):
        box = text.get_window_extent()
        if text.get_visible() and text.get_text().strip() and text.axes is not None and box.width:
            ticks = [*text.axes.get_xticklabels(which="both"), *text.axes.get_yticklabels(which="both")]
            inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
            outside += [] if inside or text in ticks else [text.get_text()]
    assert outside == []
    assert figure.alt


def test_without_data_a_sentence_says_why() -> None:
    """An empty figure explains itself."""
    assert "Nothing to draw: there are no calls in this frame." in words(plot.latency(calls()))
    assert "Nothing to draw: none of these 3 calls has a time to first token." in words(
        plot.latency(FRAMES["all missing"])
    )
    assert "Nothing to add up." in words(plot.cost(calls()))
    assert "No content arrived: 401: wrong key" in words(plot.timeline(REPLIES["refused"]))


def test_a_column_that_is_not_there_is_named() -> None:
    """A slip in `by` or `metric` says what there is."""
    with pytest.raises(KeyError, match="the frame has no column 'modle'; it has call_id, started_at"):
        plot.latency(calls(), by="modle")
    with pytest.raises(KeyError, match="'ttfb'"):
        plot.latency(calls(), metric="ttfb")
    with pytest.raises(KeyError, match="'modle'"):
        plot.cost(calls(), by="modle")


def test_lines_can_be_told_apart_without_seeing_all_colours() -> None:
    """Colours of Okabe and Ito; where they repeat, the dashes differ."""
    lines = plot.latency(FRAMES["many groups"]).axes[0].get_legend().get_lines()
    looks = [(line.get_color(), line.get_linestyle()) for line in lines if line.get_linestyle() != "None"]
    assert len(set(looks)) == len(looks) == 12
    assert looks[0][0] == "#0072B2"


@pytest.fixture
def dark() -> Iterator[None]:
    with matplotlib.rc_context({"axes.facecolor": "black", "figure.facecolor": "black", "text.color": "white"}):
        yield


def test_figures_are_drawn_into_the_callers_axes(dark: None) -> None:
    """Nothing is added to the caller's figure but what is in the axes; on dark ground the words are light."""
    mine = Figure()
    each = mine.subplots(1, 3)
    drawn = [
        plot.latency(FRAMES["long names"], ax=each[0]),
        plot.cost(FRAMES["long names"], ax=each[1]),
        plot.timeline(exchange(THOUGHTFUL).reply, ax=each[2]),
    ]
    assert all(figure is mine for figure in drawn)
    assert mine.axes == list(each)
    assert mine.get_facecolor() == (0, 0, 0, 1)
    assert each[0].title.get_text() == ""
    assert each[0].get_title(loc="left").replace("\n", " ") == "Time to first token by model"
    assert min(matplotlib.colors.to_rgb(each[0].xaxis.label.get_color())) > 0.5


def test_plots_leave_global_settings_and_pyplot_alone() -> None:
    """Callbacks draw on other threads, where pyplot must not be touched; the user's settings are the user's."""
    code = "import sys, famnb.plot; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
    before = dict(matplotlib.rcParams)
    FIGURES["latency of many groups"]()._repr_mimebundle_()
    assert dict(matplotlib.rcParams) == before


def test_an_image_is_sharp_and_says_what_it_shows() -> None:
    """Two pixels for one of the page, transparent corners, and words for those who cannot see it."""
    data, metadata = FIGURES["latency of one call"]()._repr_mimebundle_()
    width, height = struct.unpack(">II", data["image/png"][16:24])
    shown = metadata["image/png"]
    assert (width, height) == (2 * shown["width"], 2 * shown["height"])
    assert shown["width"] == 800
    assert shown["alt"] == "Time to first token by model: m (n=1), 500 ms"
    assert data["text/plain"] == "<Figure: Time to first token by model: m (n=1), 500 ms>"


@pytest.mark.parametrize("first", ["", "%matplotlib inline", "import matplotlib.pyplot as plt"])
def test_a_figure_shows_itself_once(first: str) -> None:
    """As the last value of a cell, in a real kernel, with and without pyplot's own way of showing figures."""
    cell = f"{first}\nimport famnb\nfamnb.plot.latency(famnb.calls())"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    outputs = notebook.cells[0].outputs
    assert [list(output.data) for output in outputs] == [["image/png", "text/plain"]]
    assert outputs[0].metadata["image/png"]["width"] == 800


@pytest.mark.parametrize("name", [r"a $\foo$ b", "$x_1$", "costs $5 or $6"])
def test_dollar_signs_are_no_formula(name: str) -> None:
    """A name with two dollar signs is drawn as it is, in our own figure and in the caller's."""
    frame = priced([name] * 2, [0.01, 0.02], off=2, ttft_s=[0.1, 0.2])
    for draw in (plot.latency, plot.cost):
        for figure in (draw(frame), draw(frame, ax=Figure().add_subplot())):
            figure.canvas.draw()
            assert {text.get_parse_math() for text in figure.findobj(Text) if name in text.get_text()} == {False}
    assert name in words(plot.timeline(dataclasses.replace(exchange().reply, model=name)))


def test_a_metric_that_is_no_number_is_refused() -> None:
    """The sentence says which columns are latencies."""
    with pytest.raises(ValueError, match="'prompt' holds no numbers; latencies are ttfb_s"):
        plot.latency(calls(prompt=["Hi"]), metric="prompt")
