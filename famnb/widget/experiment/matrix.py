"""The matrix: an experiment's answers, a row a prompt and a column a variant, graded and noted on by hand.

Experiment ── run ── ledger ──► Matrix ──► cells: answer, figures, grade, note
                       ▲ scores, notes ◄── intents
"""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from famnb.errors import InvalidRequest, UnknownName
from famnb.experiment.experiment import BaseExperiment
from famnb.experiment.plan import Cell
from famnb.experiment.resume import ANSWERED
from famnb.experiment.runner import Run
from famnb.experiment.shared import share
from famnb.experiment.votes import GRADE_SCORE
from famnb.formatting import format_count, format_number, shorten
from famnb.record import RecordedCall, ratings
from famnb.record.ratings import RecordedScore
from famnb.secret_patterns import mask_keys
from famnb.widget.html import facts, sanitize, transcript
from famnb.widget.html.page import PageSection, page_html, write_page
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.html.transcript import Bundle, Section
from famnb.widget.runtime.intent import intent, urgent_intent
from famnb.widget.runtime.tool import BaseTool
from famnb.widget.runtime.view import View

# Often enough to see answers come; each look reads the ledger.
PERIOD_S = 0.5
"""Between two looks at what a run has answered."""
Filter: TypeAlias = Literal["all", "not graded", "pass", "fail", "noted", "failed"]
_GRADES = {"pass": 1.0, "fail": 0.0}
_TABLE = SafeHtml('<table style="width:100%;table-layout:fixed"><tbody>{}</tbody></table>')
_ROW = SafeHtml('<tr style="background-color:transparent">{}</tr>')
_COLUMN_HEAD = SafeHtml("<th style='text-align:left'>{}</th>")
_ROW_HEAD = SafeHtml("<th style='text-align:left;vertical-align:top'>{}</th>")
_CELL = SafeHtml('<td style="vertical-align:top;text-align:left;overflow-wrap:anywhere">{}{}</td>')
_REMARK = SafeHtml(f'<p style="{transcript.MUTED_STYLE}">{{}}</p>')


class MatrixCellView(View, frozen=True):
    """An answer, its grade and its note; the key is the variant."""

    key: str
    status: str
    """What there is in place of an answer; empty if there is one."""
    html: SafeHtml
    figures: str
    grade: str
    """pass, fail, a number, or empty."""
    note: str


class MatrixRowView(View, frozen=True):
    """The answers to a prompt."""

    key: str
    label: str
    prompt: str
    cells: tuple[MatrixCellView, ...]


class MatrixColumnView(View, frozen=True):
    """A variant, and what came of its grades; the key is its label."""

    key: str
    grades: str


class MatrixTableView(View, frozen=True):
    """The matrix."""

    title: str
    columns: tuple[MatrixColumnView, ...]
    rows: tuple[MatrixRowView, ...]
    """Those that the filter lets through."""
    filter: str
    filters: tuple[str, ...]
    status: str
    is_running: bool
    code: str
    """A cell that makes its experiment, where the tool that has opened it knows how; else empty."""


class Matrix(BaseTool):
    """The answers of an experiment, a row a prompt and a column a variant: read, grade and note on them.

    Keys 1 and 0, or P and F, grade the answer that has the focus as pass and fail, and go on to the next one. Each
    grade is kept in the ledger at once, as the score `score_grade` of the experiment, and each note as the column
    `note`, so that `frame()` has them and `experiment.summary(primary="score_grade")` compares them. `grade(row,
    variant, "pass")` and `note_on(row, variant, "…")` do what the page does; `save(path)` writes one HTML file, which
    `famnb.open` opens.
    """

    entry = "tools/matrix.js"
    note = "A matrix of answers: run this cell to grade them."

    def __init__(self, experiment: BaseExperiment, *, code: str = "") -> None:
        """Read what the ledger has of the experiment; nothing is sent. `code` is a cell that makes the experiment."""
        self.experiment, self._code = experiment, code
        positions = {prompt.id: position for position, prompt in enumerate(experiment.prompts)}
        labels = [variant.label for variant in experiment.variants]
        self._cells = sorted(
            (cell for cell in experiment.cells if not cell.warmup),
            key=lambda cell: (positions[cell.prompt.id], cell.repeat, labels.index(cell.variant.label)),
        )
        """The planned cells, in the order of the prompts and of the variants."""
        self._rows: dict[str, list[Cell]] = {}
        """The same by row."""
        for cell in self._cells:
            row = f"{cell.prompt.id} · repeat {cell.repeat + 1}" if cell.repeat else cell.prompt.id
            self._rows.setdefault(row, []).append(cell)
        self._filter: Filter = "all"
        self._run: Run | None = None
        self._answers: dict[str, RecordedCall] = {}
        """The calls by the key of their cell."""
        self._grades: dict[str, RecordedScore] = {}
        """The grades by the id of the call."""
        self._notes: dict[str, str] = {}
        self._typed: dict[str, str] = {}
        """Notes as they were typed: with the space behind which the next word comes."""
        self._html: dict[str, SafeHtml] = {}
        """Answers as they are shown, by the id of the call."""
        self._next_look_s = 0.0
        super().__init__()
        self._read()

    # For other cells

    def frame(self) -> Any:
        """Return the experiment's frame: a row an answer, `score_grade` and `note` among its columns."""
        return self.experiment.frame()

    def run(self) -> None:
        """Ask what is not answered yet, and return at once; the answers appear as they end."""
        with self.lock:
            run = self.experiment.run(wait=False)
            assert isinstance(run, Run)
            self._run = run
            self.follow([self], on_end=self._end)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until a run has ended, at most `timeout` seconds."""
        if self._run is not None:
            self._run.join(timeout)
        with self.lock:
            self._read()

    @urgent_intent
    def stop(self) -> None:
        """Stop the run; what has come is kept."""
        self.experiment.stop()

    @intent
    def grade(self, row: str | int, variant: str, grade: str | float | None) -> None:
        """Grade an answer: pass, fail or a number; None or an empty text takes the grade away.

        `row` is the id of a prompt or the index of a row. Raises UnknownName if there is no such answer.
        """
        with self.lock:
            call, text = self._find_call(row, variant), "" if grade is None else str(grade).strip().lower()
            if not text:
                ratings.delete_score(self.experiment.ledger, call.call_id, GRADE_SCORE)
                self._grades.pop(call.call_id, None)
            else:
                score = RecordedScore(call_id=call.call_id, scorer=GRADE_SCORE, value=_value_of(text), detail=text)
                ratings.save(self.experiment.ledger, [score])
                self._grades[call.call_id] = score
            self.refresh()
            self.update_saved()

    @intent
    def note_on(self, row: str | int, variant: str, note: str) -> None:
        """Note something on an answer; an empty text takes the note away. Raises UnknownName as `grade` does."""
        with self.lock:
            call = self._find_call(row, variant)
            self.experiment.ledger.note(call.call_id, note)
            self._notes[call.call_id] = self.experiment.ledger.call(call.call_id).note
            self._typed[call.call_id] = note
            self.refresh()
            self.update_saved()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the matrix to one HTML file, replacing it if it exists; return its path. `famnb.open` opens it again.

        It has all rows, loads nothing and runs nothing, and what looks like a key is masked. Raises OSError where it
        cannot be written.
        """
        with self.lock:
            body = SafeHtml(mask_keys(self.saved()["text/html"]))
        data = share(self.experiment, is_matrix=True)
        title = mask_keys(sanitize.visible(self.experiment.name))
        head = SafeHtml("<p>Matrix of answers</p><h1>{}</h1>").format(title)
        return write_page(path, page_html(title, head, [PageSection("Answers", body)], data=data))

    # What the page asks for

    @intent
    def filter_rows(self, filter: Filter) -> None:
        """Show the rows with such an answer."""
        self._filter = filter

    # A run, which is a Source

    @property
    def is_running(self) -> bool:
        """Whether a run is under way."""
        return self._run is not None and self._run.running

    def advance(self) -> bool:
        """Read what has been answered since."""
        if time.monotonic() < self._next_look_s:
            return False
        self._next_look_s = time.monotonic() + PERIOD_S
        before = [(call.call_id, call.status) for call in self._answers.values()]
        self._read()
        return before != [(call.call_id, call.status) for call in self._answers.values()]

    def finish(self) -> None:
        """Read what the run has left."""
        self._read()

    def _end(self) -> None:
        with self.lock:
            self.update_saved()
            self.refresh()

    def _read(self) -> None:
        """Read the calls of the planned cells: the completed one of each, else the latest; their grades and notes."""
        ledger, keys = self.experiment.ledger, {cell.key for cell in self._cells}
        rows: dict[str, Any] = {}
        for row in ledger.select("experiment = ?", [self.experiment.name]):
            known = rows.get(row["cell"])
            if row["cell"] in keys and (known is None or known["status"] not in ANSWERED):
                rows[row["cell"]] = row
        ids = {row["id"]: cell for cell, row in rows.items()} | {
            call_id: cell for cell, call_id in self.experiment.replayed.items() if cell in keys
        }
        ended = {call.call_id for call in self._answers.values() if call.status != "running"}
        for call in ledger.each([call_id for call_id in ids if call_id not in ended]):
            self._answers[ids[call.call_id]] = call
        self._grades = {
            score.call_id: score for score in ratings.read_scores(ledger, ids) if score.scorer == GRADE_SCORE
        }
        noted = ledger.select("note <> '' AND id IN (SELECT value FROM json_each(?))", [json.dumps([*ids])])
        self._notes = {row["id"]: row["note"] for row in noted}

    def _find_call(self, row: str | int, variant: str) -> RecordedCall:
        keys = list(self._rows)
        key = keys[row] if isinstance(row, int) and -len(keys) <= row < len(keys) else row
        if key not in keys:
            raise UnknownName(f"row: there is no {row!r}; there are {', '.join(map(repr, keys))}")
        calls = {cell.variant.label: self._answers.get(cell.key) for cell in self._rows[str(key)]}
        call = calls.get(variant)
        if call is None:
            labels = ", ".join(map(repr, calls))
            raise UnknownName(f"there is no answer of {variant!r} in row {row!r}; the variants are {labels}")
        return call

    # What is shown

    def view(self) -> MatrixTableView:
        rows = list(map(self._view_row, self._rows))
        shown = tuple(row for row in rows if any(map(self._lets_through, self._rows[row.key], row.cells)))
        answered = sum(call.status in ANSWERED for call in self._answers.values())
        graded = sum(bool(cell.grade) for row in rows for cell in row.cells)
        status = f"{answered:,} of {format_count(len(self._cells), 'answer')}, {graded:,} graded"
        columns = []
        for index, variant in enumerate(self.experiment.variants):
            grades, words = [row.cells[index].grade for row in rows if row.cells[index].grade], ""
            if grades and set(grades) <= {*_GRADES}:
                words = f"{grades.count('pass'):,} of {len(grades):,} pass"
            elif grades:
                words = f"{sum(map(_value_of, grades)) / len(grades):.2f} on average of {len(grades):,}"
            columns.append(MatrixColumnView(key=variant.label, grades=words))
        status += f"; {len(shown):,} of {format_count(len(rows), 'row')} shown" if len(shown) < len(rows) else ""
        return MatrixTableView(
            title=sanitize.visible(self.experiment.name),
            columns=tuple(columns),
            rows=shown,
            filter=self._filter,
            filters=get_args(Filter),
            status=status,
            is_running=self.is_running,
            code=self._code,
        )

    def _view_row(self, key: str) -> MatrixRowView:
        cells = self._rows[key]
        prompt = cells[0].prompt
        values = [str(value) for name, value in prompt.slots.items() if name != "expected"]
        label = ", ".join(values) or shorten(" ".join(prompt.text.split()))
        repeat = f" · repeat {cells[0].repeat + 1}" if self.experiment.repeats > 1 else ""
        return MatrixRowView(
            key=key,
            label=sanitize.visible(f"{label}{repeat}"),
            prompt=sanitize.visible(prompt.text),
            cells=tuple(map(self._view_cell, cells)),
        )

    def _view_cell(self, cell: Cell) -> MatrixCellView:
        call, label = self._answers.get(cell.key), cell.variant.label
        if call is None or call.status == "running":
            status = "waits" if self.is_running and call is None else "running …" if call else "not asked yet"
            return MatrixCellView(key=label, status=status, html=SafeHtml(), figures="", grade="", note="")
        reply, score = call.reply, self._grades.get(call.call_id)
        note, typed = (notes.get(call.call_id, "") for notes in (self._notes, self._typed))
        if call.call_id not in self._html:
            self._html[call.call_id] = transcript.answer_html(reply)
        return MatrixCellView(
            key=label,
            status="",
            html=self._html[call.call_id],
            figures=facts.figures(reply),
            grade="" if score is None else score.detail or format_number(score.value or 0),
            note=typed if typed.split() == note.split() else note,
        )

    def _lets_through(self, cell: Cell, view: MatrixCellView) -> bool:
        match self._filter:
            case "all":
                return True
            case "not graded":
                return not view.grade and not view.status
            case "noted":
                return bool(view.note)
            case "failed":
                call = self._answers.get(cell.key)
                return call is not None and call.status not in (*ANSWERED, "running")
            case _:
                return view.grade == self._filter

    def saved(self) -> Bundle:
        view = self.view()
        if not self._answers:
            return transcript.render([Section("note", f"{view.title}: nothing is answered yet.")])
        head = ["", *(" · ".join(filter(None, (column.key, column.grades))) for column in view.columns)]
        lines, texts = [SafeHtml().join(map(_COLUMN_HEAD.format, head))], [head]
        # All rows, whatever the page shows.
        for key, cells in self._rows.items():
            row = self._view_row(key)
            line, words = _ROW_HEAD.format(row.label), [row.label]
            for cell, shown in zip(cells, row.cells, strict=True):
                remarks = " · ".join(filter(None, (shown.grade, shown.note, shown.figures)))
                line += _CELL.format(shown.html or _REMARK.format(shown.status), _REMARK.format(remarks))
                text = shown.status or " ".join(self._answers[cell.key].reply.text.split())
                words.append(" · ".join(filter(None, (text, shown.grade, shown.note))))
            lines.append(line)
            texts.append(words)
        html = _TABLE.format(SafeHtml().join(map(_ROW.format, lines)))
        plain = "\n".join(sanitize.visible(" | ".join(words)) for words in texts)
        return {"text/html": html, "text/markdown": sanitize.markdown_table(texts), "text/plain": plain}

    def __repr__(self) -> str:
        return f"<Matrix {self.experiment.name}: {len(self._answers):,} of {len(self._cells):,} answers>"


def _value_of(text: str) -> float:
    """Return the score that a grade is; raises InvalidRequest if the text is not a grade."""
    if text in _GRADES:
        return _GRADES[text]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidRequest(f"grade: expected pass, fail or a number, got {text!r:.40}")
    return number
