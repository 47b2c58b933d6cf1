"""What to tell someone before a request is sent: what got lost on the way to another endpoint, what may surprise."""

from __future__ import annotations

from famnb.endpoints import Endpoint, compose
from famnb.request import MessagesRequest, Request, ResponsesRequest, WebChatRequest
from famnb.request.content import Reasoning
from famnb.widget.fields import Path, Raw, fields


def carried(raw: Raw, source: Endpoint, target: Endpoint) -> tuple[dict[Path, str], tuple[str, ...]]:
    """The form's texts at another endpoint, and what it cannot carry, a sentence each.

    A field of the same name keeps its text, right or wrong; the token cap takes the target's name.
    """
    known = {field.path for field in fields(target.request)}
    kept: dict[Path, str] = {}
    lost: set[str] = set()
    for path, text in raw.items():
        if not text or path == ("model",):
            continue
        place = (target.request.cap,) if path == (source.request.cap,) else path
        if place in known:
            kept[place] = text
        else:
            lost.add(path[0])
    budget = raw.get(("thinking", "budget_tokens"), "")
    thinking = int(budget) if "thinking" in lost and budget.isdecimal() and int(budget) > 0 else None
    if thinking is not None:
        lost.discard("thinking")
        kept["reasoning", "effort"] = Reasoning.for_budget(thinking).effort or ""
    losses = compose(target.name, "-", thinking=thinking, **dict.fromkeys(lost)).losses
    return kept, losses


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
