"""The public Client and AsyncClient, and `connect`: where client, ledger, service and live view meet."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from famnb import service
from famnb.client.auth import Credential
from famnb.client.client import BaseClient, BlockingClient, Viewer
from famnb.client.config import Deadlines
from famnb.client.conversation import AsyncConversation
from famnb.client.replay import ReplayMode, Replays
from famnb.client.retry import Retries
from famnb.client.transport import MAX_CONNECTIONS
from famnb.errors import CredentialError
from famnb.profiles import DEFAULT, check_profile
from famnb.profiles.profile import Profile
from famnb.record import Ledger
from famnb.service.process import KEY_VARIABLE, SERVICE_URL, announce

if TYPE_CHECKING:
    import httpx

_embedded: service.Server | None = None
"""The service that `connect` started in this process, if it did."""
_connected: Client | None = None
"""The client that `connect` has made last."""
_embedding = threading.Lock()
"""Held while it starts, so that two threads that connect at once share one."""


class _RecordingClient(BaseClient):
    """The constructor that Client and AsyncClient share: a client with a ledger, its replays and the live view."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        alt_base_url: str | None = None,
        api_key: str | Credential | None = None,
        ledger: Ledger | Path | str | None = None,
        retries: Retries | None = None,
        deadlines: Deadlines | None = None,
        connections: int = MAX_CONNECTIONS,
        replay: ReplayMode | None = None,
        replay_speed: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        profile: str | Profile = "fam",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        verify: ssl.SSLContext | str | bool = True,
    ) -> None:
        # In the first lines: the frames of an error, which a traceback may show, must not hold the key as text.
        profile = check_profile(profile)
        api_key = Credential.from_argument(api_key, profile, headers, query)
        headers = query = None
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
            viewer=notebook_viewer(),
            transport=transport,
            profile=profile,
            verify=verify,
        )


class Client(_RecordingClient, BlockingClient):
    """A client whose every call is recorded, and whose `ask` streams inline in a notebook cell.

        reply = client.ask("Why is the sky blue?", endpoint="messages", thinking=1024)
        reply.text, reply.thinking, reply.usage, reply.timing.ttft_s

        request = famnb.compose("responses", "Why is the sky blue?")     # or famnb.ResponsesRequest(model=…, input=…)
        reply = client.send(request)                                     # whole
        with client.stream(request) as stream:                           # as it arrives; `async with` works too
            for event in stream:                                         # stream.stop() ends it, from any thread
                ...
        replies = client.send_many([request] * 8, concurrency=4)         # asend, aask, asend_many are awaited

    A call that fails raises an error of `famnb.errors`, whose `reply` is what had arrived, already recorded:

        try:
            client.send(request)
        except famnb.RateLimitError as error:
            error.retry_after
        except famnb.FamnbError as error:
            error.reply

    Parameters left out are read from the environment: FAM_API_KEY, FAM_BASE_URL, FAM_ALT_BASE_URL (which falls back to
    the base address). `ledger` is a Ledger, a path, or None for FAMNB_LEDGER or the user's data folder. `connections`
    is how many connections to one service may be in use at once.
    `profile` names the vendor whose API the service has ("openai", "anthropic", "openrouter", "gemini", "azure",
    "ollama", "vllm", or "open" for any server that speaks one of their dialects): its endpoints, models, fields and
    headers. Address and key are then read from that vendor's own variables, such as OPENAI_API_KEY. `headers` go with
    every request, hidden like the key where their name says that they are secret; `query` ends every address; `verify`
    is a file of certificates, an ssl.SSLContext, or False to accept any.
    `replay="prefer"` answers a request that the ledger has a complete call of from there, without sending or recording
    anything, marked `reply.replayed`; "only" raises NotRecorded instead of sending any other, so that a notebook runs
    offline. The first identical request of a client gets the newest complete call, the next one the call before it, and
    over again after the oldest. An answer of a simulated service is never given for a service elsewhere. `replay_speed`
    is 1 for the recorded pace, 2 for twice as fast, None for at once.
    A service on this machine is never reached through a proxy; elsewhere HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE count.
    `transport` carries the requests, in place of one that notes when the kernel received each event; any transport of
    httpx will do, such as `httpx.AsyncHTTPTransport(http2=True)`, or `StampedTransport(uds=...)` of
    `famnb.client.transport` for a Unix socket. It is used on the client's own thread, and closed with it.
    Raises CredentialError for a key that is unset or malformed, InvalidRequest for a transport that is none.
    """


class AsyncClient(_RecordingClient):
    """A Client whose methods are coroutines, for programs that run on one event loop or on several."""

    send = BaseClient.asend
    ask = BaseClient.aask
    send_many = BaseClient.asend_many

    def conversation(self, endpoint: str | None = None, **settings: Any) -> AsyncConversation:
        """`Client.conversation`, whose turns are awaited."""
        return self.aconversation(endpoint, **settings)


def connect(
    profile: str | Profile = "fam",
    *,
    ledger: Ledger | Path | str | None = None,
    retries: Retries | None = None,
    deadlines: Deadlines | None = None,
    replay: ReplayMode | None = None,
    replay_speed: float | None = None,
) -> Client:
    """A client of the service that FAM_API_KEY and FAM_BASE_URL name, else of the embedded one; prints which.

    The embedded service is this machine's own: the one `famnb lab` started, or one started now, which ends with this
    process. It needs no key and no network, and its answers are simulated. The parameters are those of Client.
    With a `profile` such as "openai" it is a client of that vendor, with the key of its own variable.
    Raises CredentialError when a key is set without an address, is malformed, or is missing for a vendor.
    """
    options: dict[str, Any] = {
        "ledger": ledger,
        "retries": retries,
        "deadlines": deadlines,
        "replay": replay,
        "replay_speed": replay_speed,
    }
    profile = check_profile(profile)
    if profile.name != DEFAULT:
        client = Client(profile=profile, **options)
        where = f"{profile.title} at {client.base_url()}"
    elif os.getenv("FAM_API_KEY"):
        if not os.getenv("FAM_BASE_URL"):
            raise CredentialError(
                "FAM_API_KEY is set, but FAM_BASE_URL is not: set it to the service's address, such as "
                "https://api.example.com, or unset FAM_API_KEY to use the embedded service"
            )
        client = Client(**options)
        where = f"{os.getenv('FAM_BASE_URL')}, with the key of FAM_API_KEY"
    else:
        url, key = embedded()
        client = Client(base_url=url, api_key=key, **options)
        where = f"the embedded service at {url}: answers are simulated, nothing is billed"
    global _connected
    _connected = client
    print(f"famnb uses {where}\nand records every call in {client.ledger.path}")  # noqa: T201 - says which, every time
    return client


def default_client() -> Client:
    """The client that `connect` has made last in this process, or one that it makes now."""
    return _connected or connect()


def connected_client() -> Client | None:
    """The client that `connect` has made last in this process; None before the first."""
    return _connected


def embedded() -> tuple[str, str]:
    """The address and key of the embedded service: the one the environment names if it answers, else our own."""
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
    """Whether somebody listens at an address of this machine."""
    address = urlsplit(url)
    # One second: a connection within one machine is made at once or not at all.
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
    widget.install_completion(shell)
    return widget.viewer
