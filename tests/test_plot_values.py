"""What is drawn equals values computed another way: one claim a figure, of frames whose values are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from famnb import plot
from famnb.plot.ecdf import MAX_STEPS, ecdf_steps
from famnb.plot.pareto import find_front
from famnb.plot.throughput import amount_by
from tests.support.exchanges import exchange, spoken
from tests.support.plot_frames import events, many

DRAWS: dict[str, Any] = {
    "latency": plot.latency,
    "latency by hour": lambda frame, **more: plot.latency(frame, over="hour", **more),
    "cost": plot.cost,
    "cost stacked": lambda frame, **more: plot.cost(frame, stacked=True, **more),
    "cost per hour": lambda frame, **more: plot.cost(frame, per="hour", **more),
    "tokens": plot.tokens,
    "throughput": plot.throughput,
    "calls a second": lambda frame, **more: plot.throughput(frame, of="calls", **more),
    "pareto": plot.pareto,
    "pareto of scores": lambda frame, **more: plot.pareto(frame, score="score", **more),
    "compare": plot.compare,
}
LONG = "accounts/a-provider-with-a-long-name/models/a-model-with-an-even-longer-name-70b"
FRAMES = {
    "one group": many(40, models=1),
    "twelve groups": many(240, models=12),
    "twenty groups": many(100, models=20),
    "missing values": many(60, missing=0.6),
    "nothing but missing values": many(20, missing=1.1),
    "no call": many(4).iloc[:0],
    "one call": many(1),
    "long names": many(60, name=LONG),
}
FACETED = [name for name in DRAWS if not name.startswith(("pareto", "compare"))]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_visible())


def cut_off(figure: Figure) -> list[str]:
    """The words that do not lie wholly on the figure, ticks apart."""
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    ticks = {tick for axes in figure.axes for tick in [*axes.get_xticklabels(), *axes.get_yticklabels()]}
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text, text.get_window_extent()) for text in shown if text not in ticks]
    return [t.get_text() for t, b in boxes if b.width and not (b.x0 >= 0 <= b.y0 and b.x1 <= width and b.y1 <= height)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", DRAWS)
def test_every_figure_bears_every_frame(name: str, kind: str) -> None:
    """Without a warning, every word on the figure, the axes no narrower than half of it, and said in words."""
    figure = DRAWS[name](FRAMES[kind])
    assert cut_off(figure) == []
    assert figure.axes[0].get_position().width > 0.5
    assert figure.alt


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FACETED)
def test_small_multiples_share_their_scale(name: str) -> None:
    """A panel for each value, all with the same limits, one legend for all."""
    figure = DRAWS[name](many(240, models=12), facet="endpoint")
    assert cut_off(figure) == []
    assert [axes.get_title(loc="left").split(" ")[0] for axes in figure.axes] == [
        "chat",
        "messages",
        "responses",
        "web",
    ]
    assert len({axes.get_xlim() for axes in figure.axes}) == len({axes.get_ylim() for axes in figure.axes}) == 1
    assert len(figure.legends) == 1


@pytest.mark.parametrize("dpi", [60, 200])
@pytest.mark.parametrize("name", ["latency", "cost stacked", "tokens", "compare"])
def test_footnotes_stand_under_the_legend(name: str, dpi: int) -> None:
    """Also under one of twelve lines, at every resolution: nothing lies on anything else."""
    figure = DRAWS[name](many(240, models=12, missing=0.2))
    figure.set_dpi(dpi)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    [note] = [text for text in axes.texts if "Simulated" in text.get_text()]
    assert note.get_window_extent().y1 < axes.get_legend().get_window_extent().y0


def test_the_last_call_is_seen_in_stacked_sums() -> None:
    """A step has its width from the next one; the last is held for a while."""
    frame = many(2, models=2)
    tops = [
        path.get_extents().y1
        for area in plot.cost(frame, stacked=True).axes[0].collections
        for path in area.get_paths()
    ]
    assert max(tops) == pytest.approx(frame["cost_usd"].sum())


def test_a_logarithmic_axis_has_several_ticks() -> None:
    """From 0.2 to 6 seconds there is one power of ten, which alone would say nothing."""
    frame = many(30, models=1).assign(ttft_s=np.geomspace(0.2, 6.1, 30))
    figure = plot.latency(frame)
    figure.draw_without_rendering()
    assert figure.axes[0].get_xscale() == "log"
    shown = [tick.get_text() for tick in figure.axes[0].get_xticklabels() if tick.get_text()]
    assert {"0.2", "0.5", "1", "2", "5"} <= set(shown)


@pytest.mark.parametrize("name", ["cost", "throughput"])
def test_what_is_said_to_be_utc_is_utc(name: str) -> None:
    """Whatever zone a frame's times are in."""
    frame = many(20)
    tokyo = frame.assign(started_at=frame["started_at"].dt.tz_convert("Asia/Tokyo"))
    assert DRAWS[name](tokyo).axes[0].get_xlabel() == DRAWS[name](frame).axes[0].get_xlabel()
    assert f"{frame['started_at'].min():%H:%M} UTC" in DRAWS[name](tokyo).axes[0].get_xlabel()


@pytest.mark.parametrize(("gap_s", "step"), [(0.1, "is 0.27 s;"), (60, "is 2.5 min;"), (3600, "is 2.5 h;")])
def test_a_step_is_told_in_its_own_unit(gap_s: float, step: str) -> None:
    """Never as a power of ten of seconds."""
    assert step in plot.throughput(many(300, models=1, gap_s=gap_s)).alt


@pytest.mark.parametrize("name", DRAWS)
def test_a_frame_from_a_csv_file_is_drawn(name: str, tmp_path: Path) -> None:
    """Its times are text, its words no categories, its missing numbers NaN."""
    frame = many(60, missing=0.2)
    frame.to_csv(tmp_path / "calls.csv")
    again = pd.read_csv(tmp_path / "calls.csv")
    assert DRAWS[name](again).alt == DRAWS[name](frame).alt


@pytest.mark.parametrize("name", ["latency by hour", "cost", "cost stacked", "cost per hour", "throughput"])
def test_times_without_a_zone_or_missing_are_no_trouble(name: str) -> None:
    """What names no zone is UTC; a call without a time is in no curve over time."""
    frame = many(40)
    naive = frame["started_at"].dt.tz_localize(None)
    assert DRAWS[name](frame.assign(started_at=naive)).alt
    assert DRAWS[name](frame.assign(started_at=naive.mask(frame.index < 10))).alt
    assert DRAWS[name](frame.assign(started_at=pd.NaT)).alt
    with pytest.raises(ValueError, match=r"'started_at' holds no times; expected datetimes"):
        DRAWS[name](frame.assign(started_at=range(40)))


def test_hours_are_those_of_the_wall_clock_when_clocks_change() -> None:
    """New York sets its clocks back in the night of 1 November 2026: the hour from one to two comes twice."""
    frame = many(8, models=1)
    instants = pd.date_range("2026-11-01T04:30Z", periods=8, freq="30min").tz_convert("America/New_York")
    line = plot.latency(frame.assign(started_at=instants), over="hour").axes[0].lines[-1]
    assert [float(x) // 1 for x in line.get_xdata()] == [1.0, 2.0]


def test_infinite_numbers_are_refused() -> None:
    """With the column's name, and what to do."""
    for draw in (plot.latency, plot.compare, plot.pareto, plot.throughput):
        with pytest.raises(ValueError, match=r"the column '\w+' has infinite numbers; leave them out"):
            draw(many(10).assign(ttft_s=np.inf, e2e_s=np.inf))


@pytest.mark.filterwarnings("error")
def test_values_below_zero_are_on_the_axis() -> None:
    """A score may be negative."""
    figure = plot.latency(many(30).assign(score=np.linspace(-3, -1, 30)), metric="score")
    assert cut_off(figure) == []
    assert figure.axes[0].get_xlim()[0] < -3


def test_a_facet_does_not_fit_into_one_axes() -> None:
    """The sentence says which of the two to leave out."""
    with pytest.raises(ValueError, match="give either `facet` or `ax`"):
        plot.latency(many(), facet="endpoint", ax=Figure().add_subplot())


@pytest.mark.parametrize("name", DRAWS)
def test_a_missing_column_is_named(name: str) -> None:
    """In the error of every figure."""
    with pytest.raises(KeyError, match="the frame has no column 'modle'"):
        DRAWS[name](many(), by="modle")


@pytest.mark.parametrize("name", DRAWS)
def test_simulated_calls_are_named_in_every_figure(name: str) -> None:
    """Every figure of a simulated engine's calls says so."""
    assert "Simulated: all calls" in words(DRAWS[name](many(30)))


def test_a_dark_style_gives_dark_figures() -> None:
    """Matplotlib's own switch is enough; words become light."""
    with matplotlib.rc_context({"figure.facecolor": "black"}):
        figure = plot.latency(many())
    assert max(figure.get_facecolor()[:3]) < 0.2
    assert min(matplotlib.colors.to_rgb(figure.axes[0].xaxis.label.get_color())) > 0.5


def test_a_thinned_distribution_is_off_by_less_than_a_pixel() -> None:
    """Of 100,000 values, no share is wrong by more than 1 / MAX_STEPS, and the ends are exact."""
    values = np.sort(np.random.default_rng(5).lognormal(0, 2, 100_000))
    x, shares = ecdf_steps(values)
    assert len(x) < MAX_STEPS + 200
    drawn = np.concatenate([[0.0], shares])[np.searchsorted(x, values, side="right")]
    true = np.searchsorted(values, values, side="right") / len(values)
    assert np.abs(drawn - true).max() <= 1 / MAX_STEPS + 1e-12
    assert (x[:50] == values[:50]).all()
    assert (x[-50:] == values[-50:]).all()


def test_a_latency_by_hour_is_the_median_of_that_hour() -> None:
    """One dot an hour, at pandas' own median, in milliseconds."""
    frame = many(480, models=1, gap_s=300)
    drawn = plot.latency(frame, over="hour").axes[0].lines
    dots = next(line for line in drawn if line.get_marker() == "o" and len(line.get_xdata()) > 20)
    expected = frame.groupby(frame["started_at"].dt.hour)["ttft_s"].median() * 1e3
    assert np.allclose(np.asarray(dots.get_ydata(), dtype=float), expected.to_numpy(dtype=float))


def test_costs_per_period_are_the_sums_of_the_periods() -> None:
    """The bars of all groups add up to what pandas adds up."""
    frame = many(60, models=3, gap_s=600)
    bars = plot.cost(frame, per="hour").axes[0].patches
    drawn = pd.Series([bar.get_height() for bar in bars], index=[round(bar.get_x() + 0.4) for bar in bars])
    hours = frame["started_at"].dt.tz_localize(None).dt.floor("h")
    expected = frame.groupby(hours)["cost_usd"].sum()
    assert np.allclose(drawn.groupby(level=0).sum(), expected.to_numpy(dtype=float))


def test_tokens_of_a_bar_add_up_to_input_and_output() -> None:
    """Unknown caching and unknown reasoning have their own part; nothing is counted twice or left out."""
    frame = many(90, models=3)
    parts = [bar.get_width() for bar in plot.tokens(frame).axes[0].patches]
    assert sum(parts) == frame["input_tokens"].sum() + frame["output_tokens"].sum()
    said = words(plot.tokens(frame))
    assert {"input, cache unknown", "output, reasoning unknown", "visible output"} <= set(said.split("\n"))


def test_throughput_loses_no_token() -> None:
    """Ten tokens in one second, ten in the next two, five at once: the area is 25, and each second has its share."""
    rows = pd.DataFrame({"begin": [0.0, 1.0, 2.5], "end": [1.0, 3.0, 2.5], "amount": [10.0, 10.0, 5.0]})
    assert np.diff(amount_by(np.array([0.0, 1, 2, 3]), rows)).tolist() == [10, 5, 10]


def test_throughput_is_drawn_as_tokens_a_second() -> None:
    """The area under the line is the number of output tokens."""
    frame = many(60, models=1)
    values, edges, _ = plot.throughput(frame).axes[0].patches[0].get_data()
    area = (values * np.diff(edges) * 60 ** (edges[-1] < 10)).sum()
    assert area == pytest.approx(frame["output_tokens"].sum())


def test_the_front_is_what_nobody_beats() -> None:
    """A tie beats nobody; being worse in all ways is being beaten."""
    assert find_front(np.array([[1, 3], [2, 2], [3, 1], [3, 3], [1, 3]])).tolist() == [True, True, True, False, True]


def test_a_pareto_point_stands_at_mean_cost_and_median_latency() -> None:
    """Of a group's calls, by pandas' own mean and median."""
    frame = many(60, models=1)
    dot = next(line for line in plot.pareto(frame).axes[0].lines if line.get_marker() == "o")
    assert dot.get_xdata()[0] == pytest.approx(frame["cost_usd"].mean())
    assert dot.get_ydata()[0] == pytest.approx(frame["e2e_s"].median())


def test_twenty_passes_of_twenty_are_not_certain() -> None:
    """A score of yes and no has Wilson's interval, and is called by its scorer's name."""
    figure = plot.pareto(many(20, models=1).assign(score_whole=1.0), score="score_whole")
    assert "1 (0.839 to 1)" in words(figure)
    assert "Score whole against cost by model" in words(figure)


def test_a_comparison_is_over_the_pairs_that_both_have() -> None:
    """Prompts 1 and 2 differ by 1 s and 3 s, the third has no partner: 2 s over two pairs."""
    frame = pd.DataFrame({"model": list("aabbb"), "prompt": list("12123"), "e2e_s": [1.0, 1.0, 2.0, 4.0, 90.0]})
    assert any(
        text.startswith("+2.00 s") and text.endswith("over 2 pairs") for text in words(plot.compare(frame)).split("\n")
    )


def test_gaps_are_those_that_the_timing_knows() -> None:
    """The median of the drawn gaps is the reply's own `icl_p50_s`; thinking and text are told apart in a frame."""
    reply = exchange(spoken("one ", "two ", "three ", "four")).reply
    drawn = plot.gaps(reply).axes[0].lines[0].get_xdata()
    assert np.median(drawn[1:]) == pytest.approx(reply.timing.icl_p50_s * 1e3)
    table = events(streams=6, reads=60)
    said = words(plot.gaps(table))
    assert "text (n=240 gaps)" in said
    assert "thinking (n=114 gaps)" in said
    assert "no stream here" in words(plot.gaps(table.iloc[:0]))
