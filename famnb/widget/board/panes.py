"""The panes of a board: read from what users give as `variants`, named by what differs, edited, written as code."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from famnb.client.client import BaseClient
from famnb.endpoints import ENDPOINTS, Endpoints
from famnb.errors import InvalidRequest
from famnb.experiment.variants import Fields, Variant, build_request, label_fields
from famnb.profiles import DEFAULT
from famnb.record import prices
from famnb.record.ledger import Ledger, ledger_of
from famnb.request import Request
from famnb.widget.form.draft import UNWRITTEN, draft_of, form_fields, required_texts
from famnb.widget.form.editor import Editor, FieldView, FormView
from famnb.widget.form.fields import FormField
from famnb.widget.form.images import PromptImage
from famnb.widget.form.python_code import Code, Target, experiment_name, variant_fields, write_call
from famnb.widget.html import sanitize
from famnb.widget.runtime.view import View

_EXPECTED = (
    'a list with, for each pane, the name of a model, fields such as {"endpoint": "messages", "thinking": 1024}, a '
    "famnb request, or what famnb.grid() returns; or a mapping of labels to these"
)


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
        label: str = "",
        client: BaseClient | None = None,
        client_name: str = "",
        endpoints: Endpoints,
    ) -> None:
        """`settings` are fields as `famnb.compose` takes them, or a whole request.

        `endpoints` are those of the service that is asked. Raises InvalidRequest if no request can have the settings.
        """
        self.key = ""
        """Its name on the page, which no other pane of the board has; given by the board."""
        self.label = self.given_label = label
        """Its name, which no other pane has; the given one is empty if it is made of the settings."""
        self.client = client
        """Its own client; None for the board's."""
        self.client_name = client_name
        """What its own client is called."""
        self.prompt = ""
        """What it is asked next in place of what all are asked."""
        request = settings if isinstance(settings, Request) else build_request(UNWRITTEN, settings, endpoints)
        self.editor = Editor(endpoints=endpoints, endpoint=request.endpoint)
        self.editor.fill(draft_of(request, endpoints))
        self.editor.losses = request.losses
        self._fields: Fields = {}

    def describe(self) -> Fields:
        """Return what names it: its settings, those of the last time that the form had no fault, and its client."""
        if (request := self.editor.reading.request) is not None:
            client = {"client": self.client_name} if self.client else {}
            self._fields = {**client, **variant_fields(request, self.editor.endpoints)}
        return self._fields

    def variant(self, *, system: str = "") -> dict[str, Any]:
        """Return its settings as a variant has them, without a label; the board's `system` counts if it has none.

        Raises InvalidRequest, naming the pane, for settings that no request can have.
        """
        return variant_fields(self.request(UNWRITTEN, system=system), self.editor.endpoints)

    def copy(self, *, taken: Sequence[tuple[str, str]]) -> BoardPane:
        """Return another pane with these settings, but an endpoint and model that are not `taken`, if there are any.

        Another model of the same endpoint comes first.
        """
        first, others = self.editor.endpoint, self.editor.endpoints
        pane = BoardPane({"endpoint": first.name}, client=self.client, client_name=self.client_name, endpoints=others)
        pane.editor.fill(self.editor.draft)
        targets = [(other.name, model) for other in (first, *others.values()) for model in other.models]
        name, model = next((target for target in targets if target not in taken), self.target)
        if name != first.name:
            # That the model of the pane is not served there is no loss: another one is wanted.
            pane.editor.set_text("model", first.models[0])
            pane.editor.choose_endpoint(name)
        pane.editor.set_text("model", model)
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
        editor = self.editor
        try:
            request = editor.request(prompt or editor.prompt, pictures or editor.pictures, system=system)
        except InvalidRequest as error:
            raise InvalidRequest(f"pane {self.label!r}: {error}") from None
        return request.with_losses((*editor.losses, *request.losses)) if editor.losses else request

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


def read_variants(variants: object, endpoints: Endpoints = ENDPOINTS) -> list[BoardPane]:
    """Return the panes of `variants` as `Board` describes them; raises InvalidRequest, naming the pane.

    `endpoints` are those of the board's client, for variants without one of their own.
    """
    match variants:
        case Mapping():
            items = [(str(label), item) for label, item in variants.items()]
        # A text and a request can be iterated over, too, and are no list of settings.
        case Iterable() if not isinstance(variants, str | bytes | Request):
            items = [("", item) for item in variants]
        case _:
            raise InvalidRequest(f"variants: expected {_EXPECTED}; got {variants!r:.80}")
    if not items:
        raise InvalidRequest(f"variants: there are none; expected {_EXPECTED}")
    panes = [_read_variant(label, item, index, endpoints) for index, (label, item) in enumerate(items)]
    labels = [pane.given_label for pane in panes if pane.given_label]
    if duplicates := [label for label in labels if labels.count(label) > 1]:
        raise InvalidRequest(f"variants: {duplicates[0]!r} is the label of several panes; give each its own")
    name_panes(panes)
    return panes


def find_client(variants: object) -> BaseClient | None:
    """Return the client of the first of `variants`, if every one of them has its own; else None."""
    items = variants.values() if isinstance(variants, Mapping) else variants
    if not isinstance(items, Collection):
        return None
    clients = [item.get("client") if isinstance(item, Mapping) else getattr(item, "client", None) for item in items]
    return next(iter(clients), None) if all(isinstance(client, BaseClient) for client in clients) else None


def _read_variant(label: str, item: object, index: int, endpoints: Endpoints) -> BoardPane:
    settings: dict[str, Any] | Request
    client, client_name, name = None, "", f"variants[{label or index!r}]"
    match item:
        case Request():
            settings = item
        case Variant():
            settings, client, label = {**item.fields}, item.client, label or item.label
            client_name = str(settings.pop("client", ""))
        case str():
            settings = {"model": item}
        case Mapping():
            settings = {str(field): value for field, value in item.items()}
            client, label = settings.pop("client", None), str(settings.pop("label", "") or label)
            if "prompt" in settings:
                raise InvalidRequest(f"{name}: prompt: every pane is asked the board's own prompt; leave it out")
        case _:
            raise InvalidRequest(f"{name}: expected fields of a request, or a request; got {item!r:.80}")
    if isinstance(client, BaseClient):
        endpoints = client.endpoints
        client_name = client_name or (client.base_url() if client.profile.name == DEFAULT else client.profile.name)
    elif client is not None:
        raise InvalidRequest(
            f"{name}: client: expected a famnb.Client, such as famnb.connect() gives; got {client!r:.80}"
        )
    try:
        return BoardPane(settings, label=label, client=client, client_name=client_name, endpoints=endpoints)
    except (InvalidRequest, TypeError) as error:
        raise InvalidRequest(f"{name}: {error}") from None


def name_panes(panes: Sequence[BoardPane]) -> None:
    """Label every pane: as given, else by the settings that differ between panes, as an experiment names variants."""
    labels = label_fields([pane.describe() for pane in panes], [pane.given_label or None for pane in panes])
    for pane, label in zip(panes, labels, strict=True):
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
    variants: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []
    shared_endpoint = ""
    has_prices = True
    for pane in panes:
        fields = pane.variant(system=system)
        if pane.client is None:
            # Which of the document's two addresses it is depends on what is sent there.
            shared_endpoint = shared_endpoint or fields["endpoint"]
        else:
            # Panes that were added later may have clients with names like others.
            is_new = pane.client_name not in clients.values()
            name = pane.client_name if is_new else f"{pane.client_name} #{len(clients) + 1}"
            fields = {"client": Code(f"clients[{clients.setdefault(pane.client, name)!r}]"), **fields}
        # The same settings once: panes may differ in their prompts alone.
        if fields not in seen:
            seen.append(fields)
            variants.append({**({"label": pane.given_label} if pane.given_label else {}), **fields})
        has_prices &= prices.price(fields["model"], service=(pane.client or client).profile.name) is not None
    lines = ["import famnb", ""]
    if shared_endpoint:
        lines.append(f"client = {_client_expression(client, shared_endpoint)}")
    if clients:
        lines += ["# Each reads its key from the variable of its profile; fill in what else it needs.", "clients = {"]
        lines += [textwrap.indent(f"{name!r}: {_client_expression(item)},", "    ") for item, name in clients.items()]
        lines.append("}")
    call = write_call(
        "experiment = famnb.Experiment",
        list(map(dict, rows)) if rows else list(prompts),
        **({"template": prompts[0]} if rows else {}),
        variants=variants,
        repeats=REPEATS,
        name=experiment_name(prompts[0] if prompts else ""),
        client=Code("client" if shared_endpoint else f"clients[{next(iter(clients.values()))!r}]"),
    )
    run = f"# experiment.run({'budget_usd=1.0' if has_prices else ''}); experiment.summary()"
    return "\n".join([*lines, call, run, "experiment.forecast()"])


def _client_expression(client: BaseClient, endpoint_name: str | None = None) -> str:
    """Return a client as an expression, with its ledger unless it is your own: answers and grades are kept there."""
    path = ledger_of(client).path
    return Target.of_client(client, endpoint_name).client_expression(None if path == Ledger().path else path)
