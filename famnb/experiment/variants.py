"""Variants: the endpoints, models and settings that an experiment compares, checked before any call.

Neutral names (`system`, `max_tokens`, `thinking`, `schema`, `tools`) mean the same on every endpoint, as in
`famnb.compose`; every other name is a field of one endpoint's request or of several.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints, compose, resolve_endpoint
from famnb.errors import InvalidRequest
from famnb.formatting import shorten
from famnb.request import Request
from famnb.wire import lenient_json

Fields: TypeAlias = Mapping[str, Any]
NEUTRAL_FIELDS = ("system", "max_tokens", "thinking", "schema", "tools")
TARGET_FIELDS = ("endpoint", "model", "client")
"""The fields that say where a request goes, rather than what is in it."""
MAX_LABEL_CHARS = 40
"""Characters of one value in a label: enough to tell system texts apart, few enough for a table and a legend."""
_EXPECTED = (
    "what famnb.grid() returns, a list of fields such as [{'model': 'fam-2-5-pro'}], or a mapping of labels to fields"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """One way to ask: a label and the fields of its requests."""

    label: str
    """Its name in frames, unique in the experiment."""
    fields: Fields
    """`endpoint`, `model` and request fields, as they were given; `client` is the name of its own client."""
    client: BaseClient | None = dataclasses.field(default=None, repr=False)
    """Its own client; None for the experiment's."""
    losses: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    """Which of its fields its endpoint cannot carry in full, a clause each."""

    def endpoints(self, default: Endpoints) -> Endpoints:
        """The endpoints of its own client's service; `default`, the experiment's, without one."""
        return default if self.client is None else self.client.endpoints

    def __repr__(self) -> str:
        return f"<Variant {self.label!r}: {', '.join(f'{name}={value!r}' for name, value in self.fields.items())}>"


Variants: TypeAlias = "Iterable[Variant | Fields] | Mapping[str, Fields]"


def grid(*, where: Callable[[dict[str, Any]], bool] | None = None, **fields: Any) -> tuple[Variant, ...]:
    """Return every combination of the values given, a list a field; a single value is the same in all.

    `endpoint` and `model` are varied like any request field. `client={"old": a, "new": b}` sends each request to two
    services; the names are labels, and a combination has them in place of the clients. `where(combination)` keeps those
    for which it is true. A field whose value is itself a list needs a list of lists. Whether the endpoints take the
    fields and serve the models is checked by the experiment, which knows whose they are.
    """
    clients: dict[str, BaseClient] = {}
    if "client" in fields:
        source = fields.pop("client")
        named = (
            source.items() if isinstance(source, Mapping) else ((None, item) for item in _list_values("client", source))
        )
        for name, client in named:
            _name_client(client, name, clients)
        fields = {"client": list(clients), **fields}
    choices = {name: _list_values(name, values) for name, values in fields.items()}
    products = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    # A copy for `where`, which could change what it is given.
    combinations = [combination for combination in products if where is None or where(dict(combination))]
    if not combinations:
        raise InvalidRequest("grid: no combination is left; loosen where=")
    return _label_variants(combinations, clients)


def parse_variants(
    source: object, *, shared: Fields, endpoints: Endpoints = ENDPOINTS, arguments: Iterable[str] = ()
) -> tuple[Variant, ...]:
    """Return the variants of a grid, of a list of fields, each with an optional `label`, or of fields by label.

    They are checked together with the fields that all requests share; `endpoints` are those of variants without a
    client of their own, `arguments` what a misspelled field may have been meant to be. Raises InvalidRequest, naming
    the variant, for what cannot be sent.
    """
    match source:
        case None:
            items: list[Variant | Fields] = [{}]
        case Mapping():
            items = [{**_check_mapping(repr(label), fields), "label": label} for label, fields in source.items()]
        case Iterable() if not isinstance(source, str | bytes):
            items = list(source)
        case _:
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {source!r:.80}")
    if not items:
        raise InvalidRequest("variants: there are none; famnb.grid(model=[…]) makes some")
    clients: dict[str, BaseClient] = {}
    plain = []
    for index, item in enumerate(items):
        if not isinstance(item, Variant):
            fields = _check_mapping(str(index), item)
            client = fields.pop("client", None)
            plain.append(fields)
            if client is not None:
                fields["client"] = _name_client(client, fields.get("label"), clients)
    labelled = iter(_label_variants(plain, clients))
    variants = [item if isinstance(item, Variant) else next(labelled) for item in items]
    labels = [variant.label for variant in variants]
    if duplicates := {label for label in labels if labels.count(label) > 1}:
        raise InvalidRequest(f"variants: the label {min(duplicates)!r} occurs twice; give each variant its own")
    checked = []
    for variant in variants:
        fields, served = {**shared, **variant.fields}, variant.endpoints(endpoints)
        try:
            _check_fields(fields, served, arguments)
            request = build_request("?", fields, served)
        except InvalidRequest as error:
            if not variant.fields:  # so that what is wrong is the experiment's
                raise
            raise InvalidRequest(f"variant {variant.label!r}: {error}") from None
        checked.append(dataclasses.replace(variant, losses=tuple(request.losses)))
    return tuple(checked)


def _name_client(client: object, name: object, clients: dict[str, BaseClient]) -> str:
    """Add a client under a name, its address unless one is given, and return the name."""
    if not isinstance(client, BaseClient):
        raise InvalidRequest(
            "client: expected a famnb.Client, or in a grid several by name such as "
            f"client={{'old': a, 'new': b}}; got {client!r:.80}"
        )
    chosen = next((label for label, other in clients.items() if other is client), None) if name is None else str(name)
    if chosen is None:
        address = client.base_url()
        chosen = address if address not in clients else f"{address} #{len(clients) + 1}"
    clients[chosen] = client
    return chosen


def _check_mapping(location: str, source: object) -> dict[str, Any]:
    if not isinstance(source, Mapping):
        raise InvalidRequest(f"variants[{location}]: expected {_EXPECTED}; got {source!r:.80}")
    return {str(name): value for name, value in source.items()}


def build_request(prompt: str, fields: Fields, endpoints: Endpoints = ENDPOINTS) -> Request:
    """Return a prompt's request by a variant's fields: streamed unless they say otherwise, with usage asked for."""
    target = endpoint_of(fields, endpoints)
    options = {name: value for name, value in fields.items() if name not in TARGET_FIELDS}
    # Because only a stream has a time to first token.
    options.setdefault("stream", True)
    return compose(target.name, prompt, model=fields.get("model"), endpoints=endpoints, **options)


def endpoint_of(fields: Fields, endpoints: Endpoints = ENDPOINTS) -> Endpoint:
    """The endpoint of some fields: the one they name, else one that serves their model, else the default."""
    return resolve_endpoint(fields.get("endpoint"), fields.get("model"), endpoints)


def _check_fields(fields: Fields, endpoints: Endpoints, arguments: Iterable[str]) -> None:
    """Raise InvalidRequest unless the endpoint of some fields serves their model and takes each of them.

    `arguments` are what a caller takes besides fields, one of which may be meant by a name that no endpoint has.
    """
    prompt_fields = {target.request.prompt_field for target in endpoints.values()}
    names = {field for target in endpoints.values() for field in target.request.model_fields}
    names = names - prompt_fields | {*NEUTRAL_FIELDS, *TARGET_FIELDS}
    for name in fields:
        if name in prompt_fields:
            raise InvalidRequest(f"{name}: the prompts fill it; give texts as prompts, a system text as system=")
        if name not in names:
            similar = difflib.get_close_matches(name, [*arguments, *sorted(names)], 1, 0.5)
            hint = f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(sorted(names))}"
            raise InvalidRequest(f"{name}: no endpoint has such a field; {hint}")
    target, model = endpoint_of(fields, endpoints), fields.get("model")
    if model is not None and not target.serves(model):
        serving = [other.name for other in endpoints.values() if other.serves(model)]
        models = dict.fromkeys(name for other in endpoints.values() for name in other.models)
        hint = f"only {', '.join(serving)}" if serving else f"no endpoint does; there are {', '.join(models)}"
        raise InvalidRequest(f"endpoint {target.name!r} does not serve model {model!r} ({hint})")
    for name, value in fields.items():
        match name:
            case "tools":
                taking = [other.name for other in endpoints.values() if other.takes_tools]
            case "schema":
                taking = [other.name for other in endpoints.values() if other.traits.format]
            case _ if name in (*NEUTRAL_FIELDS, *TARGET_FIELDS):
                continue
            case _:
                taking = [other.name for other in endpoints.values() if name in other.request.model_fields]
        if value is not None and target.name not in taking:
            raise InvalidRequest(f"{name}: endpoint {target.name!r} does not take it (only {', '.join(taking)})")


def _list_values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return [values]
    # The numbers of a numpy range are neither int nor float to a request, which would refuse them.
    items = [value.item() if hasattr(value, "dtype") else value for value in values]
    if not items:
        raise InvalidRequest(f"grid: {name} has no values; give at least one, or leave it out")
    return items


def _label_variants(combinations: list[dict[str, Any]], clients: Mapping[str, BaseClient]) -> tuple[Variant, ...]:
    """Variants of some fields, labelled by their `label`, else by what tells them apart.

    `client` among the fields is one of the names in `clients`.
    """
    given = [fields.pop("label", None) for fields in combinations]
    return tuple(
        Variant(label, MappingProxyType(fields), clients.get(fields.get("client", "")))
        for label, fields in zip(label_fields(combinations, given), combinations, strict=True)
    )


def label_fields(settings: Sequence[Fields], given: Sequence[object]) -> list[str]:
    """Return a label for each of several settings: the given one, or what tells it apart if that is None."""
    names = dict.fromkeys(name for fields in settings for name in fields)
    varying = [name for name in names if len({_format_value(fields.get(name)) for fields in settings}) > 1]
    labels: list[str] = []
    for fields, label in zip(settings, given, strict=True):
        parts = [_format_field(name, fields[name]) for name in varying or TARGET_FIELDS if name in fields]
        text = ", ".join(shorten(part, MAX_LABEL_CHARS) for part in parts) or "default"
        labels.append(text if label is None else str(label))
    # What differs only beyond the part of a value that a label shows gets a number.
    return [
        f"{label} #{labels[: index + 1].count(label)}" if given[index] is None and labels.count(label) > 1 else label
        for index, label in enumerate(labels)
    ]


def _format_field(name: str, value: Any) -> str:
    """A field in a label; a mapping of one entry, such as {"effort": "low"}, is shown as that entry."""
    match value:
        case {**entries} if len(entries) == 1 and isinstance(only := next(iter(entries.values())), str | int | float):
            return f"{next(iter(entries))}={_format_value(only)}"
        case _:
            return _format_value(value) if name in TARGET_FIELDS else f"{name}={_format_value(value)}"


def _format_value(value: Any) -> str:
    """A field's value in a label."""
    match value:
        case str() | int() | float() | None:
            return str(value)
        case Mapping() | list() | tuple():
            try:
                return lenient_json.encode(value).decode()
            except TypeError:
                return str(value)
        case _:
            return str(getattr(value, "__name__", value))
