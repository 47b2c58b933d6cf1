"""What to tell someone before a request is sent: what got lost on the way to another endpoint, what may surprise."""

from __future__ import annotations

from collections import defaultdict

from famnb.endpoints import Endpoint, compose
from famnb.request import MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.content import Reasoning
from famnb.widget.fields import Path, Raw, fields

_MODEL: Path = ("model",)
_ALIKE: tuple[tuple[Path, Path], ...] = (
    (("text", "format", "type"), ("response_format", "type")),
    (("text", "format", "name"), ("response_format", "json_schema", "name")),
    (("text", "format", "schema"), ("response_format", "json_schema", "schema")),
    (("text", "format", "strict"), ("response_format", "json_schema", "strict")),
)
"""Fields that mean the same at different endpoints."""


def carried(raw: Raw, source: Endpoint, target: Endpoint) -> tuple[dict[Path, str], tuple[str, ...]]:
    """The form's texts at another endpoint, and what it cannot carry, a sentence each.

    A field of the same name or meaning keeps its text, right or wrong; so does the model if it is served there.
    """
    known = {field.path for field in fields(target.request)}
    alike = {(source.request.cap,): (target.request.cap,), **dict(_ALIKE), **{there: here for here, there in _ALIKE}}
    kept: dict[Path, str] = {}
    lost: defaultdict[str, list[Path]] = defaultdict(list)
    for path, text in raw.items():
        place = path if path in known else alike.get(path, path)
        if not text or (path == _MODEL and text == source.models[0] and text not in target.models):
            continue
        if place in known and (path != _MODEL or text in target.models):
            kept[place] = text
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
    return kept, tuple(losses)


def unsent(request: Request, *, system: str, replaced: bool) -> list[str]:
    """What was written and is not sent, because a whole conversation is sent instead; a sentence each."""
    name = request.prompt_field
    if not system or not replaced or isinstance(request, MessagesRequest | ResponsesRequest):
        return []
    return [f"The system text is not sent: `{name}` is sent as it stands; write a system message there."]


def surprises(request: Request) -> list[str]:
    """What is allowed but seldom meant, a sentence each."""
    match request:
        case MessagesRequest(thinking=thinking, max_tokens=cap) if thinking and thinking.type == "enabled":
            budget = thinking.budget_tokens
            if budget is not None and budget >= cap:
                return [
                    f"The thinking budget of {budget:,} is not below max_tokens ({cap:,}), which counts thinking too."
                ]
        case ResponsesRequest(reasoning=reasoning, max_output_tokens=cap) if reasoning and "max_output_tokens" not in (
            request.model_fields_set
        ):
            return [f"max_output_tokens counts reasoning too; its default of {cap:,} may leave little for the answer."]
        case WebChatRequest(stream=True, stream_options=options) if not (options and options.include_usage):
            return ["A streamed web chat reply carries no usage unless stream_options.include_usage is yes."]
        case _:
            pass
    return []
