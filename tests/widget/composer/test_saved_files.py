"""A chat and a board as one HTML file, opened again on another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

import famnb
from famnb.errors import InvalidRequest

KEY = "sk-abcdefghijklmnop123456"


@pytest.fixture
def other(server, tmp_path: Path):
    """A client of somebody else."""
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "second.sqlite") as client:
        yield client


def test_a_chat_is_opened_again_and_goes_on(client: famnb.Client, other: famnb.Client, tmp_path: Path):
    composer = famnb.Composer(client, endpoint="messages", prompt="My name is Ada.", rows=[{"city": "Oslo"}])
    with pytest.raises(InvalidRequest, match="nothing has been answered"):
        composer.save(tmp_path / "chat.html")
    composer.submit()
    composer.wait(60)
    composer.say(f"Is {KEY} a key?")
    answer = composer.wait(60)
    page = composer.save(tmp_path / "chat.html").read_text()
    assert KEY not in page
    assert "<script" not in page
    assert "My name is Ada." in page
    opened = famnb.open(tmp_path / "chat.html", other)
    assert isinstance(opened, famnb.Composer)
    assert all(text in str(opened.request.body()) for text in ("My name is Ada.", "Is [key] a key?"))
    assert opened.request.model == answer.request.model
    assert famnb.calls(other).empty
    opened.edit_answer(-1, "Perhaps.")
    opened.save(tmp_path / "again.html")
    again = famnb.open(tmp_path / "again.html", other)
    assert [turn.reply.text for turn in again.turns] == [opened.turns[0].reply.text, "Perhaps."]
    again.say("And now?")
    assert "Perhaps." in str(again.wait(60).request.body())


def test_a_board_is_opened_again_and_goes_on(client: famnb.Client, other: famnb.Client, tmp_path: Path):
    variants = [{"model": "fam-2-5-mini", "label": "small"}, {"model": "fam-2-5-pro", "temperature": 0.5}]
    board = famnb.Board(client, variants, system="Be brief.")
    for prompt in ("My name is Ada.", f"Is {KEY} a key?"):
        board.say(prompt)
        board.wait(60)
    board.ask_again("small")
    board.wait(60)
    board.pin("small")
    page = board.save(tmp_path / "board.html").read_text()
    assert KEY not in page
    assert "<script" not in page
    opened = famnb.open(tmp_path / "board.html", other)
    assert (opened.labels, opened.winner) == (board.labels, "small")
    shown = [[cell.version_count for cell in found.cells] for found in opened.view().rounds]
    assert shown == [[1, 1], [2, 1]]
    assert [reply.usage for reply in opened.replies.values()] == [reply.usage for reply in board.replies.values()]
    assert "| small" in opened.saved()["text/markdown"]
    opened.say("And now?")
    assert all("My name is Ada." in str(reply.request.body()) for reply in opened.wait(60).values())
    assert len(famnb.calls(other)) == 2


def test_an_opened_board_is_saved_with_its_edits_and_the_answers_of_removed_panes(client, other, tmp_path: Path):
    board = famnb.Board(client, [{"model": "fam-2-5-mini", "label": "small"}, {"model": "fam-2-5-pro"}])
    board.say("My name is Ada.")
    board.wait(60)
    board.edit_answer(board.labels[1], "Good day.")
    board.pin("small")
    board.remove("small")
    board.find_editor(board.labels[0]).set_text("temperature", "warm")
    for _ in range(2):
        page = board.save(tmp_path / "board.html")
        board = famnb.open(page, other)
        assert board.winner == "small"
        assert [reply.text == "Good day." for reply in board.replies.values()] == [True, False]
        frame = board.frame()
        assert frame["winner"].tolist() == [label == "small" for label in board.replies]
    page.write_text(page.read_text().replace('"winner":[1,0]', '"winner":[7,0]'))
    with pytest.raises(InvalidRequest, match="damaged"):
        famnb.open(page, other)
