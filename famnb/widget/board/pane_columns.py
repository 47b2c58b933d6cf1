"""The panes of a board as the user edits them: what each sends, and the turns that it has had.

`SharedFields` are the settings that are written once for all panes; a pane with its own text in such a field keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from famnb.client.client import BaseClient
from famnb.client.conversation import Turn, requests_after
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.board.pane_settings import PaneSettings, make_labels
from famnb.widget.form.draft import draft_of, fault_text, form_fields, read_request, replace_prompt, required_texts
from famnb.widget.form.editor import Editor
from famnb.widget.form.images import PromptImage
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.html import sanitize


class PaneColumn:
    """One pane of a board: its settings, which can be edited, and its talk.

    Settings as they were given are sent as they were given; once edited, it is the form's request that is sent.
    """

    def __init__(self, id: str, settings: PaneSettings, *, before: Turn | None = None) -> None:
        """`before` is the turn that its talk goes on from."""
        self.id = id
        self.settings = settings
        """What it sends, and by which client; its label is the one that it had at first."""
        self.label = settings.label
        """Its name, which no other pane has."""
        self.before = before
        self.shared: set[str] = set()
        """The fields whose text is that of all panes, by the names of `SharedFields`."""
        self.turns: dict[int, Turn] = {}
        """Its turns by the number of the round."""
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
            request = read_request(dataclasses.replace(draft, prompt=draft.prompt or "…"))
        except InvalidRequest:
            return
        self.settings = dataclasses.replace(self.settings, settings=request)

    # Its fields

    def shared_field(self, name: str) -> str | None:
        """Return what its endpoint calls a field that panes share; None if it has none such."""
        cap = self.editor.endpoint.request.cap
        field = cap if name == "max_tokens" else name
        is_there = any(control.path == (field,) for control in form_fields(self.editor.endpoint))
        return field if is_there else None

    def text(self, field: str) -> str:
        """Return the text in a field; empty if it is not set."""
        return self.editor.raw.get((field,), "")

    def has_own_text(self, field: str) -> bool:
        """Whether there is a text in a field that its endpoint does not ask for in every request."""
        return self.text(field) not in ("", self._required_text(field))

    def set_text(self, field: str, text: str) -> None:
        """Write the text of a field; for an empty one, what its endpoint needs there."""
        self.editor.set_text(field, text or self._required_text(field))
        self.use_form()

    def _required_text(self, field: str) -> str:
        return required_texts(self.editor.endpoint, self.editor.endpoints).get((field,), "")

    def describe_field(self, field: str) -> dict[str, Any]:
        """Return what to draw for a field."""
        groups = self.editor.describe_fields()["groups"]
        return next(control for group in groups for control in group["fields"] if control["path"] == field)

    def fault_of(self, field: str) -> str:
        """Return what is wrong with a field; empty if nothing is."""
        return self.editor.reading.faults.get((field,), "")

    # What it sends

    def request(self, prompt: str, *, system: str = "", pictures: Sequence[PromptImage] = ()) -> Request:
        """Return its request for a prompt, which begins a talk; raises InvalidRequest, naming the pane.

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

    def turn_request(
        self, prompt: str, number: int, *, system: str = "", pictures: Sequence[PromptImage] = ()
    ) -> Request:
        """Return its request for the round of that number, all turns before it repeated."""
        request = self.request(prompt, system=system, pictures=pictures)
        return requests_after(self.last_turn(number), request, self.editor.endpoints)[-1]

    def last_turn(self, number: int) -> Turn | None:
        """Return the turn that one of that round follows: a turn that failed is left out of the talk."""
        earlier = [self.turns[other] for other in sorted(self.turns) if other < number]
        return next((turn for turn in reversed(earlier) if turn.can_continue), self.before)

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

    def copy(self, id: str, *, taken: Sequence[tuple[str, str]]) -> PaneColumn:
        """Return another pane with these settings, but an endpoint and model that are not `taken`, if there are any.

        Another model of the same endpoint comes first.
        """
        settings = dataclasses.replace(self.settings, label="", given_label="")
        column = PaneColumn(id, settings, before=self.before)
        column.editor.fill(self.editor.draft)
        own = self.editor.endpoint
        endpoints = (own, *self.editor.endpoints.values())
        targets = [(other.name, model) for other in endpoints for model in other.models]
        name, model = next((target for target in targets if target not in taken), self.target)
        if name != own.name:
            # That the model of the pane is not served there is no loss: another one was wanted.
            column.editor.set_text("model", own.models[0])
            column.editor.choose_endpoint(name)
        column.editor.set_text("model", model)
        column.shared = set(self.shared)
        column.use_form()
        return column

    @property
    def target(self) -> tuple[str, str]:
        """Its endpoint and model."""
        return self.editor.endpoint.name, self.editor.raw.get(("model",), "")

    @property
    def fields_key(self) -> str:
        """Tells the fields of its form from those of other endpoints and services."""
        return f"{id(self.editor.endpoints)} {self.editor.endpoint.name}"

    def describe(self) -> dict[str, Any]:
        """Return what the page draws of it."""
        return {
            "id": self.id,
            "label": self.label,
            "target": " · ".join(name for name in self.target if name and name not in self.label),
            "fields": self.fields_key,
            "form": self.editor.describe_values(),
        }


def name_columns(columns: Sequence[PaneColumn]) -> None:
    """Give every pane that the user has not named the name that tells it from the others."""
    labels = make_labels([column.settings for column in columns])
    for column, label in zip(columns, labels, strict=True):
        column.label = sanitize.visible(label)


SHARED_FIELDS = ("max_tokens", "temperature", "top_p")
"""By the names that `famnb.compose` has for them, whatever an endpoint calls them."""


class SharedFields:
    """The texts of these fields, and how panes take them over."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        """What is written, by field; a field that is not set is left out."""

    def set_text(self, name: str, text: str, columns: Iterable[PaneColumn]) -> None:
        """Write a text, or nothing, and have panes take it over; raises InvalidRequest for another field."""
        if name not in SHARED_FIELDS:
            raise InvalidRequest(f"{name}: there is no such field for all panes; there are {', '.join(SHARED_FIELDS)}")
        if text.strip():
            self.texts[name] = text
        else:
            self.texts.pop(name, None)
        for column in columns:
            self._share(column, name)

    def fill(self, column: PaneColumn) -> None:
        """Have a pane take over what is written, where it has nothing of its own."""
        for name in self.texts:
            self._share(column, name)

    def reset(self, column: PaneColumn, name: str) -> None:
        """Have a pane give up its own text of a field."""
        column.shared.add(name)
        self._share(column, name)

    def follow_edit(self, column: PaneColumn, field: str) -> None:
        """Notice that a field of a pane was edited there: another text is its own, none is that of all panes."""
        for name in self.texts:
            if column.shared_field(name) == field:
                column.shared.discard(name)
                if column.text(field) == self.texts[name]:
                    column.shared.add(name)
                self._share(column, name)

    def _share(self, column: PaneColumn, name: str) -> None:
        field = column.shared_field(name)
        if field is None or (column.has_own_text(field) and name not in column.shared):
            return
        text = self.texts.get(name, "")
        if text:
            column.shared.add(name)
        else:
            column.shared.discard(name)
        if text != column.text(field):
            column.set_text(field, text)

    def describe(self, columns: Iterable[PaneColumn]) -> dict[str, Any]:
        """Return the fields to draw that any pane has, their texts, and what is wrong with them."""
        fields: dict[str, dict[str, Any]] = {}
        faults: dict[str, str] = {}
        for column in columns:
            for name in SHARED_FIELDS:
                field = column.shared_field(name)
                if field is None:
                    continue
                if name not in fields:
                    fields[name] = {**column.describe_field(field), "path": name}
                if name in column.shared and (fault := column.fault_of(field)):
                    faults[name] = fault
        return {
            "fields": [fields[name] for name in SHARED_FIELDS if name in fields],
            "texts": self.texts,
            "faults": faults,
        }

    def describe_own(self, column: PaneColumn) -> list[dict[str, str]]:
        """Return in which fields a pane does not have the text that is written for all: its own, or none at all."""
        own = []
        for name, text in self.texts.items():
            field = column.shared_field(name)
            if field is None:
                own.append({"name": name, "text": "", "shared": text})
            elif name not in column.shared:
                own.append({"name": name, "text": column.text(field), "shared": text})
        return own
