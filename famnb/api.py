"""Where the parts are put together: clients with a ledger and a live view; `connect` finds their service.

MERGED: Experiments as users hold them: the machine of `experiment` with a client found where none is given.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from famnb import client, service
from famnb.client import Deadlines, Replay, Replays, Retries
from famnb.client.auth import Credential
from famnb.client.client import CONNECTIONS, BaseClient, Viewer
from famnb.client.client import Client as ClientBase
from famnb.errors import CredentialError
from famnb.experiment.experiment import Judged
from famnb.record import Ledger
from famnb.service.process import KEY_VARIABLE, SERVICE_URL, announce
from famnb.widget.experiment import report
from famnb.widget.experiment.ballot import Ballot
from famnb.widget.experiment.run_view import ShownRun

_embedded: service.Server | None = None
_embedding = threading.Lock()


class _Recorded(BaseClient):
    """A caller with a ledger and, in a notebook's kernel, a live view."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        alt_base_url: str | None = None,
        api_key: str | Credential | None = None,
        ledger: Ledger | Path | str | None = None,
        retries: Retries | None = None,
        deadlines: Deadlines | None = None,
        connections: int = CONNECTIONS,
        replay: Replay | None = None,
        replay_speed: float | None = None,
    ) -> None:
        api_key = Credential.found(api_key)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        super().__init__(
            base_url=base_url,
            alt_base_url=alt_base_url,
            api_key=api_key,
            recorder=self.ledger,
            retries=retries,
            deadlines=deadlines,
            connections=connections,
            replays=None if replay is None else Replays(self.ledger, mode=replay, speed=replay_speed),
        )
        self.viewer = notebook_viewer()


class Client(_Recorded, client.Client):
    """A client whose every call is recorded, and whose `ask` streams inline in a notebook cell.

    Parameters left out are read from the environment: FAM_API_KEY, FAM_BASE_URL, FAM_ALT_BASE_URL (which falls back to
    the base address). `ledger` is a Ledger, a path, or None for FAMNB_LEDGER or the user's data folder. `connections`
    is how many connections to one service may be in use at once.
    `replay="prefer"` answers a request that the ledger has a complete call of from there, without sending or recording
    anything, marked `reply.replayed`; "only" raises NotRecorded instead of sending any other. `replay_speed` is 1 for
    the recorded pace, 2 for twice as fast, None for at once.
    Raises CredentialError for a key that is unset or malformed.
    """


class AsyncClient(_Recorded, client.AsyncClient):
    """The same as Client with coroutines for methods."""


def connect(
    *,
    ledger: Ledger | Path | str | None = None,
    retries: Retries | None = None,
    deadlines: Deadlines | None = None,
    replay: Replay | None = None,
    replay_speed: float | None = None,
) -> Client:
    """A client of the service that FAM_API_KEY and FAM_BASE_URL name, else of the embedded one; says which.

    The embedded service is this machine's own: the one `famnb lab` started, or one started now, which ends with this
    process. It needs no key and no network, and its answers are simulated. The parameters are those of Client.
    Raises CredentialError when a key is set without an address or is malformed.
    """
    options: dict[str, Any] = {
        "ledger": ledger,
        "retries": retries,
        "deadlines": deadlines,
        "replay": replay,
        "replay_speed": replay_speed,
    }
    if os.getenv("FAM_API_KEY"):
        if not os.getenv("FAM_BASE_URL"):
            raise CredentialError(
                "FAM_API_KEY is set, but FAM_BASE_URL is not: set it to the service's address, such as "
                "https://api.example.com, or unset FAM_API_KEY to use the embedded service"
            )
        connected = Client(**options)
        where = f"{os.getenv('FAM_BASE_URL')}, with the key of FAM_API_KEY"
    else:
        url, key = embedded()
        connected = Client(base_url=url, api_key=key, **options)
        where = f"the embedded service at {url}: answers are simulated, nothing is billed"
    print(f"famnb uses {where}\nand records every call in {connected.ledger.path}")  # noqa: T201 - says which, every time
    return connected


def embedded() -> tuple[str, str]:
    """The address and key of the local service: the one the environment names if it answers, else our own."""
    url, key = os.getenv(SERVICE_URL), os.getenv(KEY_VARIABLE)
    if url and key and _answers(url):
        return url, key
    global _embedded
    with _embedding:
        if _embedded is None or not _answers(_embedded.url):
            _embedded = service.serve()
            announce(_embedded)
        return _embedded.url, _embedded.key


def _answers(url: str) -> bool:
    address = urlsplit(url)
    with contextlib.suppress(OSError), socket.create_connection((address.hostname or "", address.port or 80), 1):
        return True
    return False


def notebook_viewer() -> Viewer | None:
    """The live view for `ask` when this is a notebook's kernel; None anywhere else, where widgets would be noise."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    # Only here, so that a script never pays for the widgets.
    from famnb import widget

    widget.install(shell)
    return widget.viewer


class Experiment(Judged):
    """Prompts times variants times repeats, run within a budget, resumed wherever it stopped, and framed.

    `prompts` is a list of texts, a list of rows, a frame, or a `.csv` or `.jsonl` file. A row has a `prompt`, or fills
    the `template`; `{name}` in it is filled with the row's value of that name, and `id` names the row. Values that no
    slot uses are an error unless they are `expected` or named in `keep`: those are for scorers.
    `variants` is what `famnb.grid` makes, a list of mappings, or a mapping of labels to mappings. All other keyword
    arguments are fields of every request, such as `system=` or `max_tokens=`; answers are streamed unless
    `stream=False`. Each request is made `repeats` times; before them come `warmup` calls of every variant, marked as
    such. `seed` decides the order. `name`, together with what is asked, finds earlier calls in the ledger, so that
    running again resumes.
    What `run(wait=False)` returns shows itself in a notebook as a bar with spend, times, failures and Stop.
    Without a `client`, `famnb.connect()` finds one when the first call is made or read.
    Raises InvalidRequest, naming the row or the variant, before anything is sent.
    """

    _runs = ShownRun

    @property
    def client(self) -> ClientBase:
        """The client that carries the calls."""
        if self._client is None:
            self._client = connect()
        return self._client

    def vote(self, n: int | None = None, *, voter: str = "", seed: int | None = None) -> Ballot:
        """A ballot: `n` pairs of answers to the same prompt, or all, to be judged without knowing whose they are.

        Buttons, or keys once the ballot has the focus: left and right arrow or 1 and 2 for the better one, T tie,
        S skip, U undo, R results. Each vote is kept in the ledger at once, so that a ballot goes on where it was left;
        `votes()` and `ranking()` read them, also for several people who give their name as `voter`. `seed` decides
        which pairs, in which order, and which answer stands left; the experiment's own unless given.
        InvalidRequest where there are no two answers to compare.
        """
        return Ballot(self, n=n, voter=voter, seed=seed)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what there is of this experiment to one HTML file, in place of what it held; returns where it is.

        Findings, tables, figures, plan, settings, forecast and outcome, sample answers, failures, prices and versions.
        The file loads nothing and runs nothing, so that it can be sent, kept and printed; it is light or dark as its
        reader's system is. Raises OSError where it cannot be written, LedgerError if the ledger cannot be read.
        """
        return report.save(self, path)
