"""BaseClient, what Client and AsyncClient of `api` have in common."""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NoReturn

import httpx

from famnb import endpoints
from famnb.client.auth import Credential
from famnb.client.config import Addresses, Clock, Deadlines, strip_path
from famnb.client.engine import CallEngine, Viewer, check_request
from famnb.client.exchange import Recorder
from famnb.client.live_call import Stream
from famnb.client.replay import ReplayMode, Replays
from famnb.client.retry import Retries
from famnb.client.transport import MAX_CONNECTIONS
from famnb.endpoints import Endpoints
from famnb.errors import InvalidRequest
from famnb.profiles import check_profile
from famnb.profiles.profile import Profile
from famnb.reply import Reply
from famnb.request import Request
from famnb.validation import check_integer

Labels = Mapping[str, str]
"""Names of a call in the ledger, such as `{"tag": "first"}`."""


class BaseClient:
    """The constructor of the clients, what they know of their service, and the ways to call it that both have."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        alt_base_url: str | None = None,
        api_key: str | Credential | None = None,
        ledger: Recorder | Path | str | None = None,
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
        clock: Clock | None = None,
    ) -> None:
        """The parameters are those of `famnb.Client`; `clock` is for tests."""
        # In this order, and before anything else can fail: the frames of an error must not hold the key as text.
        self.profile = check_profile(profile)
        """The API that its service has."""
        api_key = Credential.from_argument(api_key, self.profile, headers, query)
        headers = query = None
        api_key.check()
        connections = check_integer("connections", connections, minimum=1)
        if transport is not None and not isinstance(transport, httpx.AsyncBaseTransport):
            raise InvalidRequest(
                "transport: expected an httpx.AsyncBaseTransport, such as httpx.AsyncHTTPTransport(http2=True), "
                f"got {transport!r:.80}"
            )
        addresses = Addresses.from_arguments(base_url, alt_base_url, self.profile)
        self.ledger = self._open_ledger(ledger)
        """What keeps its calls."""
        self.engine = CallEngine(
            profile=self.profile,
            addresses=addresses,
            credential=api_key,
            recorder=self.ledger,
            retries=retries or Retries(),
            deadlines=deadlines or Deadlines(),
            connections=connections,
            clock=clock or Clock(),
            replays=None if replay is None else Replays(self.ledger, mode=replay, speed=replay_speed),
            transport=transport,
            tls=_tls_context(verify),
            viewer=self._find_viewer(),
        )
        """What carries its calls; for the other parts of famnb."""
        # Not at the end of the process: then the I/O thread closes what is open, in its own order.
        weakref.finalize(self, self.engine.retire).atexit = False

    @staticmethod
    def _open_ledger(ledger: Any) -> Any:
        """What keeps the calls; the ledger's file is opened by `api`, which stands above it."""
        return ledger

    @staticmethod
    def _find_viewer() -> Viewer | None:
        """What shows a stream while `ask` waits for it."""
        return None

    @property
    def last(self) -> Reply | None:
        """The outcome of this client's call that ended last, whatever it was; None before the first."""
        return self.engine.last

    @property
    def endpoints(self) -> Endpoints:
        """The endpoints of its service by name, the default one first."""
        return self.profile.endpoints

    def base_url(self, endpoint: str | None = None) -> str:
        """The address of the service that an endpoint's requests go to, without the endpoint's own path.

        Raises InvalidRequest if the service has no such endpoint.
        """
        target = endpoints.endpoint(endpoint or next(iter(self.endpoints)), self.endpoints)
        return strip_path(self.engine.addresses.url(target), target)

    def _fetch_reply(self, reply: Reply, *, wait: bool) -> Future[Reply]:
        """Have `Client.fetch` run on the I/O thread. Raises InvalidRequest for another reply."""
        if not (reply.id and reply.call_id and "previous_response_id" in type(reply.request).model_fields):
            raise InvalidRequest(
                "fetch: expected the reply to a request for responses with `background=True`, which the service keeps; "
                f"got {reply!r:.80}"
            )
        call_id = reply.call_id

        async def fetch() -> Reply:
            call = await asyncio.to_thread(self.ledger.call, call_id)
            return await self.engine.fetch_reply(dataclasses.replace(call.exchange(), reply=reply), wait=wait)

        return self.engine.fetch(fetch)

    def compose(self, endpoint: str, prompt: str, **fields: Any) -> Request:
        """Return a prompt as a request of one of its endpoints; see `famnb.compose`. Raises InvalidRequest."""
        return endpoints.compose(endpoint, prompt, endpoints=self.endpoints, **fields)

    def stream(self, request: Request, *, labels: Labels | None = None) -> Stream:
        """Send a request as a stream; a context manager, sync and async, that stops the call when it is left early.

        Raises InvalidRequest if `request` is not a request; iterating the stream raises the call's own error.
        """
        check_request(request)
        return self.engine.start(request if request.streams else request.replace(stream=True), labels=labels)

    def __repr__(self) -> str:
        addresses = dict.fromkeys((self.engine.addresses.base_url, self.engine.addresses.alt_base_url))
        return f"<{type(self).__name__} {' '.join(addresses)}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a client holds a key and open connections and cannot be pickled or copied: make a new one")


def _tls_context(verify: object) -> ssl.SSLContext | None:
    """The context of a client's `verify`; None for the default. Raises InvalidRequest for a value of another type."""
    match verify:
        case True:
            return None
        case False:
            # Only when asked for: a proxy that looks into the traffic, or a certificate that nobody has signed.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        case ssl.SSLContext():
            return verify
        case str():
            try:
                return ssl.create_default_context(cafile=verify)
            except OSError as error:
                raise InvalidRequest(f"verify: no certificates can be read from {verify!r}: {error}") from None
    raise InvalidRequest(
        f"verify: expected True, False, a file of certificates or an ssl.SSLContext; got {verify!r:.80}"
    )
