"""Records that wait: in order, counted, in memory, in files, and taken over from processes that are gone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from famnb.record import backlog
from famnb.record.backlog import Backlog, OwnerProcess, Record

PATH = Path("/somewhere/calls.sqlite")


def record(number: int, size: int = 1000) -> Record:
    return [("INSERT INTO calls VALUES (?, ?)", [number, b"x" * size])]


def numbers(waiting: Backlog, limit: int = 10) -> list[object]:
    """The numbers of all records, taken in batches."""
    taken: list[object] = []
    while len(waiting):
        for ((_, values),) in waiting.peek(limit):
            taken.append(next(iter(values)))  # type: ignore[call-overload]
        waiting.discard()
    return taken


@pytest.fixture
def said() -> dict[str, str]:
    return {}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder for what finds no room in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = backlog.spill_folders()[0]
    monkeypatch.setattr(backlog, "spill_folders", lambda: [folder])
    return folder


def test_records_keep_their_order_in_memory_and_beyond(place: Path, said: dict[str, str]) -> None:
    """What is more than the memory may take goes to a file, which is said, and which is gone in the end."""
    waiting = Backlog(PATH, warn=said.setdefault, memory_bytes=10_000)
    for number in range(50):
        waiting.append(record(number))
    (file,) = place.iterdir()
    assert (len(waiting), file.stat().st_mode & 0o077, place.stat().st_mode & 0o077) == (50, 0, 0)
    assert [str(file) in message for message in said.values()] == [True]
    first = waiting.peek(5)
    waiting.append(record(50))
    assert waiting.peek(5) == first
    assert numbers(waiting) == list(range(51))
    assert list(place.iterdir()) == []


def test_loss_is_foretold(place: Path, said: dict[str, str]) -> None:
    """Without another place: a warning at half of the memory, another when the first record is lost."""
    place.write_text("a file where the folder should be")
    waiting = Backlog(PATH, warn=said.setdefault, memory_bytes=10_000)
    steps = []
    for number in range(12):
        waiting.append(record(number))
        steps.append((len(waiting), list(said)))
    assert steps[3] == (4, [])
    assert steps[5] == (6, ["no place"])
    assert steps[-1] == (8, ["no place", "lost"])
    assert numbers(waiting) == list(range(8))


def test_records_of_a_dead_process_are_taken_over(
    place: Path, said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which they were made, and by one process alone; those of a live one stay its own."""
    left = Backlog(PATH, warn=said.setdefault, memory_bytes=10_000)
    for number in range(20):
        left.append(record(number))
    assert len(left.save()) == 2
    assert len(Backlog(PATH, warn=said.setdefault)) == 0
    monkeypatch.setattr(OwnerProcess, "is_alive", property(lambda _: False))
    assert len(Backlog(Path("/another.sqlite"), warn=said.setdefault)) == 0
    taken = Backlog(PATH, warn=said.setdefault)
    taken.append(record(20))
    assert numbers(taken) == list(range(21))
    assert list(place.iterdir()) == []


def test_a_file_that_was_cut_off_gives_what_is_whole(
    place: Path, said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may die in the middle of a record."""
    left = Backlog(PATH, warn=said.setdefault)
    for number in range(3):
        left.append(record(number))
    (file,) = left.save()
    file.write_bytes(file.read_bytes()[:-10])
    monkeypatch.setattr(OwnerProcess, "is_alive", property(lambda _: False))
    assert numbers(Backlog(PATH, warn=said.setdefault)) == [0, 1]


def test_a_folder_that_others_can_look_into_is_not_used(place: Path, said: dict[str, str]) -> None:
    """Records hold prompts."""
    place.mkdir()
    place.chmod(0o755)
    waiting = Backlog(PATH, warn=said.setdefault, memory_bytes=0)
    waiting.append(record(0))
    assert (len(waiting), list(said)) == (0, ["lost"])
