"""All figures on frames and replies of every shape, and the text of a drawn figure."""

import dataclasses
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

from famnb import plot
from famnb.errors import AuthenticationError
from famnb.experiment.summary import summary
from famnb.reply import Reply
from tests.support.exchanges import at, chunk, exchange, spoken
from tests.support.plot_frames import SECOND_US, many_calls, priced_calls

LONG = "accounts/a-provider-with-a-long-name/models/a-model-with-an-even-longer-name-70b-instruct-2026-01-31"

THOUGHTFUL = [
    at(400, chunk({"reasoning_content": "hmm "})),
    at(900, chunk({"reasoning_content": "yes"})),
    at(1000, chunk({"content": "Because"})),
    at(2000, chunk({"content": " of light"})),
    at(2100, chunk(finish="stop"), b"[DONE]"),
]

ODD_FRAMES = {
    "no group": priced_calls([None, None], [0.1, 0.2], ttft_s=[0.1, 0.2]),
    "equal values": priced_calls(["m"] * 30, [0.0] * 30, ttft_s=[0.0] * 30),
    "a long time": priced_calls(
        ["m"] * 5,
        [0.1] * 5,
        ttft_s=[0.1] * 5,
        started_at=[day * 86_400 * SECOND_US for day in (20000, 20003, 20010, 20011, 20400)],
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
    **{f"latency of {name}": lambda frame=frame: plot.latency(frame) for name, frame in ODD_FRAMES.items()},
    **{f"cost of {name}": lambda frame=frame: plot.cost(frame) for name, frame in ODD_FRAMES.items()},
    **{f"timeline of {name}": lambda reply=reply: plot.timeline(reply) for name, reply in REPLIES.items()},
}
"""Figures of rare frames and replies; `test_canvas.py` draws every figure of some of FRAMES."""

DRAWS: dict[str, Any] = {
    "latency": plot.latency,
    "latency by hour": lambda frame, **more: plot.latency(frame, over="hour", **more),
    "cost": plot.cost,
    "cost per hour": lambda frame, **more: plot.cost(frame, per="hour", **more),
    "tokens": plot.tokens,
    "throughput": plot.throughput,
    "pareto": plot.pareto,
    "pareto of scores": lambda frame, **more: plot.pareto(frame, score="score", **more),
    "compare": plot.compare,
    "success": plot.success,
}


def draw_differences(frame: pd.DataFrame, **options: Any) -> Figure:
    """The differences of the models of a frame of calls, as those of the variants of an experiment."""
    rows = frame.assign(variant=frame["model"], prompt_id=frame["prompt"], warmup=False, score_any=frame["score"])
    return plot.differences(summary(rows), **options)


def draw_load(frame: pd.DataFrame, **options: Any) -> Figure:
    """A load whose steps are the models of a frame of calls, each offered 1.5 calls a second more."""
    offered = 1.5 + 1.5 * pd.factorize(frame["model"])[0]
    due = frame.groupby("model").cumcount() / offered
    times = {"due_s": due, "latency_s": frame["e2e_s"], "end_s": due + frame["e2e_s"], "met": frame["e2e_s"] < 3}
    return plot.load(frame.assign(step=frame["model"], offered=offered, **times), **options)


FRAMES = {
    "one group": many_calls(40, models=1),
    "twelve groups": many_calls(240, models=12),
    "twenty groups": many_calls(100, models=20),
    "missing values": many_calls(60, missing=0.6),
    "nothing but missing values": many_calls(20, missing=1.1),
    "no call": many_calls(4).iloc[:0],
    "one call": many_calls(1),
    "long names": many_calls(60, name=LONG[:80]),
}


def figure_text(figure: Figure) -> str:
    """All the text in a figure, a line for each piece."""
    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_visible())


def marks(figure: Figure, panel: int) -> list[tuple[float, bool]]:
    """Where each mark of a panel stands, from top to bottom, and whether it is filled."""
    lines = [line for line in figure.axes[panel].lines if line.get_zorder() == 5]
    lines.sort(key=lambda line: line.get_ydata()[0])
    return [(float(line.get_xdata()[0]), line.get_markerfacecolor() != "#ffffff") for line in lines]


def legend_texts(figure: Figure) -> list[str]:
    """The texts of the legend."""
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
