"""The request to an upstream: a prompt as a chat completion, and which of its fields can be left out.

    required      model, messages, stream, tools, tool_choice, what the caller set
    dispensable   stream_options, reasoning_effort, chat_template_kwargs, verbosity, parallel_tool_calls, sampling that
                  the caller left open
    in two ways   max_tokens or max_completion_tokens; a schema as json_schema or beside json_object;
                  the one tool to call as `required` or by its name
Servers refuse fields that they do not know. A dispensable field is then left out, one of the last kind sent in the
other way.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Set
from typing import Any, TypeAlias

from famnb.errors import APIStatusError
from famnb.request.message_parts import nearest_effort
from famnb.request.neutral import PromptTurn
from famnb.service.prompt import GenerationPrompt

RefusedField: TypeAlias = tuple[str, str]
"""A field that an upstream refused, and its value: it may accept the field with another value."""
_CAP, _OTHER_CAP = "max_tokens", "max_completion_tokens"
"""The field of the token limit, and the one that servers which refuse it take instead."""
_FORMAT = "response_format"
_CHOICE = "tool_choice"
_REQUIRED = "required"
_CALLERS_OWN = ("reasoning_effort", "verbosity", "parallel_tool_calls")
"""The dispensable fields that only a caller sets."""


@dataclasses.dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to an upstream."""

    body: dict[str, Any]
    dispensable: frozenset[str]
    """The fields of it that may be left out, or sent in another way, if the upstream refuses them."""
    left_out: tuple[str, ...] = ()
    """What the caller asked for and the upstream refuses, in its words."""

    def find_refused_fields(self, error: APIStatusError) -> set[RefusedField]:
        """Return the dispensable fields that an error names; none if it is about something else."""
        if not is_invalid_request(error):
            return set()
        # What follows "expected" in a message names fields that would have been accepted.
        message = f"{error.param or ''} {re.split(r'expected', str(error))[0]}"
        names = {name for name in self.dispensable if re.search(rf"(?<!\w){name}(?!\w)", message)}
        if "json_schema" not in message or "invalid schema" in message.lower():
            names.discard(_FORMAT)  # the schema itself may be wrong, which the caller should learn
        return {_mark(name, self.body[name]) for name in names}


def build_upstream_request(
    prompt: GenerationPrompt, *, model: str, refused: Set[RefusedField] = frozenset()
) -> UpstreamRequest:
    """Return the request for a prompt; `model` is the upstream's name, `refused` what it is known to refuse."""
    # Only a stream shows how long thinking took, which is part of a thinking block.
    stream = prompt.streams or prompt.thinking is not None
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    messages = system + [_message(turn) for turn in prompt.turns]
    body = {"model": model, "messages": messages, "stream": stream, **_tools(prompt)}
    dispensable, left_out = dict(prompt.sampling), list[str]()
    effort = prompt.effort
    if effort is None and prompt.thinking is not None:
        effort = nearest_effort(prompt.thinking)
    if effort is not None:
        dispensable["reasoning_effort"] = effort
        # The chat templates of models with optional thinking (Qwen3 and others) switch it by a field of their own.
        dispensable["chat_template_kwargs"] = {"enable_thinking": effort != "none"}
    if prompt.verbosity is not None:
        dispensable["verbosity"] = prompt.verbosity
    if body.get(_CHOICE) == _REQUIRED and len(body["tools"]) == 1:
        # The word first, since llama.cpp's server takes the name for `auto`; by the name where the word is refused.
        dispensable[_CHOICE] = _REQUIRED
        function = {"name": body["tools"][0]["function"]["name"]}
        body[_CHOICE] = {"type": "function", "function": function}
    for name in ("temperature", "top_p"):
        value = getattr(prompt, name)
        if value is not None:
            (body if name in prompt.explicit else dispensable)[name] = value
    if stream:
        dispensable["stream_options"] = {"include_usage": True}
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if prompt.parallel_tool_calls is not None and prompt.tools:
        dispensable["parallel_tool_calls"] = prompt.parallel_tool_calls
    if prompt.enforced_cap is not None:
        dispensable[_CAP] = prompt.cap
        if _mark(_CAP, prompt.cap) in refused:
            body[_OTHER_CAP] = prompt.cap
    form = prompt.answer_format
    if form.schema is not None:
        strict = {} if form.strict is None else {"strict": form.strict}
        json_schema = {"name": form.name or "answer", "schema": form.schema, **strict}
        dispensable[_FORMAT] = {"type": "json_schema", "json_schema": json_schema}
        if _mark(_FORMAT, dispensable[_FORMAT]) in refused:
            body[_FORMAT] = {"type": "json_object", "schema": form.schema}
            left_out += form.labels
    elif form.json:
        body[_FORMAT] = {"type": "json_object"}
    accepted = {name: value for name, value in dispensable.items() if _mark(name, value) not in refused}
    left_out += [name for name in prompt.sampling if name not in accepted]
    left_out += [name for name in _CALLERS_OWN if name in dispensable and name not in accepted]
    return UpstreamRequest({**body, **accepted}, frozenset(accepted), tuple(left_out))


def is_invalid_request(error: APIStatusError) -> bool:
    """Whether an error means that the request is invalid; some servers report that with status 500."""
    return error.status in (400, 413, 422) or "validation error" in str(error)


def _mark(name: str, value: Any) -> RefusedField:
    """Return a field as it is remembered: a refused token limit is refused whatever its value."""
    match name, value:
        case ("max_tokens", _):
            return name, ""
        case ("response_format", {"type": type_}):
            return name, type_
        case _:
            return name, repr(value)


def _message(turn: PromptTurn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": turn.text}
    if turn.name:
        message["name"] = turn.name
    if turn.images:
        image_parts = [{"type": "image_url", "image_url": {"url": url}} for url in turn.images]
        message["content"] = [*([{"type": "text", "text": turn.text}] if turn.text else []), *image_parts]
    if turn.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
            for call in turn.tool_calls
        ]
    if turn.tool_call_id:
        message["tool_call_id"] = turn.tool_call_id
    return message


def _tools(prompt: GenerationPrompt) -> dict[str, Any]:
    if not prompt.tools:
        return {}
    # A tool that must be called is the only one sent, since few servers understand a choice by name.
    tools = [tool for tool in prompt.tools if prompt.forced_tool in (None, tool.name)]
    functions = [tool.model_dump(mode="json", exclude_unset=True) for tool in tools]
    fields: dict[str, Any] = {"tools": [{"type": "function", "function": function} for function in functions]}
    if prompt.tool_choice != "auto":
        fields[_CHOICE] = prompt.tool_choice
    return fields
