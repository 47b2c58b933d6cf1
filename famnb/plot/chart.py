"""A chart on one axes, or on axes under each other or beside each other.

chart = Chart(title=…, …) ── canvas = chart.create_canvas(): draw; chart.add_legend(…) ── chart.finish()
                         │      └── chart.add_axes(…): further axes under the first, or beside it
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
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.gridspec import GridSpec
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text

from famnb.formatting import format_count
from famnb.plot.canvas import Canvas
from famnb.plot.figure import Figure
from famnb.plot.grouping import group_looks
from famnb.plot.labels import describe_short_names, shorten_names
from famnb.plot.layout import (
    LABEL_PT,
    MIN_ROW_IN,
    NOTE_PT,
    PANEL_GAP_IN,
    TICK_PT,
    TITLE_PT,
    FigureSize,
    fit_names,
    fit_text,
    lay_out,
    text_width_in,
    wrap_text,
)
from famnb.plot.palette import PLAIN_TEXT

NO_ROOM = "No room for: "
"""How a note begins that names what a figure of a given size does not show."""
MIN_AXES_SHARE = 0.33
"""The share of a given height that belongs to the axes, as long as anything else can go."""
MESSAGE_HEIGHT_IN = 0.7
"""Height of the axes that only say why they show nothing."""
MEASURE_IN = 6.0
"""More than ticks, labels, titles and what is around panels take of a height: what a figure is measured with."""
HANDLE_LINE_EM, HANDLE_EM = 1.9, 2.4
"""Length of a line in the legend, without and with the space after it, in sizes of the text."""
COLUMN_GAP_EM, NAME_GAP_EM = 0.2, 1.2
"""Between the columns of a legend of facts, whose cells begin with the room of a handle, and of one of names."""


@dataclasses.dataclass(frozen=True, slots=True)
class LegendEntry:
    """One line of the legend: how a group is drawn, its name, facts about it, and of how many it is (`f"{n:,}"`)."""

    handle: Artist
    name: str
    facts: Sequence[str] = ()
    n: str = ""


class Chart:
    """A figure being drawn, on the caller's axes or on our own."""

    def __init__(
        self,
        *,
        title: str,
        x: str = "",
        y: str = "",
        notes: Sequence[str] = (),
        ax: Axes | None = None,
        size: FigureSize | None = None,
        height_in: float | None = None,
        by: str = "",
        groups: Sequence[str] = (),
    ) -> None:
        """The groups of the column `by` have their colours; `height_in` is that of axes where the figure's is free."""
        self.title, self.x, self.y, self.notes = title, x, y, list(notes)
        self.size = size or FigureSize.choose(None, None)
        self.groups = list(groups)
        self.names = shorten_names(self.groups)
        """The names of the groups as they are shown: short, and no two alike."""
        self.details: list[str] = []
        """Sentences that only the caption has."""
        self._ax, self._looks = ax, group_looks(by, self.groups)
        self._height_in = max(1.9, 0.34 * self.size.width_in) if height_in is None else height_in
        self._rows: list[list[Canvas]] = []
        self._heights_in: list[float] = []
        self._entries: list[LegendEntry] = []
        self._subtitle = ""

    def create_canvas(self) -> Canvas:
        """Return what to draw on: the caller's axes, or those of a new figure."""
        canvas = Canvas.create(Figure(), self.size) if self._ax is None else Canvas.on(self._ax)
        self._rows, self._heights_in = [[canvas]], [self._height_in]
        canvas.palette = dataclasses.replace(canvas.palette, **self._looks)
        canvas.set_labels(x=self.x, y=self.y)
        return canvas

    def add_axes(
        self, *, x: str = "", y: str = "", height_in: float | None = None, is_beside: bool = False
    ) -> Canvas | None:
        """Further axes of our own figure, under the first or beside them; None on the caller's axes."""
        if self._ax is not None:
            return None
        first = self._rows[0][0]
        # Where exactly is known when all are there.
        axes = first.figure.add_subplot(len(self._rows) + 1, 2, 2)
        canvas = dataclasses.replace(first, axes=axes)
        canvas.style_axes()
        if is_beside:
            canvas.width_in = first.width_in = first.width_in / 2 - PANEL_GAP_IN
            first.set_labels(x=self.x, y=self.y)
            self._rows[-1].append(canvas)
        else:
            self._rows.append([canvas])
            self._heights_in.append(self._height_in if height_in is None else height_in)
        canvas.set_labels(x=x, y=y)
        return canvas

    def add_legend(self, entries: Sequence[LegendEntry], subtitle: str = "") -> None:
        """Set the entries of the legend, with their n after their names, and the line below the title."""
        named = [f"{entry.name} (n={entry.n})" if entry.n else entry.name for entry in entries]
        self._entries = [dataclasses.replace(entry, name=name) for entry, name in zip(entries, named, strict=True)]
        self._subtitle = subtitle

    def add_row_facts(self, entries: Sequence[LegendEntry], subtitle: str, *, min_width_in: float) -> None:
        """Add facts of groups that have a row each: where there is no room for a legend, to the caption."""
        is_wide = self._ax is None and self.size.width_in >= min_width_in
        self.add_legend(entries if is_wide else [], subtitle)
        if not is_wide:
            self.details += [f"{', '.join([f'{entry.name} (n={entry.n})', *entry.facts])}." for entry in entries]

    def finish(self) -> matplotlib.figure.Figure:
        """Add title, legend and notes around what was drawn, and return the figure."""
        title, subtitle = self.title, self._subtitle
        facts = "; ".join(", ".join([entry.name, *entry.facts]) for entry in self._entries)
        parts = "; ".join(part for part in (subtitle, facts) if part)
        sentences = [f"{parts}.", *self.details, *self.notes, *describe_short_names(self.groups)]
        return self._finish(title, subtitle, f"{title}: {parts}" if parts else title, f"{title}: {' '.join(sentences)}")

    def finish_empty(self, reason: str) -> matplotlib.figure.Figure:
        """Return a figure that says, in a sentence, why there is nothing to draw."""
        self._entries, self.notes, self.x, self.y = [], [], "", ""
        canvas = self.create_canvas()
        canvas.show_message(reason)
        lines = len(wrap_text(reason, canvas.width_in * 0.95, canvas.size.text_pt(10)))
        self._heights_in = [max(MESSAGE_HEIGHT_IN, 0.24 * self.size.text_scale * lines)]
        text = f"{self.title}: {reason}"
        return self._finish(self.title, "", text, text)

    def _finish(self, title: str, subtitle: str, alt: str, caption: str) -> matplotlib.figure.Figure:
        canvases = [canvas for row in self._rows for canvas in row]
        figure: Any = canvases[0].figure
        if self._ax is None:
            self._surround(figure, title, subtitle)
        else:
            canvases[0].set_title(f"{title}, simulated" if self._is_simulated else title)
            if self._entries:
                names = [entry.name for entry in self._entries]
                canvases[0].add_inside_legend([entry.handle for entry in self._entries], names)
            # The caller's figure may have several charts.
            caption = "\n".join(filter(None, [getattr(figure, "caption", ""), caption]))
        for canvas in canvases:
            canvas.fit_row_names()
        if isinstance(figure, Figure):
            figure.alt = alt
        figure.caption = caption
        return canvases[0].figure

    @property
    def _is_simulated(self) -> bool:
        return any(note.startswith("Simulated") for note in self.notes)

    def _surround(self, figure: Figure, title: str, subtitle: str) -> None:
        """Put headings above our own axes, legend and notes below, as much of it as there is room for."""
        size, palette = self.size, self._rows[0][0].palette
        grid = GridSpec(len(self._rows), max(map(len, self._rows)), figure, height_ratios=self._heights_in)
        for index, row in enumerate(self._rows):
            for column, canvas in enumerate(row):
                canvas.axes.set_subplotspec(grid[index, column] if len(row) > 1 else grid[index, :])
        style: dict[str, Any] = {"ha": "left", "va": "top", "linespacing": 1.25, **PLAIN_TEXT}
        lines = wrap_text(title, size.width_in - 2 * size.pad_in, points := size.text_pt(TITLE_PT), "bold")
        heading = figure.suptitle("\n".join(lines), fontsize=points, fontweight="bold", color=palette.strong, **style)
        heading.set_in_layout(False)
        facts = self._add_lines(figure, [subtitle], LABEL_PT, va="top") if subtitle else None
        # In a figure so high that there is room for everything.
        figure.set_figheight(sum(self._heights_in) + MEASURE_IN)
        lay_out(figure, size.pad_in, 0, figure.get_figheight())
        axes_in = sum(row[0].axes.get_position().height for row in self._rows) * figure.get_figheight()
        overhang_in = figure.get_figheight() - axes_in
        names_in = sum(max(canvas.rows for canvas in row) for row in self._rows) * MIN_ROW_IN
        least_in = max(MIN_AXES_SHARE * (size.height_in or 0), names_in)
        for legend, notes, has_subtitle in self._arrangements():
            lines_below = self._add_lines(figure, notes, NOTE_PT, va="bottom") if notes else None
            foot = [artist for artist in (lines_below, legend) if artist is not None]
            head = [heading, facts] if facts is not None and has_subtitle else [heading]
            heights_in = {artist: _height_in(artist) + size.gap_in for artist in (*head, *foot)}
            around_in = 2 * size.pad_in + sum(heights_in.values())
            if size.height_in is None or size.height_in - around_in - overhang_in >= least_in:
                break
            # Before there is another: axes forget their new legend when their old one is removed.
            for artist in foot:
                artist.remove()
        else:
            foot[0] = self._add_lines(figure, notes, NOTE_PT, va="bottom")
            heights_in[foot[0]] = _height_in(foot[0]) + size.gap_in
        if facts is not None and facts not in head:
            facts.remove()
        figure.set_figheight(size.height_in or around_in + overhang_in + sum(self._heights_in))
        width, height = figure.get_size_inches()
        top, bottom = height - size.pad_in, size.pad_in
        for artist in head:
            artist.set_position((size.pad_in / width, top / height))
            top -= heights_in[artist]
        for artist in foot:
            if isinstance(artist, Legend):
                anchor = (size.pad_in / width, (bottom + heights_in[artist] - size.gap_in) / height)
                artist.set_bbox_to_anchor(anchor, transform=figure.transFigure)
            else:
                artist.set_position((artist.get_position()[0], bottom / height))
            bottom += heights_in[artist]
        lay_out(figure, size.pad_in, bottom, top)
        canvases = [canvas for row in self._rows for canvas in row]
        # Only now is it known how large the axes are, so that labels may need more lines, and so more room.
        if sum(canvas.wrap_labels() for canvas in canvases):
            lay_out(figure, size.pad_in, bottom, top)
        for canvas in canvases:
            canvas.thin_ticks()

    def _arrangements(self) -> Iterator[tuple[Legend | None, list[str], bool]]:
        """Legends, notes, and whether the line of facts stays, the fullest first; each is made when it is asked for.

        The last has neither, but says that the figure is not whole, and that its calls are simulated.
        """
        entries = self._entries
        left_out = ["numbers of the legend"] if any(entry.facts for entry in entries) else []
        if left_out:
            yield self._add_facts(), list(self.notes), True
        whole = [note for note in self.notes if not note.startswith(NO_ROOM)]
        missing = [note.removeprefix("Simulated. ") for note in self._say_left_out(left_out) if NO_ROOM in note]
        yield self._add_names(), [*whole, *missing], True
        left_out += [format_count(len(self.notes), "note")] if self.notes else []
        yield self._add_names(), self._say_left_out(left_out), True
        left_out += ["line below the title"] if self._subtitle else []
        for columns in range(1, 4):
            yield self._add_names(columns), self._say_left_out([] if len(left_out) > 1 else left_out), False
        yield None, self._say_left_out([*([f"names of {len(entries)} groups"] if entries else []), *left_out]), False

    def _say_left_out(self, what: Sequence[str]) -> list[str]:
        """What the figure does not show for want of room; groups, and that calls are simulated, it says in any case."""
        simulated = "Simulated. " if self._is_simulated else ""
        groups = [note.removeprefix(NO_ROOM).partition(";")[0] for note in self.notes if note.startswith(NO_ROOM)]
        missing = ", ".join([*groups, *what])
        return [f"{simulated}{NO_ROOM}{missing}; see `.caption`." if missing else f"{simulated}More in `.caption`."]

    def _add_facts(self) -> Legend:
        """Add a legend with the facts of each group: in columns where these fit, else under its name."""
        points, room_in = self.size.text_pt(TICK_PT), self.size.inner_in
        em_in = points / 72
        table = [[entry.name, *entry.facts] for entry in self._entries]
        columns = range(max(map(len, table)))
        widths = [max(text_width_in(row[i], points) for row in table if i < len(row)) for i in columns]
        gap_in = (HANDLE_EM + COLUMN_GAP_EM) * em_in
        row_in = sum(widths) + gap_in * len(columns)
        if row_in <= room_in:
            # Of more than four, beside each other as many as fit, with an empty column between.
            blocks = min(int((room_in + gap_in) / (row_in + gap_in)), math.ceil(len(table) / 4))
            rows = math.ceil(len(table) / blocks)
            table += [[]] * (blocks * rows - len(table))
            columns = range(len(columns) + (blocks > 1))
            # A legend fills column by column, so that is the order of its cells.
            cells = [
                ("".join(row[i : i + 1]), i == 0 and bool(row))
                for start in range(0, len(table), rows)
                for i in columns
                for row in table[start : start + rows]
            ]
            return self._make_legend(cells, columns=blocks * len(columns), gap_em=COLUMN_GAP_EM)
        cells = []
        for name, *facts in table:
            cells.append((fit_text(name, room_in - HANDLE_EM * em_in, points), True))
            cells += [(line, False) for line in wrap_text(" · ".join(facts), room_in - HANDLE_EM * em_in, points)]
        return self._make_legend(cells, columns=1)

    def _add_names(self, min_columns: int = 1) -> Legend | None:
        """Add a legend of names only, as many beside each other as fit; names are cut for so many columns."""
        names = [entry.name for entry in self._entries]
        if not names:
            return None
        points, room_in = self.size.text_pt(TICK_PT), self.size.inner_in
        handle_in, gap_in = HANDLE_EM * points / 72, NAME_GAP_EM * points / 72
        widest_in = handle_in + max(text_width_in(name, points) for name in names)
        columns = min(max(int((room_in + gap_in) / (widest_in + gap_in)), min_columns), len(names))
        column_in = (room_in + gap_in) / columns - gap_in - handle_in
        cells = [(name, True) for name in fit_names(names, column_in, points)]
        return self._make_legend(cells, columns=columns, gap_em=NAME_GAP_EM)

    def _make_legend(self, cells: Sequence[tuple[str, bool]], *, columns: int, gap_em: float = 0.0) -> Legend:
        """A legend under the axes, of texts of which some are names, which have the handles of the entries."""
        blank, handles = Line2D([], [], linestyle="none"), iter([entry.handle for entry in self._entries])
        palette = self._rows[0][0].palette
        axes: Any = self._rows[0][0].axes
        legend: Legend = axes.legend(
            [next(handles) if is_name else blank for _, is_name in cells],
            [text for text, _ in cells],
            ncols=columns,
            loc="upper left",
            frameon=False,
            fontsize=self.size.text_pt(TICK_PT),
            handlelength=HANDLE_LINE_EM,
            handletextpad=HANDLE_EM - HANDLE_LINE_EM,
            columnspacing=gap_em,
            borderaxespad=0,
            borderpad=0,
            labelspacing=0.35,
        )
        # Room is made for it.
        legend.set_in_layout(False)
        for text, (_, is_name) in zip(legend.get_texts(), cells, strict=True):
            text.set(color=palette.strong if is_name else palette.soft, **PLAIN_TEXT)
        return legend

    def _add_lines(self, figure: Figure, texts: Sequence[str], points: float, *, va: str) -> Text:
        """Add lines of soft text from edge to edge of the figure."""
        points, room_in = self.size.text_pt(points), self.size.inner_in
        lines = "\n".join(line for text in texts for line in wrap_text(text, room_in, points))
        style: dict[str, Any] = {"fontsize": points, "color": self._rows[0][0].palette.soft, "linespacing": 1.25}
        return figure.text(self.size.pad_in / self.size.width_in, 0, lines, ha="left", va=va, **style, **PLAIN_TEXT)


def _height_in(artist: Text | Legend) -> float:
    figure: Any = artist.get_figure(root=True)
    return round(float(artist.get_window_extent().height / figure.dpi), 3)
