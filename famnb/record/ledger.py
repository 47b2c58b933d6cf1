"""The ledger: one SQLite file that keeps every call, however it ended, and reads, replays and prices it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, Unpack

import msgspec
import platformdirs

from famnb.client import connected
from famnb.client.exchange import Exchange
from famnb.client.live_call import Stream
from famnb.client.replay import play
from famnb.errors import InvalidArgument, InvalidRequest, LedgerError, UnknownName
from famnb.profiles import DEFAULT, names_deployments
from famnb.record import maintenance, schema, serialize, sql, token_estimates
from famnb.record.backlog import Statement
from famnb.record.filters import Filters, where
from famnb.record.owner import OwnerProcess
from famnb.record.price import Cost
from famnb.record.price_book import prices
from famnb.record.recorded_call import RecordedCall
from famnb.record.writer import writer
from famnb.reply import Reply
from famnb.request import Request
from famnb.secret_patterns import mask_keys
from famnb.timing import Read

# Fitting reads hundreds of rows, and one more call changes the result little.
FIT_S = 60.0
"""How long a fit is used for the cost of new calls, in seconds."""

STANDING = "CASE WHEN status = 'running' THEN standing(owner_pid, owner_born, owner_host) ELSE status END"
"""The status of a call, but `interrupted` for running calls of dead processes."""
CALLS_WITH_STANDING = f"SELECT *, {STANDING} AS standing FROM calls"  # noqa: S608 - own text
"""The calls with a column more, `standing`."""


class Ledger:
    """Calls on disk, each with its request, its events as they came, and its reply; implements `exchange.Recorder`.

        client.ledger.call(call_id)                       # a recorded call; its `reply`, `request`, raw events
        client.ledger.replay(call_id, speed=1)            # plays it as a stream again
        client.ledger.info(); client.ledger.prune(older_than=timedelta(days=90), payloads_only=True)
        client.ledger.export("march.sqlite", since="2026-03-01"); client.ledger.load("march.sqlite")

    Any number of threads and processes may use one file. No key is ever in it.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Use `path`, else the file that FAMNB_LEDGER names, else `ledger.sqlite` in the user's data folder.

        Nothing is opened before the first call is recorded or read, and a file that cannot be written stops no call.
        """
        # A false value would mean the user's own ledger here, and to the caller that nothing is recorded.
        if path is not None and not isinstance(path, str | os.PathLike):
            raise InvalidArgument(
                f"ledger: expected a path, got {path!r:.80}; every call is recorded: to discard the record, "
                "name a file in a temporary folder"
            )
        file = path or os.getenv("FAMNB_LEDGER") or Path(platformdirs.user_data_dir("famnb")) / "ledger.sqlite"
        if os.fspath(file) == ":memory:":
            raise LedgerError("a ledger is a file, since a call must outlive its process; name one, not ':memory:'")
        self.path = Path(file).expanduser().resolve()
        """The file."""
        self.listeners: list[Callable[[str], object]] = []
        """Called with the id of each call once it is written, on the thread that writes: they must not block."""
        self._written: dict[str, tuple[int, int]] = {}
        """For each call that runs, by id, its attempt and how many of the reads of that are written."""
        self._fits: dict[str, tuple[float, Mapping[str | None, token_estimates.TokenFit]]] = {}
        """The fits that `cost` uses, by model, each with the monotonic time at which it was made."""
        self._shared = threading.local()
        """`connection`, if this thread shares one: see `sharing`."""

    def on_open(self, exchange: Exchange) -> None:
        """Write the row of a call that starts, running and owned by this process."""
        # On the writer's thread, since `on_close` needs a fit and may not wait for a query.
        refit = functools.partial(self._refit, getattr(exchange.request, "model", ""))
        writer(self.path).submit(functools.partial(serialize.open_call, exchange), then=refit)

    def on_reads(self, exchange: Exchange) -> None:
        """Write what came since the last time, so that a killed process leaves it behind."""
        attempt, count = self._written.get(exchange.id, (exchange.attempts, 0))
        # Another attempt begins anew.
        if attempt != exchange.attempts or count > len(exchange.reads):
            count = 0
        if new_reads := exchange.reads[count:]:
            writer(self.path).submit(functools.partial(serialize.append_reads, exchange, new_reads, seq=count))
        self._written[exchange.id] = exchange.attempts, count + len(new_reads)

    def on_close(self, exchange: Exchange) -> Future[None]:
        """Complete the reply of a call that is over with id, cost and service, and write its final row."""
        self._written.pop(exchange.id, None)
        # Here and not on the writer's thread, since the caller gets this reply at once; what is written is the same.
        reply = dataclasses.replace(exchange.reply, call_id=exchange.id, service=exchange.service, ledger=self)
        if exchange.broken_tries:
            billing = msgspec.structs.replace(reply.usage.billing, broken_tries=exchange.broken_tries)
            reply = dataclasses.replace(reply, usage=msgspec.structs.replace(reply.usage, billing=billing))
        exchange.reply = dataclasses.replace(reply, cost=self.cost(exchange, reply))
        written = writer(self.path).submit(functools.partial(serialize.close_call, exchange))
        if self.listeners:
            written.add_done_callback(lambda _: [listener(exchange.id) for listener in tuple(self.listeners)])
        return written

    def call(self, call_id: str) -> RecordedCall:
        """Return a recorded call. KeyError if no call has that id, LedgerError if the file cannot be read."""
        for call in self.each([call_id]):
            return call
        raise UnknownName(f"no call {call_id!r} in {self.path}; famnb.calls() lists what is there")

    def note(self, call: str | Reply | RecordedCall, text: str) -> None:
        """Note something on a call, by its id or its reply, in place of an earlier note; an empty text deletes it.

        It is the column `note` of `famnb.calls`. What looks like a key is masked. Raises KeyError if no call has that
        id, InvalidRequest unless it is a text for a recorded reply, LedgerError if it cannot be kept.
        """
        call_id = call if isinstance(call, str) else call.call_id
        if call_id is None:
            raise InvalidRequest("note: this reply was not recorded, so there is no call to note it on")
        if not isinstance(text, str):
            raise InvalidArgument(f"note: expected a text, got {text!r:.80}")
        note = mask_keys(" ".join(text.split())) or None
        self.execute([("UPDATE calls SET note = ? WHERE id = ?", (serialize.storable(note), call_id))])
        if self.call(call_id).note != (note or ""):
            raise LedgerError(
                f"the note could not be written to {self.path}: make room or unlock the file, and try again"
            )

    def each(self, call_ids: Iterable[str]) -> Iterator[RecordedCall]:
        """Yield recorded calls in the order given, by a few queries for many of them; ids not there are left out."""
        self.settle()
        for ids in sql.iter_chunks(call_ids):
            query = f"SELECT * FROM ({CALLS_WITH_STANDING}) WHERE id IN {sql.placeholders(ids)}"  # noqa: S608 - placeholders
            rows = {row["id"]: row for row in self.fetch(query, ids)}
            yield from self._read_calls([rows[call_id] for call_id in ids if call_id in rows])

    def _read_calls(self, rows: list[sqlite3.Row]) -> Iterator[RecordedCall]:
        keys = list({row["request_key"] for row in rows})
        query = f"SELECT key, body FROM requests WHERE key IN {sql.placeholders(keys)}"  # noqa: S608 - placeholders
        bodies = {row["key"]: row["body"] for row in self.fetch(query, keys)}
        reads = dict(self.reads(row["id"] for row in rows))
        for row in rows:
            yield RecordedCall(
                row={**dict(row), "status": row["standing"]},
                body=serialize.decode_body(row["id"], bodies.get(row["request_key"])),
                reads=reads.get(row["id"], ()),
                ledger=self,
            )

    def select(self, where: str = "1", values: Sequence[Any] = (), *, limit: int | None = None) -> list[sqlite3.Row]:
        """Return rows of the calls table, newest last, at most the `limit` newest; none if there is no file yet.

        `where` is SQL over the columns, and `standing`: the status, but `interrupted` for running calls of dead
        processes. Raises LedgerError if the file cannot be read.
        """
        self.settle()
        query = f"SELECT * FROM ({CALLS_WITH_STANDING}) WHERE {where} ORDER BY started_us DESC, id DESC LIMIT ?"  # noqa: S608 - values are bound
        return self.fetch(query, (*values, -1 if limit is None else limit))[::-1]

    def reads(self, call_ids: Iterable[str]) -> Iterator[tuple[str, tuple[Read, ...]]]:
        """Yield what came from the socket for each of these calls, if anything did, in the order given."""
        for ids in sql.iter_chunks(call_ids):
            query = f"SELECT * FROM pieces WHERE call_id IN {sql.placeholders(ids)} ORDER BY seq"  # noqa: S608 - placeholders
            pieces: dict[str, list[bytes]] = {}
            for row in self.fetch(query, ids):
                pieces.setdefault(row["call_id"], []).append(row["reads"])
            yield from (
                (call_id, serialize.read_pieces(call_id, pieces[call_id])) for call_id in ids if call_id in pieces
            )

    def recall(
        self, request: Request, *, profile: str = DEFAULT, nth: int = 0, simulated: bool = True
    ) -> Exchange | None:
        """Return the `nth` newest complete call of an identical request, after the oldest the newest again.

        None if there is no such call. Implements `client.replay.ReplaySource`. Only calls by a client of the same
        `profile` count: another vendor's answer to the same body is another answer. Without `simulated`, calls that a
        simulated engine answered do not count either.
        """
        query = "SELECT id FROM calls WHERE request_key = ? AND profile = ? AND complete = 1 AND error IS NULL"
        query += ("" if simulated else " AND service IS NOT 'sim'") + " ORDER BY started_us DESC, id DESC"
        rows = self.fetch(query, (request.key(), profile))
        if not rows:
            return None
        # With this request, since equal keys do not mean equal objects and the reply's request is to be the caller's.
        return dataclasses.replace(self.call(rows[nth % len(rows)]["id"]).exchange(), request=request)

    def replay(self, call_id: str, *, speed: float = 1) -> Stream:
        """Return a stream that plays a recorded call again: its events, their times divided by `speed`, then its reply.

        `speed` 0 or infinity is at once. Nothing is sent or recorded; the reply has `replayed` set, and the error that
        the call ended with is raised as it was. KeyError if there is no such call, LedgerError if the file cannot be
        read, InvalidRequest for a speed below 0 or a request that today's limits would refuse.
        """
        return play(self.call(call_id).exchange(), speed=speed)

    def settle(self) -> None:
        """Finish the rows of calls whose process died, as `interrupted`, with what had arrived."""
        running = f"{CALLS_WITH_STANDING} WHERE status = 'running'"
        # Only rows left running, which are few and have an index: `standing` asks the system for each process.
        dead_rows = self.fetch(f"SELECT * FROM ({running}) WHERE standing = 'interrupted'")  # noqa: S608 - own text
        for row in dead_rows:
            try:
                reply = next(self._read_calls([row])).reply
            except Exception as error:  # a damaged row must not keep the other calls from being read
                serialize.warn_damaged(row["id"], "what had arrived", error)
                reply = Reply(status="interrupted", complete=False)
            writer(self.path).submit(functools.partial(serialize.finalize_interrupted, row["id"], reply))
        if dead_rows:
            self.flush()

    def models(self) -> list[str]:
        """Return the names of all models, in the order of their first calls. LedgerError if the file cannot be read."""
        query = "SELECT model FROM calls WHERE model > '' GROUP BY model ORDER BY MIN(started_us)"
        return [row["model"] for row in self.fetch(query)]

    def fits(self, model: str) -> Mapping[str | None, token_estimates.TokenFit]:
        """Return a model's tokens per character, by the service that answered, fitted on its own replies."""
        return token_estimates.fit_by_service(self.fetch(token_estimates.RATIOS, (model, token_estimates.REPLIES)))

    def info(self) -> maintenance.LedgerInfo:
        """Return what it holds: calls by status, model and endpoint, times, sizes. LedgerError if it cannot be read."""
        self.settle()
        with self.reading() as connection:
            return maintenance.info(self.path, connection)

    def prune(
        self,
        *,
        older_than: timedelta | datetime | None = None,
        keep: int | None = None,
        payloads_only: bool = False,
        dry_run: bool = False,
    ) -> maintenance.PruneResult:
        """Delete calls for good and give the space back; return what was deleted. Calls that still run stay.

        Calls that started before `older_than` (a moment, or an age) go, and those beyond the `keep` newest; with both,
        only those that are both. `payloads_only` keeps the rows with their metrics and deletes what came from the
        socket. `dry_run` only counts. ValueError without a limit, LedgerError if the file cannot be written.
        """
        self.settle()
        return maintenance.prune(
            self.path, older_than=older_than, keep=keep, payloads_only=payloads_only, dry_run=dry_run
        )

    def export(self, path: str | os.PathLike[str], **filters: Unpack[Filters]) -> int:
        """Add the calls that are over, bytes and scores included, to the ledger at `path`; return how many were new.

        It is made if it is not there, and a ledger like any other: `famnb.calls(path)` reads it, `load` adds its calls
        to another. The filters are those of `famnb.calls`: since, until, model, endpoint, profile, experiment, variant,
        tag, status. `famnb.calls(…).to_parquet(path)` writes the columns of the frame instead, for other tools.
        LedgerError if either cannot be used.
        """
        target = Path(path).expanduser().resolve()
        if target.suffix in (".parquet", ".csv"):
            raise InvalidRequest(
                f"{target.name}: an export is a ledger, such as {target.stem}.sqlite; famnb.calls(…).to_parquet(path) "
                "writes the columns of the frame"
            )
        self.settle()
        with self.reading() as connection:
            if connection is None:
                raise LedgerError(f"there is no ledger {self.path} to export yet; famnb check makes one")
        return maintenance.copy_calls(self.path, target, *where(filters))

    def load(self, path: str | os.PathLike[str]) -> int:
        """Add the calls of a file; return how many were new. A call that is there stays as it is.

        The file is another ledger, such as one that `export` wrote, or what another tool recorded: OpenAI-style JSONL,
        batch files and stored completions, LiteLLM's and Langfuse's exports, logs of Inspect and promptfoo, and
        OpenTelemetry spans (see `famnb.record.foreign`). What such a file does not say is missing. LedgerError for any
        other file, or if the ledger cannot be written.
        """
        # Only here: few ever load what another tool recorded, and everybody's first client would wait for it.
        from famnb.record import foreign

        path = Path(path).expanduser()
        try:
            with path.open("rb") as file:
                is_ledger = file.read(len(schema.FILE_HEAD)) == schema.FILE_HEAD
        except OSError as error:
            raise LedgerError(f"{path} cannot be read: {error.strerror}") from error
        return Ledger(path).export(self.path) if is_ledger else foreign.load(self, path)

    @property
    def behind(self) -> int:
        """Records that wait in memory since the file cannot be written; if there are any, they are tried again."""
        ledger_writer = writer(self.path)
        if ledger_writer.behind and not ledger_writer.is_stuck:
            with contextlib.suppress(LedgerError):  # then they still wait
                ledger_writer.flush()
        return ledger_writer.behind

    def flush(self) -> None:
        """Wait until all calls so far are written, or could not be. LedgerError if the disk does not answer."""
        writer(self.path).flush()

    def close(self) -> None:
        """Write what is left and close the file; it is opened again if the ledger is used again."""
        writer(self.path).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """How many calls it holds."""
        rows = self.fetch("SELECT COUNT(*) FROM calls")
        return int(rows[0][0]) if rows else 0

    def __bool__(self) -> bool:
        """True also for an empty ledger, so that `if ledger` asks whether there is one."""
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, such as that of a reply in another process, is of the same file.
        return type(self), (self.path,)

    def __repr__(self) -> str:
        path = f"~/{self.path.relative_to(Path.home())}" if self.path.is_relative_to(Path.home()) else str(self.path)
        try:
            return f"<Ledger {path}, {len(self)} calls>"
        except LedgerError:
            return f"<Ledger {path}, cannot be read>"

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Return the rows of a query, with all that this process has recorded so far; none if there is no file yet."""
        self.flush()
        with self.reading() as connection:
            return connection.execute(query, values).fetchall() if connection else []

    def execute(self, statements: Sequence[Statement]) -> None:
        """Execute statements, all or none, and wait until they are in the file, or could not be, which is a warning."""
        writer(self.path).submit(lambda: statements)
        self.flush()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open a connection that reads tables of today's version; None if there are none yet. LedgerError if it cannot.

        Inside `sharing` it is the connection of this thread.
        """
        if (shared := getattr(self._shared, "connection", None)) is not None:
            yield shared
            return
        if not self.path.exists():
            yield None
            return
        with contextlib.closing(schema.open_to_read(self.path)) as connection:
            # In SQL, so that a filter by status, its limit and its order are right for calls of dead processes too.
            connection.create_function("standing", 3, _standing_of_running)
            try:
                yield connection
            except sqlite3.DatabaseError as error:
                raise schema.unreadable(self.path, error) from error

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """Have each `reading` of this thread use the same connection meanwhile, so that the file is opened once."""
        with self.reading() as connection:
            outer = getattr(self._shared, "connection", None)
            self._shared.connection = connection
            try:
                yield
            finally:
                self._shared.connection = outer

    def cost(self, exchange: Exchange, reply: Reply) -> Cost | None:
        """Return the cost of a call with this reply, finished or not, by prices and latest fit; None if not known."""
        request = exchange.request
        model = getattr(request, "model", "")
        _, fits = self._fits.get(model, (0.0, {}))
        has_answer = token_estimates.has_answer(exchange.http_status)
        # Measuring a long conversation takes longer than all the rest, so only if its length is needed.
        needs_input = has_answer and reply.usage.input_tokens is None
        usage, low, high = token_estimates.estimate_usage(
            reply.usage,
            input_chars=serialize.input_chars(request) if needs_input else None,
            output_chars=reply.output_chars if has_answer else None,
            fit=fits.get(exchange.service, token_estimates.TokenFit()),
            hidden_cap=serialize.hidden_cap(request, exchange.service, shows_thinking=bool(reply.thinking)),
        )
        return prices.cost(
            model,
            usage,
            exchange.started_at,
            between=(low, high),
            has_cache_writes=exchange.endpoint.traits.has_cache_writes,
            service=exchange.profile,
            reply_model=reply.model if names_deployments(exchange.profile) else "",
        )

    def _refit(self, model: str) -> None:
        """Refresh the fit that `cost` uses, if it is old; called on the writer's thread."""
        fitted_at, _ = self._fits.get(model, (-FIT_S, {}))
        if time.monotonic() - fitted_at < FIT_S:
            return
        # Without a fit the estimate is wider; the writer warns of a file that cannot be read.
        with contextlib.suppress(LedgerError, sqlite3.Error):
            self._fits[model] = time.monotonic(), self.fits(model)


def _standing_of_running(*owner: Any) -> str:
    """The status of a row left running, by its owner's pid, start and host."""
    return "running" if None not in owner and OwnerProcess(*owner).is_alive else "interrupted"


class HasLedger(Protocol):
    """Anything with a ledger: a `famnb.Client`."""

    @property
    def ledger(self) -> Any:
        """The ledger, or None where nothing is recorded."""


def connected_ledger() -> Ledger:
    """Return the ledger of the client that `famnb.connect` has made last; the default one if there is none."""
    return Ledger() if connected.client is None else ledger_of(connected.client)


LedgerSource: TypeAlias = Ledger | HasLedger | str | os.PathLike[str] | None
"""What has a ledger: itself, a client that records, the path of its file, None for the default one."""


def ledger_of(source: LedgerSource) -> Ledger:
    """Return a ledger: itself, the one at a path, a client's, or the default one for None."""
    match source:
        case Ledger():
            return source
        case None | str() | os.PathLike():
            return Ledger(source)
        case _ if isinstance(ledger := getattr(source, "ledger", None), Ledger):
            return ledger
        case _:
            raise InvalidArgument(f"ledger: expected a Ledger, a path, or a client that records; got {source!r}")
