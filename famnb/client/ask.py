"""The steps of `Client.ask`: compose a request, run the tools that the model calls, read the answer by a schema.

request ── reply ──┬── no calls, or nobody to run them ── the reply
                   ├── calls ── (approved) ── run ── request + reply + results ── next round
                   └── paused while the service runs tools of its own ── request + reply ── next round

They are a generator, so that a blocking and an awaiting client share them; each carries the steps out in its own way:

generator ── Send, Perform ──► run_steps │ arun_steps
          ◄── reply, value, or the error raised ──┘
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

import msgspec
import pydantic
import pydantic_core

from famnb.client.exchange import normalize_labels
from famnb.endpoints import Endpoints, check_fields, compose, endpoint_able_to
from famnb.endpoints import endpoint as find_endpoint
from famnb.errors import FamnbError, Interrupted, InvalidRequest, ParseError
from famnb.reply import Block, Reply
from famnb.request import Request, structured_output
from famnb.request.base import describe_fault, format_location
from famnb.request.tools import FunctionTool, as_tool
from famnb.validation import check_integer

# Structs here, as in `events`: to make a dataclass of a class takes half a millisecond of each process's first use.


class Send(msgspec.Struct, frozen=True):
    """A step: send a request and wait for its reply, in view where a client shows its streams."""

    request: Request
    labels: Mapping[str, str]
    rounds: tuple[Any, ...] = ()
    """The rounds of tool calls before it (`Round`), each with its results."""


class Perform(msgspec.Struct, frozen=True):
    """A step: call a user's function; what it returns is awaited if it can be."""

    work: Callable[[], Any]
    is_slow: bool = False
    """Whether it may take long: then an awaiting client runs it in a thread, beside its event loop."""


Steps: TypeAlias = Generator[Send | Perform, Any, Reply]


def run_steps(steps: Steps, send: Callable[[Send], Reply]) -> Reply:
    """Carry out the steps one after another, blocking."""
    resume = functools.partial(steps.send, None)
    while True:
        try:
            step = resume()
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        try:
            resume = functools.partial(steps.send, send(step) if isinstance(step, Send) else _perform(step))
        except BaseException as error:  # the steps decide what an interrupt leaves behind
            resume = functools.partial(steps.throw, error)


async def arun_steps(steps: Steps, send: Callable[[Send], Awaitable[Reply]]) -> Reply:
    """Carry out the steps one after another, awaiting."""
    resume = functools.partial(steps.send, None)
    while True:
        try:
            step = resume()
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        try:
            resume = functools.partial(steps.send, await (send(step) if isinstance(step, Send) else _aperform(step)))
        except BaseException as error:  # as in `run_steps`; here an interrupt is often a cancellation
            resume = functools.partial(steps.throw, error)


def _perform(step: Perform) -> Any:
    value = step.work()
    if not inspect.isawaitable(value):
        return value
    # In a notebook a loop runs already, and it waits for this very cell; so another thread gets a loop of its own, with
    # the caller's context variables, as `asyncio.to_thread` does. `asyncio.run` takes coroutines alone; `wait_for`,
    # which is one, takes anything that can be awaited.
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        context, coroutine = contextvars.copy_context(), asyncio.wait_for(value, None)
        return executor.submit(context.run, asyncio.run, coroutine).result()


async def _aperform(step: Perform) -> Any:
    value = await asyncio.to_thread(step.work) if step.is_slow else step.work()
    return await value if inspect.isawaitable(value) else value


Approve: TypeAlias = Callable[[Block], Any]
"""Asked before each call: True has it run; anything else declines it, and a text is sent to the model as the reason."""
ToolsArgument: TypeAlias = Sequence[Any] | None
"""Python functions, `famnb.tool`s, and tools as the request has them."""
# Enough for a few look-ups one after another, and few enough that a model that calls in circles costs little.
MAX_ROUNDS = 8
"""How many rounds of tool calls run by default."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one tool call."""

    call: Block
    """The model's call: `name`, `arguments`, `id`."""
    content: str
    """What is sent to the model: a text as it is, any other value as JSON, a failure as `{"error": …}`."""
    value: Any = None
    """What the function returned; None when it did not run to its end."""
    error: Exception | None = None
    """Why there is no value; None when there is one."""


class Round(msgspec.Struct, frozen=True):
    """A reply that called tools, and the results in the order of its calls."""

    reply: Reply
    results: tuple[Result, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Tools:
    """The functions a model may call, and who decides whether they run."""

    functions: Mapping[str, FunctionTool]
    auto: bool = False
    approve: Approve | None = None
    max_rounds: int = MAX_ROUNDS
    on_result: Callable[[Result], object] | None = None
    """Called with each result at once, before the round is over."""

    @classmethod
    def from_argument(cls, tools: Any, **options: Any) -> Tools:
        """The Python functions among a request's `tools`. Raises InvalidRequest for one that cannot be a tool."""
        items = tools if isinstance(tools, list | tuple) else ()
        functions = [as_tool(item) for item in items if callable(item)]
        names = [function.name for function in functions]
        if duplicates := [name for name in names if names.count(name) > 1]:
            raise InvalidRequest(
                f"tools: two functions are named {duplicates[0]!r}; rename one with @famnb.tool(name=...)"
            )
        instance = cls(dict(zip(names, functions, strict=True)), **options)
        check_integer("max_rounds", instance.max_rounds, minimum=1)
        if (instance.auto or instance.approve) and not functions:
            raise InvalidRequest("auto, approve: there is no function to run; give Python functions as tools=[...]")
        return instance

    @property
    def run(self) -> bool:
        """Whether calls are run at all, rather than handed to the caller."""
        return bool(self.functions) and (self.auto or self.approve is not None)


def round_steps(request: Request, labels: Mapping[str, str], tools: Tools) -> Steps:
    """The steps from a request to the last reply, which carries the rounds before it; every call has the `labels`."""
    # Labels, so that the ledger can tell which calls were rounds of one `ask`.
    loop = {"loop": secrets.token_hex(6)} if tools.functions else {}
    rounds: tuple[Round, ...] = ()
    while True:
        round_labels = {**loop, "round": str(len(rounds) + 1)} if loop else {}
        try:
            reply: Reply = yield Send(request, {**labels, **round_labels}, rounds)
        except (FamnbError, Interrupted) as failure:
            if failure.reply is not None:
                failure.reply = dataclasses.replace(failure.reply, rounds=rounds)
            raise
        reply = dataclasses.replace(reply, rounds=rounds) if rounds else reply
        # The service ran tools of its own for as long as it may in one request, and goes on with the next.
        is_paused = reply.stop_reason == "pause_turn" and not reply.tool_calls
        if not is_paused and (not reply.tool_calls or not tools.run or reply.status == "cancelled"):
            return reply
        # Not an error: the reply so far is paid for, and the caller may want it.
        if len(rounds) == tools.max_rounds:
            warning = (
                f"the model still calls tools after {len(rounds)} rounds (max_rounds); its last calls were not run"
            )
            warnings.warn(warning, stacklevel=2)
            return dataclasses.replace(reply, warnings=(*reply.warnings, warning))
        results: list[Result] = []
        try:
            for call in reply.tool_calls:
                results.append((yield from _run_call(call, tools)))
                if tools.on_result is not None:
                    yield Perform(functools.partial(tools.on_result, results[-1]))
        except KeyboardInterrupt:
            interrupted = Interrupted("a tool was running; the reply that called it is kept")
            interrupted.reply = reply
            # Without the KeyboardInterrupt, which a cell's traceback would show above this one.
            raise interrupted from None
        rounds = (*rounds, Round(reply, tuple(results)))
        request = request.with_tool_results(reply, [result.content for result in results])


def _run_call(call: Block, tools: Tools) -> Generator[Perform, Any, Result]:
    """Run one call; whatever goes wrong in it becomes a result for the model, which can do better next."""
    function = tools.functions.get(call.name)
    if function is None:
        names = ", ".join(tools.functions)
        return _failure(call, LookupError(f"there is no tool {call.name!r}; the tools are {names}"))
    try:
        arguments = function.bind(call.text)
    except ValueError as error:
        return _failure(call, error)
    if tools.approve is not None:
        verdict = yield Perform(functools.partial(tools.approve, call))
        if verdict is not True:
            reason = f": {verdict}" if verdict else ""
            return _failure(call, PermissionError(f"the user declined this call{reason}"))
    try:
        value = yield Perform(functools.partial(function, **arguments), is_slow=True)
        text = value if isinstance(value, str) else _to_json(value)
        return Result(call=call, content=text, value=value)
    except Exception as error:  # whatever a user's function raises
        return _failure(call, error, f"{type(error).__name__}: {error}")


def _failure(call: Block, error: Exception, message: str = "") -> Result:
    return Result(call=call, content=_to_json({"error": message or str(error)}), error=error)


def _to_json(value: Any) -> str:
    return pydantic_core.to_json(value, fallback=str, inf_nan_mode="constants").decode()


def ask_steps(
    prompt: str,
    *,
    endpoints: Endpoints,
    model: str | None = None,
    endpoint: str | None = None,
    schema: Any = None,
    tools: ToolsArgument = None,
    auto: bool = False,
    approve: Approve | None = None,
    max_rounds: int = MAX_ROUNDS,
    stream: bool = True,
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> Steps:
    """The steps of `Client.ask`. Raises InvalidRequest at once; what the endpoint cannot carry is a warning."""
    runnable = Tools.from_argument(tools, auto=auto, approve=approve, max_rounds=max_rounds)
    default = endpoint_able_to(model, tools=bool(runnable.functions), schema=schema is not None, endpoints=endpoints)
    # Here as well as in `compose`, which does not know what else `ask` takes.
    target = find_endpoint(endpoint or default.name, endpoints)
    others = ("endpoint", "tools", "labels", "auto", "approve", "max_rounds")
    check_fields(target, fields, endpoints, besides=others)
    if tools is not None:
        fields["tools"] = tools
    request = compose(target.name, prompt, model=model, schema=schema, stream=stream, endpoints=endpoints, **fields)
    for loss in request.losses:
        warnings.warn(loss, stacklevel=3)
    labels = normalize_labels(labels or {})

    def take_steps() -> Steps:
        reply = yield from round_steps(request, labels, runnable)
        return parse_reply(reply, schema)

    return take_steps()


def parse_reply(reply: Reply, schema: Any) -> Reply:
    """The reply with `parsed`, an instance of the schema. Raises ParseError if the answer is not an instance.

    A reply that was stopped, that runs in the background, or that calls tools, is returned as it is.
    """
    if schema is None or reply.status in ("cancelled", "running") or reply.tool_calls:
        return reply
    refusal = "".join(block.text for block in reply.blocks if block.kind == "refusal")
    if refusal or reply.finish_reason == "content_filter":
        raise _parse_error(reply, "refused", f"the model refused: {refusal[:200] or 'the answer was filtered'}")
    if reply.status == "incomplete" or reply.finish_reason == "length":
        cap = getattr(reply.request, "cap", "the token cap")
        raise _parse_error(reply, "incomplete", f"the answer was cut short; give more than it needs as {cap}")
    try:
        instance = structured_output.parse(reply.text, schema)
    except pydantic.ValidationError as error:
        faults = [
            f"{format_location(fault['loc']) or 'the answer'}: {describe_fault(fault)}"
            for fault in error.errors(include_url=False)
        ]
        name = "object of the schema" if isinstance(schema, Mapping) else getattr(schema, "__name__", schema)
        raise _parse_error(reply, "invalid", f"the answer is no {name}: {'; '.join(faults)}") from None
    return dataclasses.replace(reply, parsed=instance)


def _parse_error(reply: Reply, reason: Any, message: str) -> ParseError:
    error = ParseError(message, reason=reason, partial=structured_output.parse_partial(reply.text))
    error.reply = reply
    return error
