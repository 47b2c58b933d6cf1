"""The ledger: one SQLite file that keeps every call, however it ended, and gives it back."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

import platformdirs

from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.client.replay import play
from famnb.errors import LedgerError
from famnb.record import maintenance, parquet, schema, serialize, token_estimates
from famnb.record.price import Cost
from famnb.record.price_book import prices
from famnb.record.process import Owner, this_process
from famnb.record.recorded_call import RecordedCall
from famnb.record.writer import Prepare, Statement, writer
from famnb.reply import Reply
from famnb.request import Request
from famnb.timing import Read

FIT_S = 60.0
"""How long a fit serves for the cost of new calls before it is made again."""
CHUNK = 500
"""Calls whose bytes are fetched at once."""

STANDING = """
    SELECT calls.*, CASE WHEN status = 'running' THEN standing(owner_pid, owner_born, owner_host) ELSE status END
        AS standing FROM calls"""
"""The calls with one more column: how they stand, those of dead processes `interrupted`."""


@dataclasses.dataclass(slots=True)
class _Progress:
    """How far an open call is written."""

    attempt: int
    pieces: int = 0
    reads: int = 0


class Ledger:
    """Calls on disk; implements `client.exchange.Recorder`. Any number of threads and processes may use one file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Use `path`, else the file that FAMNB_LEDGER names, else `ledger.sqlite` in the user's data folder.

        Nothing is opened before the first call is recorded or read, and a file in trouble never stops a call.
        """
        chosen = path or os.getenv("FAMNB_LEDGER") or Path(platformdirs.user_data_dir("famnb")) / "ledger.sqlite"
        if os.fspath(chosen) == ":memory:":
            raise LedgerError("a ledger is a file, since a call must outlive its process; name one, not ':memory:'")
        self.path = Path(chosen).expanduser().resolve()
        """The file."""
        self._open: dict[str, _Progress] = {}
        self._fits: dict[str, tuple[float, Mapping[str | None, token_estimates.Fit]]] = {}

    def opened(self, exchange: Exchange) -> None:
        """The call starts: its row is written, running and owned by this process."""
        self._open[exchange.id] = _Progress(exchange.attempts)
        owner = this_process()

        def prepare() -> list[Statement]:
            self._refit(getattr(exchange.request, "model", ""))
            return serialize.opened(exchange, owner)

        self._submit(prepare)

    def arrived(self, exchange: Exchange) -> None:
        """More came: it is written too, so that a killed process leaves it behind."""
        progress = self._open.setdefault(exchange.id, _Progress(exchange.attempts))
        if progress.attempt != exchange.attempts or progress.reads > len(exchange.reads):
            progress = self._open[exchange.id] = _Progress(exchange.attempts)
        fresh = exchange.reads[progress.reads :]
        if fresh:
            self._submit(functools.partial(serialize.arrived, exchange, fresh, seq=progress.pieces))
            progress.pieces, progress.reads = progress.pieces + 1, progress.reads + len(fresh)

    def closed(self, exchange: Exchange) -> Future[None]:
        """The call is over: its reply gets its id, cost and service, and its final row is written."""
        self._open.pop(exchange.id, None)
        exchange.reply = dataclasses.replace(
            exchange.reply, call_id=exchange.id, service=exchange.service, cost=self.cost(exchange, exchange.reply)
        )
        return self._submit(functools.partial(serialize.closed, exchange, this_process()))

    def call(self, call_id: str) -> RecordedCall:
        """One recorded call; KeyError if there is none of that id, LedgerError if the file cannot be read."""
        self.settle()
        found = self._fetch(f"SELECT * FROM ({STANDING}) WHERE id = ?", (call_id,))  # noqa: S608 - own text
        if not found:
            raise KeyError(f"no call {call_id!r} in {self.path}; famnb.calls() lists what is there")
        return self._call(found[0])

    def each(self, call_ids: Iterable[str]) -> Iterator[RecordedCall]:
        """Recorded calls in the order given, many at the price of few queries; ids that are not there are left out."""
        wanted = list(call_ids)
        self.settle()
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            sql = f"SELECT * FROM ({STANDING}) WHERE id IN ({_marks(some)})"  # noqa: S608 - marks
            found = {row["id"]: row for row in self._fetch(sql, some)}
            keys = list({row["request_key"] for row in found.values()})
            sql = f"SELECT key, body FROM requests WHERE key IN ({_marks(keys)})"  # noqa: S608 - marks
            bodies = {row["key"]: row["body"] for row in self._fetch(sql, keys)}
            reads = dict(self.reads(found))
            for row in (found[call_id] for call_id in some if call_id in found):
                yield _call(row, bodies.get(row["request_key"]), functools.partial(tuple, reads.get(row["id"], ())))

    def select(self, where: str = "1", values: Sequence[Any] = (), *, limit: int | None = None) -> list[sqlite3.Row]:
        """Rows of the calls table, newest last, at most the `limit` newest.

        `where` is SQL over the columns; one more, `standing`, is the status with the calls of dead processes
        `interrupted`. LedgerError if the file cannot be read; no rows if there is none yet.
        """
        self.settle()
        sql = f"SELECT * FROM ({STANDING}) WHERE {where} ORDER BY started_us DESC, id DESC LIMIT ?"  # noqa: S608 - values are bound
        return self._fetch(sql, (*values, -1 if limit is None else limit))[::-1]

    def reads(self, call_ids: Iterable[str]) -> Iterator[tuple[str, tuple[Read, ...]]]:
        """What came from the socket for each of these calls, where anything did, in the order given."""
        wanted = list(call_ids)
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            sql = f"SELECT * FROM pieces WHERE call_id IN ({_marks(some)}) ORDER BY seq"  # noqa: S608 - marks
            pieces: dict[str, list[bytes]] = {}
            for piece in self._fetch(sql, some):
                pieces.setdefault(piece["call_id"], []).append(piece["reads"])
            yield from (
                (call_id, serialize.restored(call_id, pieces[call_id])) for call_id in some if call_id in pieces
            )

    def recall(self, request: Request, *, nth: int = 0, simulated: bool = True) -> Exchange | None:
        """The `nth` newest complete call of an identical request, over again after the oldest; None without any.

        Implements `client.Memory`; without `simulated`, calls that a simulated engine answered do not count.
        """
        sql = "SELECT id FROM calls WHERE request_key = ? AND complete = 1 AND error IS NULL"
        sql += ("" if simulated else " AND service IS NOT 'sim'") + " ORDER BY started_us DESC, id DESC"
        found = self._fetch(sql, (request.key(),))
        return (
            dataclasses.replace(self.call(found[nth % len(found)]["id"]).exchange(), request=request) if found else None
        )

    def replay(self, call_id: str, *, speed: float = 1) -> Stream:
        """A recorded call as a stream that plays again: its events at their times divided by `speed`, then its reply.

        `speed` 0 or infinity is at once. Nothing is sent or recorded; the reply has `replayed` set, and the error that
        the call ended with is raised as it was. KeyError if there is no such call, LedgerError if the file cannot be
        read, InvalidRequest for a speed below 0 or a request that today's limits would refuse.
        """
        return play(self.call(call_id).exchange(), speed=speed)

    def settle(self) -> None:
        """Finish the rows of calls whose process died: `interrupted`, with what had arrived."""
        dead = self._fetch(f"SELECT * FROM ({STANDING} WHERE status = 'running') WHERE standing = 'interrupted'")  # noqa: S608 - own text
        for row in dead:
            self._submit(functools.partial(serialize.buried, row["id"], self._remains(row)))
        if dead:
            self.flush()

    def _remains(self, row: sqlite3.Row) -> Reply:
        """What had arrived of a call whose process died."""
        try:
            return self._call(row).reply
        except Exception as error:  # whatever one row holds, the others can be read
            serialize.damaged(row["id"], "what had arrived", error)
            return Reply(status="interrupted", complete=False)

    def fits(self, model: str) -> Mapping[str | None, token_estimates.Fit]:
        """A model's tokens per character, by the service that answered, fitted on its own replies."""
        return token_estimates.fit_by_service(self._fetch(token_estimates.RATIOS, (model, token_estimates.REPLIES)))

    def info(self) -> maintenance.Info:
        """What it holds: calls by status, model and endpoint, times and sizes; LedgerError if it cannot be read."""
        return maintenance.info(self)

    def prune(
        self,
        *,
        older_than: timedelta | datetime | None = None,
        keep: int | None = None,
        payloads_only: bool = False,
        dry_run: bool = False,
    ) -> maintenance.Pruned:
        """Delete calls, for good, and give the space back; says what it deleted. Calls that still run stay.

        Calls that started before `older_than` (a moment, or an age) go, and those beyond the `keep` newest; with both,
        only calls that both say. `payloads_only` keeps the rows with their metrics and deletes what came from the
        socket. `dry_run` only counts. ValueError without a limit, LedgerError if the file cannot be written.
        """
        return maintenance.prune(self, older_than=older_than, keep=keep, payloads_only=payloads_only, dry_run=dry_run)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all calls that are over, bytes included, to one Parquet file; how many. `load` restores them exactly.

        Needs the `scale` extra; LedgerError without it, or if the ledger cannot be read.
        """
        return parquet.export(self, Path(path))

    def load(self, path: str | os.PathLike[str]) -> int:
        """Add the calls of a file that `export` wrote; how many were new. A call that is here already stays as it is.

        Needs the `scale` extra; LedgerError without it, for any other file, or if the ledger cannot be written.
        """
        return parquet.load(self, Path(path))

    @property
    def behind(self) -> int:
        """Records that wait in memory since the file cannot be written; where there are some, it is tried again."""
        writing = writer(self.path)
        if writing.behind:
            writing.flush()
        return writing.behind

    def flush(self) -> None:
        """Wait until all that was handed in is written, or could not be."""
        writer(self.path).flush()

    def close(self) -> None:
        """Write what is left and close the file; using the ledger again opens it again."""
        writer(self.path).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """How many calls it holds."""
        found = self._fetch("SELECT COUNT(*) FROM calls")
        return int(found[0][0]) if found else 0

    def __bool__(self) -> bool:
        """A ledger is there, also while it is empty."""
        return True

    def __repr__(self) -> str:
        shown = f"~/{self.path.relative_to(Path.home())}" if self.path.is_relative_to(Path.home()) else str(self.path)
        try:
            return f"<Ledger {shown}, {len(self)} calls>"
        except LedgerError:
            return f"<Ledger {shown}, cannot be read>"

    def _submit(self, prepare: Prepare) -> Future[None]:
        return writer(self.path).submit(prepare)

    def _fetch(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """What a query finds, all that was handed in before included; nothing if there is no file yet."""
        self.flush()
        with self.reading() as connection:
            return connection.execute(sql, values).fetchall() if connection else []

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection that reads tables of today's version; None where there are none yet."""
        connection = self._connect()
        if connection and schema.version(connection) < len(schema.MIGRATIONS):
            connection.close()
            self._submit(lambda: [("SELECT 1", ())]).result()  # to write anything is to migrate first
            connection = self._connect()
        if connection is None:
            yield None
            return
        with contextlib.closing(connection):
            try:
                match schema.version(connection):
                    case 0:
                        yield None
                    case old if old < len(schema.MIGRATIONS):
                        raise LedgerError(f"the ledger {self.path} has an old version and is read-only: copy it")
                    case _:
                        yield connection
            except sqlite3.DatabaseError as error:
                raise schema.unreadable(self.path, error) from error

    def _connect(self) -> sqlite3.Connection | None:
        if not self.path.exists():
            return None
        connection = schema.open_to_read(self.path)
        connection.create_function("standing", 3, _standing)
        return connection

    def _call(self, row: sqlite3.Row) -> RecordedCall:
        call_id, key = row["id"], row["request_key"]
        body = self._fetch("SELECT body FROM requests WHERE key = ?", (key,))
        return _call(
            row, body[0]["body"] if body else None, lambda: next((reads for _, reads in self.reads([call_id])), ())
        )

    def cost(self, exchange: Exchange, reply: Reply) -> Cost | None:
        """What a call with this reply, finished or not, costs by today's book, estimates by the latest fit included.

        None where no price, or nothing to estimate the tokens from, is known.
        """
        request = exchange.request
        model = getattr(request, "model", "")
        _, fits = self._fits.get(model, (0.0, {}))
        answered = token_estimates.answered(exchange.http_status)
        figures = token_estimates.estimated(
            reply.usage,
            input_chars=serialize.input_chars(request) if answered and reply.usage.input_tokens is None else None,
            output_chars=sum(len(block.text) for block in reply.blocks) if answered else None,
            fit=fits.get(exchange.service, token_estimates.Fit()),
            hidden_cap=None if reply.thinking else serialize.hidden_cap(request),
        )
        return prices.cost(model, figures.usage, exchange.started_at, between=(figures.low, figures.high))

    def _refit(self, model: str) -> None:
        """Have a recent fit at hand for `cost`, which may not wait; on the writer's thread."""
        made, _ = self._fits.get(model, (-FIT_S, {}))
        if time.monotonic() - made < FIT_S:
            return
        with contextlib.suppress(LedgerError, sqlite3.Error):
            connection = self._connect()
            if connection:
                with contextlib.closing(connection):
                    fits = token_estimates.fit_by_service(
                        connection.execute(token_estimates.RATIOS, (model, token_estimates.REPLIES)).fetchall()
                    )
                    self._fits[model] = time.monotonic(), fits


def _call(row: sqlite3.Row, body: str | None, load: Callable[[], tuple[Read, ...]]) -> RecordedCall:
    values = {name: row[name] for name in row.keys()} | {"status": row["standing"]}  # noqa: SIM118 - a Row iterates over values
    return RecordedCall(row=values, body=serialize.decoded(row["id"], body), load=load)


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def _standing(pid: int | None, born: float | None, host: str | None) -> str:
    """The status of a row left running."""
    if pid is None or born is None or host is None:
        return "interrupted"
    return "running" if Owner(pid, born, host).alive else "interrupted"
