"""The clients, blocking and awaited: what users hold; starting and awaiting a call is the caller's."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from famnb.client import asking
from famnb.client.caller import CONCURRENCY, Caller, Labels
from famnb.client.conversation import AsyncConversation, Conversation, talk_settings
from famnb.client.rounds import MOST_ROUNDS, Approve, GivenTools
from famnb.client.steps import Send, adriven, driven
from famnb.reply import Reply
from famnb.request import Request


class Client(Caller):
    """A client for programs and notebooks; `send`, `ask` and `send_many` block, their `a…` twins are awaited."""

    def send(self, request: Request, *, labels: Labels | None = None) -> Reply:
        """Send a request and wait for its reply; raises the call's error, with what had come on its `.reply`."""
        return self.start(request, labels=labels).result()

    def ask(
        self,
        prompt: str,
        *,
        model: str | None = None,
        endpoint: str | None = None,
        system: str | None = None,
        max_tokens: int | None = None,
        thinking: int | None = None,
        schema: Any = None,
        tools: GivenTools = None,
        auto: bool = False,
        approve: Approve | None = None,
        max_rounds: int = MOST_ROUNDS,
        stream: bool = True,
        labels: Labels | None = None,
        **fields: Any,
    ) -> Reply:
        """Compose a prompt for an endpoint and send it; what that endpoint cannot carry is a warning.

        `thinking` is a budget in tokens. Without an `endpoint`, the model's own; with neither, `messages`, or the one
        that can carry `tools` or `schema`.
        `schema` is a type, such as a pydantic model: `reply.parsed` is its instance, and ParseError is raised where the
        answer is none. `tools` may hold Python functions (see `famnb.tool`). They run with `auto=True`, or when
        `approve(call)` returns True, for at most `max_rounds` rounds, and their results are sent back until the model
        answers; `reply.rounds` has them. Otherwise the reply is returned with its `tool_calls`.
        """
        options = {"auto": auto, "approve": approve, "max_rounds": max_rounds}
        steps = asking.ask(
            prompt,
            model=model,
            endpoint=endpoint,
            system=system,
            max_tokens=max_tokens,
            thinking=thinking,
            schema=schema,
            tools=tools,
            options=options,
            labels=labels,
            stream=stream,
            **fields,
        )
        return driven(steps, self._sent)

    def conversation(self, endpoint: str | None = None, **settings: Any) -> Conversation:
        """A conversation, turn by turn; `settings` are those of `ask`, and hold for every turn.

        Without an `endpoint`, `responses`, or the one that the model or the tools need.
        """
        return Conversation(lambda steps: driven(steps, self._sent), **talk_settings(endpoint, **settings))

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
        `progress` shows a bar; by default when there are more than a few requests and somebody is looking.
        """
        return self._fan_out(requests, concurrency, labels, progress).replies()

    def close(self) -> None:
        """Stop what is running, wait until it is recorded, and close every connection."""
        self._engine.shut().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sent(self, step: Send) -> Reply:
        call = self.start(step.request, labels=step.labels)
        with self._shown(call):
            return call.result()


class AsyncClient(Caller):
    """A client for programs that run on an event loop, any one or several: the awaited calls under the plain names."""

    send = Caller.asend
    ask = Caller.aask
    send_many = Caller.asend_many

    def conversation(self, endpoint: str | None = None, **settings: Any) -> AsyncConversation:
        """`Client.conversation`, whose turns are awaited."""
        return AsyncConversation(lambda steps: adriven(steps, self._asent), **talk_settings(endpoint, **settings))
