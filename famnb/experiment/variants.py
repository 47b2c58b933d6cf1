"""Variants: which endpoint, model and settings are compared, checked before any call; prompts are not known here.

Neutral names (`system`, `max_tokens`, `thinking`, `schema`, `tools`) mean the same on every endpoint, as in
`famnb.compose`; every other name is a field of one endpoint's request or of several.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from famnb.endpoints import ENDPOINTS, Endpoint, compose, resolve_endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.wire import lenient_json

Fields: TypeAlias = Mapping[str, Any]
NEUTRAL = ("system", "max_tokens", "thinking", "schema", "tools")
PLACE = ("endpoint", "model")
LONGEST = 40
"""Characters of a value that a label shows."""
_EXPECTED = (
    "what famnb.grid() returns, a list of fields such as [{'model': 'fam-2-5-pro'}], or a mapping of labels to fields"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """One way to ask: a label, and the fields that make it."""

    label: str
    """Its name in frames, unique in the experiment."""
    fields: Fields
    """`endpoint`, `model` and request fields, as they were given."""


Variants: TypeAlias = "Iterable[Variant | Fields] | Mapping[str, Fields]"


def grid(
    *, where: Callable[[dict[str, Any]], bool] | None = None, skip: bool = False, **fields: Any
) -> tuple[Variant, ...]:
    """Every combination of the values given, a list a field; a value that is no list is the same in all.

    `endpoint` and `model` are varied like any request field. `where(combination)` keeps those for which it is true;
    `skip=True` drops those whose endpoint does not serve the model or does not take a field, which otherwise is an
    InvalidRequest, as is a name that no endpoint has. A field whose value is itself a list needs a list of lists.
    """
    choices = {name: _choices(name, values) for name, values in fields.items()}
    for name in choices:
        known(name)
    combined = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    chosen = [each for each in combined if where is None or where(dict(each))]
    if skip:
        chosen = [each for each in chosen if misfit(each) is None]
    if not chosen:
        raise InvalidRequest("grid: no combination is left; loosen where=, or name models that the endpoints serve")
    for each in chosen:
        if fault := misfit(each):
            raise InvalidRequest(f"grid: {fault}. Drop such combinations with skip=True or where=lambda v: …")
    return _labelled(chosen)


def variants_of(given: object, *, shared: Fields) -> tuple[Variant, ...]:
    """Variants of a grid, a list of fields, each with a `label` if it is to have one, or fields by label.

    Checked with the fields that all requests share; InvalidRequest, naming the variant, for what cannot be sent.
    """
    match given:
        case None:
            made = _labelled([{}])
        case Mapping():
            made = tuple(
                Variant(str(label), MappingProxyType(_fields(repr(label), each))) for label, each in given.items()
            )
        case Iterable() if not isinstance(given, str | bytes):
            made = _listed(list(given))
        case _:
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {given!r:.80}")
    if not made:
        raise InvalidRequest("variants: there are none; famnb.grid(model=[…]) makes some")
    if twice := {one.label for one in made if sum(other.label == one.label for other in made) > 1}:
        raise InvalidRequest(f"variants: the label {min(twice)!r} occurs twice; give each variant its own")
    for variant in made:
        checked(variant, shared)
    return made


def _listed(given: list[Variant | Fields]) -> tuple[Variant, ...]:
    """Variants of a list: those that are some already, the others labelled by their `label`, else by what differs."""
    plain = [_fields(str(place), one) for place, one in enumerate(given) if not isinstance(one, Variant)]
    labels = [fields.pop("label", None) for fields in plain]
    named = iter(
        dataclasses.replace(one, label=str(label)) if label else one
        for label, one in zip(labels, _labelled(plain), strict=True)
    )
    return tuple(one if isinstance(one, Variant) else next(named) for one in given)


def _fields(place: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"variants[{place}]: expected {_EXPECTED}; got {given!r:.80}")
    return {str(name): value for name, value in given.items()}


def checked(variant: Variant, shared: Fields) -> Request:
    """A request of the variant for a short prompt; InvalidRequest, naming the variant, where there can be none."""
    fields = {**shared, **variant.fields}
    for name in fields:
        known(name)
    if fault := misfit(fields, full=True):
        raise InvalidRequest(f"variant {variant.label!r}: {fault}")
    try:
        return requested("?", fields)
    except InvalidRequest as fault:
        raise InvalidRequest(f"variant {variant.label!r}: {fault}") from None


def requested(prompt: str, fields: Fields) -> Request:
    """The request of a prompt by a variant's fields: streamed unless they say otherwise, the usage asked for."""
    at = place(fields)
    rest = {name: value for name, value in fields.items() if name not in PLACE}
    if rest.setdefault("stream", True):
        rest = {**at.traits.usage_fields, **rest}
    return compose(at.name, prompt, model=fields.get("model"), **rest)


def place(fields: Fields) -> Endpoint:
    """The endpoint that the fields mean: theirs, else the model's, else `messages`."""
    return resolve_endpoint(fields.get("endpoint"), fields.get("model"))


def known(name: str) -> None:
    """Refuse the name of a field that no endpoint has, or that the prompts fill."""
    taken = {at.request.prompt_field for at in ENDPOINTS.values()}
    names = {field for at in ENDPOINTS.values() for field in at.request.model_fields} - taken | {*NEUTRAL, *PLACE}
    if name in taken:
        raise InvalidRequest(f"{name}: the prompts fill it; give texts as prompts, a system text as system=")
    if name in names:
        return
    near = difflib.get_close_matches(name, sorted(names), 3, 0.5)
    said = "; ".join(f"{each!r} ({', '.join(_homes(each))})" for each in near)
    raise InvalidRequest(
        f"{name}: no endpoint has such a field; "
        + (f"near it are {said}" if near else f"there are {', '.join(sorted(names))}")
    )


def misfit(fields: Fields, *, full: bool = False) -> str | None:
    """Why an endpoint does not serve the model or take a field, None if it does; `full` with no field yet to come."""
    if fields.get("endpoint") is None and not full:
        return None
    at, model = place(fields), fields.get("model")
    if model is not None and not _serves(at, model):
        homes = [other.name for other in ENDPOINTS.values() if _serves(other, model)]
        whose = f"only {', '.join(homes)}" if homes else f"no endpoint does; there are {', '.join(_models())}"
        return f"endpoint {at.name!r} does not serve model {model!r} ({whose})"
    for name, value in fields.items():
        if value is not None and name not in PLACE and at.name not in _homes(name):
            return f"{name}: endpoint {at.name!r} does not take it (only {', '.join(_homes(name))})"
    return None


def _homes(name: str) -> list[str]:
    """The endpoints that take a field or a neutral name."""
    if name == "tools":
        return [at.name for at in ENDPOINTS.values() if at.takes_tools]
    if name == "schema":
        return [at.name for at in ENDPOINTS.values() if at.traits.format]
    return [at.name for at in ENDPOINTS.values() if name in (*at.request.model_fields, *NEUTRAL, *PLACE)]


def _serves(at: Endpoint, model: Any) -> bool:
    try:
        compose(at.name, "?", model=model)
    except InvalidRequest:
        return False
    return True


def _models() -> list[str]:
    return list(dict.fromkeys(model for at in ENDPOINTS.values() for model in at.models))


def _choices(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return [values]
    # What a range of numpy holds is no int or float to a request.
    found = [each.item() if isinstance(each, np.generic) else each for each in values]
    if not found:
        raise InvalidRequest(f"grid: {name} has no values; give at least one, or leave it out")
    return found


def _labelled(combinations: list[dict[str, Any]]) -> tuple[Variant, ...]:
    """Variants labelled by what tells them apart."""
    names = list(dict.fromkeys(name for each in combinations for name in each))
    varied = [name for name in names if len({_shown(each.get(name)) for each in combinations}) > 1]
    labels: list[str] = []
    for each in combinations:
        shown = [name for name in varied or PLACE if name in each]
        words = [_worded(name, each[name]) for name in shown]
        label = ", ".join(word if len(word) <= LONGEST else f"{word[: LONGEST - 1]}…" for word in words) or "default"
        labels.append(label)
    numbered = [
        f"{label} #{labels[: at + 1].count(label)}" if labels.count(label) > 1 else label
        for at, label in enumerate(labels)
    ]
    return tuple(Variant(label, MappingProxyType(each)) for label, each in zip(numbered, combinations, strict=True))


def _worded(name: str, value: Any) -> str:
    """A field as a label has it; an object of one field, such as {"effort": "low"}, by that."""
    match value:
        case {**inner} if len(inner) == 1 and isinstance(only := next(iter(inner.values())), str | int | float):
            return f"{next(iter(inner))}={_shown(only)}"
        case _:
            return _shown(value) if name in PLACE else f"{name}={_shown(value)}"


def _shown(value: Any) -> str:
    """A value as a label has it."""
    match value:
        case str():
            return value
        case bool() | int() | float() | None:
            return str(value)
        case Mapping() | list() | tuple():
            try:
                return lenient_json.encode(value).decode()
            except TypeError:
                return str(value)
        case _:
            return str(getattr(value, "__name__", value))
