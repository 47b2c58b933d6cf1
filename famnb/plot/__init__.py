"""Figures of calls: a frame goes in, a matplotlib figure comes out that shows itself in a notebook.

    timeline(reply)                                waiting, thinking, answer, and what came when
    latency(frame, metric=, over="hour")           the share of calls up to each latency, median, p95; or by hour of day
    gaps(which)                                    inter-chunk gaps of a reply, of calls, or of a frame of `deltas`
    cost(frame, per="day")                         spending so far or by period, its interval, what could not be counted
    tokens(frame)                                  input, cached, reasoning, visible tokens; estimated ones are marked
    throughput(frame)                              output tokens a second, all calls together
    pareto(frame, score=)                          cost, latency, score of groups; which are, or may be, on the front
    compare(frame, metric=, pair=, baseline=)      groups on the same prompts, and beside their paired differences
    differences(summary)                           all metrics of an experiment against its baseline
    load(frame)                                    what each step of a load met: latency, goodput, calls in flight
    success(frame)                                 the share of calls that were answered, and what the others failed of
    explore(frame, x=, y=, by=)                    calls as points: hover shows one, a click opens it, brushing chooses

`by=` chooses the colours, `ax=` the caller's own axes. `figsize=` is a size in inches, `width=` "column" (3.5 inches),
"page" (7) or "slide" (10, with larger text); unless given, as wide as a notebook and as high as needed. On a small
figure text shrinks, to 6 pt at least; what there is still no room for is counted in a note, and `.caption` has all as
text. Groups, their n and "simulated" stay; on axes of your own they stand in a legend above the data, and in the title.
On a page a figure is light or dark as the page is; saved, it is light, with `savefig(…, dark=True)` dark, and where
matplotlib's style is dark, dark in both. A percentile is shown only where n is large enough for it (n ≥ 1/(1 − p)), and
more than twelve groups become eleven and "others". Figures of simulated calls say so. `interactive=True`, which all but
gaps, differences and load take, is a widget of the same calls or events, as `explore` makes it; `points.py` has what it
draws.

Each figure is in the module of its name. It prepares its rows, opens a `chart.Chart`, and draws on the
`canvas.Canvas` that the chart gives it. What several draw is in a module of its own: `ecdf.py` rising shares,
`effects.py` intervals, `points.py` the points of a widget.

To add a figure: `plot/NAME.py`, a function of a frame with `by=`, `figsize=`, `width=` and `ax=`, and `interactive=`
where a call can be a point of it, that draws on the canvas of a `chart.Chart`, whose `details` have its numbers in
words and whose `notes=` say how many calls lack a value, what `select_calls` left out, and `simulation_note(frame)`,
for times `clock_notes` as well. Start from `plot/latency.py` for rising shares, from `plot/tokens.py` for a bar a
group, from `plot/throughput.py` for steps, as of a histogram, where more than three groups lie on each other. A figure
of measures, a number that each call has, such as a latency or a speed, takes its rows from `select_calls(frame)`, which
leaves warm-ups out, one of what was used, such as tokens, from `select_calls(frame, of_use=True)`.

Its name goes below, into the table above, and at the end of `DRAWS` of `tests/plot/plot_figures.py`, whose tests draw
it from odd frames, and at every size by `pytest -m full tests/plot/test_gallery.py`. `tests/plot/test_grouping.py` has
lists of those that leave warm-ups out (`OF_MEASURES`, `OF_USE`), that have calls by `started_at` and that refuse
infinite numbers, `tests/plot/test_explore.py` one of those that are interactive. `notebooks/08-gallery.ipynb` shows it,
and `tests/bench/bench_plots.py` times it, whose `frame` needs the columns that it reads.
"""

from famnb.plot.compare import compare as compare
from famnb.plot.cost import cost as cost
from famnb.plot.differences import differences as differences
from famnb.plot.explore import explore as explore
from famnb.plot.figure import Figure as Figure
from famnb.plot.gaps import gaps as gaps
from famnb.plot.latency import latency as latency
from famnb.plot.load import load as load
from famnb.plot.pareto import pareto as pareto
from famnb.plot.success import success as success
from famnb.plot.throughput import throughput as throughput
from famnb.plot.timeline import timeline as timeline
from famnb.plot.tokens import tokens as tokens
