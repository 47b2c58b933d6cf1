"""The public Client and AsyncClient, and `connect`: where client, ledger, service and live view meet."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack
from urllib.parse import urlsplit

from famnb import service
from famnb.client import connected
from famnb.client.ask import MAX_ROUNDS, Approve, Send, ToolsArgument, arun_steps, ask_steps, run_steps
from famnb.client.ask_fields import Fields
from famnb.client.batch import CONCURRENCY
from famnb.client.client import BaseClient, Labels
from famnb.client.config import Deadlines
from famnb.client.conversation import Conversation
from famnb.client.engine import Viewer
from famnb.client.exchange import Recorder
from famnb.client.replay import ReplayMode
from famnb.client.retry import Retries
from famnb.client.transport import MAX_CONNECTIONS
from famnb.endpoints import EndpointName, ModelName
from famnb.errors import CredentialError, InvalidRequest
from famnb.profiles import DEFAULT, check_profile
from famnb.profiles.local import LOCAL, local_profile
from famnb.profiles.profile import Profile
from famnb.record import Ledger
from famnb.reply import Reply
from famnb.request import Request
from famnb.service.local_models import MODELS, check_engine
from famnb.service.process import KEY_VARIABLE, MODELS_VARIABLE, SERVICE_URL, announce

T = TypeVar("T")
_embedded: service.Server | None = None
"""The service that `connect` started in this process, if it did."""
_local: dict[tuple[str | Path, ...], service.Server] = {}
"""The services with models that `connect` started in this process, by their models."""
_embedding = threading.Lock()
"""Held while it starts, so that two threads that connect at once share one."""


def open_ledger(ledger: Recorder | Path | str | None) -> Recorder:
    """The ledger at a path, the default one for None; what records by itself is taken as it is."""
    return ledger if isinstance(ledger, Recorder) else Ledger(ledger)


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


class Client(BaseClient):
    """A client whose every call is recorded, and whose `ask` streams inline in a notebook cell.

        reply = client.ask("Why is the sky blue?", endpoint="messages", thinking=1024)
        reply.text, reply.thinking, reply.usage, reply.timing.ttft_s

        request = famnb.compose("responses", "Why is the sky blue?")     # or famnb.ResponsesRequest(model=…, input=…)
        reply = client.send(request)                                     # whole
        with client.stream(request) as stream:                           # as it arrives; `async with` works too
            for event in stream:                                         # stream.stop() ends it, from any thread
                ...
        replies = client.send_many([request] * 8, concurrency=4)         # an AsyncClient's are awaited

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
    `profile` names the vendor whose API the service has, one of those below or one of your own, see
    `help(famnb.profiles)`: its endpoints, models, fields and headers. Address and key are then read from that vendor's
    own variables, such as OPENAI_API_KEY. `headers` go with every request, hidden like the key where their name says
    that they are secret; `query` ends every address; `verify` is a file of certificates, an ssl.SSLContext, or False to
    accept any.
    `replay="prefer"` answers a request that the ledger has a complete call of from there, without sending or recording
    anything, marked `reply.replayed`; "only" raises NotRecorded instead of sending any other, so that a notebook runs
    offline. The first identical request of a client gets the newest complete call, the next one the call before it, and
    over again after the oldest. An answer of a simulated service is never given for a service elsewhere. `replay_speed`
    is 1 for the recorded pace, 2 for twice as fast, None for at once.
    A service on this machine is never reached through a proxy; elsewhere HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE count.
    `transport` carries the requests, in place of one that notes when the kernel received each event; any transport of
    httpx will do, such as `httpx.AsyncHTTPTransport(http2=True)`, or with `uds=` for a Unix socket. It is used on the
    client's own thread, and closed with it.
    The vendors' profiles are "openai", "anthropic", "openrouter", "gemini", "azure", "deepseek", "groq", "mistral",
    "xai", "together", "bedrock", "vertex", "ollama", "vllm", and "open" for any server that speaks one of their
    dialects.
    Raises CredentialError for a key that is unset or malformed, InvalidRequest for any other wrong value.
    """

    ledger: Ledger
    _open_ledger = staticmethod(open_ledger)
    _find_viewer = staticmethod(notebook_viewer)

    def send(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """Send a request and wait for its reply; raises the call's error, with what had come on its `.reply`."""
        return self.engine.start(request, labels=labels).result()

    async def asend(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """`send` for an event loop; a cancelled await stops the call. All else is awaited by an AsyncClient."""
        return await self.engine.start(request, labels=labels)

    def ask(
        self,
        prompt: str,
        *,
        model: ModelName | None = None,
        endpoint: EndpointName | None = None,
        system: str | None = None,
        max_tokens: int | None = None,
        thinking: int | None = None,
        schema: Any = None,
        tools: ToolsArgument = None,
        auto: bool = False,
        approve: Approve | None = None,
        max_rounds: int = MAX_ROUNDS,
        stream: bool = True,
        labels: Labels | None = None,
        **fields: Unpack[Fields],
    ) -> Reply:
        """Compose a prompt for an endpoint and send it; what that endpoint cannot carry is a warning.

        `thinking` is a budget in tokens. Without an `endpoint`, the model's own; with neither, `messages`, or the one
        that can carry `tools` or `schema`. `fields` are any others of the endpoint's request.
        `schema` is a type, such as a pydantic model: `reply.parsed` is its instance, and ParseError is raised if the
        answer does not fit it. It is sent as `text.format` on responses, as a `response_format` of type `json_schema`
        on chat and web; not every service knows that one, and a `response_format={"type": "json"}` beside it is sent
        instead. While a stream runs, `stream.partial` is the JSON so far, as a value.
        `tools` may hold Python functions (see `famnb.tool`). They run with `auto=True`, or when `approve(call)` returns
        True, for at most `max_rounds` rounds, and their results are sent back until the model answers; `reply.rounds`
        has them, and each round is a call of its own in the ledger. An error in a tool, wrong arguments included, is
        sent to the model as the result. Otherwise no tool runs, and the reply is returned with its `tool_calls`.
        Raises InvalidRequest before anything is sent, ParseError, and the errors of `send`.
        """
        steps = ask_steps(
            prompt,
            endpoints=self.endpoints,
            model=model,
            endpoint=endpoint,
            schema=schema,
            tools=tools,
            auto=auto,
            approve=approve,
            max_rounds=max_rounds,
            labels=labels,
            system=system,
            max_tokens=max_tokens,
            thinking=thinking,
            stream=stream,
            **fields,
        )
        return run_steps(steps, self._send_in_view)

    def conversation(self, endpoint: EndpointName | None = None, **settings: Any) -> Conversation[Reply]:
        """A conversation, turn by turn; `settings` are those of `ask`, and hold for every turn.

            talk = client.conversation("responses", model="fam-2-5-pro", system="Be brief.")
            talk.say("My name is Ada.")
            talk.edit(0, "My name is Grace.")     # another branch; also regenerate(), fork(), switch(i)
            talk.turns, talk.branches, talk.failures

        It goes on by `previous_response_id` where the service stores responses, else by sending the earlier turns
        again, with the thinking on messages. A turn that fails leaves the conversation where it was.
        Without an `endpoint`, `responses`, or the one that the model or the tools need. Raises InvalidRequest.
        """
        return Conversation(
            lambda steps: run_steps(steps, self._send_in_view), endpoint, endpoints=self.endpoints, **settings
        )

    def send_many(
        self,
        requests: Iterable[Request],
        *,
        concurrency: int = CONCURRENCY,
        labels: Labels | None = None,
        progress: bool | None = None,
    ) -> list[Reply]:
        """Send requests, `concurrency` at a time to each service, fewer while it is throttling.

        Replies come in the order of the requests, each with its own `error`, which is not raised.
        `progress` shows a bar; by default for more than a few requests, in a terminal or a notebook.
        Raises InvalidRequest before anything is sent, and Interrupted when the kernel is interrupted.
        """
        return self.engine.start_batch(requests, concurrency, labels, progress=progress).replies()

    def fetch(self, reply: Reply, *, wait: bool = True) -> Reply:
        """The answer to a request with `background=True`, whose reply has the status `running` and can be of any day.

            reply = client.ask("Think long.", background=True, stream=False)
            answer = client.fetch(reply)

        It waits for the end, at most the `total` of the deadlines, unless `wait` is false, and returns a reply that is
        still `running` as far as it has come. The call's record gets the answer; when it was finished is known as no
        later than now. Raises InvalidRequest for a reply that no service keeps, and the errors of `send`.
        """
        return _result(self._fetch_reply(reply, wait=wait))

    def models(self) -> list[str]:
        """The ids of the models that the service lists; raises the errors of `send`."""
        return _result(self.engine.fetch(self.engine.fetch_models))

    def close(self) -> None:
        """Stop what is running, wait until it is recorded, and close every connection."""
        self.engine.shut_down().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def _send_in_view(self, step: Send) -> Reply:
        stream = self.engine.start(step.request, labels=step.labels)
        with self.engine.show(stream):
            return stream.result()


class AsyncClient(BaseClient):
    """A Client whose methods are coroutines, for programs that run on one event loop or on several."""

    ledger: Ledger
    _open_ledger = staticmethod(open_ledger)
    _find_viewer = staticmethod(notebook_viewer)

    async def send(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """`Client.send`, awaited; a cancelled await stops the call."""
        return await self.engine.start(request, labels=labels)

    async def ask(self, prompt: str, **options: Any) -> Reply:
        """`Client.ask`, awaited, with its options; `approve` and the tools may be coroutine functions."""
        return await arun_steps(ask_steps(prompt, endpoints=self.endpoints, **options), self._send_in_view)

    def conversation(self, endpoint: EndpointName | None = None, **settings: Any) -> Conversation[Awaitable[Reply]]:
        """`Client.conversation`, whose turns are awaited."""
        return Conversation(
            lambda steps: arun_steps(steps, self._send_in_view), endpoint, endpoints=self.endpoints, **settings
        )

    async def send_many(
        self,
        requests: Iterable[Request],
        *,
        concurrency: int = CONCURRENCY,
        labels: Labels | None = None,
        progress: bool | None = None,
    ) -> list[Reply]:
        """`Client.send_many`, awaited."""
        return await self.engine.start_batch(requests, concurrency, labels, progress=progress).areplies()

    async def fetch(self, reply: Reply, *, wait: bool = True) -> Reply:
        """`Client.fetch`, awaited."""
        return await asyncio.wrap_future(self._fetch_reply(reply, wait=wait))

    async def models(self) -> list[str]:
        """`Client.models`, awaited."""
        return await asyncio.wrap_future(self.engine.fetch(self.engine.fetch_models))

    async def aclose(self) -> None:
        """`Client.close`, awaited."""
        await asyncio.wrap_future(self.engine.shut_down())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        await self.aclose()

    async def _send_in_view(self, step: Send) -> Reply:
        stream = self.engine.start(step.request, labels=step.labels)
        with self.engine.show(stream):
            return await stream


def _result(work: Future[T]) -> T:
    """Wait for what runs on the I/O thread; an interrupt ends it."""
    try:
        return work.result()
    finally:
        work.cancel()
        # A failure's traceback has this frame, and so would hold itself.
        del work


def connect(
    profile: str | Profile = "fam",
    *,
    base_url: str | None = None,
    model: str | Path | Sequence[str | Path] = (),
    ledger: Ledger | Path | str | None = None,
    retries: Retries | None = None,
    deadlines: Deadlines | None = None,
    connections: int = MAX_CONNECTIONS,
    replay: ReplayMode | None = None,
    replay_speed: float | None = None,
) -> Client:
    """A client of the service that FAM_API_KEY and FAM_BASE_URL name, else of the embedded one; prints which.

    The embedded service is this machine's own: the one `famnb lab` started, or one started now, which ends with this
    process. It needs no key and no network, and its answers are simulated. The parameters are those of Client.
    With a `profile` such as "openai" it is a client of that vendor, with the key of its own variable; `base_url` is
    its address where it is another than the vendor's.
    With "local" models on this machine answer: `model` names known ones or GGUF files, "smollm2" unless given; one that
    is not here yet is fetched, after asking. That needs `pip install "famnb[local]"`.
    Raises CredentialError when a key is set without an address, is malformed, or is missing for a vendor;
    InvalidRequest or ConnectError for a model that cannot be run or fetched.
    """
    options: dict[str, Any] = {
        "ledger": ledger,
        "retries": retries,
        "deadlines": deadlines,
        "connections": connections,
        "replay": replay,
        "replay_speed": replay_speed,
    }
    profile = check_profile(profile)
    if model and profile.name != LOCAL:
        raise InvalidRequest(f'model: only connect("{LOCAL}", model=…) runs one; give the others to `ask`')
    if profile.name == LOCAL:
        url, key, names = local_service(model)
        client = Client(profile=local_profile(names), base_url=url, api_key=key, **options)
        where = f"{', '.join(names)} on this machine, at {url}: nothing is billed, and there is no price"
    elif profile.name != DEFAULT or base_url is not None:
        client = Client(profile=profile, base_url=base_url, **options)
        where = client.base_url() if profile.name == DEFAULT else f"{profile.title} at {client.base_url()}"
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
        models = os.getenv(MODELS_VARIABLE)
        where = (
            f"{models} on this machine, at {url}: nothing is billed"
            if models
            else f"the embedded service at {url}: answers are simulated, nothing is billed"
        )
    connected.client = client
    print(f"famnb uses {where}\nand records every call in {client.ledger.path}")  # noqa: T201 - says which, every time
    return client


connected.connect = connect


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


def local_service(model: str | Path | Sequence[str | Path]) -> tuple[str, str, tuple[str, ...]]:
    """The address, the key and the models' names of a service on this machine: the running one, or one started now.

    Without a `model` that of `famnb lab --model`, else one of "smollm2". A known model that is not here is fetched.
    """
    url, key, running = (os.getenv(name, "") for name in (SERVICE_URL, KEY_VARIABLE, MODELS_VARIABLE))
    if not model and running and _answers(url):
        return url, key, tuple(running.split(","))
    wanted = (model,) if isinstance(model, str | Path) else tuple(model)
    wanted = wanted or tuple(MODELS)[:1]
    # Only here, so that nobody else pays for the progress bar.
    from famnb.service.model_download import get_model

    with _embedding:
        server = _local.get(wanted)
        if server is None or not _answers(server.url):
            # First: weights that nothing here can run need not be fetched.
            check_engine()
            for name in wanted:
                if name in MODELS:
                    get_model(str(name), confirm=_confirm)
            server = _local[wanted] = service.serve(model=wanted)
    return server.url, server.key, server.models


def _confirm(question: str) -> bool:
    """Ask who runs this; where nobody can be asked, no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    # A kernel without a front end raises an error of its own, as does a program without a terminal.
    except (EOFError, RuntimeError, NotImplementedError):
        return False


def _answers(url: str) -> bool:
    """Whether somebody listens at an address of this machine."""
    address = urlsplit(url)
    # One second: a connection within one machine is made at once or not at all.
    with contextlib.suppress(OSError), socket.create_connection((address.hostname or "", address.port or 80), 1):
        return True
    return False
