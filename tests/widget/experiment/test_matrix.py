"""The matrix: rows of values times panes, graded by hand, and the experiment that it is."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import famnb
from famnb.errors import InvalidArgument, InvalidRequest, UnknownName
from famnb.widget.experiment.matrix import Matrix
from tests.support.composers import receive

PAIR = {"small": {"model": "fam-2-5-mini"}, "large": {"model": "fam-2-5-pro"}}
ROWS = pd.DataFrame({"thing": ["tides", "bees", None], "unused": [1, 2, 3]})


@pytest.fixture
def board(client: famnb.Client) -> famnb.Board:
    """A board of two panes and a prompt with a variable, of which two rows have a value."""
    return famnb.Board(client, PAIR, prompt="Explain {thing}.", rows=ROWS)


@pytest.fixture
def matrix(board: famnb.Board) -> Matrix:
    """What comes of its rows."""
    matrix = board.run_rows()
    matrix.wait(60)
    return matrix


def grades(matrix: Matrix) -> dict[str, list[str]]:
    """The grades that the page shows, by row."""
    return {row.label: [cell.grade for cell in row.cells] for row in matrix.view().rows}


def test_each_row_is_sent_to_each_pane_by_itself(matrix: Matrix):
    frame = matrix.frame()
    sent = sorted(zip(frame["prompt"], frame["variant"], strict=True))
    assert sent == [(f"Explain {thing}.", pane) for thing in ("bees", "tides") for pane in ("large", "small")]
    assert (frame["status"] == "completed").all()
    assert list(grades(matrix)) == ["tides", "bees"]


def test_grades_and_notes_are_scores_and_columns(matrix: Matrix):
    """Those of the page and those of a cell; a grade may be taken back, and another matrix has what is left."""
    receive(matrix, "grade", row="p1", variant="small", grade="pass")
    receive(matrix, "note_on", row="p1", variant="small", note="short")
    matrix.grade(0, "large", "fail")
    matrix.grade(1, "small", 0.5)
    matrix.grade(1, "large", "pass")
    matrix.grade(1, "large", None)
    assert grades(matrix) == {"tides": ["pass", "fail"], "bees": ["0.5", ""]}
    assert [column.grades for column in matrix.view().columns] == ["0.75 on average of 2", "0 of 1 pass"]
    again = Matrix(matrix.experiment)
    assert grades(again) == grades(matrix)
    frame = again.frame().set_index(["prompt_id", "variant"])
    assert frame["score_grade"].dropna().to_dict() == {("p1", "small"): 1, ("p1", "large"): 0, ("p2", "small"): 0.5}
    assert frame.loc[("p1", "small"), "note"] == "short"
    assert "score_grade" in str(again.experiment.summary(primary="score_grade").primary)


def test_rows_are_filtered_by_what_came_of_them(matrix: Matrix):
    matrix.grade(0, "large", "fail")
    for kind, rows in {"fail": ["tides"], "pass": [], "not graded": ["tides", "bees"], "failed": []}.items():
        receive(matrix, "filter_rows", filter=kind)
        assert list(grades(matrix)) == rows


def test_the_code_of_the_board_is_the_same_experiment(matrix: Matrix, board: famnb.Board, client: famnb.Client):
    """With the template and its rows: what was answered and graded is not asked again. It names no budget, since
    nothing has a price.
    """
    matrix.grade(0, "large", "pass")
    code = board.code
    assert "budget" not in code
    scope: dict[str, object] = {"client": client}
    exec("\n".join(line for line in code.split("\n") if not line.startswith(("client", "experiment.forecast"))), scope)
    experiment = scope["experiment"]
    assert isinstance(experiment, famnb.Experiment)
    frame = experiment.frame()
    assert [(frame["status"] == "completed").sum(), frame["score_grade"].sum()] == [4, 1]
    assert isinstance(experiment.matrix(), Matrix)


def test_names_of_variants_come_from_what_differs(client: famnb.Client):
    board = famnb.Board(client, [{"temperature": 0.1}, {"temperature": 0.9}, {"label": "mine"}], prompt="Why?")
    assert [line.count("label") for line in board.code.split("\n") if "endpoint" in line] == [0, 0, 1]


def test_a_row_fills_the_prompt_of_every_pane(board: famnb.Board):
    receive(board, "set_rows", rows=[{"thing": "tides"}, {"thing": "bees"}], row=1)
    board.submit()
    assert all("Explain bees." in str(reply.request.body()) for reply in board.wait(60).values())
    assert board.view().rounds[0].prompt == "Explain bees."


def test_a_call_that_ends_is_news_while_others_run(matrix: Matrix):
    with contextlib.closing(sqlite3.connect(matrix.experiment.ledger.path, isolation_level=None)) as connection:
        connection.execute("UPDATE calls SET status = 'running'")
        watcher = Matrix(matrix.experiment)
        assert watcher.view().status == "0 of 4 answers, 0 graded"
        connection.execute("UPDATE calls SET status = 'completed' WHERE rowid = (SELECT min(rowid) FROM calls)")
    assert watcher.advance()
    assert watcher.view().status == "1 of 4 answers, 0 graded"


def test_notes_on_replayed_answers_stay(matrix: Matrix):
    experiment = matrix.experiment
    client = famnb.Client(base_url=experiment.client.base_url(), api_key="-", ledger=experiment.ledger, replay="prefer")
    other = famnb.Experiment(experiment.prompts, variants=PAIR, name="other", client=client).matrix()
    other.run()
    other.wait(60)
    assert len(other.experiment.replayed) == 4
    receive(other, "note_on", row="p1", variant="small", note="good ")
    other.wait()
    assert other.view().rows[0].cells[0].note == "good ", "the next word is being typed"


def test_a_saved_matrix_is_opened_again(matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With grades and answers, on another machine; its table stands in the file and in the notebook."""
    matrix.grade(0, "large", "fail")
    page = matrix.save(tmp_path / "matrix.html").read_text()
    assert "<script" not in page
    assert all(words in page for words in ("tides", "bees", "small", "large", "0 of 1 pass"))
    monkeypatch.setenv("FAMNB_LEDGER", str(tmp_path / "another.sqlite"))
    opened = famnb.open(tmp_path / "matrix.html")
    assert isinstance(opened, Matrix)
    assert opened.view() == msgspec.structs.replace(matrix.view(), code="")
    assert "| tides |" in opened.saved()["text/markdown"]


def test_files_of_an_experiment_have_all_its_rows_and_no_key(client: famnb.Client, tmp_path: Path):
    key = "sk-abcdefghijklmnop123456"
    experiment = famnb.Experiment([f"Is {key} a key?", "And now?"], variants=PAIR, name=key, client=client)
    matrix = experiment.matrix()
    matrix.run()
    matrix.wait(60)
    matrix.filter_rows("pass")
    for page in (matrix.save(tmp_path / "matrix.html"), experiment.report(tmp_path / "report.html")):
        text = page.read_text()
        assert key not in text
        assert all(words in text.partition("<template")[0] for words in ("Is [key] a key?", "And now?"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda matrix: matrix.grade(0, "small", "good"), InvalidRequest, "expected pass, fail or a number"),
        (lambda matrix: matrix.grade(5, "small", "pass"), UnknownName, "no 5; there are 'p1', 'p2'"),
        (lambda matrix: matrix.grade(0, "tiny", "pass"), UnknownName, "variants are 'small', 'large'"),
    ],
)
def test_what_there_is_not_cannot_be_graded(matrix: Matrix, call, error, message):
    with pytest.raises(error, match=message):
        call(matrix)


def test_rows_are_a_frame_or_mappings(client: famnb.Client):
    for rows in ("city", [1], {"city": "Oslo"}, [{"n": n} for n in range(101)]):
        with pytest.raises(InvalidArgument, match="rows: "):
            famnb.Composer(client, prompt="{city}", rows=rows)
    composer = famnb.Composer(client, prompt="{city}", rows=[{"city": "Oslo"}], model="fam-2-5-mini")
    assert "Oslo" in str(composer.request.body())
    assert composer.request.model == "fam-2-5-mini"
    with pytest.raises(InvalidRequest, match="rows: none has a value"):
        famnb.Board(client, PAIR, prompt="Hi").run_rows()
