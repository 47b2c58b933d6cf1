"""What to tell someone before a request is sent: what got lost on the way to another endpoint, what may surprise."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import get_args

from famnb.endpoints import ENDPOINTS, Endpoint, compose, endpoint
from famnb.request import ChatRequest, MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.message_parts import Reasoning
from famnb.request.messages import Message, Thinking
from famnb.request.responses import InputItem, TextOptions
from famnb.widget.form.draft import Draft, Reading
from famnb.widget.form.fields import EXACT, FieldPath, FieldTexts, request_fields

_MODEL: FieldPath = ("model",)
_ALIKE: tuple[tuple[FieldPath, FieldPath], ...] = (
    (("text", "format", "type"), ("response_format", "type")),
    (("text", "format", "name"), ("response_format", "json_schema", "name")),
    (("text", "format", "schema"), ("response_format", "json_schema", "schema")),
    (("text", "format", "strict"), ("response_format", "json_schema", "strict")),
)
"""Fields that mean the same at different endpoints."""
_ROLES: Mapping[str, tuple[str, ...]] = {
    "responses": get_args(InputItem.model_fields["role"].annotation),
    "messages": get_args(Message.model_fields["role"].annotation),
}
"""Who may speak at the endpoints that do not let all."""
_TEXT_ONLY = ("web", "messages")
"""Endpoints whose content is text in the API's document."""
_SEEING = "chat and responses"


def carry_over(raw: FieldTexts, source: Endpoint, target: Endpoint) -> tuple[dict[FieldPath, str], tuple[str, ...]]:
    """The form's texts at another endpoint, and what it cannot carry, a sentence each.

    A field of the same name or meaning keeps its text, right or wrong; so does the model if it is served there.
    """
    known = {field.path for field in request_fields(target.request)}
    alike = {(source.request.cap,): (target.request.cap,), **dict(_ALIKE), **{there: here for here, there in _ALIKE}}
    alike[source.request.prompt_field,] = (target.request.prompt_field,)
    kept, lost = _exact(raw.get(EXACT, ""), target)
    unsaid: list[str] = []
    for path, text in raw.items():
        if path == EXACT:
            continue
        place = path if path in known else alike.get(path, path)
        if not text or (path == _MODEL and text == source.models[0] and text not in target.models):
            continue
        if place in known and (path != _MODEL or text in target.models):
            kept[place], unspoken = _spoken(text, target) if place == (target.request.prompt_field,) else (text, [])
            unsaid += unspoken
        else:
            lost[path[0]].append(path)
    budget = raw.get(("thinking", "budget_tokens"), "")
    thinking = int(budget) if "thinking" in lost and budget.isdecimal() and int(budget) > 0 else None
    if thinking is not None:
        del lost["thinking"]
        kept["reasoning", "effort"] = Reasoning.for_budget(thinking).effort or ""
    model = [f"`{raw[_MODEL]}` is left out: {target.name} does not serve it"] if lost.pop("model", None) else []
    losses = [*model, *compose(target.name, "-", thinking=thinking, **dict.fromkeys(lost)).losses]
    for name, paths in lost.items():
        if len(paths) == 1:
            losses = [loss.replace(f"`{name}`", f"`{'.'.join(paths[0])}`", 1) for loss in losses]
    return kept, (*losses, *unsaid)


def _exact(text: str, target: Endpoint) -> tuple[dict[FieldPath, str], defaultdict[str, list[FieldPath]]]:
    """What of the fields that are written as JSON is kept, and what is lost."""
    lost: defaultdict[str, list[FieldPath]] = defaultdict(list)
    try:
        values = json.loads(text or "{}")
    except ValueError:
        values = None
    if not isinstance(values, dict):
        return {EXACT: text}, lost
    for name in set(values) - set(target.request.model_fields):
        if any(name in at.request.model_fields for at in ENDPOINTS.values()):
            lost[name].append((name,))
    left = {name: value for name, value in values.items() if name not in lost}
    return ({EXACT: json.dumps(left, indent=2, ensure_ascii=False)} if left else {}), lost


def _spoken(text: str, target: Endpoint) -> tuple[str, list[str]]:
    """A conversation without the messages whose role is none at an endpoint, and a sentence for each such role."""
    roles = _ROLES.get(target.name)
    try:
        talk = json.loads(text)
    except ValueError:
        talk = None
    if roles is None or not isinstance(talk, list) or not all(isinstance(each, dict) for each in talk):
        return text, []
    left = [each for each in talk if each.get("role") in roles]
    gone = Counter(str(each.get("role")) for each in talk if each not in left)
    lost = [
        f"{count} {'message' if count == 1 else 'messages'} of role {role} left out: {target.name} has no such role"
        for role, count in gone.items()
    ]
    return (json.dumps(left, indent=2, ensure_ascii=False) if lost else text), lost


def unsent(draft: Draft, reading: Reading) -> list[str]:
    """What was written and is not sent, because a whole conversation is sent instead; a sentence each."""
    if not reading.replaced:
        return []
    at = endpoint(draft.endpoint)
    field, apart = at.request.prompt_field, {"system", "instructions"} & set(at.request.model_fields)
    lost = []
    if draft.system.strip() and not apart:
        lost.append(f"The system text is not sent: `{field}` is sent as it stands; write a system message there.")
    if draft.pictures:
        lost.append(f"The images are not sent: `{field}` is sent as it stands; write them there.")
    return lost


def hazards(draft: Draft, reading: Reading) -> list[str]:
    """What is allowed but seldom meant, a sentence each; nothing while the draft is no request."""
    if reading.request is None:
        return []
    if draft.pictures and draft.endpoint in _TEXT_ONLY:
        return [
            f"The API's document names images at {_SEEING} only: {draft.endpoint} may refuse them.",
            *surprises(reading.request),
        ]
    return surprises(reading.request)


def surprises(request: Request) -> list[str]:
    """What a request asks for that is seldom meant, a sentence each."""
    said = [*_of_cap(request), *_of_form(request)]
    match request:
        case ResponsesRequest(previous_response_id=earlier, instructions=system) if earlier and not system:
            said.append(
                "`previous_response_id` does not carry the earlier instructions over: write the system text again."
            )
        case WebChatRequest(tools=tools) if not tools and "tool_choice" in request.model_fields_set:
            said.append("`tool_choice` has no effect without `tools`.")
        case _:
            pass
    match request:
        case WebChatRequest(stream=True, stream_options=options) if not (options and options.include_usage):
            said.append("A streamed web chat reply carries no usage unless stream_options.include_usage is yes.")
        case WebChatRequest(stream=False, stream_options=options) if options:
            said.append("`stream_options` has no effect unless the reply is streamed.")
        case _:
            pass
    if {"temperature", "top_p"} <= request.model_fields_set:
        said.append("`temperature` and `top_p` both narrow the choice of words; change one and leave the other.")
    return said


def _of_cap(request: Request) -> list[str]:
    """Where the token cap may leave too little for the answer."""
    match request:
        case MessagesRequest(thinking=Thinking(type="enabled", budget_tokens=int(budget)), max_tokens=cap) if (
            budget >= cap
        ):
            return [f"The thinking budget of {budget:,} is not below max_tokens ({cap:,}), which counts thinking too."]
        case MessagesRequest(thinking=Thinking(type="disabled", budget_tokens=int())):
            return ["The thinking budget has no effect while `thinking.type` is disabled."]
        case ResponsesRequest(reasoning=reasoning, max_output_tokens=cap) if reasoning and "max_output_tokens" not in (
            request.model_fields_set
        ):
            return [f"max_output_tokens counts reasoning too; its default of {cap:,} may leave little for the answer."]
        case _:
            return []


def _of_form(request: Request) -> list[str]:
    """What is odd about the form that is asked for."""
    match request:
        case ResponsesRequest(text=TextOptions(format=form)) if form is not None:
            named, schema, kind = form.name, form.schema_, form.type
        case ChatRequest(response_format=form) | WebChatRequest(response_format=form) if form is not None:
            inner, kind = form.json_schema, form.type
            named, schema = (None, None) if inner is None else (inner.name, inner.schema_)
        case _:
            return []
    if kind != "json_schema":
        return [f"The schema has no effect while the form's type is {kind}."] if schema is not None else []
    return [] if named else ["The schema has no name, which some services insist on."]
