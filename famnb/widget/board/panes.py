"""The panes of a board: read from what users give as `variants`, named by what differs, edited, written as code."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS, Endpoints, compose, endpoint, resolve_endpoint
from famnb.errors import InvalidRequest
from famnb.record import prices
from famnb.record.price import service_names
from famnb.request import Request
from famnb.widget.form.draft import UNWRITTEN, draft_of, fault_text, form_fields, required_texts
from famnb.widget.form.editor import Editor
from famnb.widget.form.fields import FormField
from famnb.widget.form.images import PromptImage
from famnb.widget.form.python_code import Code, Target, experiment_name, variant_fields, write_call
from famnb.widget.form.views import FieldView, FormView
from famnb.widget.html import sanitize
from famnb.widget.runtime.view import View

Fields: TypeAlias = Mapping[str, Any]
_EXPECTED = (
    'a list with, for each pane, fields such as {"endpoint": "messages", "model": "fam-2-5-pro"}, a famnb request, '
    "or what famnb.grid() returns; or a mapping of labels to fields"
)
_TARGET_NAMES = ("client", "endpoint", "model")
"""The fields that say where a request goes, rather than what is in it."""


class BoardPaneView(View, frozen=True):
    """A pane's settings."""

    key: str
    label: str
    form: FormView
    system: str
    prompt: str
    """What it is asked next in place of what all are asked; empty if it is asked that."""
    remarks: tuple[str, ...]


class BoardPane:
    """The settings of a pane: what one variant sends, as its form holds it, and by which client."""

    def __init__(
        self,
        settings: Fields | Request,
        *,
        given_label: str = "",
        client: BaseClient | None = None,
        client_name: str = "",
        endpoints: Endpoints,
    ) -> None:
        """`settings` are fields as `famnb.compose` takes them, or a whole request; `open` reads them.

        `endpoints` are those of the service that is asked.
        """
        self.key = ""
        """Its name on the page, which no other pane of the board has; given by the board."""
        self.label = self.given_label = given_label
        """Its name, which no other pane has; the given one is empty if it is made of the settings."""
        self.client = client
        """Its own client; None for the board's."""
        self.client_name = client_name
        """What its own client is called."""
        self.losses: tuple[str, ...] = ()
        """What its endpoint cannot carry of the settings as they were given, a sentence each."""
        self.prompt = ""
        """What it is asked next in place of what all are asked."""
        self._settings = settings
        self._endpoints = endpoints

    def open(self) -> None:
        """Fill its form with the settings; raises InvalidRequest, naming the pane, if no request can have them."""
        settings, endpoints = self._settings, self._endpoints
        try:
            if isinstance(settings, Request):
                request = settings
            elif "prompt" in settings:
                raise InvalidRequest("prompt: every pane is asked the board's own prompt; leave it out")
            else:
                fields = {"stream": True, **settings}
                target = resolve_endpoint(fields.pop("endpoint", None) or None, fields.get("model") or None, endpoints)
                request = compose(target.name, UNWRITTEN, endpoints=endpoints, **fields)
            self.editor = Editor(endpoints=endpoints, endpoint=request.endpoint)
            self.editor.fill(draft_of(request, endpoints))
        except (InvalidRequest, TypeError) as error:
            raise InvalidRequest(f"pane {self.label!r}: {error}") from None
        self.losses = request.losses

    def follow_edit(self) -> None:
        """Be described by the form from now on; while that has faults, as before."""
        self.losses = ()
        try:
            self._settings = self.editor.request(self.editor.prompt or UNWRITTEN)
        except InvalidRequest:
            return

    def copy(self, *, taken: Sequence[tuple[str, str]]) -> BoardPane:
        """Return another pane with these settings, but an endpoint and model that are not `taken`, if there are any.

        Another model of the same endpoint comes first.
        """
        pane = BoardPane(
            self._settings, client=self.client, client_name=self.client_name, endpoints=self.editor.endpoints
        )
        pane.open()
        pane.editor.fill(self.editor.draft)
        own = self.editor.endpoint
        endpoints = (own, *self.editor.endpoints.values())
        targets = [(other.name, model) for other in endpoints for model in other.models]
        name, model = next((target for target in targets if target not in taken), self.target)
        if name != own.name:
            # That the model of the pane is not served there is no loss: another one is wanted.
            pane.editor.set_text("model", own.models[0])
            pane.editor.choose_endpoint(name)
        pane.editor.set_text("model", model)
        pane.follow_edit()
        return pane

    @property
    def target(self) -> tuple[str, str]:
        """Its endpoint and model."""
        return self.editor.endpoint.name, self.editor.raw.get(("model",), "")

    def request(self, prompt: str, *, system: str = "", pictures: Sequence[PromptImage] = ()) -> Request:
        """Return its request for a prompt, which begins a chat; raises InvalidRequest, naming the pane.

        The board's system text is sent where the pane has none of its own. Without a prompt a pane that was given a
        whole request sends that.
        """
        prompt, images = prompt or self.editor.prompt, tuple(pictures) or self.editor.pictures
        make_request = self.editor.turn_request if prompt.strip() else self.editor.request
        try:
            request = make_request(prompt, images, system=system)
        except InvalidRequest as error:
            raise InvalidRequest(f"pane {self.label!r}: {error}") from None
        return request.with_losses((*self.losses, *request.losses)) if self.losses else request

    @property
    def fault(self) -> str:
        """What is wrong with its settings; empty if nothing is."""
        return next((f"{self.label}: {fault_text(fault)}" for fault in self.editor.reading.faults.items()), "")

    @property
    def has_own_prompt(self) -> bool:
        """Whether it can be sent without a prompt of the board's."""
        return bool((self.prompt or self.editor.prompt).strip()) or self.editor.reading.replaced

    def view(self) -> BoardPaneView:
        """Return what the page shows of it."""
        return BoardPaneView(
            key=self.key,
            label=self.label,
            form=self.editor.view(),
            system=self.editor.system,
            prompt=self.prompt,
            remarks=self.editor.remarks,
        )

    def describe(self) -> dict[str, Any]:
        """Return the settings by name; client, endpoint and model first."""
        settings = self._settings
        client = {"client": self.client_name} if self.client_name else {}
        if isinstance(settings, Request):
            body = settings.body()
            usage_fields = endpoint(settings.endpoint, self._endpoints).traits.usage_fields
            hidden = {"model", "stream", *usage_fields, settings.prompt_field}
            rest = {name: value for name, value in body.items() if name not in hidden}
            return {**client, "endpoint": settings.endpoint, "model": body.get("model"), **rest}
        model = settings.get("model")
        name = settings.get("endpoint") or resolve_endpoint(None, model or None, self._endpoints).name
        rest = {name: value for name, value in settings.items() if name not in ("endpoint", "model", "stream")}
        return {**client, "endpoint": name, **({"model": model} if model else {}), **rest}


def read_variants(variants: object, endpoints: Endpoints = ENDPOINTS) -> list[BoardPane]:
    """Return the panes of `variants` as `Board` describes them; raises InvalidRequest, naming the pane.

    `endpoints` are those of the board's client, for variants without one of their own.
    """
    match variants:
        case Mapping():
            items = variants.items()
            panes = [_read_variant(item, f"variants[{label!r}]", endpoints, str(label)) for label, item in items]
        # A text and a request can be iterated over, too, and are no list of settings.
        case Iterable() if not isinstance(variants, str | bytes | Request):
            panes = [_read_variant(item, f"variants[{index}]", endpoints) for index, item in enumerate(variants)]
        case _:
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {variants!r:.80}")
    if not panes:
        raise InvalidRequest(f"variants: there are none; expected {_EXPECTED}")
    _name_clients(panes)
    name_panes(panes)
    duplicates = [label for label, count in Counter(pane.label for pane in panes).items() if count > 1]
    if duplicates:
        raise InvalidRequest(f"variants: {duplicates[0]!r} is the label of several panes; give each its own")
    for pane in panes:
        pane.open()
    return panes


def find_client(variants: object) -> BaseClient | None:
    """Return the client of the first of `variants`, if every one of them has its own; else None."""
    items = list(variants.values()) if isinstance(variants, Mapping) else variants
    if not isinstance(items, list | tuple):
        return None
    clients = [item.get("client") if isinstance(item, Mapping) else getattr(item, "client", None) for item in items]
    return next(iter(clients), None) if all(isinstance(client, BaseClient) for client in clients) else None


def _read_variant(item: Any, name: str, endpoints: Endpoints, label: str = "") -> BoardPane:
    """Return the pane of one variant; `name` is what an error calls it."""
    match item:
        case Request():
            return BoardPane(item, given_label=label, endpoints=endpoints)
        case Mapping():
            fields = {str(key): value for key, value in item.items()}
            client, client_name = fields.pop("client", None), ""
            label = str(fields.pop("label", "") or label)
        # A variant of `famnb.grid()`; not by its class, so that any object with label and fields will do.
        case _ if isinstance(getattr(item, "fields", None), Mapping):
            fields = dict(item.fields)
            client_name, client = str(fields.pop("client", "")), getattr(item, "client", None)
            label = label or str(getattr(item, "label", ""))
        case _:
            raise InvalidRequest(f"{name}: expected fields of a request, or a request; got {item!r:.80}")
    if client is not None and not isinstance(client, BaseClient):
        raise InvalidRequest(
            f"{name}: client: expected a famnb.Client, such as famnb.connect() gives; got {client!r:.80}"
        )
    endpoints = client.endpoints if client else endpoints
    return BoardPane(fields, given_label=label, client=client, client_name=client_name, endpoints=endpoints)


def _name_clients(panes: Sequence[BoardPane]) -> None:
    """Name the panes' own clients: as given, else by profile, and by address if a profile has several."""
    clients = {id(pane.client): pane.client for pane in panes if pane.client is not None}
    profiles = Counter(client.profile.name for client in clients.values())
    names: dict[int, str] = {}
    for pane in panes:
        client = pane.client
        if client is None:
            continue
        if id(client) not in names:
            is_only = profiles[client.profile.name] == 1
            name = pane.client_name or (client.profile.name if is_only else client.base_url())
            names[id(client)] = name if name not in names.values() else f"{name} #{len(names) + 1}"
        pane.client_name = names[id(client)]


def name_panes(panes: Sequence[BoardPane]) -> None:
    """Label every pane: as given, else by endpoint, model and the settings that differ between panes."""
    descriptions = [pane.describe() for pane in panes]
    differing = {
        name
        for name in {name for description in descriptions for name in description}
        if name in ("endpoint", "model") or len({repr(description.get(name)) for description in descriptions}) > 1
    }
    uses: Counter[str] = Counter(pane.given_label for pane in panes if pane.given_label)
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
        pane.label = sanitize.visible(label)


SHARED_FIELDS = ("max_tokens", "temperature", "top_p", "stop", "seed")
"""Fields that can be set for all panes at once, by the names that `famnb.compose` or the chat endpoint has for them."""
_OTHER_NAMES = {"stop": "stop_sequences"}


def share_text(panes: Sequence[BoardPane], name: str, text: str) -> None:
    """Write the text of a field, or nothing, in all panes that have it; raises InvalidRequest for another field."""
    if name not in SHARED_FIELDS:
        raise InvalidRequest(f"{name}: there is no such field for all panes; there are {', '.join(SHARED_FIELDS)}")
    # All endpoints take a list, and one text is easier to write.
    if name == "stop" and text.strip() and not text.lstrip().startswith("["):
        text = json.dumps([text], ensure_ascii=False)
    for pane, field in _find_fields(panes, name):
        required = required_texts(pane.editor.endpoint, pane.editor.endpoints)
        pane.editor.set_text(field.name, text if text.strip() else required.get(field.path, ""))
        pane.follow_edit()


def view_shared(panes: Sequence[BoardPane]) -> tuple[FieldView, ...]:
    """Return the fields that can be set for all panes; where panes differ they hold nothing."""
    views = []
    for name in SHARED_FIELDS:
        found = _find_fields(panes, name)
        texts = {pane.editor.raw.get(field.path, "") for pane, field in found}
        text = texts.pop() if len(texts) == 1 else ""
        faults = [pane.editor.reading.faults.get(field.path, "") for pane, field in found if text]
        for _, field in found[:1]:
            shown = re.sub(r'^\["([^"\\]*)"\]$', r"\1", text) if name == "stop" else text
            views.append(FieldView(key=name, control=field, text=shown, fault=next(filter(None, faults), "")))
    return tuple(views)


def _find_fields(panes: Iterable[BoardPane], name: str) -> list[tuple[BoardPane, FormField]]:
    """Return the panes whose endpoint has a field of that meaning, with the field."""
    found = []
    for pane in panes:
        target = pane.editor.endpoint
        names = (target.request.cap if name == "max_tokens" else name, _OTHER_NAMES.get(name))
        found += [(pane, field) for field in form_fields(target) if field.name in names][:1]
    return found


REPEATS = 5
"""How often each prompt of an experiment is asked, at first: fewer show no spread."""


def write_experiment(
    prompts: Sequence[str],
    panes: Sequence[BoardPane],
    *,
    system: str,
    client: BaseClient,
    rows: Sequence[Mapping[str, str]],
) -> str:
    """Return a cell that makes an experiment of these prompts and of the settings of these panes of a client's board.

    With `rows` of values there is one prompt, the template that they fill. The cell shows the forecast; the line that
    runs the experiment is a comment, since running costs money. A budget is in it if all variants have a price.
    """
    clients: dict[BaseClient, str] = {}
    settings: list[dict[str, Any]] = []
    seen = set()
    shared: Request | None = None
    has_prices = True
    for pane in panes:
        request = pane.request(UNWRITTEN, system=system)
        # The same settings once: panes may differ in their prompts alone.
        if (request.key(), pane.client) in seen:
            continue
        seen.add((request.key(), pane.client))
        sender = pane.client or client
        fields = variant_fields(request, sender.endpoints)
        if pane.client is None:
            # Which of the document's two addresses it is depends on what is sent there.
            shared = shared or request
        else:
            # Panes that were added later may have clients with names like others.
            is_new = pane.client_name not in clients.values()
            name = pane.client_name if is_new else f"{pane.client_name} #{len(clients) + 1}"
            fields = {"client": Code(f"clients[{clients.setdefault(pane.client, name)!r}]"), **fields}
        settings.append({**({"label": pane.given_label} if pane.given_label else {}), **fields})
        services = service_names(sender.base_url(request.endpoint), sender.profile.name)
        has_prices &= prices.price(getattr(request, "model", ""), service=services) is not None
    lines = ["import famnb", ""]
    if shared:
        lines.append(f"client = {Target.of_client(client, shared.endpoint).client_expression}")
    if clients:
        lines += ["# Each reads its key from the variable of its profile; fill in what else it needs.", "clients = {"]
        lines += [f"    {name!r}: {Target.of_client(item).client_expression}," for item, name in clients.items()]
        lines.append("}")
    call = write_call(
        "experiment = famnb.Experiment",
        list(map(dict, rows)) if rows else list(prompts),
        **({"template": prompts[0]} if rows else {}),
        variants=settings,
        repeats=REPEATS,
        name=experiment_name(prompts[0] if prompts else ""),
        client=Code("client" if shared else f"clients[{next(iter(clients.values()))!r}]"),
    )
    run = f"# experiment.run({'budget_usd=1.0' if has_prices else ''}); experiment.summary()"
    return "\n".join([*lines, call, run, "experiment.forecast()"])
