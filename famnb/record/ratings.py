"""What is thought of recorded calls: scores of calls and votes between planned cells, kept in the ledger's file.

scores  one row for a call and a scorer; written anew, it takes the place of the old one
votes   one row for two cells as they were shown, left and right, and a voter: a person, or a model as judge
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from famnb.record import serialize
from famnb.record.ledger import Ledger
from famnb.record.writer import Statement, writer

Outcome: TypeAlias = Literal["left", "right", "tie", "skip"]
CHUNK = 500
"""Calls whose scores are fetched at once."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A score of a call, as it is kept."""

    call_id: str
    scorer: str
    """What identifies the scorer and how it scores."""
    value: float | None
    """None where it came to nothing; `detail` says why."""
    detail: str = ""
    judge_call_id: str | None = None
    """The judge's own call, where a model judged."""
    at: datetime = dataclasses.field(default_factory=lambda: datetime.now(UTC))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Voted:
    """A vote between two cells of an experiment, as it is kept."""

    experiment: str
    voter: str
    """Who voted; empty for a person who gave no name."""
    left_cell: str
    right_cell: str
    winner: Outcome
    """The side that is better; `skip` where none was chosen, which is no tie."""
    detail: str = ""
    judge_call_id: str | None = None
    """The judge's own call, where a model judged."""
    seed: int | None = None
    """What the order of pairs and sides came from."""
    at: datetime = dataclasses.field(default_factory=lambda: datetime.now(UTC))


def keep(ledger: Ledger, marks: Iterable[Scored | Voted]) -> None:
    """Write scores and votes and wait until they are in the file, or could not be, which is a warning."""
    statements = list(map(_inserted, marks))
    writer(ledger.path).submit(lambda: statements).result()


def withdraw(ledger: Ledger, vote: Voted) -> None:
    """Delete a vote."""
    sql = "DELETE FROM votes WHERE experiment = ? AND voter = ? AND left_cell = ? AND right_cell = ?"
    key = (vote.experiment, vote.voter, vote.left_cell, vote.right_cell)
    writer(ledger.path).submit(lambda: [(sql, key)]).result()


def scores(ledger: Ledger, call_ids: Iterable[str]) -> Iterator[Scored]:
    """The scores of these calls; LedgerError if the file cannot be read."""
    wanted = list(call_ids)
    for start in range(0, len(wanted), CHUNK):
        some = wanted[start : start + CHUNK]
        sql = f"SELECT * FROM scores WHERE call_id IN ({','.join('?' * len(some))})"  # noqa: S608 - marks
        for row in _fetched(ledger, sql, some):
            yield Scored(**_read(row))


def votes(ledger: Ledger, experiment: str) -> list[Voted]:
    """The votes of an experiment, oldest first, whoever voted; LedgerError if the file cannot be read."""
    sql = "SELECT * FROM votes WHERE experiment = ? ORDER BY at_us, left_cell, right_cell"
    return [Voted(**_read(row)) for row in _fetched(ledger, sql, [experiment])]


def _inserted(mark: Scored | Voted) -> Statement:
    table = "scores" if isinstance(mark, Scored) else "votes"
    values = {field.name: getattr(mark, field.name) for field in dataclasses.fields(mark)}
    values["at_us"] = serialize.microseconds(values.pop("at"))
    sql = f"INSERT OR REPLACE INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"  # noqa: S608 - own names
    return sql, tuple(map(serialize.storable, values.values()))


def _fetched(ledger: Ledger, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    ledger.flush()
    with ledger.reading() as connection:
        return [dict(row) for row in connection.execute(sql, values)] if connection else []


def _read(row: dict[str, Any]) -> dict[str, Any]:
    at = serialize.EPOCH + timedelta(microseconds=row.pop("at_us"))
    return {**row, "at": at}
