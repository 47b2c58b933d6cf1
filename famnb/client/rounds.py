"""Rounds of tool calls: the model calls functions, they run, and it is told what they returned, until it answers.

request ── reply ──┬── no calls, or nobody to run them ── the reply
                   └── calls ── (approved) ── run ── request + reply + results ── next round
"""

from __future__ import annotations

import dataclasses
import functools
import secrets
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

import pydantic_core

from famnb.client.steps import Perform, Send, Steps
from famnb.errors import FamnbError, Interrupted, InvalidRequest
from famnb.reply import Block, Reply
from famnb.request import Request
from famnb.request.tools import FunctionTool, as_tool

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
        most = made.max_rounds
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InvalidRequest(f"max_rounds: expected an integer of at least 1, got {most!r}")
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
        # A tool that must be called would be called for ever.
        asked = {"tool_choice": None} if len(past) == 1 and request.body().get("tool_choice") != "none" else {}
        request = request.replace(messages=[*request.body()["messages"], *told(reply, results)], **asked)


def told(reply: Reply, results: Sequence[Result] = ()) -> list[dict[str, Any]]:
    """A reply and what came of its tool calls as web chat's messages; a call without a result was not run."""
    calls = reply.tool_calls
    if not calls:
        return [{"role": "assistant", "content": reply.text}] if reply.text else []
    ids = [call.id or f"call_{place}" for place, call in enumerate(calls, start=1)]
    made = [
        {"id": id_, "type": "function", "function": {"name": call.name or "unknown", "arguments": call.text or "{}"}}
        for id_, call in zip(ids, calls, strict=True)
    ]
    contents = [result.content for result in results] or [_failed("this call was not run")] * len(calls)
    answers = [
        {"role": "tool", "tool_call_id": id_, "content": content} for id_, content in zip(ids, contents, strict=True)
    ]
    return [{"role": "assistant", "content": reply.text, "tool_calls": made}, *answers]


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
