"""A chart on one axes, on axes under each other, or as small multiples: a panel for each value of a column.

chart = Chart(title=…, …) ── for canvas, part in chart.panels(rows): draw; chart.add_legend(…) ── chart.finish()
                         │      └── chart.add_row(…): a second axes under the first
                         └── nothing to draw ── chart.finish_empty(why)

What is around the axes is measured. Where the height is free the figure grows; in a given one the facts of the legend
go first, then the notes, then names, and a line says so. `figure.caption` has all of it in any case.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib.figure
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.gridspec import GridSpec
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text

from famnb.errors import InvalidRequest
from famnb.formatting import format_count
from famnb.plot.canvas import LABEL_PT, Canvas
from famnb.plot.figure import Figure
from famnb.plot.grouping import MAX_GROUPS, group_rows, group_slots
from famnb.plot.labels import describe_short_names, shorten_names
from famnb.plot.layout import (
    MIN_AXES_SHARE,
    NO_ROOM,
    PAD_IN,
    PANEL_GAP_IN,
    FigureSize,
    StackedLayout,
    fit_text,
    text_width_in,
    wrap_text,
)
from famnb.plot.palette import PLAIN_TEXT, Palette, palette_of_style

TITLE_PT = 11.5
LEGEND_PT = 8.5
NOTE_PT = 8.0
PANEL_HEIGHT_IN = 1.0
"""The least height of a panel."""
MIN_PANEL_IN = 1.6
"""The least width of a panel, with its ticks."""
MIN_PANEL_HEIGHT_IN = 0.9
"""The least height of a panel in a figure of a given height, its title included."""
MESSAGE_HEIGHT_IN = 0.7
"""Height of the axes that only say why they show nothing."""
# Four panels are a square rather than three and one.
COLUMNS = {1: 1, 2: 2, 4: 2}
"""Panels side by side, by the number of panels; 3 for any other number."""
MEASURE_IN = 6.0
"""More than ticks, labels, titles and what is around panels take of a height: what a figure is measured with."""
HANDLE_LINE_EM, HANDLE_EM = 1.7, 2.4
"""Length of a line in the legend, without and with the space after it, in sizes of the text."""
COLUMN_GAP_EM, NAME_GAP_EM = 0.2, 1.2
"""Between the columns of a legend of facts, whose cells begin with the room of a handle, and of one of names."""


@dataclasses.dataclass(frozen=True, slots=True)
class LegendEntry:
    """One line of the legend: how a group is drawn, its name, and facts about it."""

    handle: Artist
    name: str
    facts: Sequence[str] = ()


class Chart:
    """A figure being drawn, on the caller's axes, on our own, or on a panel for each value of a column."""

    def __init__(
        self,
        *,
        title: str,
        x: str = "",
        y: str = "",
        notes: Sequence[str] = (),
        facet: tuple[str, pd.Series[Any]] | None = None,
        ax: Axes | None = None,
        size: FigureSize | None = None,
        height_in: float | None = None,
        by: str = "",
        groups: Sequence[str] = (),
        slots: tuple[int, ...] = (),
    ) -> None:
        """`facet` is the name of a column and its value for each row.

        The groups of the column `by` have their colours, unless `slots` has the numbers that decide them. `height_in`
        is that of the axes, where the figure's is free. Raises InvalidRequest for both `facet` and `ax`.
        """
        if facet is not None and ax is not None:
            raise InvalidRequest("facet: several panels do not fit into one axes; give either `facet` or `ax`")
        self.title, self.x, self.y, self.notes = title, x, y, notes
        self.size = size or FigureSize.choose(None, None)
        self.groups = list(groups)
        self.names = shorten_names(self.groups)
        """The names of the groups as they are shown: short, and no two alike."""
        self.details: list[str] = []
        """Sentences that only the caption has."""
        self._facet, self._ax, self._slots = facet, ax, slots or group_slots(by, self.groups)
        self._height_in = max(1.9, 0.34 * self.size.width_in) if height_in is None else height_in
        self._rows: list[list[Canvas]] = []
        self._heights_in: list[float] = []
        self._by = by
        self._panel_names: list[str] = []
        """The values of the column that panels are for."""
        self._entries: list[LegendEntry] = []
        self._subtitle = ""

    def panels(self, rows: pd.DataFrame) -> Iterator[tuple[Canvas, pd.DataFrame]]:
        """Yield each canvas to draw on with the rows that belong there, perhaps none."""
        if self._facet is None:
            canvas = Canvas.create(self.size) if self._ax is None else Canvas.on(self._ax)
            canvas.palette = dataclasses.replace(canvas.palette, slots=self._slots)
            self._rows, self._heights_in = [[canvas]], [self._height_in]
            canvas.set_labels(x=self.x, y=self.y)
            yield canvas, rows
            return
        codes, names = group_rows(self._facet[1])
        self._panel_names = names[: max_panels(self.size)]
        if len(names) > len(self._panel_names):
            left_out = format_count(len(names) - len(self._panel_names), "panel")
            self.notes = [*self.notes, f"{NO_ROOM}{left_out}; {', '.join(names[len(self._panel_names) :])}."]
        canvases = self._create_panels(len(self._panel_names))
        for index, (canvas, name) in enumerate(zip(canvases, shorten_names(names), strict=False)):
            part = rows[codes == index]
            limits = canvas.axes.get_xlim(), canvas.axes.get_ylim()
            yield canvas, part
            # The first panel has no earlier limits to keep: matplotlib's default of 0 to 1 must not count.
            if index:
                _widen_limits(canvas.axes, *limits)
            points = canvas.text_pt(LABEL_PT)
            lines = [*wrap_text(f"{name} (n={len(part):,})", canvas.width_in, points), *canvas.facts]
            title = "\n".join(lines)
            canvas.axes.set_title(title, loc="left", fontsize=points, color=canvas.palette.strong, **PLAIN_TEXT)

    def add_row(self, *, x: str = "", y: str = "", height_in: float | None = None) -> Canvas | None:
        """A second axes of our own figure, under the first; None where the axes are the caller's or panels."""
        if self._ax is not None or self._facet is not None:
            return None
        first = self._rows[0][0]
        axes = first.figure.add_subplot(len(self._rows) + 1, 1, len(self._rows) + 1)
        canvas = dataclasses.replace(first, axes=axes)
        canvas.style_axes()
        canvas.set_labels(x=x, y=y)
        self._rows.append([canvas])
        self._heights_in.append(self._height_in if height_in is None else height_in)
        return canvas

    def add_legend(self, entries: Sequence[LegendEntry], subtitle: str = "") -> None:
        """Add the entries of the canvas just drawn; those of panels are merged by name and lose their facts."""
        if self._facet is None:
            self._entries, self._subtitle = list(entries), subtitle
            return
        # What is said of one panel does not hold for all; without a legend it is of the figure.
        self._subtitle = "" if entries else subtitle
        names = {entry.name for entry in self._entries}
        self._entries += [LegendEntry(entry.handle, entry.name) for entry in entries if entry.name not in names]

    def finish(self) -> matplotlib.figure.Figure:
        """Add title, legend and notes around what was drawn, and return the figure."""
        title, subtitle = self.title, self._subtitle
        if self._facet is not None and self._facet[0] != self._by:
            title = f"{title}, for each {self._facet[0]}"
        panels = f"{', '.join(self._panel_names)}; " if self._panel_names else ""
        facts = "; ".join(", ".join([entry.name, *entry.facts]) for entry in self._entries)
        parts = "; ".join(part for part in (subtitle, panels + facts) if part)
        sentences = [f"{parts}.", *self.details, *self.notes, *describe_short_names(self.groups)]
        return self._finish(title, subtitle, f"{title}: {parts}" if parts else title, f"{title}: {' '.join(sentences)}")

    def finish_empty(self, reason: str) -> matplotlib.figure.Figure:
        """Return a figure that says, in a sentence, why there is nothing to draw."""
        canvas = Canvas.create(self.size) if self._ax is None else Canvas.on(self._ax)
        canvas.show_message(reason)
        lines = len(wrap_text(reason, canvas.width_in * 0.95, canvas.text_pt(10)))
        self._rows, self._heights_in = [[canvas]], [max(MESSAGE_HEIGHT_IN, 0.24 * self.size.text_scale * lines)]
        self._facet, self._entries, self.notes = None, [], ()
        text = f"{self.title}: {reason}"
        return self._finish(self.title, "", text, text)

    def _finish(self, title: str, subtitle: str, alt: str, caption: str) -> matplotlib.figure.Figure:
        canvas = self._rows[0][0]
        figure: Any = canvas.figure
        if self._ax is None:
            self._surround(figure, title, subtitle)
        else:
            canvas.set_title(title)
            if any(note.startswith("Simulated") for note in self.notes):
                canvas.add_corner_text("simulated")
            if self._entries:
                names = [entry.name for entry in self._entries]
                canvas.add_inside_legend([entry.handle for entry in self._entries], names)
            # The caller's figure may have several charts.
            caption = "\n".join(filter(None, [getattr(figure, "caption", ""), caption]))
        if isinstance(figure, Figure):
            figure.alt = alt
        figure.caption = caption
        return canvas.figure

    def _surround(self, figure: Figure, title: str, subtitle: str) -> None:
        """Put headings above our own axes, legend and notes below, as much of it as there is room for."""
        size, palette = self.size, self._rows[0][0].palette
        if self._facet is None:
            grid = GridSpec(len(self._rows), 1, figure, height_ratios=self._heights_in)
            for index, (canvas,) in enumerate(self._rows):
                canvas.axes.set_subplotspec(grid[index, 0])
        layout = StackedLayout([row[0].axes for row in self._rows])
        figure.set_layout_engine(layout)
        points = size.text_pt(TITLE_PT)
        lines = wrap_text(title, size.width_in - 2 * PAD_IN, points, "bold")
        style: dict[str, Any] = {"ha": "left", "va": "top", "linespacing": 1.25, **PLAIN_TEXT}
        heading = figure.suptitle("\n".join(lines), fontsize=points, fontweight="bold", color=palette.strong, **style)
        # `StackedLayout` makes room for it.
        heading.set_in_layout(False)
        layout.headings.append(heading)
        if subtitle:
            facts = self._add_lines(figure, [subtitle], LABEL_PT, va="top")
            layout.headings.append(facts)
        if self._facet is not None:
            label: dict[str, Any] = {"fontsize": size.text_pt(LABEL_PT), "color": palette.soft, **PLAIN_TEXT}
            layout.shared_x = figure.text(0.5, 0, self.x, ha="center", va="bottom", **label)
            figure.supylabel("\n".join(wrap_text(self.y, sum(self._heights_in), size.text_pt(LABEL_PT))), **label)
        # In a figure so high that there is room for everything.
        figure.set_figheight(sum(self._heights_in) + MEASURE_IN)
        overhang_in = layout.overhang_in(figure)
        for legend, notes, has_subtitle in self._arrangements(figure, palette):
            layout.legend = legend
            if subtitle and not has_subtitle and facts in layout.headings:
                layout.headings.remove(facts)
                facts.remove()
            layout.notes = self._add_lines(figure, notes, NOTE_PT, va="bottom") if notes else None
            around_in = overhang_in + layout.around_in(figure)
            if size.height_in is None or around_in + MIN_AXES_SHARE * size.height_in <= size.height_in:
                break
            for artist in (layout.legend, layout.notes):
                if artist is not None:
                    artist.remove()
            layout.legend = layout.notes = None
        else:
            # However little room there is, a figure says that it is not whole, and that its calls are simulated.
            layout.notes = self._add_lines(figure, self._say_left_out([]), NOTE_PT, va="bottom")
        figure.set_figheight(size.height_in or around_in + sum(self._heights_in))
        layout.execute(figure)
        for canvas in (canvas for row in self._rows for canvas in row):
            canvas.thin_ticks()
            # Only now is it known how high the axes are; matplotlib makes no room for labels that are higher.
            y_label, axes_in = canvas.axes.yaxis.label, canvas.axes.get_position().height * figure.get_figheight()
            points = size.text_pt(LABEL_PT)
            y_label.set_text("\n".join(wrap_text(y_label.get_text().replace("\n", " "), axes_in, points)))

    def _arrangements(self, figure: Figure, palette: Palette) -> Iterator[tuple[Legend | None, list[str], bool]]:
        """Legends, notes, and whether the line of facts stays, the fullest first; each is made when it is asked for."""
        entries, left_out = self._entries, list[str]()
        if any(entry.facts for entry in entries):
            yield self._add_facts(figure, palette), list(self.notes), True
            left_out = ["numbers of the legend"]
        missing = self._say_left_out(left_out) if left_out else []
        yield self._add_names(figure, palette), [*self.notes, *missing], True
        if self.notes:
            left_out = [*left_out, format_count(len(self.notes), "note")]
            yield self._add_names(figure, palette), self._say_left_out(left_out), True
        if self._subtitle:
            left_out = [*left_out, "line below the title"]
            yield self._add_names(figure, palette), self._say_left_out(left_out), False
        if entries:
            yield self._add_names(figure, palette), self._say_left_out([]), False
        yield None, self._say_left_out([*(["legend"] if entries else []), *left_out]), False

    def _say_left_out(self, what: Sequence[str]) -> list[str]:
        """What the figure does not show for want of room; groups, and that calls are simulated, it says in any case."""
        simulated = "Simulated. " if any(note.startswith("Simulated") for note in self.notes) else ""
        groups = [note.removeprefix(NO_ROOM).partition(";")[0] for note in self.notes if note.startswith(NO_ROOM)]
        missing = [*groups, *what]
        return [
            f"{simulated}{NO_ROOM}{', '.join(missing)}; see `.caption`."
            if missing
            else f"{simulated}More in `.caption`."
        ]

    def _add_facts(self, figure: Figure, palette: Palette) -> Legend:
        """Add a legend with the facts of each group: in columns where these fit, else under its name."""
        points, room_in = self.size.text_pt(LEGEND_PT), self.size.width_in - 2 * PAD_IN
        em_in = points / 72
        table = [[entry.name, *entry.facts] for entry in self._entries]
        columns = range(max(map(len, table)))
        widths = [max(text_width_in(row[i], points) for row in table if i < len(row)) for i in columns]
        if sum(widths) + (HANDLE_EM + COLUMN_GAP_EM) * em_in * len(columns) <= room_in:
            # A legend fills column by column, so that is the order of its cells.
            cells = [(row[i] if i < len(row) else "", i == 0) for i in columns for row in table]
            return self._make_legend(figure, palette, self._entries, cells, columns=len(columns), gap_em=COLUMN_GAP_EM)
        cells = []
        for name, *facts in table:
            cells.append((fit_text(name, room_in - HANDLE_EM * em_in, points), True))
            cells += [(line, False) for line in wrap_text(" · ".join(facts), room_in - HANDLE_EM * em_in, points)]
        return self._make_legend(figure, palette, self._entries, cells, columns=1)

    def _add_names(self, figure: Figure, palette: Palette) -> Legend | None:
        """Add a legend of names only, as many beside each other as fit."""
        entries = self._entries
        if not entries:
            return None
        points, room_in = self.size.text_pt(LEGEND_PT), self.size.width_in - 2 * PAD_IN
        handle_in, gap_in = HANDLE_EM * points / 72, NAME_GAP_EM * points / 72
        names = [fit_text(entry.name, room_in - handle_in, points) for entry in entries]
        widest_in = handle_in + max(text_width_in(name, points) for name in names)
        columns = min(max(int((room_in + gap_in) / (widest_in + gap_in)), 1), len(names))
        cells = [(name, True) for name in names]
        return self._make_legend(figure, palette, entries, cells, columns=columns, gap_em=NAME_GAP_EM)

    def _make_legend(
        self,
        figure: Figure,
        palette: Palette,
        entries: Sequence[LegendEntry],
        cells: Sequence[tuple[str, bool]],
        *,
        columns: int,
        gap_em: float = 0.0,
    ) -> Legend:
        """A legend under the axes, of texts of which some are names, which have the handles of the entries."""
        blank, handles = Line2D([], [], linestyle="none"), iter([entry.handle for entry in entries])
        owner: Any = figure if self._facet is not None else self._rows[0][0].axes
        legend: Legend = owner.legend(
            [next(handles) if is_name else blank for _, is_name in cells],
            [text for text, _ in cells],
            ncols=columns,
            loc="upper left",
            frameon=False,
            fontsize=self.size.text_pt(LEGEND_PT),
            handlelength=HANDLE_LINE_EM,
            handletextpad=HANDLE_EM - HANDLE_LINE_EM,
            columnspacing=gap_em,
            borderaxespad=0,
            borderpad=0,
            labelspacing=0.35,
        )
        # `StackedLayout` has made room for it.
        legend.set_in_layout(False)
        for text, (_, is_name) in zip(legend.get_texts(), cells, strict=True):
            text.set(color=palette.strong if is_name else palette.soft, **PLAIN_TEXT)
        return legend

    def _add_lines(self, figure: Figure, texts: Sequence[str], points: float, *, va: str) -> Text:
        """Add lines of soft text from edge to edge of the figure; the layout says how high."""
        points = self.size.text_pt(points)
        lines = [line for text in texts for line in wrap_text(text, self.size.width_in - 2 * PAD_IN, points)]
        colour = self._rows[0][0].palette.soft
        return figure.text(
            0, 0, "\n".join(lines), ha="left", va=va, fontsize=points, color=colour, linespacing=1.25, **PLAIN_TEXT
        )

    @property
    def _columns(self) -> int:
        """The number of panels side by side."""
        return _count_columns(self.size, len(self._panel_names))

    def _create_panels(self, count: int) -> list[Canvas]:
        """Create a figure with this many canvases, which share their scales."""
        rows, palette = math.ceil(count / self._columns), dataclasses.replace(palette_of_style(), slots=self._slots)
        height_in = max(PANEL_HEIGHT_IN, self._height_in * 0.55)
        size = self.size
        figure = Figure(palette=palette, figsize=(size.width_in, size.height_in or height_in * rows))
        # Shared axes, since panels are there to be compared.
        grid = figure.subplots(rows, self._columns, squeeze=False, sharex=True, sharey=True)
        for axes in grid.ravel()[count:]:
            axes.remove()
        # Less the ticks and label left of all, and what is between panels.
        width_in = (size.width_in - 0.8) / self._columns - PANEL_GAP_IN
        canvases = [
            Canvas(figure, axes, palette, is_own=True, size=size, width_in=width_in, is_panel=True)
            for axes in grid.ravel()[:count]
        ]
        for canvas in canvases:
            canvas.style_axes()
        # The lowest panel of each column has ticks, also where the row under it is not full.
        for canvas in canvases[max(count - self._columns, 0) :]:
            canvas.axes.tick_params(labelbottom=True)
        self._rows = [canvases[start : start + self._columns] for start in range(0, count, self._columns)]
        self._heights_in = [height_in] * rows
        return canvases


def _count_columns(size: FigureSize, panels: int) -> int:
    """How many of some panels stand beside each other."""
    return min(COLUMNS.get(panels, 3), max(int(size.width_in / MIN_PANEL_IN), 1))


def max_panels(size: FigureSize) -> int:
    """How many panels a figure has room for: any number where its height is free."""
    if size.height_in is None:
        return MAX_GROUPS + 1
    # Title, legend and notes take about an inch.
    rows = max(int((size.height_in - 1) / MIN_PANEL_HEIGHT_IN), 1)
    return rows * _count_columns(size, rows * 3)


def _widen_limits(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Keep the limits that earlier panels need: panels share them, and the last sets its own."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    axes.set_xlim(min(x[0], left), max(x[1], right))
    # An axis that runs downwards, such as that of `compare`, is the same in all panels.
    if low < high:
        axes.set_ylim(min(y[0], low), max(y[1], high))
