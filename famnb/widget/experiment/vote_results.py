"""The result of votes as notebook output: a ranking of the variants, with their median times and mean costs."""

from __future__ import annotations

import base64
import html
import math
from typing import Any

import pandas as pd

from famnb import plot, stats
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.metrics import read_bounds
from famnb.experiment.resume import ANSWERED
from famnb.experiment.votes import VOTES_SCORE, ranking_sentences
from famnb.formatting import format_count, format_duration, format_estimate, format_percent
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml

_HEAD = ("variant", "chosen over an average one", "strength (95% interval)", "won", "tied", "votes")
_EXTRA_COLUMNS = ("median time", "mean cost")
_CELL_STYLE = "text-align:left;padding:2px 14px 2px 0"
_HEAD_CELL = SafeHtml(f'<th scope="col" style="{_CELL_STYLE};white-space:normal">{{}}</th>')
_CELL = SafeHtml(f'<td style="{_CELL_STYLE};white-space:nowrap">{{}}</td>')
_ROW = SafeHtml("<tr>{}</tr>")
_TABLE = SafeHtml('<div style="overflow-x:auto"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>')
_PARAGRAPH = SafeHtml("<p>{}</p>")
_IMAGE = SafeHtml('<img style="width:100%;max-width:{width}px" alt="{alt}" src="data:image/png;base64,{image}">')
_MISSING = "–"


def results_bundle(experiment: BaseExperiment, *, progress: str) -> transcript.Bundle:
    """The result of people's votes so far, with a sentence on how far they are, `progress`."""
    frame = experiment.frame()
    try:
        ranking = experiment.ranking()
    except ValueError as error:
        return transcript.render([transcript.Section("note", f"{progress}. No ranking yet: {error}.")])
    rows = [_row(name, line, frame) for name, line in ranking.frame.iterrows()]
    lines = [
        f"{progress}. {ranking.n:,} votes count, on {format_count(ranking.clusters, 'prompt')}.",
        *ranking_sentences(ranking),
    ]
    lines += [f"{note[0].upper()}{note[1:]}." for note in ranking.notes]
    simulated = frame.loc[frame["status"].isin(ANSWERED), "simulated"].fillna(False)
    share = "These" if simulated.all() else "Some of these"
    lines += [f"{share} answers were simulated; a decision needs real ones."] if simulated.any() else []
    head = (*_HEAD, *_EXTRA_COLUMNS)
    return {
        "text/html": SafeHtml().join(map(_PARAGRAPH.format, lines)) + _table_html(head, rows) + _figure_html(frame),
        "text/markdown": "\n\n".join([*(sanitize.escape_markdown(line) for line in lines), _markdown(head, rows)]),
        "text/plain": "\n".join([*lines, pd.DataFrame(rows, columns=head).to_string(index=False)]),
    }


def _row(name: Any, line: pd.Series[Any], frame: pd.DataFrame) -> list[str]:
    """A variant's row: its rank in people's votes, and time and cost of its answered calls."""
    own = frame[(frame["variant"] == name) & frame["status"].isin(ANSWERED) & ~frame["warmup"]]
    median, costs = stats.median(own["e2e_s"]), read_bounds(own, "cost_usd")
    cost = format_estimate(costs.value.mean(), costs.low.mean(), costs.high.mean())
    return [
        sanitize.visible(str(name)),
        format_percent(line["better"]),
        f"{line['strength']:.2f} ({line['low']:.2f} to {line['high']:.2f})",
        *(f"{int(line[column]):,}" for column in ("wins", "ties", "votes")),
        _MISSING if math.isnan(median.value) else format_duration(median.value),
        cost if costs.value.notna().any() else _MISSING,
    ]


def _table_html(head: tuple[str, ...], rows: list[list[str]]) -> SafeHtml:
    lines = [_ROW.format(SafeHtml().join(map(_CELL.format, row))) for row in rows]
    return _TABLE.format(SafeHtml().join(map(_HEAD_CELL.format, head)), SafeHtml().join(lines))


def _markdown(head: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *([sanitize.escape_markdown(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure_html(frame: pd.DataFrame) -> SafeHtml:
    """Score against cost, with latency, as images for light and dark pages; empty unless two variants have all."""
    rows, score = frame[~frame["warmup"].astype(bool)], f"score_{VOTES_SCORE}"
    if rows.dropna(subset=[score, "cost_usd", "e2e_s"])["variant"].nunique() < 2:
        return SafeHtml()
    figure: Any = plot.pareto(rows, by="variant", score=score)
    bundle, metadata = figure._repr_mimebundle_()
    if "text/html" in bundle:
        return SafeHtml(bundle["text/html"])
    return _IMAGE.format(
        width=metadata["image/png"]["width"],
        # In an attribute nothing is typeset as a formula, and no tag can keep it from being so.
        alt=SafeHtml(html.escape(figure.alt)),
        image=base64.b64encode(bundle["image/png"]).decode(),
    )
