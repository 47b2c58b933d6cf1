"""The panes of a board as the user edits them.

`SharedFields` are the settings that are written once for all panes; a pane with its own text in such a field keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from famnb.client.client import BaseClient
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.board.pane_settings import PaneSettings, make_labels
from famnb.widget.form.draft import (
    UNWRITTEN,
    draft_of,
    fault_text,
    form_fields,
    read_request,
    replace_prompt,
    required_texts,
)
from famnb.widget.form.editor import Editor
from famnb.widget.form.fields import FormField
from famnb.widget.form.images import PromptImage
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.form.views import FieldView, FormView, field_view
from famnb.widget.html import sanitize
from famnb.widget.runtime.view import View


class OverrideView(View, frozen=True):
    """A field that is set for all panes, where a pane has another text; its key is the field's name for all panes."""

    key: str
    text: str
    """What the pane has; empty if its endpoint has no such field."""
    shared: str
    """What the others have."""


class BoardPaneView(View, frozen=True):
    """A pane's settings."""

    key: str
    label: str
    form: FormView
    system: str
    remarks: tuple[str, ...]
    overrides: tuple[OverrideView, ...]


class BoardPane:
    """The settings of a pane, which can be edited.

    As they were given they are sent as they were given; once edited, it is the form's request that is sent.
    """

    def __init__(self, key: str, settings: PaneSettings) -> None:
        self.key = key
        self.settings = settings
        """What it sends, and by which client; its label is the one that it had at first."""
        self.label = settings.label
        """Its name, which no other pane has."""
        self.shared: set[str] = set()
        """The fields whose text is that of all panes, by the names of `SharedFields`."""
        request = settings.example()
        self.editor = Editor(
            endpoints=settings.endpoints,
            endpoint=request.endpoint,
            prompt="",
            system="",
            tool_picker=ToolPicker({}, None),
        )
        self.editor.fill(draft_of(request, settings.endpoints))
        if not isinstance(settings.settings, Request):
            self.editor.prompt = ""
        self._is_edited = False

    @property
    def client(self) -> BaseClient | None:
        """Its own client; None for the board's."""
        return self.settings.client

    def use_form(self) -> None:
        """Send from now on what the form holds."""
        self._is_edited = True
        # What a pane is called follows its form; while that has faults, it keeps its name.
        draft = self.editor.draft
        try:
            request = read_request(dataclasses.replace(draft, prompt=draft.prompt or UNWRITTEN))
        except InvalidRequest:
            return
        self.settings = dataclasses.replace(self.settings, settings=request)

    def copy(self, key: str, *, taken: Sequence[tuple[str, str]]) -> BoardPane:
        """Return another pane with these settings, but an endpoint and model that are not `taken`, if there are any.

        Another model of the same endpoint comes first.
        """
        pane = BoardPane(key, dataclasses.replace(self.settings, label="", given_label=""))
        pane.editor.fill(self.editor.draft)
        endpoint = self.editor.endpoint
        endpoints = (endpoint, *self.editor.endpoints.values())
        targets = [(other.name, model) for other in endpoints for model in other.models]
        name, model = next((target for target in targets if target not in taken), self.target)
        if name != endpoint.name:
            # That the model of the pane is not served there is no loss: another one is wanted.
            pane.editor.set_text("model", endpoint.models[0])
            pane.editor.choose_endpoint(name)
        pane.editor.set_text("model", model)
        pane.shared = set(self.shared)
        pane.use_form()
        return pane

    @property
    def target(self) -> tuple[str, str]:
        """Its endpoint and model."""
        return self.editor.endpoint.name, self.editor.raw.get(("model",), "")

    # What it sends

    def request(self, prompt: str, *, system: str = "", pictures: Sequence[PromptImage] = ()) -> Request:
        """Return its request for a prompt, which begins a chat; raises InvalidRequest, naming the pane.

        The board's system text is sent where the pane has none of its own.
        """
        if not self._is_edited and not pictures:
            return dataclasses.replace(self.settings, label=self.label).request(prompt, system=system)
        draft = self.editor.draft
        prompt = prompt or draft.prompt
        images = tuple(pictures) or draft.pictures
        draft = dataclasses.replace(draft, prompt=prompt, system=draft.system or system, pictures=images)
        try:
            request = read_request(draft)
            return replace_prompt(request, prompt, images, self.editor.endpoints) if prompt else request
        except InvalidRequest as error:
            raise InvalidRequest(f"pane {self.label!r}: {error}") from None

    @property
    def fault(self) -> str:
        """What is wrong with its settings; empty if nothing is."""
        faults = self.editor.reading.faults if self._is_edited else {}
        return next((f"{self.label}: {fault_text(fault)}" for fault in faults.items()), "")

    @property
    def has_own_prompt(self) -> bool:
        """Whether it can be sent without a prompt of the board's."""
        return isinstance(self.settings.settings, Request) and (
            not self._is_edited or bool(self.editor.prompt.strip()) or self.editor.reading.replaced
        )


def name_panes(panes: Sequence[BoardPane]) -> None:
    """Give every pane that the user has not named the name that tells it from the others."""
    for pane, label in zip(panes, make_labels([pane.settings for pane in panes]), strict=True):
        pane.label = sanitize.visible(label)


SHARED_FIELDS = ("max_tokens", "temperature", "top_p")
"""By the names that `famnb.compose` has for them, whatever an endpoint calls them."""


class SharedFields:
    """The texts of these fields, and how panes take them over."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        """What is written, by field; a field that is not set is left out."""

    def set_text(self, name: str, text: str, panes: Iterable[BoardPane]) -> None:
        """Write a text, or nothing, and have panes take it over; raises InvalidRequest for another field."""
        if name not in SHARED_FIELDS:
            raise InvalidRequest(f"{name}: there is no such field for all panes; there are {', '.join(SHARED_FIELDS)}")
        if text.strip():
            self._texts[name] = text
        else:
            self._texts.pop(name, None)
        for pane in panes:
            self._share(pane, name)

    def fill(self, pane: BoardPane) -> None:
        """Have a pane take over what is written, where it has nothing of its own."""
        for name in self._texts:
            self._share(pane, name)

    def reset(self, pane: BoardPane, name: str) -> None:
        """Have a pane give up its own text of a field."""
        pane.shared.add(name)
        self._share(pane, name)

    def follow_edit(self, pane: BoardPane, path: str) -> None:
        """Notice that a field of a pane was edited there: another text is its own, none is that of all panes."""
        for name in self._texts:
            field = _find_field(pane, name)
            if field is not None and field.name == path:
                pane.shared.discard(name)
                if _text(pane, field) == self._texts[name]:
                    pane.shared.add(name)
                self._share(pane, name)

    def _share(self, pane: BoardPane, name: str) -> None:
        field = _find_field(pane, name)
        if field is None:
            return
        # Empty, or what its endpoint asks for in every request, is nothing of its own.
        required = required_texts(pane.editor.endpoint, pane.editor.endpoints).get(field.path, "")
        if name not in pane.shared and _text(pane, field) not in ("", required):
            return
        text = self._texts.get(name, "")
        if text:
            pane.shared.add(name)
        else:
            pane.shared.discard(name)
        if text != _text(pane, field):
            pane.editor.set_text(field.name, text or required)
            pane.use_form()

    def view(self, panes: Sequence[BoardPane]) -> tuple[FieldView, ...]:
        """Return the fields that any pane has, by their names for all panes, and what is wrong with them."""
        views = []
        for name in SHARED_FIELDS:
            found = [(pane, field) for pane in panes if (field := _find_field(pane, name))]
            faults = (pane.editor.reading.faults.get(field.path) for pane, field in found if name in pane.shared)
            for pane, field in found[:1]:
                text, fault = self._texts.get(name, ""), next(filter(None, faults), "")
                view = field_view(pane.editor.endpoint, field, text=text, fault=fault)
                views.append(FieldView(key=name, control=view.control, text=text, fault=fault))
        return tuple(views)

    def view_pane(self, pane: BoardPane) -> BoardPaneView:
        """Return the settings of a pane, and in which fields it does not have the text that is written for all."""
        fields = {name: _find_field(pane, name) for name in self._texts if name not in pane.shared}
        return BoardPaneView(
            key=pane.key,
            label=pane.label,
            form=pane.editor.view(),
            system=pane.editor.system,
            remarks=pane.editor.remarks,
            overrides=tuple(
                OverrideView(key=name, text="" if field is None else _text(pane, field), shared=self._texts[name])
                for name, field in fields.items()
            ),
        )


def _find_field(pane: BoardPane, name: str) -> FormField | None:
    """Return the field that a pane's endpoint has for one of all panes; None if it has none such."""
    endpoint = pane.editor.endpoint
    path = (endpoint.request.cap if name == "max_tokens" else name,)
    return next((field for field in form_fields(endpoint) if field.path == path), None)


def _text(pane: BoardPane, field: FormField) -> str:
    return pane.editor.raw.get(field.path, "")
