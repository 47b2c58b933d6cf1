"""What votes came to, as ordinary notebook output: a ranking in words and figures, beside cost and latency."""

from __future__ import annotations

import base64
import html
from typing import Any

import pandas as pd

from famnb import plot, stats
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.resume import ANSWERED
from famnb.experiment.votes import VOTES_SCORE, ranking_sentences
from famnb.formatting import format_duration, format_percent, format_usd
from famnb.widget.html import sanitize, transcript

_HEAD = ("variant", "chosen over an average one", "strength (95% interval)", "won", "tied", "votes")
_BESIDE = ("median time", "mean cost")
_CELL = "text-align:left;padding:2px 14px 2px 0"
MISSING = "–"


def bundle(experiment: BaseExperiment, *, said: str) -> transcript.Bundle:
    """The result of people's votes so far; `said` is how far they are."""
    frame = experiment.frame()
    try:
        ranking = experiment.ranking()
    except ValueError as error:
        return transcript.render([transcript.Section("note", f"{said}. No ranking yet: {error}.")])
    rows = [_row(name, line, frame) for name, line in ranking.frame.iterrows()]
    lines = [f"{said}. {ranking.n:,} votes count.", *ranking_sentences(ranking)]
    lines += [] if ranking.bounded else ["One never lost or never won: half a win both ways was added to each pair."]
    simulated = frame["simulated"].fillna(False).any()
    lines += ["Some of these answers were simulated; a decision needs real ones."] if simulated else []
    head = (*_HEAD, *_BESIDE)
    return {
        "text/html": "".join(f"<p>{sanitize.escape(line)}</p>" for line in lines) + _html(head, rows) + _figure(frame),
        "text/markdown": "\n\n".join([*(sanitize.escape_markdown(line) for line in lines), _markdown(head, rows)]),
        "text/plain": "\n".join([*lines, pd.DataFrame(rows, columns=head).to_string(index=False)]),
    }


def _row(name: Any, line: pd.Series[Any], frame: pd.DataFrame) -> list[str]:
    own = frame[(frame["variant"] == name) & frame["status"].isin(ANSWERED) & ~frame["warmup"]]
    middle, cost = stats.median(own["e2e_s"]), own["cost_usd"].mean()
    return [
        sanitize.visible(str(name)),
        format_percent(line["better"]),
        f"{line['strength']:.2f} ({line['low']:.2f} to {line['high']:.2f})",
        *(f"{int(line[column]):,}" for column in ("wins", "ties", "votes")),
        format_duration(middle.value) if middle.value == middle.value else MISSING,
        MISSING if pd.isna(cost) else format_usd(float(cost)),
    ]


def _html(head: tuple[str, ...], rows: list[list[str]]) -> str:
    names = "".join(f'<th scope="col" style="{_CELL};white-space:normal">{name}</th>' for name in head)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL};white-space:nowrap">{sanitize.escape(value)}</td>' for value in row)
        + "</tr>"
        for row in rows
    )
    return f'<div style="overflow-x:auto"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _markdown(head: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *([sanitize.escape_markdown(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(frame: pd.DataFrame) -> str:
    """Score against cost, with latency, as an image; nothing where no variant can be placed."""
    shown, score = frame[~frame["warmup"].astype(bool)], f"score_{VOTES_SCORE}"
    if shown[[score, "cost_usd", "e2e_s"]].dropna().empty:
        return ""
    figure: Any = plot.pareto(shown, by="variant", score=score)
    image, size = figure._repr_mimebundle_()
    encoded = base64.b64encode(image["image/png"]).decode()
    style = f"width:100%;max-width:{size['image/png']['width']}px"
    return f'<img style="{style}" alt="{html.escape(figure.alt)}" src="data:image/png;base64,{encoded}">'
