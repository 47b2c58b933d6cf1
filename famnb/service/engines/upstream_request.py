"""What an upstream is asked: the neutral prompt in the field's chat dialect, and what of it can be left out.

    required      model, messages, stream, tools, tool_choice, what the caller set
    dispensable   stream_options, reasoning_effort, chat_template_kwargs, verbosity, sampling that the caller left open
    in two ways   max_tokens or max_completion_tokens; a schema as json_schema or beside json_object
Servers refuse what they do not know; a dispensable field is then left out, a field with two ways said in the other.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Set
from typing import Any, TypeAlias

from famnb.errors import APIStatusError
from famnb.request.message_parts import Reasoning
from famnb.request.neutral import AnswerFormat, PromptTurn
from famnb.request.types import PRO_MODELS
from famnb.service.prompt import GenerationPrompt

RefusedField: TypeAlias = tuple[str, str]
"""A field that an upstream refused, with its value: another value of it may be welcome."""
_CAP, _OTHER_CAP = "max_tokens", "max_completion_tokens"
"""The field that holds the cap, and what servers that refuse it want instead."""
_FORM = "response_format"


@dataclasses.dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to an upstream."""

    body: dict[str, Any]
    dispensable: frozenset[str]
    """The fields of it that may be left out, or said in another way, where the upstream refuses them."""

    def refused(self, error: APIStatusError) -> set[RefusedField]:
        """The dispensable fields that an error names; none where it is about something else."""
        if not invalid(error):
            return set()
        # What stands after this word names the fields that would have been welcome.
        words = f"{error.param or ''} {re.split(r'expected', str(error))[0]}"
        named = {name for name in self.dispensable if re.search(rf"(?<!\w){name}(?!\w)", words)}
        if "json_schema" not in words or "invalid schema" in words.lower():
            named.discard(_FORM)  # the schema itself may be at fault, which the caller should hear
        return {_mark(name, self.body[name]) for name in named}


def asking(prompt: GenerationPrompt, *, model: str, refused: Set[RefusedField] = frozenset()) -> UpstreamRequest:
    """The chat completion that an upstream is asked for, by its own name of the model and without what it refused."""
    # Only a stream tells how long thinking took, which a shown thinking block says.
    stream = prompt.streams or prompt.thinking is not None
    body = {"model": model, "messages": _messages(prompt), "stream": stream, **_tools(prompt)}
    dispensable = _hints(prompt)
    for name in ("temperature", "top_p"):
        value = getattr(prompt, name)
        if value is not None:
            (body if name in prompt.asked else dispensable)[name] = value
    if stream:
        dispensable["stream_options"] = {"include_usage": True}
    if "cap" in prompt.asked or prompt.model in PRO_MODELS:
        # The other models have no documented default: the upstream's own is in force, as far as its context reaches.
        dispensable[_CAP] = prompt.cap
        if _mark(_CAP, prompt.cap) in refused:
            body[_OTHER_CAP] = prompt.cap
    if prompt.form.schema is not None:
        dispensable[_FORM] = _schema(prompt.form, prompt.form.schema)
        if _mark(_FORM, dispensable[_FORM]) in refused:
            body[_FORM] = {"type": "json_object", "schema": prompt.form.schema}
    elif prompt.form.json:
        body[_FORM] = {"type": "json_object"}
    kept = {name: value for name, value in dispensable.items() if _mark(name, value) not in refused}
    return UpstreamRequest({**body, **kept}, frozenset(kept))


def invalid(error: APIStatusError) -> bool:
    """Whether an upstream means that the request is at fault; some say so with a status that blames themselves."""
    return error.status in (400, 413, 422) or "validation error" in str(error)


def _mark(name: str, value: Any) -> RefusedField:
    match name, value:
        case ("max_tokens", _):
            return name, ""
        case ("response_format", {"type": type_}):
            return name, type_
        case _:
            return name, repr(value)


def _hints(prompt: GenerationPrompt) -> dict[str, Any]:
    """How much to think and to say, in the words that servers have for it."""
    hints: dict[str, Any] = {}
    effort = prompt.effort if prompt.thinking is None else Reasoning.for_budget(prompt.thinking).effort
    if effort is not None:
        hints["reasoning_effort"] = effort
        # Templates of models that can think or not are told so apart from the effort.
        hints["chat_template_kwargs"] = {"enable_thinking": effort != "none"}
    if prompt.verbosity is not None:
        hints["verbosity"] = prompt.verbosity
    return hints


def _messages(prompt: GenerationPrompt) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return system + [_message(turn) for turn in prompt.turns]


def _message(turn: PromptTurn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": turn.text}
    if turn.images:
        shown = [{"type": "image_url", "image_url": {"url": url}} for url in turn.images]
        message["content"] = [*([{"type": "text", "text": turn.text}] if turn.text else []), *shown]
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
            for call in turn.calls
        ]
    if turn.answers:
        message["tool_call_id"] = turn.answers
    return message


def _tools(prompt: GenerationPrompt) -> dict[str, Any]:
    if not prompt.tools:
        return {}
    functions = [tool.model_dump(mode="json", exclude_unset=True) for tool in prompt.tools]
    fields: dict[str, Any] = {"tools": [{"type": "function", "function": function} for function in functions]}
    # More servers understand a tool that is named than one that is only required.
    sole = prompt.tools[0].name if prompt.tool_choice == "required" and len(prompt.tools) == 1 else None
    if named := prompt.forced_tool or sole:
        fields["tool_choice"] = {"type": "function", "function": {"name": named}}
    elif prompt.tool_choice != "auto":
        fields["tool_choice"] = prompt.tool_choice
    return fields


def _schema(form: AnswerFormat, schema: dict[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {"name": form.name or "answer", "schema": schema}
    if form.strict is not None:
        named["strict"] = form.strict
    return {"type": "json_schema", "json_schema": named}
