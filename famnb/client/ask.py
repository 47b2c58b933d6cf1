"""Rounds of tool calls: the model calls functions, they run, and it is told what they returned, until it answers.

request ── reply ──┬── no calls, or nobody to run them ── the reply
                   └── calls ── (approved) ── run ── request + reply + results ── next round

MERGED: What takes several calls, as steps that a blocking or an awaiting client carries out; it decides none of them.

generator ── Send, Perform ──► driven │ adriven
          ◄── reply, value, or the error raised ──┘
MERGED: One question up to its reply: composed, its tools run, its answer read by a schema; sending is left to others.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import dataclasses
import functools
import inspect
import secrets
import warnings
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

import pydantic
import pydantic_core

from famnb.client.exchange import labelled
from famnb.endpoints import compose, endpoint_able_to
from famnb.errors import FamnbError, Interrupted, InvalidRequest, ParseError
from famnb.reply import Block, Reply
from famnb.request import Request, structured_output
from famnb.request.base import expected, where
from famnb.request.tools import FunctionTool, as_tool
from famnb.validation import check_integer


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


Approve: TypeAlias = Callable[[Block], Any]
"""Asked before each call: True has it run; anything else declines it, a text is told to the model as the reason."""
GivenTools: TypeAlias = Sequence[Any] | None
"""Python functions, `famnb.tool`s, and tools as the request has them."""
MOST_ROUNDS = 8
"""How many rounds of tool calls run unless said otherwise."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one call."""

    call: Block
    """The model's call: `name`, `arguments`, `id`."""
    content: str
    """What the model is told: a text as it is, any other value as JSON, a failure as `{"error": …}`."""
    value: Any = None
    """What the function returned; None when it did not run to its end."""
    error: Exception | None = None
    """Why there is no value; None when there is one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """A reply that called tools, and the results in the order of its calls."""

    reply: Reply
    results: tuple[Result, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """The functions a model may call, and who decides whether they run."""

    functions: Mapping[str, FunctionTool]
    auto: bool = False
    approve: Approve | None = None
    max_rounds: int = MOST_ROUNDS
    ran: Callable[[Result], object] | None = None
    """Told each result at once, before the round is over."""

    @classmethod
    def among(cls, tools: Any, **options: Any) -> Tools:
        """Those of a request's `tools` that are Python functions; raises InvalidRequest."""
        given = tools if isinstance(tools, list | tuple) else ()
        functions = [as_tool(each) for each in given if callable(each)]
        names = [each.name for each in functions]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InvalidRequest(f"tools: two functions are named {twice[0]!r}; rename one with @famnb.tool(name=...)")
        made = cls(dict(zip(names, functions, strict=True)), **options)
        check_integer("max_rounds", made.max_rounds, minimum=1)
        if (made.auto or made.approve) and not functions:
            raise InvalidRequest("auto, approve: there is no function to run; give Python functions as tools=[...]")
        return made

    @property
    def run(self) -> bool:
        """Whether calls are run at all, rather than handed to the caller."""
        return bool(self.functions) and (self.auto or self.approve is not None)


def rounds(request: Request, labels: Mapping[str, str], tools: Tools) -> Steps:
    """The steps from a request to the reply that ends it, which carries the rounds before; each call has its labels."""
    loop = {"loop": secrets.token_hex(6)} if tools.functions else {}
    past: tuple[Round, ...] = ()
    while True:
        place = {**loop, "round": str(len(past) + 1)} if loop else {}
        try:
            reply: Reply = yield Send(request, {**labels, **place}, past)
        except (FamnbError, Interrupted) as failure:
            if failure.reply is not None:
                failure.reply = dataclasses.replace(failure.reply, rounds=past)
            raise
        reply = dataclasses.replace(reply, rounds=past) if past else reply
        if not reply.tool_calls or not tools.run or reply.status == "cancelled":
            return reply
        if len(past) == tools.max_rounds:
            said = f"the model still calls tools after {len(past)} rounds (max_rounds); its last calls were not run"
            warnings.warn(said, stacklevel=2)
            return dataclasses.replace(reply, warnings=(*reply.warnings, said))
        try:
            results = yield from _results(reply.tool_calls, tools)
        except KeyboardInterrupt:
            interrupted = Interrupted("a tool was running; the reply that called it is kept")
            interrupted.reply = reply
            raise interrupted from None
        past = (*past, Round(reply, results))
        request = request.with_tool_results(reply, [result.content for result in results])


def _results(calls: Sequence[Block], tools: Tools) -> Generator[Perform, Any, tuple[Result, ...]]:
    """Run calls, in their order."""
    made: list[Result] = []
    for call in calls:
        result = yield from _result(call, tools)
        made.append(result)
        if tools.ran is not None:
            yield Perform(functools.partial(tools.ran, result))
    return tuple(made)


def _result(call: Block, tools: Tools) -> Generator[Perform, Any, Result]:
    """Run one call; whatever goes wrong in it is told to the model, which can do better."""
    function = tools.functions.get(call.name)
    if function is None:
        known = ", ".join(tools.functions)
        return _failure(call, LookupError(f"there is no tool {call.name!r}; the tools are {known}"))
    try:
        arguments = function.bound(call.text)
    except ValueError as error:
        return _failure(call, error)
    if tools.approve is not None:
        verdict = yield Perform(functools.partial(tools.approve, call))
        if verdict is not True:
            reason = f": {verdict}" if verdict else ""
            return _failure(call, PermissionError(f"the user declined this call{reason}"))
    try:
        value = yield Perform(functools.partial(function, **arguments), aside=True)
        return Result(call=call, content=_content(value), value=value)
    except Exception as error:  # whatever a user's function raises
        return _failure(call, error, f"{type(error).__name__}: {error}")


def _failure(call: Block, error: Exception, words: str = "") -> Result:
    return Result(call=call, content=_failed(words or str(error)), error=error)


def _content(value: Any) -> str:
    if isinstance(value, str):
        return value
    return pydantic_core.to_json(value, fallback=str, inf_nan_mode="constants").decode()


def _failed(words: str) -> str:
    return pydantic_core.to_json({"error": words}).decode()


def ask(
    prompt: str,
    *,
    model: str | None,
    endpoint: str | None,
    tools: Any,
    schema: Any,
    labels: Mapping[str, str] | None,
    options: Mapping[str, Any],
    **fields: Any,
) -> Steps:
    """The steps of `Client.ask`; what cannot be sent is said at once, what the endpoint cannot carry is a warning."""
    able = Tools.among(tools, **options)
    name = endpoint or endpoint_able_to(model, tools=bool(able.functions), schema=schema is not None).name
    if tools is not None:
        fields["tools"] = tools
    request = compose(name, prompt, model=model, schema=schema, **fields)
    for loss in request.losses:
        warnings.warn(loss, stacklevel=3)
    return _steps(request, labelled(labels or {}), able, schema)


def parsed(reply: Reply, schema: Any) -> Reply:
    """The reply with `parsed`, an instance of the schema; raises ParseError when its answer is none.

    A reply that was stopped, or that calls tools, is returned as it is.
    """
    if schema is None or reply.status == "cancelled" or reply.tool_calls:
        return reply
    refusal = "".join(block.text for block in reply.blocks if block.kind == "refusal")
    if refusal or reply.finish_reason == "content_filter":
        raise _unparsed(reply, "refused", f"the model refused: {refusal[:200] or 'the answer was filtered'}")
    if reply.status == "incomplete" or reply.finish_reason == "length":
        cap = getattr(reply.request, "cap", "the token cap")
        raise _unparsed(reply, "incomplete", f"the answer was cut short; give more than it needs as {cap}")
    try:
        instance = structured_output.read(reply.text, schema)
    except pydantic.ValidationError as error:
        faults = [f"{where(each['loc']) or 'the answer'}: {expected(each)}" for each in error.errors(include_url=False)]
        name = getattr(schema, "__name__", schema)
        raise _unparsed(reply, "invalid", f"the answer is no {name}: {'; '.join(faults)}") from None
    return dataclasses.replace(reply, parsed=instance)


def _steps(request: Request, labels: Mapping[str, str], tools: Tools, schema: Any) -> Steps:
    reply = yield from rounds(request, labels, tools)
    return parsed(reply, schema)


def _unparsed(reply: Reply, reason: Any, words: str) -> ParseError:
    error = ParseError(words, reason=reason, partial=structured_output.growing(reply.text))
    error.reply = reply
    return error
