"""The settings of a board's panes: reads and checks what users give as `variants`, and makes requests of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from famnb.endpoints import ENDPOINTS, Endpoints, compose, resolve_endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.html import sanitize
from famnb.widget.html.request_text import message_texts

_EXPECTED = (
    'a list with, for each pane, fields such as {"endpoint": "messages", "model": "fam-2-5-pro"}, a famnb request, '
    "or what famnb.grid() returns; or a mapping of labels to fields"
)
Fields: TypeAlias = Mapping[str, Any]
_PLACEHOLDER = "…"
"""The prompt while only the settings are checked; fields without any prompt are no valid request."""
_SYSTEM_ROLES = ("system", "developer")


@dataclasses.dataclass(frozen=True, slots=True)
class PaneSettings:
    """What one pane of a board sends: fields as `famnb.compose` takes them, or a whole request."""

    label: str
    settings: Fields | Request
    given_label: str = ""
    """The label that the user gave; empty if it is made of the settings."""
    endpoints: Endpoints = dataclasses.field(default_factory=lambda: ENDPOINTS, repr=False)
    """The endpoints of the service that it is sent to."""

    def request(self, prompt: str, *, system: str = "") -> Request:
        """The request for a prompt, streamed unless the settings say otherwise; raises InvalidRequest, naming the pane.

        A whole request is sent with the prompt in place of its conversation, and unchanged without a prompt.
        """
        try:
            match self.settings:
                case Request():
                    return _replace_conversation(self.settings, prompt, system, self.endpoints)
                case _:
                    return _compose(dict(self.settings), prompt, system, self.endpoints)
        except (InvalidRequest, TypeError) as error:
            raise InvalidRequest(f"pane {self.label!r}: {error}") from None

    @property
    def losses(self) -> tuple[str, ...]:
        """What its endpoint cannot carry of the settings, a sentence each."""
        return self.example().losses

    def example(self) -> Request:
        """A request with these settings; raises InvalidRequest, naming the pane, if none can have them."""
        return self.settings if isinstance(self.settings, Request) else self.request(_PLACEHOLDER)


def read_variants(variants: object) -> tuple[PaneSettings, ...]:
    """Read `variants` as `Board` describes them; raises InvalidRequest, naming the pane, for bad settings."""
    match variants:
        case Mapping():
            pairs = [_read_variant(item, f"variants[{label!r}]", str(label)) for label, item in variants.items()]
        case str() | bytes() | Request():
            # All are iterable, and none is a list of settings.
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {variants!r:.80}")
        case Iterable():
            pairs = [_read_variant(item, f"variants[{index}]") for index, item in enumerate(variants)]
        case _:
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {variants!r:.80}")
    if not pairs:
        raise InvalidRequest(f"variants: there are none; expected {_EXPECTED}")
    labels = [sanitize.visible(label) for label in make_labels(pairs)]
    panes = tuple(
        PaneSettings(label, settings, given_label) for label, (given_label, settings) in zip(labels, pairs, strict=True)
    )
    duplicates = [label for label, count in Counter(labels).items() if count > 1]
    if duplicates:
        raise InvalidRequest(f"variants: {duplicates[0]!r} is the label of several panes; give each its own")
    for pane in panes:
        # Now rather than at the first prompt: this raises for settings that no request can have.
        pane.example()
    return panes


def _read_variant(item: Any, name: str, label: str = "") -> tuple[str, Fields | Request]:
    """The label of one variant, empty if it has none, and its settings; `name` is what an error calls it."""
    match item:
        case Request():
            return label, item
        case Mapping():
            fields = {str(key): value for key, value in item.items()}
            return str(fields.pop("label", "") or label), fields
        # A variant of `famnb.grid()`; not by its class, so that any object with label and fields will do.
        case _ if isinstance(getattr(item, "fields", None), Mapping):
            return label or str(getattr(item, "label", "")), dict(item.fields)
        case _:
            raise InvalidRequest(f"{name}: expected fields of a request, or a request; got {item!r:.80}")


def make_labels(pairs: list[tuple[str, Fields | Request]]) -> list[str]:
    """Return the label of each pane: its own, else endpoint, model and the settings that differ between panes."""
    descriptions = [_describe(settings) for _, settings in pairs]
    names = {name for description in descriptions for name in description}
    differing = {
        name
        for name in names
        if len({repr(description.get(name)) for description in descriptions}) > 1 or name in ("endpoint", "model")
    }
    uses: Counter[str] = Counter(label for label, _ in pairs if label)
    labels = []
    for (label, _), description in zip(pairs, descriptions, strict=True):
        if not label:
            label = plain = " · ".join(
                str(value) if name in ("endpoint", "model") else f"{name}={value!r:.24}"
                for name, value in description.items()
                if name in differing
            )
            # Equal panes are told apart by a number, since replies are found by label.
            while uses[label]:
                uses[plain] += 1
                label = f"{plain} ({uses[plain]})"
            uses[label] += 1
        labels.append(label)
    return labels


def _describe(settings: Fields | Request) -> dict[str, Any]:
    """Settings by name, endpoint and model first."""
    if isinstance(settings, Request):
        body = settings.body()
        hidden = {"model", "stream", "stream_options", settings.prompt_field}
        head = {"endpoint": settings.endpoint, "model": body.get("model")}
        return {**head, **{name: value for name, value in body.items() if name not in hidden}}
    model = settings.get("model")
    name = settings.get("endpoint") or resolve_endpoint(None, model or None).name
    rest = {name: value for name, value in settings.items() if name not in ("endpoint", "model", "stream")}
    return {"endpoint": name, **({"model": model} if model else {}), **rest}


def _compose(fields: dict[str, Any], prompt: str, system: str, endpoints: Endpoints) -> Request:
    if "prompt" in fields:
        raise InvalidRequest("prompt: every pane is asked the board's own prompt; leave it out")
    target = resolve_endpoint(fields.pop("endpoint", None) or None, fields.get("model") or None, endpoints)
    return compose(target.name, prompt, endpoints=endpoints, **{"system": system or None, "stream": True, **fields})


def _replace_conversation(request: Request, prompt: str, system: str, endpoints: Endpoints) -> Request:
    """The request with a prompt in place of its conversation; its own system text stays unless the board has one."""
    if not prompt:
        return request
    own_system = "\n\n".join(message.text for message in message_texts(request) if message.role in _SYSTEM_ROLES)
    system = system or own_system
    composed = compose(request.endpoint, prompt, system=system or None, endpoints=endpoints).body()
    # A cap that a vendor insists on is the request's own.
    own = ("model", request.cap)
    return request.replace(**{name: value for name, value in composed.items() if name not in own})
