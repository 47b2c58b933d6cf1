"""What to tell someone before a request is sent: what got lost on the way to another endpoint, what may surprise."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

from famnb.endpoints import ENDPOINTS, Endpoint, compose, endpoint
from famnb.request.message_parts import Reasoning
from famnb.widget.form.draft import Draft, Reading
from famnb.widget.form.fields import EXACT, FieldPath, FieldTexts, request_fields

_MODEL: FieldPath = ("model",)


def carry_over(raw: FieldTexts, source: Endpoint, target: Endpoint) -> tuple[dict[FieldPath, str], tuple[str, ...]]:
    """The form's texts at another endpoint, and what it cannot carry, a sentence each.

    A field of the same name or meaning keeps its text, right or wrong; so does the model if it is served there.
    """
    known = {field.path for field in request_fields(target.request)}
    alike: dict[FieldPath, FieldPath] = {
        (source.request.cap,): (target.request.cap,),
        (source.request.prompt_field,): (target.request.prompt_field,),
    }
    if source.traits.format and target.traits.format:
        alike |= source.traits.format.counterparts(target.traits.format)
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
        if target.traits.thinking == "effort":
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
    roles = target.traits.roles
    others = {role for other in ENDPOINTS.values() for role in other.traits.roles}
    try:
        talk = json.loads(text)
    except ValueError:
        talk = None
    if others <= {*roles} or not isinstance(talk, list) or not all(isinstance(each, dict) for each in talk):
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
    field = at.request.prompt_field
    lost = []
    if draft.system.strip() and at.traits.system_field is None:
        lost.append(f"The system text is not sent: `{field}` is sent as it stands; write a system message there.")
    if draft.pictures:
        lost.append(f"The images are not sent: `{field}` is sent as it stands; write them there.")
    return lost


def hazards(draft: Draft, reading: Reading) -> list[str]:
    """What is allowed but seldom meant, a sentence each; nothing while the draft is no request."""
    if reading.request is None:
        return []
    if draft.pictures and not endpoint(draft.endpoint).traits.documents_images:
        able = " and ".join(other.name for other in ENDPOINTS.values() if other.traits.documents_images)
        return [
            f"The API's document names images at {able} only: {draft.endpoint} may refuse them.",
            *reading.request.hints(),
        ]
    return reading.request.hints()
