"""Scores of recorded calls, votes between planned cells and looks at experiments, in the ledger's file.

scores  one row for a call and a scorer; a new one replaces it
votes   one row for two cells as they were shown, left and right, and a voter: a person, or a model as judge
looks   one row for an experiment and the amount of data that was looked at
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from famnb.record import serialize, sql
from famnb.record.backlog import Statement
from famnb.record.ledger import Ledger
from famnb.record.writer import writer

VoteWinner: TypeAlias = Literal["left", "right", "tie", "skip"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScore:
    """One row of the table of scores."""

    call_id: str
    scorer: str
    """The scorer's key: its name, and hashes of how it scores and what it is given."""
    value: float | None
    """None if scoring failed; `detail` has the reason."""
    detail: str = ""
    judge_call_id: str | None = None
    """The judge's own call, where a model judged."""
    at: datetime = dataclasses.field(default_factory=lambda: datetime.now(UTC))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVote:
    """One row of the table of votes: a vote between two cells of an experiment."""

    experiment: str
    voter: str
    """Who voted; empty for a person who gave no name."""
    left_cell: str
    right_cell: str
    winner: VoteWinner
    """The side that is better; `skip` if none was chosen, which is not a tie."""
    detail: str = ""
    judge_call_id: str | None = None
    """The judge's own call, where a model judged."""
    seed: int | None = None
    """The seed that pairs and their sides were drawn with."""
    at: datetime = dataclasses.field(default_factory=lambda: datetime.now(UTC))


def save(ledger: Ledger, ratings: Iterable[RecordedScore | RecordedVote]) -> None:
    """Write scores and votes and wait until they are in the file, or could not be written, which is a warning."""
    statements: list[Statement] = []
    for rating in ratings:
        table = "scores" if isinstance(rating, RecordedScore) else "votes"
        # The fields are named as the columns, but for the time.
        values = {field.name: getattr(rating, field.name) for field in dataclasses.fields(rating)}
        values["at_us"] = serialize.microseconds(values.pop("at"))
        statement = sql.insert(table, tuple(values), otherwise="REPLACE")
        statements.append((statement, tuple(map(serialize.storable, values.values()))))
    ledger.execute(statements)


def delete_vote(ledger: Ledger, vote: RecordedVote) -> None:
    """Delete a vote, and wait until it is gone from the file."""
    statement = "DELETE FROM votes WHERE experiment = ? AND voter = ? AND left_cell = ? AND right_cell = ?"
    ledger.execute([(statement, (vote.experiment, vote.voter, vote.left_cell, vote.right_cell))])


def delete_score(ledger: Ledger, call_id: str, scorer: str) -> None:
    """Delete the score of a call, and wait until it is gone from the file."""
    ledger.execute([("DELETE FROM scores WHERE call_id = ? AND scorer = ?", (call_id, scorer))])


def read_scores(ledger: Ledger, call_ids: Iterable[str]) -> Iterator[RecordedScore]:
    """Yield the scores of these calls. Raises LedgerError if the file cannot be read."""
    for chunk in sql.iter_chunks(call_ids):
        query = f"SELECT * FROM scores WHERE call_id IN {sql.placeholders(chunk)}"  # noqa: S608 - marks
        for row in _fetch(ledger, query, chunk):
            yield RecordedScore(**row)


def read_votes(ledger: Ledger, experiment: str) -> list[RecordedVote]:
    """Return the votes of an experiment, oldest first, of all voters. Raises LedgerError if the file cannot be read."""
    query = "SELECT * FROM votes WHERE experiment = ? ORDER BY at_us, left_cell, right_cell"
    return [RecordedVote(**row) for row in _fetch(ledger, query, [experiment])]


def read_looks(ledger: Ledger, experiment: str) -> list[tuple[int, int]]:
    """Return all looks at an experiment, as sizes and plans, the smallest first."""
    rows = _fetch(ledger, "SELECT * FROM looks WHERE experiment = ? ORDER BY size", [experiment])
    return [(row["size"], row["planned"]) for row in rows]


def record_look(ledger: Ledger, experiment: str, size: int, planned: int) -> list[tuple[int, int]]:
    """Keep that an experiment was looked at with `size` of `planned` calls a variant; return all looks up to this one.

    They are as sizes and plans, the smallest first. To look at the same data again is the same look.
    """
    looks = [look for look in read_looks(ledger, experiment) if look[0] <= size]
    if not looks or looks[-1][0] < size:
        looks.append((size, planned))
        row = (experiment, size, planned, serialize.microseconds(datetime.now(UTC)))
        statement = "INSERT OR IGNORE INTO looks (experiment, size, planned, at_us) VALUES (?, ?, ?, ?)"
        writer(ledger.path).submit(lambda: [(statement, row)])
    return looks


def list_runs(ledger: Ledger, experiment: str) -> list[str]:
    """Return the names under which further runs of an experiment are recorded, in their order."""
    # A range, for which there is an index.
    query = "SELECT DISTINCT experiment FROM calls WHERE experiment >= ? AND experiment < ?"
    prefix = f"{experiment} (run "
    names = [str(row["experiment"]) for row in ledger.fetch(query, [prefix, f"{prefix}:"])]
    return sorted(names, key=lambda name: (len(name), name))


def _fetch(ledger: Ledger, query: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    rows = map(dict, ledger.fetch(query, values))
    return [{"at": serialize.moment(row.pop("at_us")), **row} for row in rows]
