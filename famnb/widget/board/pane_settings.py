"""The settings of a board's panes: reads and checks what users give as `variants`, and makes requests of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS, Endpoints, compose, endpoint, resolve_endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.form.draft import UNWRITTEN
from famnb.widget.html import sanitize
from famnb.widget.html.facts import message_texts

_EXPECTED = (
    'a list with, for each pane, fields such as {"endpoint": "messages", "model": "fam-2-5-pro"}, a famnb request, '
    "or what famnb.grid() returns; or a mapping of labels to fields"
)
Fields: TypeAlias = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class PaneSettings:
    """What one pane of a board sends: fields as `famnb.compose` takes them, or a whole request."""

    label: str
    settings: Fields | Request
    given_label: str = ""
    """The label that the user gave; empty if it is made of the settings."""
    client: BaseClient | None = None
    """Its own client; None for the board's."""
    client_name: str = ""
    """What its own client is called."""
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
        return self.settings if isinstance(self.settings, Request) else self.request(UNWRITTEN)


class GivenVariant(NamedTuple):
    """A variant as the user gave it."""

    label: str
    """Empty if it has none."""
    settings: Fields | Request
    client: BaseClient | None = None
    client_name: str = ""
    """Empty if the client has none."""


def read_variants(variants: object, endpoints: Endpoints = ENDPOINTS) -> tuple[PaneSettings, ...]:
    """Read `variants` as `Board` describes them; raises InvalidRequest, naming the pane, for bad settings.

    `endpoints` are those of the board's client, for variants without one of their own.
    """
    match variants:
        case Mapping():
            given = [_read_variant(item, f"variants[{label!r}]", str(label)) for label, item in variants.items()]
        case str() | bytes() | Request():
            # All are iterable, and none is a list of settings.
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {variants!r:.80}")
        case Iterable():
            given = [_read_variant(item, f"variants[{index}]") for index, item in enumerate(variants)]
        case _:
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {variants!r:.80}")
    if not given:
        raise InvalidRequest(f"variants: there are none; expected {_EXPECTED}")
    unnamed = [
        _settings_of(variant, name, endpoints) for variant, name in zip(given, _name_clients(given), strict=True)
    ]
    labels = [sanitize.visible(label) for label in make_labels(unnamed)]
    panes = tuple(dataclasses.replace(pane, label=label) for label, pane in zip(labels, unnamed, strict=True))
    duplicates = [label for label, count in Counter(labels).items() if count > 1]
    if duplicates:
        raise InvalidRequest(f"variants: {duplicates[0]!r} is the label of several panes; give each its own")
    for pane in panes:
        # Now rather than at the first prompt: this raises for settings that no request can have.
        pane.example()
    return panes


def find_client(variants: object) -> BaseClient | None:
    """Return the client of the first of `variants`, if every one of them has its own; else None."""
    items = list(variants.values()) if isinstance(variants, Mapping) else variants
    if not isinstance(items, list | tuple):
        return None
    clients = [item.get("client") if isinstance(item, Mapping) else getattr(item, "client", None) for item in items]
    return next(iter(clients), None) if all(isinstance(client, BaseClient) for client in clients) else None


def _read_variant(item: Any, name: str, label: str = "") -> GivenVariant:
    """Read one variant; `name` is what an error calls it."""
    match item:
        case Request():
            return GivenVariant(label, item)
        case Mapping():
            fields = {str(key): value for key, value in item.items()}
            client = _check_client(fields.pop("client", None), name)
            return GivenVariant(str(fields.pop("label", "") or label), fields, client)
        # A variant of `famnb.grid()`; not by its class, so that any object with label and fields will do.
        case _ if isinstance(getattr(item, "fields", None), Mapping):
            fields = dict(item.fields)
            client_name, client = str(fields.pop("client", "")), _check_client(getattr(item, "client", None), name)
            return GivenVariant(label or str(getattr(item, "label", "")), fields, client, client_name)
        case _:
            raise InvalidRequest(f"{name}: expected fields of a request, or a request; got {item!r:.80}")


def _check_client(client: object, name: str) -> BaseClient | None:
    if client is None or isinstance(client, BaseClient):
        return client
    raise InvalidRequest(f"{name}: client: expected a famnb.Client, such as famnb.connect() gives; got {client!r:.80}")


def _name_clients(variants: list[GivenVariant]) -> list[str]:
    """Return what each variant's own client is called: as given, else by its profile, and its address if need be."""
    clients = {id(variant.client): variant.client for variant in variants if variant.client is not None}
    profiles = Counter(client.profile.name for client in clients.values())
    names: dict[int, str] = {}
    for variant in variants:
        client = variant.client
        if client is not None and id(client) not in names:
            is_only = profiles[client.profile.name] == 1
            name = variant.client_name or (client.profile.name if is_only else client.base_url())
            names[id(client)] = name if name not in names.values() else f"{name} #{len(names) + 1}"
    return [names.get(id(variant.client), "") for variant in variants]


def _settings_of(variant: GivenVariant, client_name: str, endpoints: Endpoints) -> PaneSettings:
    """Return the settings of a pane, a request as one of its own client's service."""
    settings = variant.settings
    endpoints = endpoints if variant.client is None else variant.client.endpoints
    if isinstance(settings, Request):
        model = endpoint(settings.endpoint, endpoints).request
        settings = settings if type(settings) is model else model.from_body(settings.body())
    return PaneSettings(
        variant.label,
        settings,
        given_label=variant.label,
        client=variant.client,
        client_name=client_name,
        endpoints=endpoints,
    )


_TARGET_NAMES = ("client", "endpoint", "model")
"""The fields that say where a request goes, rather than what is in it."""


def make_labels(panes: Sequence[PaneSettings]) -> list[str]:
    """Return the label of each pane: its own, else endpoint, model and the settings that differ between panes."""
    descriptions = [_describe(pane) for pane in panes]
    names = {name for description in descriptions for name in description}
    differing = {
        name
        for name in names
        if len({repr(description.get(name)) for description in descriptions}) > 1 or name in ("endpoint", "model")
    }
    uses: Counter[str] = Counter(pane.given_label for pane in panes if pane.given_label)
    labels = []
    for pane, description in zip(panes, descriptions, strict=True):
        label = pane.given_label
        if not label:
            label = plain = " · ".join(
                str(value) if name in _TARGET_NAMES else f"{name}={value!r:.24}"
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


def _describe(pane: PaneSettings) -> dict[str, Any]:
    """Settings by name; client, endpoint and model first."""
    settings = pane.settings
    client = {"client": pane.client_name} if pane.client_name else {}
    if isinstance(settings, Request):
        body = settings.body()
        usage_fields = pane.endpoints[settings.endpoint].traits.usage_fields
        hidden = {"model", "stream", *usage_fields, settings.prompt_field}
        head = {**client, "endpoint": settings.endpoint, "model": body.get("model")}
        return {**head, **{name: value for name, value in body.items() if name not in hidden}}
    model = settings.get("model")
    name = settings.get("endpoint") or resolve_endpoint(None, model or None, pane.endpoints).name
    rest = {name: value for name, value in settings.items() if name not in ("endpoint", "model", "stream")}
    return {**client, "endpoint": name, **({"model": model} if model else {}), **rest}


def _compose(fields: dict[str, Any], prompt: str, system: str, endpoints: Endpoints) -> Request:
    if "prompt" in fields:
        raise InvalidRequest("prompt: every pane is asked the board's own prompt; leave it out")
    target = resolve_endpoint(fields.pop("endpoint", None) or None, fields.get("model") or None, endpoints)
    return compose(target.name, prompt, endpoints=endpoints, **{"system": system or None, "stream": True, **fields})


def _replace_conversation(request: Request, prompt: str, system: str, endpoints: Endpoints) -> Request:
    """The request with a prompt in place of its conversation; its own system text stays unless the board has one."""
    if not prompt:
        return request
    composed = compose(
        request.endpoint, prompt, system=system or system_text(request) or None, endpoints=endpoints
    ).body()
    # A cap that a vendor insists on is the request's own.
    own = ("model", request.cap)
    return request.replace(**{name: value for name, value in composed.items() if name not in own})


def system_text(request: Request) -> str:
    """Return what a request tells the model beside its conversation; empty if nothing."""
    return "\n\n".join(message.text for message in message_texts(request) if message.role in ("system", "developer"))
