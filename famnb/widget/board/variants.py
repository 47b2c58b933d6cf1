"""The variants of a board: what people write as a list of settings, read and checked; sending is left to the board."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from famnb.endpoints import compose, resolve_endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.html import sanitize
from famnb.widget.html.request_text import message_texts

_EXPECTED = (
    'a list with, for each pane, fields such as {"endpoint": "messages", "model": "fam-2-5-pro"}, a famnb request, '
    "or what famnb.grid() returns; or a mapping of labels to fields"
)
_UNWRITTEN = "…"
"""Stands for a prompt while only the settings are checked."""
_SYSTEM = ("system", "developer")


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """What one pane of a board sends: settings by name, or a whole request."""

    label: str
    settings: Mapping[str, Any] | Request

    def request(self, prompt: str, *, system: str = "") -> Request:
        """The request for a prompt, streamed unless the settings say otherwise; raises InvalidRequest, naming the pane.

        A whole request keeps all but its conversation, and without a prompt that too.
        """
        try:
            match self.settings:
                case Request():
                    return _asking(self.settings, prompt, system)
                case _:
                    return _composed(dict(self.settings), prompt, system)
        except (InvalidRequest, TypeError) as error:
            raise InvalidRequest(f"pane {self.label!r}: {error}") from None

    @property
    def losses(self) -> tuple[str, ...]:
        """What its endpoint cannot carry of the settings, in words."""
        return self.request(_UNWRITTEN).losses


def read(given: object) -> tuple[Variant, ...]:
    """Variants as people write them, checked by the request models; raises InvalidRequest, naming the pane."""
    match given:
        case Mapping():
            pairs = [_pair(each, f"variants[{label!r}]", str(label)) for label, each in given.items()]
        case str() | bytes() | Request():
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {given!r:.80}")
        case Iterable():
            pairs = [_pair(each, f"variants[{number}]") for number, each in enumerate(given)]
        case _:
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {given!r:.80}")
    if not pairs:
        raise InvalidRequest(f"variants: there are none; expected {_EXPECTED}")
    labels = [sanitize.visible(label) for label in _labels(pairs)]
    made = tuple(Variant(label, settings) for label, (_, settings) in zip(labels, pairs, strict=True))
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise InvalidRequest(f"variants: {twice[0]!r} is the label of several panes; give each its own")
    for variant in made:
        variant.request(_UNWRITTEN)
    return made


def _pair(given: Any, place: str, label: str = "") -> tuple[str, Mapping[str, Any] | Request]:
    """A label, empty where none was given, and the settings."""
    match given:
        case Request():
            return label, given
        case Mapping():
            fields = {str(name): value for name, value in given.items()}
            return str(fields.pop("label", "") or label), fields
        case _ if isinstance(getattr(given, "fields", None), Mapping):
            return label or str(getattr(given, "label", "")), dict(given.fields)
        case _:
            raise InvalidRequest(f"{place}: expected fields of a request, or a request; got {given!r:.80}")


def _labels(pairs: list[tuple[str, Mapping[str, Any] | Request]]) -> list[str]:
    """The label of each: its own, or else what tells it from the others."""
    named = [_named(settings) for _, settings in pairs]
    differing = {
        name
        for name in {name for each in named for name in each}
        if len({repr(each.get(name)) for each in named}) > 1 or name in ("endpoint", "model")
    }
    taken: Counter[str] = Counter(label for label, _ in pairs if label)
    labels = []
    for (label, _), each in zip(pairs, named, strict=True):
        if not label:
            label = plain = " · ".join(
                str(value) if name in ("endpoint", "model") else f"{name}={value!r:.24}"
                for name, value in each.items()
                if name in differing
            )
            while taken[label]:
                taken[plain] += 1
                label = f"{plain} ({taken[plain]})"
            taken[label] += 1
        labels.append(label)
    return labels


def _named(settings: Mapping[str, Any] | Request) -> dict[str, Any]:
    """The settings by name, endpoint and model first."""
    if isinstance(settings, Request):
        body = settings.body()
        hidden = {"model", "stream", settings.prompt_field}
        head = {"endpoint": settings.endpoint, "model": body.get("model")}
        return {**head, **{name: value for name, value in body.items() if name not in hidden}}
    model = settings.get("model")
    name = settings.get("endpoint") or resolve_endpoint(None, model or None).name
    rest = {name: value for name, value in settings.items() if name not in ("endpoint", "model", "stream")}
    return {"endpoint": name, **({"model": model} if model else {}), **rest}


def _composed(fields: dict[str, Any], prompt: str, system: str) -> Request:
    if "prompt" in fields:
        raise InvalidRequest("prompt: every pane is asked the board's own prompt; leave it out")
    at = resolve_endpoint(fields.pop("endpoint", None) or None, fields.get("model") or None)
    fields = {"system": system or None, "stream": True, **fields}
    usage = at.traits.usage_fields if fields["stream"] else {}
    return compose(at.name, prompt, **{**usage, **fields})


def _asking(request: Request, prompt: str, system: str) -> Request:
    if not prompt or prompt == _UNWRITTEN:
        return request
    own = "\n\n".join(turn.text for turn in message_texts(request) if turn.role in _SYSTEM)
    asked = compose(request.endpoint, prompt, system=system or own or None).body()
    return request.replace(**{name: value for name, value in asked.items() if name != "model"})
