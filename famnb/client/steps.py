"""What takes several calls, as steps that a blocking or an awaiting client carries out; it decides none of them.

generator ── Send, Perform ──► driven │ adriven
          ◄── reply, value, or the error raised ──┘
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, TypeAlias

from famnb.reply import Reply
from famnb.request import Request


@dataclasses.dataclass(frozen=True, slots=True)
class Send:
    """A request is sent and its reply is waited for, on show where a client shows its streams."""

    request: Request
    labels: Mapping[str, str]
    rounds: tuple[Any, ...] = ()
    """The rounds of tool calls before it (`rounds.Round`), each with its results."""


@dataclasses.dataclass(frozen=True, slots=True)
class Perform:
    """Somebody's function is called; what it returns is awaited if it can be."""

    work: Callable[[], Any]
    aside: bool = False
    """Whether it may take long, and so must not hold up an event loop."""


Steps: TypeAlias = Generator[Send | Perform, Any, Reply]


def driven(steps: Steps, send: Callable[[Send], Reply]) -> Reply:
    """Carry out the steps one after another, blocking."""
    answer: Any = None
    failure: BaseException | None = None
    while True:
        try:
            step = steps.send(answer) if failure is None else steps.throw(failure)
        except StopIteration as over:
            return _reply(over)
        answer = failure = None
        try:
            answer = send(step) if isinstance(step, Send) else _performed(step)
        except BaseException as error:  # the steps decide what an interrupt leaves behind
            failure = error


async def adriven(steps: Steps, send: Callable[[Send], Awaitable[Reply]]) -> Reply:
    """Carry out the steps one after another, awaiting."""
    answer: Any = None
    failure: BaseException | None = None
    while True:
        try:
            step = steps.send(answer) if failure is None else steps.throw(failure)
        except StopIteration as over:
            return _reply(over)
        answer = failure = None
        try:
            answer = await (send(step) if isinstance(step, Send) else _awaited(step))
        except BaseException as error:
            failure = error


def _reply(over: StopIteration) -> Reply:
    reply: Reply = over.value
    return reply


def _performed(step: Perform) -> Any:
    made = step.work()
    if not inspect.isawaitable(made):
        return made
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_value(made))
    # In a notebook a loop runs already, and it waits for this very cell.
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        return beside.submit(contextvars.copy_context().run, asyncio.run, _value(made)).result()


async def _awaited(step: Perform) -> Any:
    made = await asyncio.to_thread(step.work) if step.aside else step.work()
    return await made if inspect.isawaitable(made) else made


async def _value(made: Awaitable[Any]) -> Any:
    return await made
